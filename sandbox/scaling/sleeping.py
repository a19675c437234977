"""A variant of an asynchronous endpoint that may go to no instance sleeps while its queue is empty, and wakes.

Sources: developer guide, async-inference-autoscale and async-inference-monitor: target tracking on the backlog of each
instance takes the last one away; a step policy on an alarm of HasBacklogWithoutCapacity starts the first one. While
there is none nothing leaves the queue. [assumed]: fifteen minutes without a backlog end in one step.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandbox.clock import next_minute

if TYPE_CHECKING:
    from sandbox.scaling.api import Params, Target
    from sandbox.world import World

BACKLOG = "ApproximateBacklogSizePerInstance"
QUIET = timedelta(minutes=15)


@dataclass
class Queue:
    """What waits for one asynchronous endpoint."""

    backlog: int = 0
    since: datetime | None = None
    """When the oldest of them came."""
    busy_at: datetime | None = None
    """When something came last."""

    def arrive(self, requests: int, minute: datetime, awake: bool) -> int:
        """The requests that leave the queue in that minute."""
        if requests:
            self.busy_at = minute
        if awake:
            done, self.backlog, self.since = requests + self.backlog, 0, None
            return done
        if requests and self.since is None:
            self.since = minute
        self.backlog += requests
        return 0

    def age_s(self, minute: datetime) -> float:
        """Age of the oldest that waits, seconds."""
        return 60 + (minute - self.since).total_seconds() if self.since else 0.0


class Sleeping:
    """Takes the last instance away and gives the first one back, minute by minute."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def next_due(self, now: datetime) -> datetime | None:
        """Every full minute, while a variant may go to no instance."""
        return next_minute(now) if any(self._sleepers()) else None

    def happen(self, now: datetime) -> None:
        """Scale each of them."""
        if now.second or now.microsecond:
            return
        for target in self._sleepers():
            queue = self._world.fleet.load.queues.get(target.identity[0].split("/")[1])
            if queue is None:
                continue
            count = self._world.scaling.count_of(target)
            rang = any(self._rings(policy) for policy in target.policies.values())
            if count == 0 and rang and not target.suspended.get("DynamicScalingOutSuspended"):
                self._world.scaling.move(target, 1, "an alarm started a step policy")
            followed = any(BACKLOG in str(policy) for policy in target.policies.values())
            quiet = queue.busy_at is None or now - queue.busy_at >= QUIET
            if count > 0 and followed and quiet and not target.suspended.get("DynamicScalingInSuspended"):
                self._world.scaling.move(target, 0, "the backlog of each instance was below its target")

    def _sleepers(self) -> list["Target"]:
        targets = self._world.scaling.targets.values()
        return [t for t in targets if t.minimum == 0 and t.identity[0].startswith("endpoint/")]

    def _rings(self, policy: "Params") -> bool:
        if policy["PolicyType"] != "StepScaling":
            return False
        mine = (alarm for alarm in self._world.alarms.all() if policy["PolicyARN"] in alarm.actions())
        return any(alarm.state == "ALARM" for alarm in mine)
