"""The next action of a change, from its journal and the live state.

Level-triggered: each list of a plan is a goal, and the first step that AWS does not show yet is the next one. So it
does not matter how often, when, or after which crash this is asked. Law 2: InService is not success; law 3: what is
needed for the rollback goes last; law 4: every path ends new, old or handed over.
"""

from datetime import datetime, timedelta

from rightsizer.changes.reconcile.courses import (
    close_action,
    forward_action,
    rollback_action,
    watch_action,
)
from rightsizer.changes.reconcile.drift import BUSY, busy_action, lost_action
from rightsizer.changes.reconcile.journal import (
    differences,
    is_given_back,
    leftover_configs,
    may_have_changed_autoscaling,
    may_have_turned,
    undo_commands,
)
from rightsizer.changes.reconcile.obstacles import approval_age_reason, may_be_updating
from rightsizer.changes.reconcile.steps import may_show_until, was_update_rolled_back
from rightsizer.domain.change import Change, ChangeState, Course
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import NextAction, Wait
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import decider_name

__all__ = [
    "approval_age_reason",
    "differences",
    "is_given_back",
    "leftover_configs",
    "may_be_updating",
    "may_have_changed_autoscaling",
    "may_have_turned",
    "may_show_until",
    "next_action",
    "undo_commands",
    "was_update_rolled_back",
]


def next_action(change: Change, live: LiveState, now: datetime, switch: Switch) -> NextAction:
    """The next action of a planned, open change.

    Pure and total.
    """
    if switch.frozen and switch.hard:
        return Wait(now + timedelta(minutes=5), f"frozen hard by {decider_name(switch.by)}: no step at all is taken")
    endpoint = live.endpoint
    if change.course is not Course.CLOSE:
        outside = lost_action(change, endpoint)
        if outside is not None:
            return outside
    moving = isinstance(endpoint, EndpointSight) and (endpoint.status in BUSY or bool(endpoint.pending_config))
    if isinstance(endpoint, EndpointSight) and moving and not _is_abandoned(change):
        return busy_action(change, endpoint, now)
    if change.course is Course.CLOSE or isinstance(endpoint, Gone):
        return close_action(change, live, now)
    if change.course is Course.BACK:
        return rollback_action(change, live, endpoint, now)
    if change.turned_at is None:
        return forward_action(change, live, endpoint, now, switch)
    return watch_action(change, live, endpoint, now)


def _is_abandoned(change: Change) -> bool:
    """Handed over: nothing is waited for any more, what can be put back is put back."""
    return change.course is Course.CLOSE and change.ending is ChangeState.HANDED_OVER
