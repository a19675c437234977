"""The next action of a capacity change, from its journal and the live state.

Pure: killed anywhere, the next look decides.

Law 4 for small changes: each ends *new*, *old* or *handed over*. A write sets a whole value and
is safe to repeat.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never

from rightsizer.domain.capacity_change import (
    Arrived,
    CapacityChange,
    CapacitySight,
    Ended,
    GroupPolicy,
    GroupSight,
    LookAgain,
    ManualStep,
    NextCapacityAction,
    PoolRelease,
    Send,
    TurnBack,
    Vanished,
    WarmPoolSight,
)
from rightsizer.domain.change import StepResult
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import PATIENCE, ProposalState
from rightsizer.domain.reason import Code, Reason, time_text

MOST_TRIES = 5
"""Writes in one direction before a person is asked."""
PROBATION = timedelta(hours=24)
"""How long a new policy is watched before it is called proven."""
PAUSE = timedelta(minutes=5)
ALLOWED = (Mode.PROPOSE, Mode.AUTO)


def next_capacity_action(
    capacity_change: CapacityChange, seen: CapacitySight, now: datetime, switch: Switch
) -> NextCapacityAction:
    """The next action of a capacity change.

    Nothing is written to a thing that has changed under the capacity change.
    """
    if isinstance(seen, Vanished):
        state = ProposalState.WITHDRAWN if capacity_change.sent_at is None else ProposalState.HANDED_OVER
        return Ended(state, Reason(Code.VANISHED, f"{capacity_change.subject} does not exist any more"))
    match capacity_change.work:
        case GroupPolicy() if isinstance(seen, GroupSight):
            return _group_policy_action(capacity_change, capacity_change.work, seen, now, switch)
        case PoolRelease() if isinstance(seen, WarmPoolSight):
            return _release_action(capacity_change, seen, now, switch)
        case GroupPolicy() | PoolRelease() | ManualStep():
            raise TypeError(f"{capacity_change.work.kind} cannot be decided from a {type(seen).__name__}")
        case _:
            assert_never(capacity_change.work)


def approval_age_end(capacity_change: CapacityChange, now: datetime) -> Ended | None:
    """The end of a capacity change whose approval is too old to begin; None for a begun one."""
    approved = _approved_at(capacity_change)
    if capacity_change.sent_at is not None or now - approved < PATIENCE:
        return None
    text = f"it was approved on {time_text(approved)} and could not be begun within {PATIENCE.days} days"
    waited = f" ({capacity_change.outcome.rstrip('.')})" if capacity_change.outcome else ""
    return Ended(ProposalState.EXPIRED, Reason(Code.EXPIRED, f"{text}{waited}; nothing was written"))


def restored_table_end(capacity_change: CapacityChange, made: datetime) -> Ended | None:
    """The end of a capacity change decided before its table was made; None for a later one.

    Such a table was restored from a backup, or copied. Whether the capacity change was carried out after that, and
    taken back, is not in it.
    """
    approved = _approved_at(capacity_change)
    if approved >= made:
        return None
    text = (
        f"it was approved on {time_text(approved)}, before the table was restored or copied on"
        f" {time_text(made)}: whether it was carried out since, and taken back, is not in the table"
    )
    if capacity_change.sent_at is not None:
        text += f"; {capacity_change.subject} does not show it, so it is not written again"
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.WITHDRAWN, text))
    text += "; nothing was written, and it is asked again if it still helps"
    if capacity_change.undo_command:
        text += (
            f". Where {capacity_change.subject} has the new policy and should not, the old one comes back "
            f"with: {capacity_change.undo_command}"
        )
    return Ended(ProposalState.WITHDRAWN, Reason(Code.WITHDRAWN, text))


def not_forward(capacity_change: CapacityChange) -> NextCapacityAction:
    """The move in place of a write forward, in a stack that may change nothing; a rollback never comes here.

    What was begun and did not arrive turns back, so that a write that arrives late is taken back too.
    """
    told = (
        "the stack was deployed with MayChange=nothing or read-only, so it changes nothing; MayChange=tagged allows it"
    )
    if capacity_change.sent_at is None:
        return Ended(ProposalState.WITHDRAWN, Reason(Code.PERMISSION_MISSING, f"{told}. Nothing was written"))
    if isinstance(capacity_change.work, GroupPolicy):
        return TurnBack(
            Reason(Code.PERMISSION_MISSING, f"{told}. {capacity_change.subject} does not show the new policy")
        )
    text = f"{told}. The warm pool of {capacity_change.subject} ends when its time is over"
    return Ended(ProposalState.WITHDRAWN, Reason(Code.PERMISSION_MISSING, text))


def _approved_at(capacity_change: CapacityChange) -> datetime:
    return capacity_change.decision.at if capacity_change.decision else capacity_change.created_at


def _group_policy_action(
    capacity_change: CapacityChange, work: GroupPolicy, seen: GroupSight, now: datetime, switch: Switch
) -> NextCapacityAction:
    is_new, is_old = is_same_policy(seen.policy, work.new), is_same_policy(seen.policy, work.old)
    if capacity_change.sent_at is None:
        return _start(capacity_change, work, seen, now, switch)
    if not is_new and not is_old:
        text = f"the policy of {work.group} is neither the old nor the new one: somebody else changed it"
        return Ended(ProposalState.HANDED_OVER, Reason(Code.CHANGED_SINCE, text))
    if capacity_change.back is not None:
        return _rollback_action(capacity_change, capacity_change.back, is_old, now, switch)
    if capacity_change.done_at is None:
        return Arrived() if is_new else _retry_forward(capacity_change, now, switch)
    if is_old:
        text = f"somebody else put the old policy of {work.group} back"
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.ROLLED_BACK, text))
    if seen.faults:
        text = f"launches of {work.group} failed under the new policy, and not for lack of capacity: {seen.faults[0]}"
        return TurnBack(Reason(Code.ROLLED_BACK, text[:500]))
    return _watch_policy(work, capacity_change.done_at, now)


def _watch_policy(work: GroupPolicy, done_at: datetime, now: datetime) -> NextCapacityAction:
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
    capacity_change: CapacityChange, work: GroupPolicy, group: GroupSight, now: datetime, switch: Switch
) -> NextCapacityAction:
    if work.until is not None and now >= work.until:
        text = f"the time of the stand-in for {work.group} is over; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.EXPIRED, text))
    if is_same_policy(group.policy, work.new):
        text = f"{capacity_change.subject} has this policy already; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.ALREADY_RIGHT, text))
    if not is_same_policy(group.policy, work.old):
        text = f"the policy of {capacity_change.subject} has changed since this was asked; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.CHANGED_SINCE, text))
    if group.stack:
        text = f"{capacity_change.subject} belongs to {group.stack}: change it there; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.OWNED_BY_STACK, text))
    return _permission_action(capacity_change, group.mode, now, switch)


def _permission_action(
    capacity_change: CapacityChange, mode: Mode, now: datetime, switch: Switch
) -> NextCapacityAction:
    by_policy = capacity_change.decision is not None and capacity_change.decision.is_automatic
    if mode not in ALLOWED or (by_policy and mode is not Mode.AUTO):
        text = f"the tag rightsizer:mode of {capacity_change.subject} is {mode} now; nothing was written"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.NOT_OPTED_IN, text))
    return _freeze_wait(switch.frozen, now) or Send()


def _retry_forward(capacity_change: CapacityChange, now: datetime, switch: Switch) -> NextCapacityAction:
    """The write was begun and its effect is not there: sent again, unless AWS has said no."""
    last = capacity_change.last_entry
    if last is not None and last.result is StepResult.REFUSED:
        text = f"AWS refused: {last.answer} {capacity_change.subject} is as it was"
        return Ended(ProposalState.HANDED_OVER, Reason(Code.REFUSED_BY_AWS, text))
    return _retry(capacity_change, "is as it was", False, now, switch.frozen)


def _rollback_action(
    capacity_change: CapacityChange, why: Reason, is_old: bool, now: datetime, switch: Switch
) -> NextCapacityAction:
    if is_old:
        return Ended(ProposalState.ROLLED_BACK, Reason(Code.ROLLED_BACK, f"it has its old policy again: {why}"))
    return _retry(capacity_change, "still has the new policy", True, now, switch.hard)


def _retry(capacity_change: CapacityChange, stands: str, back: bool, now: datetime, held: bool) -> NextCapacityAction:
    if held:
        return LookAgain(now + PAUSE, "frozen: no step is taken")
    tries, last = capacity_change.attempts(), capacity_change.last_entry
    if tries >= MOST_TRIES:
        text = (
            f"{tries} tries did not change {capacity_change.subject}, which {stands}: "
            f"{last.detail if last else 'no answer'}"
        )
        return Ended(ProposalState.HANDED_OVER, Reason(Code.REFUSED_BY_AWS, text[:500]))
    if tries and last is not None and now - last.at < PAUSE:
        return LookAgain(now + PAUSE, "waits for AWS to show the new value")
    return Send(back)


def _release_action(
    capacity_change: CapacityChange, warm_pool_sight: WarmPoolSight, now: datetime, switch: Switch
) -> NextCapacityAction:
    sent = capacity_change.sent_at is not None
    if warm_pool_sight.status in ("InUse", "Reused"):
        text = f"a job took the warm pool of {capacity_change.subject}: nothing to release"
        return Ended(ProposalState.WITHDRAWN, Reason(Code.CHANGED_SINCE, text))
    if warm_pool_sight.status != "Available":
        state = ProposalState.PROVEN if sent else ProposalState.WITHDRAWN
        text = f"the warm pool of {capacity_change.subject} is {'released' if sent else 'gone already'}"
        return Ended(state, Reason(Code.PROVEN if sent else Code.ALREADY_RIGHT, text))
    return (
        _retry_forward(capacity_change, now, switch)
        if sent
        else _permission_action(capacity_change, warm_pool_sight.mode, now, switch)
    )


def _freeze_wait(frozen: bool, now: datetime) -> LookAgain | None:
    return LookAgain(now + PAUSE, "frozen: nothing is begun") if frozen else None


def is_same_policy(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
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
