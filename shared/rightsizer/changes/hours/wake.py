"""A stopped endpoint starts again: whether an order wakes something, when it serves, and with the same code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.changes.hours import demand_at
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, HoursState, ModelBefore
from rightsizer.domain.live_state import EndpointSight
from rightsizer.domain.office_hours import HoursLimits, lead_time
from rightsizer.domain.policy import TICK
from rightsizer.domain.reason import Code, Reason, time_text

ASLEEP = frozenset({HoursState.STOPPING, HoursState.STOPPED})
"""States that a person calls asleep: deleted by us, or on the way to it."""


@dataclass(frozen=True, slots=True)
class WakeTimes:
    """The times that an order to be awake brings about."""

    serves_by: datetime
    """When it should serve, by its own starts."""
    until: datetime
    """Until when it stays; its office hours and the longest wake aside."""


def wake_times(record: HoursRecord, stay: timedelta, limits: HoursLimits, now: datetime) -> WakeTimes:
    """When the endpoint should serve after an order of `now`, and until when.

    The stay counts from then, since nobody can call it before; the longest wake counts from the order.
    """
    wake = record.wake_at(now)
    if wake is None:
        serves_by = now + lead_time(record.starts)
    elif record.state is HoursState.RUNNING:
        serves_by = now
    else:
        serves_by = max(now, wake.at + lead_time(record.starts))
    return WakeTimes(serves_by, min(serves_by + stay, now + limits.longest_wake))


def awake_until(record: HoursRecord, now: datetime) -> datetime | None:
    """The end of the longest wake that holds at `now`; None where none does."""
    return max((w.until for w in record.wakes if w.at <= now < w.until), default=None)


def wakes_left(record: HoursRecord, limits: HoursLimits, now: datetime) -> int:
    """How many wakes the endpoint may still be given within the 24 hours that end at `now`."""
    return max(0, limits.wakes_a_day - sum(w.at > now - timedelta(days=1) for w in record.wakes))


def wake_refusal(record: HoursRecord, limits: HoursLimits, now: datetime) -> Reason | None:
    """Why there is nothing to wake, with the remedy; None where there is, or where a wake may last longer."""
    if record.state is HoursState.HANDED_OVER:
        return handed_over(record)
    if awake_until(record, now) is not None:
        return None
    demand = demand_at(record, now, limits.holidays)
    if record.state is HoursState.RUNNING:
        ends = f"; its hours end on {time_text(demand.changes_at)}" if demand.runs and demand.changes_at else ""
        remedy = "where it is needed longer, change its tag rightsizer:hours, or wake it once it is asleep"
        return Reason(Code.ALREADY_RIGHT, f"it is not asleep{ends}; {remedy}")
    if not demand.runs:
        return None
    hour = f" of {time_text(demand.serves_at)}" if demand.serves_at else ""
    return Reason(Code.ALREADY_RIGHT, f"it is being started already, for its hours{hour}")


def handed_over(record: HoursRecord) -> Reason:
    """The reason for which no order counts: nothing is started by itself any more."""
    why = record.reason.sentence if record.reason else "nothing is done by itself any more"
    return Reason(Code.NEEDS_APPROVAL, f"it was handed over, so a person brings it back: {why}")


def is_covered(record: HoursRecord, times: WakeTimes, now: datetime) -> bool:
    """Whether a wake that holds lasts as long as these times ask, so that the order adds nothing."""
    until = awake_until(record, now)
    return until is not None and times.until <= until + TICK


def code_differences(before: EndpointBefore, endpoint: EndpointSight) -> tuple[str, ...]:
    """Sentences about images that mean other code than before the stop; empty where the code is the same."""
    was = dict(before.images)
    pairs = dict.fromkeys(pair for variant in endpoint.variants for pair in variant.resolved_images)
    return tuple(
        f"the image {name} was {was[name]} before it was stopped, and is {now} since it was created again"
        for name, now in pairs
        if name in was and was[name] != now
    )


def model_problem(before: EndpointBefore, now: Mapping[str, ModelBefore]) -> str:
    """A sentence about the first of its models that is gone or was made anew; empty where none is."""
    for was in before.models:
        model = now.get(was.name)
        if model is None:
            return f"model {was.name} was deleted while it was stopped"
        if _content(model) != _content(was):
            return f"model {was.name} was made anew with other content while it was stopped"
    return ""


def data_differences(before: EndpointBefore, now: Mapping[str, ModelBefore]) -> tuple[str, ...]:
    """Sentences about model data that was written while it was stopped; what could not be listed says nothing."""
    pairs = ((was, now.get(was.name)) for was in before.models)
    return tuple(
        f"the model data of {was.name} was written while it was stopped, and it serves the new one since"
        for was, model in pairs
        if model is not None and was.data and model.data and was.data != model.data
    )


def _content(model: ModelBefore) -> str:
    return json.dumps(model.body, sort_keys=True, default=str)
