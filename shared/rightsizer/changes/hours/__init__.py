"""Entry of the office hours: record, live state and time in, next action out. Pure.

A stop ends *running as before* or *stopped with everything stored*, a start *running as before* or *handed over and
told*. Nothing is deleted before everything is stored, and nothing is forgotten before it runs again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from rightsizer.changes.hours import steps
from rightsizer.changes.hours.steps import LiveHours, commands_by_hand
from rightsizer.domain.change import StepResult
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, HoursState
from rightsizer.domain.live_state import EndpointSight, Gone
from rightsizer.domain.next_action import Do, Wait
from rightsizer.domain.office_hours import lead_time, parse_hours
from rightsizer.domain.plan import Step, StepKind, has_places
from rightsizer.domain.policy import TICK, Switch
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.errors import InputError

IN_FLIGHT = timedelta(minutes=10)
"""So long AWS may go on showing what was there before a write that it took."""
FRESH = TICK + timedelta(minutes=1)
"""So long what was read before a stop holds; each rejection, which is an attempt of its own, adds as much."""
MOST_REJECTED = 3
"""Rejections of a step of a stop after which the stop is undone."""
MOST_TRIES = 12
"""Rejections of a step after which it is left to a person, a tick apart each."""
LATE = timedelta(minutes=5)
"""After the hour: who waits is told at the next tick, so at the latest 15 minutes after the hour."""
STUCK = timedelta(hours=4)
"""Lateness after which an endpoint waits for more than its turn in a tick; its people were told."""
MINUTE = timedelta(minutes=1)
NAME_TAKEN = re.compile(r"\balready exist", re.IGNORECASE)
"""CreateEndpoint: the name is taken, also while it is still being deleted."""


@dataclass(frozen=True, slots=True)
class HoursDemand:
    """Whether the endpoint has to run or to be started now."""

    runs: bool
    serves_at: datetime | None = None
    """When it has to serve: the opening or wake of now, or the next one. None where nobody said."""
    changes_at: datetime | None = None
    """When the answer becomes another one; None: never."""
    problem: str = ""
    """Why the tag cannot be read; it is always on then."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The record takes another state; no write to AWS."""

    state: HoursState
    reason: Reason
    tell: bool = False
    """Whether people are told, with the commands that are left."""
    kind: Literal["settle"] = "settle"


type HoursAction = Do | Wait | Settle


@dataclass(frozen=True, slots=True)
class LateNotice:
    """A message to whoever waits for a start, sent once."""

    key: str
    subject: str
    text: str


def demand_at(record: HoursRecord, now: datetime, holidays: frozenset[date]) -> HoursDemand:
    """Whether it has to run or be started at `now`, by its tag, its own lead time and the wakes."""
    try:
        hours = parse_hours(record.hours)
    except InputError as error:
        return HoursDemand(True, problem=str(error))
    lead = lead_time(record.starts)
    if record.let_go is not None and record.is_let_go:
        return HoursDemand(True, record.let_go.at + lead)
    wake = record.wake_at(now)
    opening = hours.opening(now, holidays)
    following = hours.next_opening(now, holidays)
    if opening is not None:
        return HoursDemand(True, opening.start, opening.end)
    if following is None:
        return HoursDemand(True, problem=f"the hours {record.hours!r} never close, or do not open within 400 days")
    if now >= following.start - lead:
        return HoursDemand(True, following.start, following.end)
    if wake is not None:
        return HoursDemand(True, wake.at + lead, wake.until)
    return HoursDemand(False, following.start, following.start - lead)


def with_delete_seen(record: HoursRecord, live: LiveHours, now: datetime) -> LiveHours:
    """The live state, with the endpoint that was deleted as being deleted where AWS still shows it as before."""
    endpoint, before = live.state.endpoint, record.before
    if before is None or isinstance(endpoint, Gone) or record.state not in (HoursState.STOPPED, HoursState.STARTING):
        return live
    if endpoint.created_at != before.created_at or record.since is None or now - record.since >= IN_FLIGHT:
        return live
    return replace(live, state=replace(live.state, endpoint=replace(endpoint, status="Deleting")))


