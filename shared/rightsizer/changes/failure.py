"""Which class of failure ended a change, and the next try: another option, a later time, or without a setting.

The texts are SageMaker's FailureReason values and ValidationException messages as users quoted them; they are matched
as phrases of whole words, and an unknown text is UNKNOWN: rejected, not retried, proposed only.

After a failure for want of capacity automatic mode takes the next option of the same recommendation that passed the
same gate. Instance pools are tried in the order of their priority (SageMaker InstancePools), so [new, old] takes what
there is and can never be worse than today. What an approver was asked stays what is done: the new type, or the old one.

A clone sends both flags of MetricsConfig as false, since AWS switches detailed observability on by default. Whether
every Region knows the field is not documented; where it is refused, there is nothing to switch off, and the
configuration is made without it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.domain.change import (
    Change,
    ChangeState,
    Course,
    Entry,
    FailureClass,
    JournalEvent,
    StepResult,
    failure_detail,
)
from rightsizer.domain.history import PastEnd
from rightsizer.domain.next_action import Steer
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.plan import Plan, Step, StepKind, key_of_try
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.errors import PermissionMissingError, RightsizerError, ThrottledError, WriteRefusedError

BY_TEXT = frozenset({Code.ROLLED_BACK, Code.WAY_BACK_FAILED})
"""Reasons of which the sentence is AWS's text, or ends with it."""
WAITS = (timedelta(hours=6), timedelta(hours=24))
"""How long the endpoint is left alone before each further try."""
ELSEWHERE = timedelta(hours=1)
"""The same where the next try is for another type, whose capacity the lack says nothing about."""
POOLED = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT, OptionKind.FEWER_GPUS})
FIELDS = re.compile(r"\b(MetricsConfig|EnableDetailedObservability|EnableEnhancedMetrics)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Meaning of a call that AWS refused."""

    failure: FailureClass
    again: bool
    """Whether the very same call may succeed if it is repeated soon."""


_TEXTS: tuple[tuple[tuple[str, ...], FailureClass], ...] = (
    (
        ("insufficientinstancecapacity", "insufficient capacity", "capacityerror", "unable to provision"),
        FailureClass.CAPACITY,
    ),
    (
        ("ping health check", "pass ping", "health check", "cannotstartcontainererror", "container failed"),
        FailureClass.HEALTH_CHECK,
    ),
    (
        ("out of memory", "outofmemory", "cuda out of memory"),
        FailureClass.MEMORY,
    ),
    (
        ("alarm", "alarms"),
        FailureClass.ALARM,
    ),
    (
        ("timed out", "timeout", "execution time exceeded", "exceeded the maximum execution time"),
        FailureClass.TIMEOUT,
    ),
    (
        ("service limit", "resourcelimitexceeded", "quota"),
        FailureClass.QUOTA,
    ),
)
_UNANSWERED_CODES = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "InternalServiceException",
        "InternalServiceFault",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
"""Errors of AWS itself (common errors of SageMaker and CloudWatch, and those of Application Auto Scaling).

They are no refusal: AWS may have done what was asked.
"""
_AGAIN_CODES = _UNANSWERED_CODES | {"ConcurrentUpdateException"}
"""Codes that another try may not meet."""
_AGAIN = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"cannot update in-progress endpoint\b",
        r"could not find endpoint configuration\b",
        r"request to service failed\b",
        r"rate exceeded\b",
        r"no scalable target registered\b",
    )
)
"""How a message begins that another try may not meet: words inside a refusal say nothing."""
_NOT_ALLOWED = re.compile(r"\bis not authorized to perform\b", re.IGNORECASE)
"""IAM's phrase, which SageMaker hands on inside a ValidationException."""


def failure_of_reason(text: str) -> FailureClass:
    """Failure behind a FailureReason.

    Every text has one: an unknown text is UNKNOWN and never retried.
    """
    low = text.lower()
    for words, failure in _TEXTS:
        if any(re.search(rf"\b{word}\b", low) for word in words):
            return failure
    return FailureClass.UNKNOWN


