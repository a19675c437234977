"""The plan as it is due at one moment: the owner's schedule went on while autoscaling was away."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from rightsizer.autoscaling.scheduled_actions import caught_up
from rightsizer.domain.change import Change
from rightsizer.domain.plan import Plan

SCHEDULE = "schedule"
"""The journal line that says which scheduled action was made good."""


@dataclass(frozen=True, slots=True)
class Due:
    """A change as its plan is due at one moment."""

    change: Change
    said: Mapping[str, str] = field(default_factory=dict)
    """What differs from the plan in the journal, by the command line of the step."""


def as_due(change: Change, now: datetime) -> Due:
    """The change with the bounds that are due now, and what differs from its plan.

    A view: the plan in the journal stays as it was made, so that a later look counts from it again.
    """
    if change.before is None:
        return Due(change)
    since = max((entry.at for entry in change.journal if entry.step == "plan"), default=change.created_at)
    stored = change.before.scaling
    settle = caught_up(change.plan.settle, stored, since, now, all_actions=False)
    restore = caught_up(change.plan.restore, stored, since, now, all_actions=True)
    plan: Plan = replace(change.plan, settle=settle.steps, restore=restore.steps)
    steps = {
        step.command: said for part in (settle, restore) for step in part.steps if (said := part.said.get(step.key))
    }
    return Due(replace(change, plan=plan), steps)