def next_hours_action(
    record: HoursRecord, live: LiveHours, demand: HoursDemand, now: datetime, switch: Switch
) -> HoursAction:
    """The next action of a record that is being stopped, is stopped or is being started."""
    before = record.before
    if before is None:
        return Settle(HoursState.RUNNING, Reason(Code.CHANGED_SINCE, "nothing was stored, so nothing is to be done"))
    if switch.frozen and switch.hard:
        return Wait(now + TICK, f"every step is frozen by {decider_name(switch.by)}, also those that bring it back")
    match record.state:
        case HoursState.STOPPING:
            return _stopping(record, before, live, demand, now, switch)
        case HoursState.STOPPED:
            return _stopped(record, before, live, demand, now)
        case HoursState.STARTING:
            return _starting(record, before, live, demand, now)
        case _:
            return Wait(now + TICK, "nothing is under way")


def _stopping(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, demand: HoursDemand, now: datetime, switch: Switch
) -> HoursAction:
    delete = steps.delete_step(record.ref)
    sent = record.last_entry(delete)
    accepted = record.may_be_done(delete)
    endpoint = live.state.endpoint
    if isinstance(endpoint, Gone):
        if accepted:
            text = f"stopped, and everything that brings it back is stored; it serves again {_at(demand)}"
            return Settle(HoursState.STOPPED, Reason(Code.SAFE_TO_APPLY, text))
        reason = Reason(Code.VANISHED, "somebody else deleted it while it was about to be stopped")
        return _hand_over(record, before, live, reason, now)
    if endpoint.status == "Deleting":
        return Wait(now + MINUTE, "it is being deleted")
    if accepted and endpoint.status == "Failed":
        return _try_again(record, delete, now)
    if sent is not None and not sent.was_rejected and now - sent.at < IN_FLIGHT:
        return Wait(now + MINUTE, "its delete was sent and is not seen yet")
    wanted = (*steps.silence_steps(before), delete)
    against = _against_stop(before, live, endpoint, demand, switch)
    if against is not None:
        return _back_out(record, before, live, against, now)
    given_up = next((s for s in wanted if record.rejections(s) >= MOST_REJECTED), None)
    if given_up is not None:
        text = f"AWS keeps rejecting {given_up.operation}, so it is not stopped: {_last_answer(record)}"
        return _back_out(record, before, live, Reason(Code.REFUSED_BY_AWS, text), now, tell=True)
    if now - before.taken_at > FRESH * (1 + sum(record.rejections(s) for s in wanted)):
        text = "the stop was interrupted, and callers may be back; everything is read again before the next one"
        return _back_out(record, before, live, Reason(Code.CHANGED_SINCE, text), now)
    step = next((s for s in wanted if not steps.has_effect(s, live.state) and not record.was_done(s)), delete)
    last = record.last_entry(step)
    if last is not None and last.was_rejected and now - last.at < MINUTE:
        return Wait(now + MINUTE, f"AWS rejected {step.operation}: {last.answer}")
    return Do(step)


def _against_stop(
    before: EndpointBefore,
    live: LiveHours,
    endpoint: EndpointSight,
    demand: HoursDemand,
    switch: Switch,
) -> Reason | None:
    """Why a stop that has begun is undone; None where it goes on."""
    if switch.frozen:
        return Reason(Code.FROZEN, f"changes are frozen by {decider_name(switch.by)}, so it is not stopped")
    if demand.runs:
        return Reason(Code.CHANGED_SINCE, demand.problem or "it has to run again, so it is not stopped")
    same = (endpoint.config_name, endpoint.modified_at, endpoint.created_at)
    if endpoint.status != "InService" or same != (before.live_config, before.modified_at, before.created_at):
        return Reason(Code.CHANGED_SINCE, "somebody changed it after everything was stored, so it is not stopped")
    if dict(live.tags) != dict(before.tags):
        return Reason(Code.CHANGED_SINCE, "its tags changed after everything was stored, so it is not stopped")
    return None


def _back_out(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, reason: Reason, now: datetime, *, tell: bool = False
) -> HoursAction:
    """Switch the alarms on again; then it runs as before.

    What was switched off a moment ago is switched on, also where AWS still shows it as before.
    """
    wanted = steps.sound_steps(before)
    off = any(record.may_be_done(s) for s in steps.silence_steps(before))
    unseen = [s for s in wanted if off and record.last_entry(s) is None]
    move = _try_again(record, unseen[0], now) if unseen else _next_move(record, live, wanted, now)
    if move is not None:
        return move
    if any(not steps.has_effect(s, live.state) for s in wanted):
        return Settle(HoursState.HANDED_OVER, reason, tell=True)
    return Settle(HoursState.RUNNING, reason, tell=tell)


def _hand_over(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, reason: Reason, now: datetime
) -> HoursAction:
    """What is the owner's again: the actions of the alarms go on where that can be done, and people are told."""
    move = _next_move(record, live, steps.sound_steps(before), now)
    return move if move is not None else Settle(HoursState.HANDED_OVER, reason, tell=True)


