"""Target tracking for a fleet of fixed size: the metric that it follows, the target, and the steps there and back.

Sources: SageMaker developer guide, endpoint-auto-scaling-add-code-define (predefined metrics),
endpoint-scaling-loadtest (target = most requests a second x safety factor x 60), monitoring-cloudwatch (statistics);
Application Auto Scaling, PutScalingPolicy. AWS makes and removes the alarms of such a policy itself; nothing here
names them.
"""

import math
from typing import Any

from rightsizer.autoscaling.policies import DIMENSION
from rightsizer.domain.endpoint import SCALING_NAMESPACE, variant_resource_id
from rightsizer.domain.option import Target
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.reason import Code, Reason

REQUESTS = "SageMakerVariantInvocationsPerInstance"
"""Requests a minute for each instance: published once a minute, a mean over the instances."""
CONCURRENT = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
"""Requests in an instance, those that wait included: published every ten seconds, as minimum and maximum alone."""
BUSY_TARGET = 0.7
"""Share of what an instance can serve that is kept busy: AWS's safety factor, which it advises to begin with at 0.5.

The replay follows the same share, so that what it showed is what the policy does.
"""
FEWEST = 5.0
"""Requests a minute that keep the smallest fleet at its target, below which chance says when an instance leaves.

Scale-in waits for fifteen minutes in a row below nine tenths of the target. With half of five requests a minute, one
minute in nine is above that by chance, and the fifteen take less than an hour; with half of two they take six.
"""
TOGETHER = 4
"""Requests that an instance serves at once from which a maximum of ten seconds is a measure of its load.

Of an instance that serves one at a time the maximum is one in every ten seconds with a request, whatever its load.
"""
POLICY = "rightsizer-tracking"
TRACKING = "TargetTrackingScalingPolicyConfiguration"
"""The member of a policy that makes it one of target tracking (PutScalingPolicy)."""
COOLDOWN_S = 300
"""Seconds between two scalings the same way: AWS's default, and about what an instance takes to start.

Scale-out counts instances that start as if they served. Scale-in has waited for fifteen minutes of alarm before.
"""


def choose_metric(workers: int, service_s: float, instances: int) -> tuple[str, float] | Reason:
    """The predefined metric for instances that serve so many at once, and its target; or why none follows the load.

    `service_s` are seconds of service of a request, without waiting, `instances` those of the smallest fleet. Requests
    a minute come first, because only they are published as a mean. The target has two significant digits, cut off.
    """
    minute = 60 * BUSY_TARGET * workers / service_s
    if minute * instances >= FEWEST:
        return REQUESTS, _cut(minute)
    if workers >= TOGETHER:
        return CONCURRENT, _cut(BUSY_TARGET * workers)
    text = f"no metric of AWS follows requests of {service_s:.0f} s on instances that serve {workers} at once:"
    text += f" {minute * instances:.1f} requests a minute keep {instances} of them busy, and {FEWEST:g} are needed"
    return Reason(Code.NOT_APPLICABLE, text)


def metric_reason(metric: str) -> str:
    """Why that metric was chosen."""
    if metric == CONCURRENT:
        return "requests are too long to be counted by the minute, and it reacts within ten seconds"
    return "it follows the mean load of a minute, as the replay of past days does"


def _cut(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.floor(value / unit + 1e-9) * unit, 4)


def target_text(target: Target) -> str:
    """``target tracking on SageMakerVariantInvocationsPerInstance at 84``."""
    return f"target tracking on {target.metric} at {target.target_value:g}"


def tracking_steps(endpoint: str, variant: str, target: Target) -> tuple[tuple[Step, ...], Step]:
    """Steps that let target tracking set the count of a variant without autoscaling, and the one that ends it.

    A target without a policy moves nothing that is within its bounds, so it comes first. Deregistering it deletes the
    policy and AWS's alarms (DeregisterScalableTarget); the count is then what it happened to be.
    """
    resource = variant_resource_id(endpoint, variant)
    who = {"ServiceNamespace": SCALING_NAMESPACE, "ResourceId": resource, "ScalableDimension": DIMENSION}
    bounds = {**who, "MinCapacity": target.minimum, "MaxCapacity": target.maximum}
    policy = {**who, **_policy(str(target.metric), float(target.target_value or 0))}
    forward = Step(StepKind.REGISTER_TARGET, resource, bounds), Step(StepKind.PUT_POLICY, resource, policy)
    return forward, Step(StepKind.DEREGISTER_TARGET, resource, who)


def _policy(metric: str, value: float) -> dict[str, Any]:
    return {
        "PolicyName": POLICY,
        "PolicyType": "TargetTrackingScaling",
        TRACKING: {
            "TargetValue": value,
            "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
            "ScaleInCooldown": COOLDOWN_S,
            "ScaleOutCooldown": COOLDOWN_S,
        },
    }
