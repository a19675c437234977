"""The next move of an errand, from its journal and from what AWS shows. Pure: killed anywhere, the next look decides.

Law 4 for small changes: each ends *new*, *old* or *handed over*. A write sets a whole value and
is safe to repeat.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never

from rightsizer.domain.capacity_change import (
    Arrived,
    ByHand,
    Ended,
    Errand,
    ErrandMove,
    GroupPolicy,
    GroupSight,
    LookAgain,
    PoolRelease,
    PoolSeen,
    Seen,
    Send,
    TurnBack,
    Vanished,
)
from rightsizer.domain.change import StepResult
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import PATIENCE, ProposalState
from rightsizer.domain.reason import Code, Reason

MOST_TRIES = 5
"""Writes in one direction before a person is asked."""
PROBATION = timedelta(hours=24)
"""How long a new policy is watched before it is called proven."""
PAUSE = timedelta(minutes=5)
ALLOWED = (Mode.PROPOSE, Mode.AUTO)


def next_move(errand: Errand, seen: Seen, now: datetime, switch: Switch) -> ErrandMove:
    """What to do next. Nothing is written to a thing that has changed under the errand."""
    if isinstance(seen, Vanished):
        state = ProposalState.WITHDRAWN if errand.sent_at is None else ProposalState.HANDED_OVER
        return Ended(state, Reason(Code.VANISHED, f"{errand.subject} does not exist any more"))
    match errand.work:
        case GroupPolicy() if isinstance(seen, GroupSight):
            return _policy(errand, errand.work, seen, now, switch)
        case PoolRelease() if isinstance(seen, PoolSeen):
            return _release(errand, seen, now, switch)
        case GroupPolicy() | PoolRelease() | ByHand():
            raise TypeError(f"{errand.work.kind} cannot be decided from a {type(seen).__name__}")
        case _:
            assert_never(errand.work)


def too_old(errand: Errand, now: datetime) -> Ended | None:
    """The end of an errand whose approval is too old to begin with; None where it is good, or was begun."""
    approved = _approved_at(errand)
    if errand.sent_at is not None or now - approved < PATIENCE:
        return None
    text = f"it was approved on {approved:%Y-%m-%d %H:%M} UTC and could not be begun within {PATIENCE.days} days"
    waited = f" ({errand.outcome.rstrip('.')})" if errand.outcome else ""
    return Ended(ProposalState.EXPIRED, Reason(Code.EXPIRED, f"{text}{waited}; nothing was written"))


def of_a_backup(errand: Errand, made: datetime) -> Ended | None:
    """The end of an errand that was decided before its table was made, instead of a write; None for a later one.

    Such a table was restored from a backup, or copied. Whether the errand was carried out after that, and taken back,
    is not in it.
    """
    approved = _approved_at(errand)
    if approved >= made:
        return None
    text = (
        f"it was approved on {approved:%Y-%m-%d %H:%M} UTC, before the table was restored or copied on"
        f" {made:%Y-%m-%d %H:%M} UTC: whether it was carried out since, and taken back, is not in the table"
    )
    if errand.sent_at is not None:
        text += f"; {errand.subject} does not show it, so it is not written again"
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.WITHDRAWN, text))
    text += "; nothing was written, and it is asked again if it still helps"
    if errand.undo:
        text += (
            f". Where {errand.subject} has the new policy and should not, the old one comes back with: {errand.undo}"
        )
    return Ended(ProposalState.WITHDRAWN, Reason(Code.WITHDRAWN, text))


def not_forward(errand: Errand) -> ErrandMove:
    """The move in place of a write forward, in a stack that may change nothing; the way back is not asked.

    What was begun and did not arrive turns back, so that a write that arrives late is taken back too.
    """
    told = (
        "the stack was deployed with MayChange=nothing or read-only, so it changes nothing; MayChange=tagged allows it"
    )
    if errand.sent_at is None:
        return Ended(ProposalState.WITHDRAWN, Reason(Code.PERMISSION_MISSING, f"{told}. Nothing was written"))
    if isinstance(errand.work, GroupPolicy):
        return TurnBack(Reason(Code.PERMISSION_MISSING, f"{told}. {errand.subject} does not show the new policy"))
    text = f"{told}. The warm pool of {errand.subject} ends when its time is over"
    return Ended(ProposalState.WITHDRAWN, Reason(Code.PERMISSION_MISSING, text))


def _approved_at(errand: Errand) -> datetime:
    return errand.decision.at if errand.decision else errand.created_at


def _policy(errand: Errand, work: GroupPolicy, seen: GroupSight, now: datetime, switch: Switch) -> ErrandMove:
    is_new, is_old = same_policy(seen.policy, work.new), same_policy(seen.policy, work.old)
    if errand.sent_at is None:
        return _start(errand, work, seen, is_new, is_old, now, switch)
    if not is_new and not is_old:
        text = f"the policy of {work.group} is neither the old nor the new one: somebody else changed it"
        return Ended(ProposalState.HANDED_OVER, Reason(Code.CHANGED_SINCE, text))
    if errand.back is not None:
        return _back(errand, errand.back, is_old, now, switch)
    if errand.done_at is None:
        return Arrived() if is_new else _again(errand, now, switch)
    if is_old:
        text = f"somebody else put the old policy of {work.group} back"
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.ROLLED_BACK, text))
    if seen.faults:
        text = f"launches of {work.group} failed under the new policy, and not for lack of capacity: {seen.faults[0]}"
        return TurnBack(Reason(Code.ROLLED_BACK, text[:500]))
    return _watched(work, errand.done_at, now)


def _watched(work: GroupPolicy, done_at: datetime, now: datetime) -> ErrandMove:
    """The new policy stands: watched for a day, or until the time that it was borrowed for is over."""
    if work.until is not None:
        if now < work.until:
            return LookAgain(
                min(work.until, now + 6 * PAUSE),
                f"On-Demand stands in for Spot in {work.group} until {work.until:%H:%M} UTC",
            )
        return TurnBack(Reason(Code.SPOT_POOL_OPEN, f"{work.group} tries Spot again: the stand-in's time is over"))
    if now - done_at < PROBATION:
        return LookAgain(now + 6 * PAUSE, f"{work.group} has the new policy; watched until its first day is over")
    text = f"{work.group} had the new policy for {PROBATION.total_seconds() / 3600:.0f} h, and no launch failed for it"
    return Ended(ProposalState.PROVEN, Reason(Code.PROVEN, text))


def _start(
    errand: Errand, work: GroupPolicy, seen: GroupSight, is_new: bool, is_old: bool, now: datetime, switch: Switch
) -> ErrandMove:
    if work.until is not None and now >= work.until:
        text = f"the time of the stand-in for {work.group} is over; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.EXPIRED, text))
    if is_new:
        text = f"{errand.subject} has this policy already; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.ALREADY_RIGHT, text))
    if not is_old:
        text = f"the policy of {errand.subject} has changed since this was asked; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.CHANGED_SINCE, text))
    if seen.stack:
        text = f"{errand.subject} belongs to {seen.stack}: change it there; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.OWNED_BY_STACK, text))
    return _permitted(errand, seen.mode, now, switch)


def _permitted(errand: Errand, mode: Mode, now: datetime, switch: Switch) -> ErrandMove:
    by_policy = errand.decision is not None and errand.decision.is_automatic
    if mode not in ALLOWED or (by_policy and mode is not Mode.AUTO):
        text = f"the tag rightsizer:mode of {errand.subject} is {mode} now; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.NOT_OPTED_IN, text))
    return _thawed(switch.frozen, now) or Send()


def _again(errand: Errand, now: datetime, switch: Switch) -> ErrandMove:
    """The write was begun and its effect is not there: sent again, unless AWS has said no."""
    last = errand.last
    if last is not None and last.result is StepResult.REFUSED:
        text = f"AWS refused: {last.answer} {errand.subject} is as it was"
        return Ended(ProposalState.HANDED_OVER, Reason(Code.REFUSED_BY_AWS, text))
    return _retry(errand, "is as it was", False, now, switch.frozen)


def _back(errand: Errand, why: Reason, is_old: bool, now: datetime, switch: Switch) -> ErrandMove:
    if is_old:
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.ROLLED_BACK, f"it has its old policy again: {why}"))
    return _retry(errand, "still has the new policy", True, now, switch.hard)


def _retry(errand: Errand, stands: str, back: bool, now: datetime, held: bool) -> ErrandMove:
    if held:
        return LookAgain(now + PAUSE, "frozen: no step is taken")
    tries, last = errand.attempts(), errand.last
    if tries >= MOST_TRIES:
        text = f"{tries} tries did not change {errand.subject}, which {stands}: {last.detail if last else 'no answer'}"
        return Ended(ProposalState.HANDED_OVER, Reason(Code.REFUSED_BY_AWS, text[:500]))
    if tries and last is not None and now - last.at < PAUSE:
        return LookAgain(now + PAUSE, "waits for AWS to show the new value")
    return Send(back)


def _release(errand: Errand, seen: PoolSeen, now: datetime, switch: Switch) -> ErrandMove:
    sent = errand.sent_at is not None
    if seen.status in ("InUse", "Reused"):
        text = f"a job took the warm pool of {errand.subject}: nothing to release"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.CHANGED_SINCE, text))
    if seen.status != "Available":
        state = ProposalState.PROVEN if sent else ProposalState.WITHDRAWN
        text = f"the warm pool of {errand.subject} is {'released' if sent else 'gone already'}"
        return Ended(state, Reason(Code.PROVEN if sent else Code.ALREADY_RIGHT, text))
    return _again(errand, now, switch) if sent else _permitted(errand, seen.mode, now, switch)


def _thawed(frozen: bool, now: datetime) -> LookAgain | None:
    return LookAgain(now + PAUSE, "frozen: nothing is begun") if frozen else None


def same_policy(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two mixed instances policies ask for the same.

    What no longer counts (pools of another strategy, empty price limits) differs without meaning.
    """
    return _normal(one) == _normal(other)


def _normal(policy: Mapping[str, Any]) -> dict[str, Any]:
    template = policy.get("LaunchTemplate") or {}
    distribution = {k: v for k, v in (policy.get("InstancesDistribution") or {}).items() if v not in (None, "")}
    if distribution.get("SpotAllocationStrategy") != "lowest-price":
        distribution.pop("SpotInstancePools", None)
    return {
        "template": template.get("LaunchTemplateSpecification") or {},
        "overrides": list(template.get("Overrides") or ()),
        "distribution": distribution,
    }