def _next_move(record: HoursRecord, live: LiveHours, wanted: Sequence[Step], now: datetime) -> HoursAction | None:
    """A step that AWS does not show yet, or the wait after its rejection; None where none is left to try.

    An alarm waits for its policy; a step that AWS rejects, or does not show yet, keeps no other one waiting.
    """
    undone = (s for s in wanted if not steps.has_effect(s, live.state) and record.rejections(s) < MOST_TRIES)
    moves = [_try_again(record, s, now) for s in undone if not has_places(live.state.resolve_step(s))]
    return next((move for move in moves if isinstance(move, Do)), moves[0] if moves else None)


def _stopped(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, demand: HoursDemand, now: datetime
) -> HoursAction:
    endpoint = live.state.endpoint
    if isinstance(endpoint, Gone) and not demand.runs:
        return Wait(demand.changes_at or now + TICK, f"stopped by its hours; it serves again {_at(demand)}")
    if isinstance(endpoint, Gone):
        return Settle(HoursState.STARTING, Reason(Code.SAFE_TO_APPLY, f"it has to serve {_at(demand)}"))
    if endpoint.status == "Deleting":
        return Wait(now + MINUTE, "it is being deleted")
    if endpoint.config_name in (before.config_name, before.fallback_config):
        text = "somebody created it again from the same configuration; its autoscaling and alarms are put back"
        return Settle(HoursState.STARTING, Reason(Code.CHANGED_SINCE, text))
    text = f"somebody created it again from configuration {endpoint.config_name}"
    return _hand_over(record, before, live, Reason(Code.CHANGED_SINCE, text), now)


def _starting(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, demand: HoursDemand, now: datetime
) -> HoursAction:
    endpoint = live.state.endpoint
    ours = record.may_be_done(steps.delete_step(record.ref))
    if isinstance(endpoint, Gone) and record.serving_at is not None and not ours:
        text = "somebody deleted it after it was in service again, so it is not created once more"
        return _hand_over(record, before, live, Reason(Code.VANISHED, text), now)
    if isinstance(endpoint, Gone):
        return _creating(record, before, live, demand, now)
    if endpoint.status in ("Deleting", "Creating", "Updating", "SystemUpdating", "RollingBack"):
        return Wait(now + MINUTE, f"it is {endpoint.status}")
    if endpoint.config_name not in (before.config_name, before.fallback_config):
        text = f"somebody deployed configuration {endpoint.config_name} while it was being started"
        return _hand_over(record, before, live, Reason(Code.CHANGED_SINCE, text), now)
    if endpoint.status == "Failed":
        return _try_again(record, steps.delete_step(record.ref), now)
    if endpoint.status != "InService":
        text = f"it is {endpoint.status} and does not serve; {endpoint.failure_reason or 'AWS names no reason'}"
        return _hand_over(record, before, live, Reason(Code.NOT_IN_SERVICE, text), now)
    wanted = steps.settle_steps(record.ref, before, now)
    move = _next_move(record, live, wanted, now)
    if move is not None:
        return move
    if any(not steps.has_effect(s, live.state) for s in wanted):
        text = f"it serves, and not everything could be put back: {_last_answer(record)}"
        return Settle(HoursState.HANDED_OVER, Reason(Code.REFUSED_BY_AWS, text), tell=True)
    return Settle(HoursState.RUNNING, Reason(Code.PROVEN, "it runs as before, with its autoscaling and alarms"))


def _creating(
    record: HoursRecord, before: EndpointBefore, live: LiveHours, demand: HoursDemand, now: datetime
) -> HoursAction:
    if not demand.runs:
        text = f"its hours are over before it could be started; it serves again {_at(demand)}"
        return Settle(HoursState.STOPPED, Reason(Code.EXPIRED, text))
    lost = _lost_tries(record)
    config = before.config_name
    usable = live.config_exists and not live.config_replaced
    if live.model_problem:
        text = f"{live.model_problem}, so it cannot be created as before"
        return Settle(HoursState.HANDED_OVER, Reason(Code.CONFIGURATION_REPLACED, text), tell=True)
    has_turn = lost >= 2 and not record.had_fallback
    if before.fallback_config and live.fallback_exists and (not usable or has_turn):
        config = before.fallback_config
    elif not usable:
        what = "made anew with other content" if live.config_exists else "deleted"
        text = f"configuration {before.config_name} was {what} while it was stopped, so it cannot be created as before"
        return Settle(HoursState.HANDED_OVER, Reason(Code.CONFIGURATION_REPLACED, text), tell=True)
    return _try_again(record, steps.create_step(record.ref, before, config), now)


