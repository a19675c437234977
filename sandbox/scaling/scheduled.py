"""Scheduled actions that fire by the account's clock, in their own time zone.

Source: Application Auto Scaling guide, scheduled scaling: an action sets bounds; capacity outside them follows.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from sandbox.schedule import next_fire

if TYPE_CHECKING:
    from sandbox.scaling.api import Target
    from sandbox.world import World


class ScheduledScaling:
    """Lets time pass for every scheduled action."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def next_due(self, now: datetime) -> datetime | None:
        """When the next action fires."""
        return min((due for _, action in self._actions() if (due := _next(action, now))), default=None)

    def happen(self, now: datetime) -> None:
        """Fire the actions that are due at this moment."""
        just_before = now - timedelta(microseconds=1)
        for target, action in list(self._actions()):
            if _next(action, just_before) == now:
                bounds = action["ScalableTargetAction"]
                target.minimum = bounds.get("MinCapacity", target.minimum)
                target.maximum = bounds.get("MaxCapacity", target.maximum)
                self._world.scaling.move_into_bounds(target, f"scheduled action {action['ScheduledActionName']}")

    def _actions(self) -> Iterator[tuple["Target", dict[str, Any]]]:
        for target in self._world.scaling.targets.values():
            if not target.suspended.get("ScheduledScalingSuspended"):
                for action in target.scheduled.values():
                    yield target, action


def _next(action: dict[str, Any], after: datetime) -> datetime | None:
    zone = ZoneInfo(action.get("Timezone", "UTC"))
    start, end = action.get("StartTime"), action.get("EndTime")
    after = max(after, start) if start else after
    due = next_fire(action["Schedule"], action["CreationTime"], after.astimezone(zone))
    if due is None or (end and due > end):
        return None
    return due.astimezone(UTC)