def failure_of_code(code: str, text: str) -> Refusal:
    """Failure behind a refused call.

    `code` and `text` are AWS's own.
    """
    if code.startswith("AccessDenied") or _NOT_ALLOWED.search(text):
        return Refusal(FailureClass.PERMISSION, True)
    if code in _AGAIN_CODES or any(known.match(text) for known in _AGAIN):
        return Refusal(FailureClass.UNKNOWN, True)
    return Refusal(failure_of_reason(f"{code} {text}"), False)


def is_unanswered(code: str) -> bool:
    """Whether the error code leaves open if AWS did what was asked."""
    return code in _UNANSWERED_CODES


def error_detail(error: RightsizerError) -> str:
    """The detail of the journal's line: the result, the failure class, and the answer of AWS."""
    match error:
        case WriteRefusedError() if is_unanswered(error.code):
            return failure_detail(StepResult.UNANSWERED, FailureClass.UNKNOWN, error.text)
        case WriteRefusedError():
            refusal = failure_of_code(error.code, error.text)
            result = StepResult.RETRY if refusal.again else StepResult.REFUSED
            return failure_detail(result, refusal.failure, error.text)
        case PermissionMissingError():
            return failure_detail(StepResult.RETRY, FailureClass.PERMISSION, str(error))
        case ThrottledError():
            return failure_detail(StepResult.RETRY, FailureClass.UNKNOWN, str(error))
        case _:  # the answer was lost, or there was none: AWS may have done it
            return failure_detail(StepResult.UNANSWERED, FailureClass.UNKNOWN, str(error))


def with_failure_class(move: Steer) -> Steer:
    """The action with its class of failure, forward and back. A failed rollback begins its sentence with the class."""
    reason = move.reason
    if move.failure is not FailureClass.UNKNOWN or reason.code not in BY_TEXT:
        return move
    kind = failure_of_reason(reason.sentence)
    if reason.code is Code.WAY_BACK_FAILED:
        reason = replace(reason, sentence=f"{kind.value}: {reason.sentence}")
    return replace(move, failure=kind, reason=reason)


def failure_to_remember(change: Change, ended: PastEnd) -> str:
    """The class that the type is remembered by. What failed during the rollback of a test is the old type's affair."""
    seen = change.failure in (FailureClass.ERRORS, FailureClass.MEMORY)
    lost = ended is PastEnd.TESTED and change.state is ChangeState.HANDED_OVER and not seen
    return (FailureClass.UNKNOWN if lost else change.failure).value


def is_given_up(change: Change) -> bool:
    """Whether it went back before its type served, for nothing that the type did.

    Frozen, an incident, others moved what it stood on, or an alarm of ours was not OK before the start: as little is
    learnt from it as from a refusal.
    """
    before = change.state is ChangeState.ROLLED_BACK and change.turned_at is None
    unready = change.reason is not None and change.reason.code is Code.ALARM_NOT_OK
    return before and (unready or change.failure in (FailureClass.NONE, FailureClass.OUTSIDE))


def next_try(change: Change, ending: ChangeState, now: datetime, ranking: Sequence[Option] = ()) -> Change | None:
    """The change planned anew, or None when it is over. Only a roll-back for want of capacity is tried again.

    `ranking` are the options that may stand in, the chosen one first; () where a person approved that one alone.

    The journal keeps what was done, under the number of its try, so that no step of an earlier try counts as done.
    """
    wanted = ending is ChangeState.ROLLED_BACK and change.failure is FailureClass.CAPACITY
    if not wanted or change.tries >= len(WAITS) or change.before is None or change.turned_at is not None:
        return None
    if change.asked_back_by or change.remaining:
        return None
    behind = _next_option(change, ranking)
    option, number = behind or _with_old_pool(change), change.tries + 1
    due = now + (ELSEWHERE if behind else WAITS[change.tries])
    text = f"try {number} ended for want of capacity; the next is on {time_text(due)}"
    if behind is not None:
        text += f", with the next option, {option.target.instance_count} x {option.target.instance_type}"
    elif option is not change.option:
        text += f", from the pools {' and '.join(option.target.pools)}"
    earlier = tuple(replace(e, step=key_of_try(number, e.step)) for e in change.journal)
    return replace(
        change,
        option=option,
        saving_usd_per_month=option.saving_usd_per_month if behind else change.saving_usd_per_month,
        before=None,
        plan=Plan(),
        state=ChangeState.PLANNED,
        course=Course.FORWARD,
        ending=None,
        journal=(*earlier, Entry(now, JournalEvent.AGAIN, "noted", text)),
        next_due=due,
        not_before=due,
        lease_until=None,
        turn_mark=None,
        failure=FailureClass.NONE,
        reason=None,
        outcome=text,
        looks=0,
        tries=number,
    )