def _lost_tries(record: HoursRecord) -> int:
    """Creations of this start that another type may not meet: AWS refused them, or they failed and were deleted.

    A name that is still being deleted, a lost permission and a throttled call say nothing about the type. The journal
    keeps the newest lines only, so whose turn it is hangs on the last creation and not on this number.
    """
    create, delete = (steps.step_key(kind, record.ref) for kind in (StepKind.CREATE_ENDPOINT, StepKind.DELETE_ENDPOINT))
    refused = (e for e in record.present if e.step == create and e.result is StepResult.REFUSED)
    deleted = sum(e.status == "done" and e.step == delete for e in record.present)
    return deleted + sum(not NAME_TAKEN.search(e.answer) for e in refused)


def _try_again(record: HoursRecord, step: Step, now: datetime) -> HoursAction:
    """The step, or a wait of a tick after AWS rejected it, or while AWS may not show yet that it was done."""
    last = record.last_entry(step)
    if last is not None and now - last.at < IN_FLIGHT and record.was_done(step):
        return Wait(now + MINUTE, f"AWS took {step.operation} and does not show it yet")
    if last is not None and last.status == "failed" and now - last.at < TICK:
        return Wait(last.at + TICK, f"AWS rejected {step.operation}: {last.answer}")
    return Do(step)


def late_notice(
    record: HoursRecord, live: LiveHours, demand: HoursDemand, now: datetime, why: str
) -> LateNotice | None:
    """The message about an endpoint that does not serve as before at its hour; None where none is due."""
    if not record.holds_lock or not demand.runs or demand.serves_at is None or now < demand.serves_at + LATE:
        return None
    name, endpoint = record.ref.name, live.state.endpoint
    serves = not isinstance(endpoint, Gone) and endpoint.status == "InService"
    if serves and record.state is HoursState.STOPPING:
        return None
    text = "serves, but not everything is put back" if serves else "does not serve yet"
    status = "gone" if isinstance(endpoint, Gone) else f"{endpoint.status} {endpoint.failure_reason}".strip()
    last, seen = _last_answer(record), f"it is {status}"
    lines = (
        f"{name} had to serve {_at(demand)} and {text}: {'; '.join(dict.fromkeys((seen, why)))}.",
        *((f"AWS answered: {last}",) if last else ()),
        "It is tried again every five minutes. By hand:",
        *commands_by_hand(record, now, live.state),
    )
    subject = f"{name} {text}, {time_text(demand.serves_at)}"
    return LateNotice(f"late#{demand.serves_at.isoformat()}", subject, "\n".join(lines))


def blind_notice(record: HoursRecord, demand: HoursDemand, now: datetime, why: str) -> LateNotice | None:
    """The message about an endpoint that nobody could look at since its hour; None before it."""
    if record.before is None or not record.holds_lock or not demand.runs:
        return None
    if demand.serves_at is None or now < demand.serves_at:
        return None
    name = record.ref.name
    lines = (
        f"{name} had to serve {_at(demand)}, and it cannot be looked at: {why}.",
        "It is tried again every five minutes. By hand:",
        *commands_by_hand(record, now),
    )
    return LateNotice(f"blind#{demand.serves_at.isoformat()}", f"{name} may not serve", "\n".join(lines))


def by_urgency(records: Iterable[HoursRecord], now: datetime, holidays: frozenset[date]) -> tuple[HoursRecord, ...]:
    """Sort by the hour at which each has to serve; those that wait for nothing follow, the oldest look first.

    What is late for `STUCK` stands behind what still can be in time: a lack of capacity lasts, and keeps no other one
    waiting.
    """

    def key(record: HoursRecord) -> tuple[bool, bool, datetime, datetime]:
        demand, never = demand_at(record, now, holidays), datetime.min.replace(tzinfo=UTC)
        under_way = record.holds_lock and (demand.runs or record.state is not HoursState.STOPPED)
        serves_at = (demand.serves_at or now) if under_way else never
        return not under_way, under_way and now - serves_at > STUCK, serves_at, record.next_due or never

    return tuple(sorted(records, key=key))


def _last_answer(record: HoursRecord) -> str:
    return next((e.answer for e in reversed(record.present) if e.status == "failed"), "")


def _at(demand: HoursDemand) -> str:
    return f"on {time_text(demand.serves_at)}" if demand.serves_at else "at no known time"
