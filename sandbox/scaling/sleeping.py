"""What may go to no instance sleeps while nobody calls, and wakes: asynchronous endpoints and inference components.

Sources: developer guide, async-inference-autoscale and async-inference-monitor: target tracking on the backlog of each
instance takes the last one away; a step policy on an alarm of HasBacklogWithoutCapacity starts the first one. While
there is none nothing leaves the queue. Components go to no copy by target tracking on their invocations and come back
by a step policy on NoCapacityInvocationFailures; their instances follow where MinInstanceCount is 0
(endpoint-auto-scaling-zero-instances). [assumed]: fifteen minutes without a call end in one step, and the last instance
goes with the last copy; above a minimum of 0, the copies leave that the busiest of these minutes did not need.
"""

import math
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandbox.clock import next_minute
from sandbox.scaling.tracking import CONFIG, tracking_policies

if TYPE_CHECKING:
    from sandbox.sagemaker.components import Component
    from sandbox.scaling.api import Params, Target
    from sandbox.world import World

CALLS = "SageMakerInferenceComponentInvocationsPerCopy"
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
    most_a_minute: int = sys.maxsize
    """Requests that its instances work off in a minute."""

    def arrive(self, requests: int, minute: datetime, awake: bool) -> int:
        """The requests that leave the queue in that minute."""
        if requests:
            self.busy_at = minute
        whole = requests + self.backlog
        done = min(whole, self.most_a_minute) if awake else 0
        self.backlog = whole - done
        self.since = (self.since or minute) if self.backlog else None
        return done

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
            name = target.identity[0].split("/")[1]
            queue = self._world.fleet.load.queues.get(name)
            if queue is None:
                continue
            component = None if target.identity[0].startswith("endpoint/") else self._world.components.known[name]
            count = component.desired if component else self._world.scaling.count_of(target)
            if count == 0 and self._rang(target) and not target.suspended.get("DynamicScalingOutSuspended"):
                self._move(target, component, 1, "an alarm started a step policy")
            quiet = queue.busy_at is None or now - queue.busy_at >= QUIET
            if component is not None and target.minimum:
                self._shrink(target, component, now)
            elif count == 0 or not quiet or target.suspended.get("DynamicScalingInSuspended"):
                continue
            elif _follows(target, BACKLOG if component is None else CALLS):
                self._move(target, component, 0, "the metric of a target-tracking policy was below its target")

    def _shrink(self, target: "Target", component: "Component", now: datetime) -> None:
        """The copies that its target tracking needs for the busiest minute, and never fewer than its minimum."""
        config = next((p[CONFIG] for p in tracking_policies(target) if CALLS in str(p)), {"DisableScaleIn": True})
        if config.get("DisableScaleIn") or target.suspended.get("DynamicScalingInSuspended"):
            return
        key = ("AWS/SageMaker", "Invocations", frozenset({("InferenceComponentName", component.name)}))
        end = int(now.timestamp())
        rows = self._world.metrics.read(key, end - int(QUIET.total_seconds()), end, 60, "Sum")
        needed = math.ceil(max((calls for _, calls in rows), default=0.0) / float(config["TargetValue"]) - 1e-9)
        wanted = max(needed, target.minimum)
        if wanted < component.desired:
            self._world.components.set_copies(component, wanted)

    def _move(self, target: "Target", component: "Component | None", wanted: int, cause: str) -> None:
        if component is None:
            self._world.scaling.move(target, wanted, cause)
        else:
            self._world.components.set_copies(component, wanted)

    def _sleepers(self) -> list["Target"]:
        targets = self._world.scaling.targets.values()
        kinds = ("endpoint/", "inference-component/")
        return [t for t in targets if t.identity[0].startswith(kinds) and (t.minimum == 0 or kinds[1] in t.identity[0])]

    def _rang(self, target: "Target") -> bool:
        return any(self._rings(policy) for policy in target.policies.values())

    def _rings(self, policy: "Params") -> bool:
        if policy["PolicyType"] != "StepScaling":
            return False
        mine = (alarm for alarm in self._world.alarms.all() if policy["PolicyARN"] in alarm.actions())
        return any(alarm.state == "ALARM" for alarm in mine)


def _follows(target: "Target", metric: str) -> bool:
    """Whether a policy of the target names the metric."""
    return any(metric in str(policy) for policy in target.policies.values())
