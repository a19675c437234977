"""What a change took of the owner's autoscaling, told by its journal alone."""

from rightsizer.model.change import Change, ChangeState

APPLIED = "applied"
"""The journal line of the moment at which autoscaling was given back whole on the new configuration."""
FINISHED = "finish"
"""The journal line of an end, at which nothing of the owner's is missing."""


def touched_scaling(change: Change) -> bool:
    """Whether we may have taken anything from the customer's autoscaling."""
    ours = {s.key for s in (*change.plan.clear, *change.plan.settle)}
    return any(e.step in ours for e in change.journal)


def given_back(change: Change) -> bool:
    """Whether autoscaling was given back whole, and not taken away since: what it is now is the owner's."""
    return change.state is ChangeState.APPLIED or _last(change) in (APPLIED, FINISHED)


def reopened(change: Change) -> bool:
    """Whether it was over before, and is walked again without having taken anything away yet."""
    return _last(change) == FINISHED


def _last(change: Change) -> str:
    marks = {APPLIED, FINISHED, *(s.key for s in change.plan.clear)}
    return next((e.step for e in reversed(change.journal) if e.step in marks), "")
