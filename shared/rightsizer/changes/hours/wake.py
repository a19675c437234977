"""Whether an order to wake an endpoint has something to wake, and when the endpoint serves then."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.changes.hours import demand_at
from rightsizer.domain.hours_record import HoursRecord, HoursState
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
