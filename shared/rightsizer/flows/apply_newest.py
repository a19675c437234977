"""Hold the newest judgement against what was approved, before each write that leads towards it."""

from rightsizer.errors import UnreadableError
from rightsizer.model.change import Change, ChangeState, Course, FailureClass
from rightsizer.model.move import Steer
from rightsizer.model.reason import Reason
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.step import StepKind
from rightsizer.ports import RecommendationStore
from rightsizer.rules.advance import touched_scaling
from rightsizer.rules.overruled import overruled

TURNING = frozenset({StepKind.UPDATE_ENDPOINT, StepKind.SET_CAPACITY, StepKind.SET_COPIES, StepKind.UPDATE_COMPONENT})
"""The writes after which the endpoint serves differently; from then on probation judges, with its way back."""


def stopped(store: RecommendationStore, change: Change) -> Steer | None:
    """The end of a change that the newest judgement forbids; None where it goes on.

    Asked before each write until the first that serves differently: between two of them a window, an alarm or a freeze
    may have kept the change waiting for days. A read that fails stops the look, not the change.
    """
    if change.course is not Course.FORWARD or change.turned_at is not None or _begun(change):
        return None
    try:
        proposal = store.proposal(change.proposal_id)
    except UnreadableError:
        return None  # the change itself holds what was approved
    if proposal is None:
        return None
    found = overruled(change.option, proposal.recommendation, newest_judgement(store, change.ref.name))
    if found is None:
        return None
    touched = touched_scaling(change)
    text = f"{found.sentence}; seen right before the next write, and it was not made"
    if touched:
        text += "; autoscaling goes back as it was"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return Steer(Reason(found.code, text), Course.CLOSE, ending, FailureClass.OUTSIDE)


def newest_judgement(store: RecommendationStore, endpoint: str) -> Recommendation | None:
    """The newest recommendation of the endpoint; None where there is none that can be read, which forbids nothing."""
    try:
        return store.recommendation(endpoint)
    except UnreadableError:
        return None


def _begun(change: Change) -> bool:
    """Whether a write of this try was intended that lets the endpoint serve differently; without a turn, any write."""
    intended = [entry for entry in change.journal if entry.status == "intended" and not entry.step.startswith("try ")]
    return any(change.plan.turn is None or entry.detail in TURNING for entry in intended)
