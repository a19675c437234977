"""Target tracking that moves the count, where a test asks for it.

Sources: Application Auto Scaling guide, target-tracking-scaling-policy-overview and -how-it-works: the alarms that the
policy made decide when; out by metric over target at once, in by less, never below the target's need; the larger count
of several policies wins, and scale-in takes all of them. [assumed]: the newest datapoint is the metric, and one
instance leaves at a time.
"""

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.clock import next_minute

if TYPE_CHECKING:
    from sandbox.scaling.api import Params, Target
    from sandbox.world import World

METRICS = {
    "SageMakerVariantInvocationsPerInstance": ("InvocationsPerInstance", "Sum", 60),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": ("ConcurrentRequestsPerModel", "Maximum", 10),
    "SageMakerInferenceComponentInvocationsPerCopy": ("InvocationsPerCopy", "Sum", 60),
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": ("ConcurrentRequestsPerCopy", "Maximum", 10),
}
"""By predefined metric: the metric of CloudWatch, its statistic and its seconds."""
CONFIG = "TargetTrackingScalingPolicyConfiguration"
HIGH, SLOW = 3, 900
"""Periods above the target after which the one alarm rings, and seconds below it after which the other one does."""
COOLDOWN_S = 300
"""AWS's default for SageMaker."""


def alarm_shape(policy: "Params", side: str) -> "Params":
    """Metric, statistic and periods of one alarm of a policy; a customized metric is not simulated."""
    kind = (policy[CONFIG].get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType", "")
    metric, statistic, period = METRICS.get(kind, ("InvocationsPerInstance", "Sum", 60))
    periods = HIGH if side == "High" else SLOW // period
    return {"MetricName": metric, "Statistic": statistic, "Period": period, "EvaluationPeriods": periods}


def tracking_policies(target: "Target") -> list["Params"]:
    """The target-tracking policies of a scalable target."""
    return [policy for policy in target.policies.values() if policy["PolicyType"] == "TargetTrackingScaling"]


def has_rival(target: "Target", p: "Params") -> bool:
    """Whether another target-tracking policy of the target follows the same metric already."""

    def followed(policy: "Params") -> Any:
        config = policy.get(CONFIG) or {}
        return config.get("PredefinedMetricSpecification") or config.get("CustomizedMetricSpecification")

    others = (policy for name, policy in target.policies.items() if name != p["PolicyName"])
    return CONFIG in p and any(followed(policy) == followed(p) for policy in others)


class TargetTracking:
    """Lets the target-tracking policies of variants scale, minute by minute; off until `follows` is set."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.follows = False
        self._moved: dict[tuple[str, str], datetime] = {}
        """When the policies scaled a target last, by its resource and the direction."""

    def next_due(self, now: datetime) -> datetime | None:
        """Every full minute, after the alarms of it."""
        return next_minute(now) if self.follows else None

    def happen(self, now: datetime) -> None:
        """Scale each target whose alarms ring and whose cooldown is over."""
        if not self.follows or now.second or now.microsecond:
            return
        for target in list(self._world.scaling.targets.values()):
            policies = tracking_policies(target)
            if target.identity[0].startswith("endpoint/") and policies:
                self._follow(target, policies, now)

    def _follow(self, target: "Target", policies: list["Params"], now: datetime) -> None:
        count = self._world.scaling.count_of(target)
        out = [self._wanted(p, count) for p in policies if self._rings(p, 0)]
        if out and not target.suspended.get("DynamicScalingOutSuspended"):
            self._move(target, "out", max(*out, count + 1), max(_cooldown(p, "ScaleOut") for p in policies), now)
            return
        inward = [p for p in policies if self._rings(p, 1) and not p[CONFIG].get("DisableScaleIn")]
        if len(inward) == len(policies) and not target.suspended.get("DynamicScalingInSuspended"):
            wanted = max(max(self._wanted(p, count) for p in inward), count - 1)
            self._move(target, "in", wanted, max(_cooldown(p, "ScaleIn") for p in policies), now)

    def _rings(self, policy: "Params", side: int) -> bool:
        alarm = self._world.alarms.get(policy["Alarms"][side]["AlarmName"])
        return alarm is not None and alarm.state == "ALARM"

    def _wanted(self, policy: "Params", count: int) -> int:
        alarm = self._world.alarms.get(policy["Alarms"][0]["AlarmName"])
        assert alarm is not None
        end = int(self._world.clock.now.timestamp())
        rows = self._world.metrics.read(alarm.key(), end - alarm.period, end, alarm.period, alarm.stat())
        value = rows[-1][1] if rows else 0.0
        target = float(policy[CONFIG]["TargetValue"])
        return max(1, math.ceil(count * value / target - 1e-9))

    def _move(self, target: "Target", way: str, wanted: int, cooldown_s: int, now: datetime) -> None:
        wanted = min(max(wanted, target.minimum), target.maximum)
        last = self._moved.get((target.identity[0], way))
        if last is not None and now - last < timedelta(seconds=cooldown_s):
            return
        if self._world.scaling.move(target, wanted, f"the alarm of a target-tracking policy rang: scale {way}"):
            self._moved[target.identity[0], way] = now


def _cooldown(policy: "Params", way: str) -> int:
    return int(policy[CONFIG].get(f"{way}Cooldown", COOLDOWN_S))
