"""Right before the first write that the endpoint feels: whether the ground is still the one that was planned on.

Roll-back alarms warm up for minutes, and a step may be tried for an hour. Meanwhile autoscaling and people move counts,
an owner edits a policy, the window closes, an incident begins.
"""

from datetime import datetime

from rightsizer.changes.reconcile.journal import (
    GONE_AFTER,
    may_have_written,
    owners_again,
    registered_again,
    touched_scaling,
)
from rightsizer.changes.reconcile.turning import may_show_until
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass, Move, Replan, Steer, Wait
from rightsizer.domain.live_state import EndpointSight, Sight
from rightsizer.domain.proposal import PATIENCE
from rightsizer.domain.reason import Code, Reason

REPLANS = 5
"""So often a plan is made again; a fleet that moves more than that is asked about another day."""


def too_old(change: Change, now: datetime) -> Reason | None:
    """That its approval is too old, with what it waited for; None while it is good."""
    if now < change.expires_at:
        return None
    text = f"it waited {PATIENCE.days} days from its approval of {change.approved_at:%Y-%m-%d %H:%M} UTC"
    return Reason(Code.EXPIRED, f"{text} and could not start: {change.outcome}")


def expired(change: Change, now: datetime) -> Steer | None:
    """The end of a change whose approval became too old before the endpoint's own update was made; else None.

    Asked where AWS shows no update. What was written before it (alarms, autoscaling) is taken back.
    """
    late = too_old(change, now)
    if late is None or updating(change, now):
        return None
    if touched_scaling(change):
        return _give_back(late.code, late.sentence, FailureClass.NONE)
    return Steer(late, Course.CLOSE, ChangeState.REFUSED)


def updating(change: Change, now: datetime) -> bool:
    """Whether the update may still show, where AWS shows none; of a plan without one, whether a step was made."""
    return may_have_written(change) if change.plan.turn is None else may_show_until(change, now) is not None


def unsettled(change: Change, sight: Sight, endpoint: EndpointSight, now: datetime, touched: bool) -> Move | None:
    """Why the first write must not follow now; None when it may. `touched`: autoscaling was taken away already."""
    if change.plan.kind == "delete" or may_show_until(change, now) is not None:
        return None
    if sight.hold is not None:
        held = _held(change, sight, touched)
        if held is not None:
            return held
    moved = _moved(change, endpoint)
    if touched:
        taken = _registered_again(change, sight, now) if sight.scaling is not None else None
        return _give_back(Code.CHANGED_SINCE, moved, FailureClass.OUTSIDE) if moved else taken
    moved = moved or _edited(change, sight)
    if not moved:
        return None
    plans = sum(1 for entry in change.journal if entry.step == "plan")
    if plans > REPLANS:
        text = f"{moved}; it was planned {plans} times and moved each time"
        return _refused(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    return Replan(Reason(Code.CHANGED_SINCE, moved))


def _registered_again(change: Change, sight: Sight, now: datetime) -> Move | None:
    """A target that we deregistered and that is there: still listed for a moment, or the owner's anew."""
    theirs = owners_again(change, sight, now)
    if theirs:
        text = f"somebody registered autoscaling of {min(theirs)} again, which is left as it is"
        return Steer(Reason(Code.CHANGED_SINCE, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE)
    listed = registered_again(change, sight)
    until = max(listed.values(), default=now) + GONE_AFTER
    return Wait(until, f"autoscaling of {min(listed)} is still listed after it was taken away") if listed else None


def _held(change: Change, sight: Sight, touched: bool) -> Move | None:
    """Nothing begins now. What began in its window is finished after it, but not into an incident."""
    assert sight.hold is not None
    reason = sight.hold.reason
    if touched:
        return _give_back(reason.code, reason.sentence, FailureClass.NONE) if reason.code is Code.INCIDENT else None
    return Wait(min(sight.hold.until, change.expires_at), reason.sentence)


def _moved(change: Change, endpoint: EndpointSight) -> str:
    """How counts and weights differ from those of the plan; empty where they do not, or where the turn keeps them."""
    if change.before is None or change.plan.turn is None or change.plan.kind != "change" or change.plan.keeps_counts:
        return ""
    planned = {v.name: (v.count, v.weight) for v in change.before.variants}
    live = {v.name: (v.desired_count, v.desired_weight) for v in endpoint.variants}
    if planned == live:
        return ""
    was, now = (", ".join(f"{n} {c} x weight {w:g}" for n, (c, w) in rows.items()) for rows in (planned, live))
    return f"the fleet moved since the plan: it was {was} and is {now}"


def _edited(change: Change, sight: Sight) -> str:
    """What of autoscaling is not as the plan would give it back; empty where all is, or nothing is taken away."""
    if change.before is None or not change.plan.clear:
        return ""
    edits = sight.edits(change.plan.restore, change.before.scaling)
    return f"autoscaling was edited since the plan: {', '.join(edits)}" if edits else ""


def _give_back(code: Code, text: str, failure: FailureClass) -> Steer:
    said = Reason(code, f"{text}; autoscaling goes back as it was")
    return Steer(said, Course.CLOSE, ChangeState.ROLLED_BACK, failure)


def _refused(code: Code, text: str, failure: FailureClass) -> Steer:
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.REFUSED, failure)
