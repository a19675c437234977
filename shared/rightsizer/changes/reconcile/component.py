"""An inference component whose specification is being changed: whether its roll goes on, failed, or may be asked for.

There is no event about components, and a roll that fails leaves the component InService with its old specification.
"""

from datetime import datetime, timedelta

from rightsizer.changes.reconcile.journal import UNANSWERED
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass, Steer, Wait
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.live_state import Sight
from rightsizer.domain.plan import Step
from rightsizer.domain.reason import Code, Reason

LAG = timedelta(minutes=3)
"""An accepted update may take this long to show (inferred)."""


def standing(change: Change, sight: Sight, step: Step, now: datetime) -> Steer | Wait | str | None:
    """What stands in the way of the step: a move, or the detail with which it is given up; None where nothing does."""
    live, forward = sight.components.get(step.component), change.course is Course.FORWARD
    if live is None and forward:
        text = f"component {step.component} was deleted by somebody"
        return Steer(Reason(Code.VANISHED, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE)
    if live is None or live.moving or sight.shows(step):
        return None
    if live.unknown_fields:
        fields = ", ".join(sorted(live.unknown_fields))
        return f"refused:unknown:component {live.name} has fields that this program does not know: {fields}"
    last = change.last(step, "done", "intended", "failed")
    if last is not None and last.status == "done" and now - last.at < LAG:
        return Wait(last.at + LAG, f"{step.key} was accepted and does not show yet")
    if not _rolled_back(change, step, live):
        return None
    said = live.failure_reason or f"component {live.name} has its old specification again, and AWS gave no reason"
    if forward:
        return Steer(Reason(Code.ROLLED_BACK, said), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.UNKNOWN)
    return f"refused:unknown:its roll was taken back by AWS: {said}"


def _rolled_back(change: Change, step: Step, live: ComponentSight) -> bool:
    """Whether AWS accepted the step, or may have, and took it back."""
    last = change.last(step, "done", "intended", "failed")
    if last is None or (last.status == "failed" and not last.detail.startswith(UNANSWERED)):
        return False
    return last.status == "done" or (bool(live.failure_reason) and live.modified_at > last.at)


def longest(step: Step, otherwise: timedelta) -> timedelta:
    """How long its change may take: as its roll says, with two hours on top."""
    policy = (step.params.get("DeploymentConfig") or {}).get("RollingUpdatePolicy") or {}
    limit = policy.get("MaximumExecutionTimeoutInSeconds")
    return timedelta(seconds=limit) + timedelta(hours=2) if limit else otherwise
