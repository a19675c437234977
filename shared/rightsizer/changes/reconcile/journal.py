"""What a change took of the owner's autoscaling, told by its journal alone."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rightsizer.domain.change import Change, ChangeState, Entry
from rightsizer.domain.live_state import Sight
from rightsizer.domain.plan import Step, StepKind

APPLIED = "applied"
"""The journal line of the moment at which autoscaling was given back whole on the new configuration."""
FINISHED = "finish"
"""The journal line of an end, at which nothing of the owner's is missing."""
UNANSWERED = "again:unanswered:"
"""How the journal's line of a call begins of which nobody knows whether AWS accepted it."""

GONE_AFTER = timedelta(minutes=3)
"""A deregistered target may be listed this long (inferred): Application Auto Scaling is eventually consistent."""


def touched_scaling(change: Change) -> bool:
    """Whether we may have taken anything from the customer's autoscaling."""
    ours = {s.key for s in (*change.plan.clear, *change.plan.settle)}
    return any(e.step in ours for e in change.journal)


def may_have_written(change: Change) -> bool:
    """Whether AWS did a step that the owner feels, or may have done it."""
    return _may_have_done(change, (*change.plan.clear, *change.plan.settle))


def may_have_turned(change: Change) -> bool:
    """Whether AWS accepted the update of the endpoint, of an earlier try too, or may have."""
    turn = change.plan.turn
    return turn is None or change.tries > 0 or _may_have_done(change, (turn,))


def _may_have_done(change: Change, steps: Iterable[Step]) -> bool:
    """Whether AWS did one of the steps, or may have done it: an intent alone, or a lost answer."""
    ours = {s.key for s in steps}
    open_steps: set[str] = set()
    for entry in change.journal:
        if entry.step not in ours:
            continue
        refused = entry.status == "failed" and not entry.detail.startswith(UNANSWERED)
        if entry.status != "intended" and not refused:
            return True
        (open_steps.discard if refused else open_steps.add)(entry.step)
    return bool(open_steps)


def given_back(change: Change) -> bool:
    """Whether autoscaling was given back whole, and not taken away since: what it is now is the owner's."""
    return change.state is ChangeState.APPLIED or _last(change) in (APPLIED, FINISHED)


def reopened(change: Change) -> bool:
    """Whether it was over before, and is walked again without having taken anything away yet."""
    return _last(change) == FINISHED


def _last(change: Change) -> str:
    marks = {APPLIED, FINISHED, *(s.key for s in change.plan.clear)}
    return next((e.step for e in reversed(change.journal) if e.step in marks), "")


def registered_again(change: Change, sight: Sight) -> dict[str, datetime]:
    """Resources that we deregistered, registered nowhere since, and that are registered now, with when we did it."""
    found = {}
    for step in change.plan.clear:
        done = _taken(change, step) if step.kind is StepKind.DEREGISTER_TARGET else None
        if done is not None and sight.target(step) is not None:
            found[step.subject] = done.at
    return found


def owners_again(change: Change, sight: Sight, now: datetime) -> frozenset[str]:
    """Those of them that are the owner's for sure: nothing lists a target for so long that was deregistered."""
    return frozenset(name for name, at in registered_again(change, sight).items() if now - at >= GONE_AFTER)


def _taken(change: Change, clear: Step) -> Entry | None:
    """The line of a deregistering that was done, and after which we began to give nothing back."""
    given = (s for s in (*change.plan.settle, *change.plan.restore) if s.kind is StepKind.REGISTER_TARGET)
    ours = {s.key for s in given if s.subject == clear.subject}
    last = next((e for e in reversed(change.journal) if e.step == clear.key or e.step in ours), None)
    return last if last is not None and last.step == clear.key and last.status == "done" else None
