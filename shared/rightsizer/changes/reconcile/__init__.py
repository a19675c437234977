"""Given a change and what AWS shows right now, the next move.

Level-triggered: each list of a plan is a goal, and the first step that AWS does not show yet is the next one. So it
does not matter how often, when, or after which crash this is asked. Law 2: InService is not success; law 3: what is
needed for the way back goes last; law 4: every path ends new, old or handed over.
"""

from datetime import datetime, timedelta

from rightsizer.changes.reconcile.courses import back, close, too_old, towards, updating, watch
from rightsizer.changes.reconcile.drift import BUSY, busy, lost
from rightsizer.changes.reconcile.journal import (
    differences,
    given_back,
    left_open,
    leftovers,
    may_have_turned,
    touched_scaling,
)
from rightsizer.changes.reconcile.steps import may_show_until, rolled_back
from rightsizer.domain.change import Change, ChangeState, Course, Move, Wait
from rightsizer.domain.live_state import EndpointSight, Gone, Sight
from rightsizer.domain.policy import Switch

__all__ = [
    "advance",
    "differences",
    "given_back",
    "left_open",
    "leftovers",
    "may_have_turned",
    "may_show_until",
    "rolled_back",
    "too_old",
    "touched_scaling",
    "updating",
]


def advance(change: Change, sight: Sight, now: datetime, switch: Switch) -> Move:
    """The next move of a planned, open change. Pure and total."""
    if switch.frozen and switch.hard:
        return Wait(now + timedelta(minutes=5), f"frozen hard by {switch.by or 'somebody'}: no step at all is taken")
    endpoint = sight.endpoint
    if change.course is not Course.CLOSE:
        outside = lost(change, endpoint)
        if outside is not None:
            return outside
    moving = isinstance(endpoint, EndpointSight) and (endpoint.status in BUSY or bool(endpoint.pending_config))
    if isinstance(endpoint, EndpointSight) and moving and not _abandoned(change):
        return busy(change, endpoint, now)
    if change.course is Course.CLOSE or isinstance(endpoint, Gone):
        return close(change, sight, now)
    if change.course is Course.BACK:
        return back(change, sight, endpoint, now)
    if change.turned_at is None:
        return towards(change, sight, endpoint, now, switch)
    return watch(change, sight, endpoint, now)


def _abandoned(change: Change) -> bool:
    """Handed over: nothing is waited for any more, what can be put back is put back."""
    return change.course is Course.CLOSE and change.ending is ChangeState.HANDED_OVER
