"""Effects of the owner's scheduled actions while their autoscaling was removed, and the plan that is due since.

Deregistering a scalable target deletes its scheduled actions, so an action whose time comes meanwhile is lost until its
next time. Its bounds are what the owner wants at this hour, so they are the ones that are given back.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rightsizer.autoscaling.schedules import CronError, parse_cron
from rightsizer.domain.change import Change, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import Plan, Step, StepKind
from rightsizer.domain.reason import Code, Reason, time_text

__all__ = ["DueSteps", "is_over", "last_firing", "steps_due_now", "unreadable_actions"]

UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
SUSPENDED = "ScheduledScalingSuspended"


@dataclass(frozen=True, slots=True)
class DueSteps:
    """Steps of a plan as due at one moment, with differences from the plan by step key."""

    steps: tuple[Step, ...]
    said: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Firing:
    at: datetime
    name: str
    minimum: int | None
    maximum: int | None


def unreadable_actions(targets: Iterable[ScalableTarget]) -> tuple[Reason, ...]:
    """Every scheduled action of which nobody here could say whether it fired; empty when all are understood."""
    reasons = []
    for target in targets:
        for action in () if target.suspended.get(SUSPENDED) else target.scheduled:
            try:
                last_firing(action, datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC))
            except CronError as error:
                text = f"the scheduled action {action.get('ScheduledActionName')} of {target.resource_id} has the "
                text += f"schedule {action.get('Schedule')}, which is not understood ({error}); were it due while "
                reasons.append(Reason(Code.UNKNOWN_FIELD, text + "autoscaling is away, its bounds would be lost"))
    return tuple(reasons)


def steps_due_now(
    steps: Sequence[Step], snapshot: Sequence[ScalableTarget], since: datetime, now: datetime, *, all_actions: bool
) -> DueSteps:
    """The steps with the bounds that the actions which fired after `since` would have set, and without what is over.

    Actions are those that the steps put; with `all_actions` also those of the snapshot that stayed registered. Pure.
    """
    kept: list[Step] = []
    said: dict[str, str] = {}
    for step in steps:
        if step.kind is StepKind.PUT_SCHEDULED:
            if not is_over(step.params, now):
                kept.append(_with_future_start(step, now))
            continue
        if step.kind is StepKind.REGISTER_TARGET:
            step, sentence = _move_bounds(step, _actions(step, steps, snapshot, all_actions), since, now)
            if sentence:
                said[step.key] = sentence
        kept.append(step)
    return DueSteps(tuple(kept), said)


def _actions(
    register: Step, steps: Sequence[Step], snapshot: Sequence[ScalableTarget], all_actions: bool
) -> list[Mapping[str, Any]]:
    """The target's actions; those that are put again keep the creation time from which a rate counts."""
    who = (register.params.get("ResourceId"), register.params.get("ScalableDimension"))
    stored = {
        str(row.get("ScheduledActionName")): row
        for target in snapshot
        if (target.resource_id, target.dimension) == who
        for row in target.scheduled
    }
    put = {
        str(s.params["ScheduledActionName"]): s.params
        for s in steps
        if s.kind is StepKind.PUT_SCHEDULED and (s.params.get("ResourceId"), s.params.get("ScalableDimension")) == who
    }
    names = dict.fromkeys((*put, *(stored if all_actions else ())))
    return [{**stored.get(name, {}), **put.get(name, {})} for name in names]


def _move_bounds(
    register: Step, actions: Sequence[Mapping[str, Any]], since: datetime, now: datetime
) -> tuple[Step, str]:
    if register.params.get("SuspendedState", {}).get(SUSPENDED):
        return register, ""
    firings, unknown = [], []
    for action in actions:
        try:
            at = last_firing(action, since, now)
        except CronError:
            unknown.append(str(action.get("ScheduledActionName")))
            continue
        if at is not None:
            bounds = action.get("ScalableTargetAction", {})
            name = str(action.get("ScheduledActionName"))
            firings.append(_Firing(at, name, bounds.get("MinCapacity"), bounds.get("MaxCapacity")))
    old = (register.params["MinCapacity"], register.params["MaxCapacity"])
    minimum, maximum = old
    for firing in sorted(firings, key=lambda f: (f.at, f.minimum or 0, f.maximum or 0)):  # at one time the larger wins
        minimum = minimum if firing.minimum is None else firing.minimum
        maximum = maximum if firing.maximum is None else firing.maximum
    maximum = max(minimum, maximum)
    sentence = f"whether {', '.join(unknown)} of {register.subject} fired is not known" if unknown else ""
    if (minimum, maximum) == old:
        return register, sentence
    last = max(firings, key=lambda f: f.at)
    moved = f"the scheduled action {last.name} of {register.subject} was due on {time_text(last.at)}"
    moved += f"; its bounds of {minimum} to {maximum} are registered, not {old[0]} to {old[1]}"
    params = {**register.params, "MinCapacity": minimum, "MaxCapacity": maximum}
    return replace(register, params=params), "; ".join(filter(None, (moved, sentence)))


