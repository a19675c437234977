"""The class of a failure where only AWS's own text says why, as people and the next decision are told it."""

from dataclasses import replace

from rightsizer.changes import failure
from rightsizer.domain.change import Change, ChangeState, FailureClass, Steer
from rightsizer.domain.reason import Code

BY_TEXT = frozenset({Code.ROLLED_BACK, Code.WAY_BACK_FAILED})
"""Reasons of which the sentence is AWS's text, or ends with it."""


def classified(move: Steer) -> Steer:
    """The move with its class: forward and back by one rule. A way back that failed begins its sentence with it."""
    reason = move.reason
    if move.failure is not FailureClass.UNKNOWN or reason.code not in BY_TEXT:
        return move
    kind = failure.classify(reason.sentence).failure
    if reason.code is Code.WAY_BACK_FAILED:
        reason = replace(reason, sentence=f"{kind.value}: {reason.sentence}")
    return replace(move, failure=kind, reason=reason)


def lesson(change: Change, ended: str) -> str:
    """The class that the type is remembered by. What failed on the way back of a test is the old type's affair."""
    seen = change.failure in (FailureClass.ERRORS, FailureClass.MEMORY)
    lost = ended == "tested" and change.state is ChangeState.HANDED_OVER and not seen
    return (FailureClass.UNKNOWN if lost else change.failure).value


def given_up(change: Change) -> bool:
    """Whether it went back before its type served, for nothing that the type did.

    Frozen, an incident, others moved what it stood on, or an alarm of ours was not OK before the start: as little is
    learnt from it as from a refusal.
    """
    before = change.state is ChangeState.ROLLED_BACK and change.turned_at is None
    unready = change.reason is not None and change.reason.code is Code.ALARM_NOT_OK
    return before and (unready or change.failure in (FailureClass.NONE, FailureClass.OUTSIDE))