def _next_option(change: Change, ranking: Sequence[Option]) -> Option | None:
    """The next option of another type that may stand in; None once the pools were tried."""
    if change.option.kind not in POOLED or change.before is None:
        return None
    names = [o.target.instance_type for o in ranking]
    here = change.option.target.instance_type
    old = {v.instance_type for v in change.before.variants}
    later = ranking[names.index(here) + 1 :] if here in names else ()
    free = (o for o in later if o.by_itself and o.in_place and o.kind in POOLED)
    return next((o for o in free if o.target.instance_type not in {here, *old}), None)


def _with_old_pool(change: Change) -> Option:
    """The option with the old type as its second pool, where one variant alone changes its type."""
    target, before = change.option.target, change.before
    if before is None or len(before.variants) != 1 or target.pools or change.option.kind not in POOLED:
        return change.option
    old = before.variants[0]
    if not old.instance_type or old.count != target.instance_count or old.instance_type == target.instance_type:
        return change.option
    pools = (target.instance_type, old.instance_type)
    return replace(change.option, kind=OptionKind.INSTANCE_POOLS, target=replace(target, pools=pools))


def retry_chosen_type(change: Change, chosen: Option | None, reasons: Sequence[Reason], now: datetime) -> Change | None:
    """The change back on its chosen type, after its stand-in could not be had; None without a stand-in.

    Only for refusals that speak about the type (its quota, where it is offered): nothing else is planned around.
    """
    of_type = bool(reasons) and {r.code for r in reasons} <= {Code.NO_QUOTA, Code.NOT_SOLD}
    if not of_type or not change.tries or not change.option.by_itself or chosen is None:
        return None
    due = now + WAITS[min(change.tries, len(WAITS)) - 1]
    kind = chosen.target.instance_type
    text = f"{reasons[0].sentence}; {kind} is tried again on {time_text(due)}"
    return replace(
        change,
        option=chosen,
        saving_usd_per_month=chosen.saving_usd_per_month,
        journal=(*change.journal, Entry(now, JournalEvent.AGAIN, "noted", text)),
        next_due=due,
        not_before=due,
        lease_until=None,
        outcome=text,
    )


def drop_metrics_config(change: Change, step: Step, error: RightsizerError) -> tuple[Change, str]:
    """The change whose step leaves MetricsConfig out, and the journal's line; empty where the refusal is another."""
    asked = step.params.get("MetricsConfig")
    refused = isinstance(error, WriteRefusedError) and error.code.startswith("Validation")
    if step.kind is not StepKind.CREATE_CONFIG or not asked or any(asked.values()) or not refused:
        return change, ""
    if not FIELDS.search(str(error)):
        return change, ""
    bare = replace(step, params={key: value for key, value in step.params.items() if key != "MetricsConfig"})
    prepare = tuple(bare if known == step else known for known in change.plan.prepare)
    text = f"MetricsConfig is refused here, so it is left out: {error}"
    detail = failure_detail(StepResult.RETRY, FailureClass.UNKNOWN, text)
    return replace(change, plan=replace(change.plan, prepare=prepare)), detail