def last_firing(action: Mapping[str, Any], since: datetime, until: datetime) -> datetime | None:
    """When a scheduled action fired last after `since` and not after `until`; None: it did not.

    CronError where its schedule or its time zone is not understood.
    """
    schedule, zone = str(action.get("Schedule", "")), _zone(action)
    begin, end = parse_time(action.get("StartTime")), parse_time(action.get("EndTime"))
    since = max(since, begin - timedelta(microseconds=1)) if begin is not None else since
    until = min(until, end) if end is not None else until
    kind, _, inside = schedule.removesuffix(")").partition("(")
    if not schedule.endswith(")") or kind not in ("at", "cron", "rate"):
        raise CronError("it is neither at(), cron() nor rate()")
    if kind == "cron":
        cron = parse_cron(inside)
        return cron.last_firing(since, until, zone) if since < until else None
    at = _parse_at(inside, zone) if kind == "at" else _last_rate_firing(inside, action, begin, until)
    return at if at is not None and since < at <= until else None


def _parse_at(text: str, zone: tzinfo) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone)
    except ValueError as error:
        raise CronError(f"{text!r} is no time") from error


def _last_rate_firing(text: str, action: Mapping[str, Any], begin: datetime | None, until: datetime) -> datetime | None:
    """A rate counts from its start, or from the creation of the action, where the first time is one step later."""
    match = re.fullmatch(r"([1-9]\d{0,5}) (minute|hour|day)s?", text)
    base = begin or parse_time(action.get("CreationTime"))
    if match is None or base is None:
        raise CronError(f"{text!r} is no rate" if match is None else "nobody knows when it was created")
    step = UNITS[match[2]] * int(match[1])
    steps = (until - base) // step
    return base + step * steps if steps >= (0 if begin is not None else 1) else None


def _zone(action: Mapping[str, Any]) -> tzinfo:
    name = str(action.get("Timezone") or "UTC")
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CronError(f"the time zone {name!r} is not known") from error


def is_over(action: Mapping[str, Any], now: datetime) -> bool:
    """Whether a scheduled action will never fire again: its end or its only time has passed."""
    end = parse_time(action.get("EndTime"))
    if end is not None and end <= now:
        return True
    schedule = str(action.get("Schedule", ""))
    if not schedule.startswith("at("):
        return False
    try:
        return _parse_at(schedule.removeprefix("at(").removesuffix(")"), _zone(action)) <= now
    except CronError:
        return False


def _with_future_start(step: Step, now: datetime) -> Step:
    """A start that has passed needs no repeating, and Application Auto Scaling wants starts that lie ahead."""
    start = parse_time(step.params.get("StartTime"))
    if start is None or start > now:
        return step
    return replace(step, params={k: v for k, v in step.params.items() if k != "StartTime"})


def parse_time(value: Any) -> datetime | None:
    """Time of a record, given as datetime or as ISO text; None without one."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DueChange:
    """A change as its plan is due at one moment."""

    change: Change
    said: Mapping[str, str] = field(default_factory=dict)
    """What differs from the plan in the journal, by the command line of the step."""


def change_due_now(change: Change, now: datetime) -> DueChange:
    """The change with the bounds that are due now, and what differs from its plan.

    A view: the plan in the journal stays as it was made, so that a later look counts from it again.
    """
    if change.before is None:
        return DueChange(change)
    since = max((entry.at for entry in change.journal if entry.step == JournalEvent.PLAN), default=change.created_at)
    targets = change.before.scaling
    settle = steps_due_now(change.plan.settle, targets, since, now, all_actions=False)
    restore = steps_due_now(change.plan.restore, targets, since, now, all_actions=True)
    plan: Plan = replace(change.plan, settle=settle.steps, restore=restore.steps)
    steps = {step.text: text for part in (settle, restore) for step in part.steps if (text := part.said.get(step.key))}
    return DueChange(replace(change, plan=plan), steps)
