"""Obstacles right before a write: an old approval, another fleet, edited autoscaling, a closed window, an incident."""

from datetime import datetime

from rightsizer.changes.reconcile.drift import close_rolled_back
from rightsizer.changes.reconcile.journal import (
    GONE_AFTER,
    added_targets,
    may_have_changed_autoscaling,
    may_have_written,
    targets_of_owner,
    targets_registered_again,
)
from rightsizer.changes.reconcile.steps import may_show_until
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass, JournalEvent
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.next_action import NextAction, Replan, Steer, Wait
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import PATIENCE
from rightsizer.domain.reason import Code, Reason, time_text

REPLANS = 5
"""So often a plan is made again; a fleet that moves more than that is asked about another day."""


def approval_age_reason(change: Change, now: datetime) -> Reason | None:
    """Reason that the approval is too old, with the cause of the wait; None while good."""
    if now < change.expires_at:
        return None
    text = f"it waited {PATIENCE.days} days from its approval of {time_text(change.approved_at)}"
    return Reason(Code.EXPIRED, f"{text} and could not start: {change.outcome}")


def expiry_action(change: Change, now: datetime) -> Steer | None:
    """The end of a change whose approval became too old before the endpoint's own update was made; else None.

    Asked where AWS shows no update. What was written before it (alarms, autoscaling) is taken back.
    """
    late = approval_age_reason(change, now)
    if late is None or may_be_updating(change, now):
        return None
    if may_have_changed_autoscaling(change):
        return give_back_action(late.code, late.sentence, FailureClass.NONE)
    return Steer(late, Course.CLOSE, ChangeState.REFUSED)


def may_be_updating(change: Change, now: datetime) -> bool:
    """Whether the update may still show, where AWS shows none; of a plan without one, whether a step was made."""
    return may_have_written(change) if change.plan.turn is None else may_show_until(change, now) is not None


def unsettled_action(
    change: Change, live: LiveState, endpoint: EndpointSight, now: datetime, touched: bool
) -> NextAction | None:
    """Why the next write must not follow now; None when it may. `touched`: autoscaling was taken away already.

    An update that may still show is not asked again either: an endpoint with its autoscaling waits for it.
    """
    if change.plan.kind is PlanKind.DELETE:
        return None
    found = _find_obstacle(change, live, endpoint, now, touched)
    until = may_show_until(change, now)
    if found is None or until is None or touched:
        return found
    why = found.why if isinstance(found, Wait) else found.reason.sentence
    text = f"{why}; the update that was asked already may still show until {until:%H:%M} UTC, and is not asked again"
    return Wait(until, text)


def _find_obstacle(
    change: Change, live: LiveState, endpoint: EndpointSight, now: datetime, touched: bool
) -> Wait | Steer | Replan | None:
    """What of the endpoint differs from the plan, or an incident or a window that holds it."""
    held = _hold_action(change, live, touched) if live.hold is not None else None
    if held is not None:
        return held
    moved = _count_differences(change, endpoint)
    if touched:
        taken = _registration_action(change, live, now) if live.scaling is not None else None
        return give_back_action(Code.CHANGED_SINCE, moved, FailureClass.OUTSIDE) if moved else taken
    moved = moved or _autoscaling_differences(change, live)
    if not moved:
        return None
    plans = sum(1 for entry in change.journal if entry.step == JournalEvent.PLAN)
    if plans > REPLANS:
        text = f"{moved}; it was planned {plans} times and moved each time"
        return refuse_action(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    return Replan(Reason(Code.CHANGED_SINCE, moved))


def _registration_action(change: Change, live: LiveState, now: datetime) -> Steer | Wait | None:
    """A target that we deregistered and that is there: still listed for a moment, or the owner's anew."""
    theirs = targets_of_owner(change, live, now)
    if theirs:
        text = f"somebody registered autoscaling of {min(theirs)} again, which is left as it is"
        return close_rolled_back(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    listed = targets_registered_again(change, live)
    until = max(listed.values(), default=now) + GONE_AFTER
    return Wait(until, f"autoscaling of {min(listed)} is still listed after it was taken away") if listed else None


def _hold_action(change: Change, live: LiveState, touched: bool) -> Steer | Wait | None:
    """Nothing begins now. What began in its window is finished after it, but not into an incident."""
    assert live.hold is not None
    reason = live.hold.reason
    if touched:
        return (
            give_back_action(reason.code, reason.sentence, FailureClass.NONE) if reason.code is Code.INCIDENT else None
        )
    return Wait(min(live.hold.until, change.expires_at), reason.sentence)


def _count_differences(change: Change, endpoint: EndpointSight) -> str:
    """How counts and weights differ from those of the plan; empty where they do not, or where the turn keeps them."""
    if (
        change.before is None
        or change.plan.turn is None
        or change.plan.kind is not PlanKind.CHANGE
        or change.plan.is_keeping_counts
    ):
        return ""
    planned = {v.name: (v.count, v.weight) for v in change.before.variants}
    live = {v.name: (v.desired_count, v.desired_weight) for v in endpoint.variants}
    if planned == live:
        return ""
    was, now = (", ".join(f"{n} {c} x weight {w:g}" for n, (c, w) in rows.items()) for rows in (planned, live))
    return f"the fleet moved since the plan: it was {was} and is {now}"


def _autoscaling_differences(change: Change, live: LiveState) -> str:
    """What of autoscaling is not as the plan would give it back, or is there where the plan adds its own; or empty."""
    added = added_targets(change)
    taken = [target.resource_id for target in live.scaling or () if target.resource_id in added]
    if taken:
        return f"somebody registered autoscaling of {taken[0]} since the plan"
    if change.before is None or not change.plan.clear:
        return ""
    edits = live.edits(change.plan.restore, change.before.scaling)
    return f"autoscaling was edited since the plan: {', '.join(edits)}" if edits else ""


def give_back_action(code: Code, text: str, failure: FailureClass) -> Steer:
    """Close the change as rolled back, with its autoscaling restored."""
    return close_rolled_back(code, f"{text}; autoscaling goes back as it was", failure)


def refuse_action(code: Code, text: str, failure: FailureClass) -> Steer:
    """Close the change as refused: the endpoint felt nothing yet."""
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.REFUSED, failure)
