"""The plan as it is due at one moment: the owner's schedule went on while autoscaling was away."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from rightsizer.model.change import Change, Plan
from rightsizer.rules.schedule import caught_up

SCHEDULE = "schedule"
"""The journal line that says which scheduled action was made good."""


def as_due(change: Change, now: datetime) -> tuple[Change, Mapping[str, str]]:
    """The change with the bounds that are due now, and what differs from its plan by the key of the step.

    A view: the plan in the journal stays as it was made, so that a later look counts from it again.
    """
    if change.before is None:
        return change, {}
    since = max((entry.at for entry in change.journal if entry.step == "plan"), default=change.created_at)
    stored = change.before.scaling
    settle = caught_up(change.plan.settle, stored, since, now, all_actions=False)
    restore = caught_up(change.plan.restore, stored, since, now, all_actions=True)
    plan: Plan = replace(change.plan, settle=settle.steps, restore=restore.steps)
    steps = {
        step.command: said for part in (settle, restore) for step in part.steps if (said := part.said.get(step.key))
    }
    return replace(change, plan=plan), steps
