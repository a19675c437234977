"""Let an asynchronous endpoint sleep with no instance, and wake for the first request.

Two policies are needed (developer guide, async-inference-autoscale): target tracking on the backlog of each instance,
and a step policy on the alarm HasBacklogWithoutCapacity; without the second one an endpoint at zero wakes only when the
backlog exceeds the target. The wake-up is in place before the minimum becomes zero, and goes after it on the way back.
"""

from collections.abc import Mapping
from typing import Any

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import POLICY_PLACEHOLDER, Step, StepKind

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
BACKLOG = "ApproximateBacklogSizePerInstance"
BACKLOG_PER_INSTANCE = 5.0
"""Requests that may wait for each instance (developer guide, its example)."""
TRACKING, WAKING = "rightsizer-backlog", "rightsizer-wake"
SCALE_IN_S, SCALE_OUT_S = 600, 300


def to_zero(
    endpoint: str, variant: str, own: ScalableTarget | None, maximum: int, alarm: str, change_id: str
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Steps that let the variant sleep, and steps that undo them but for the count of one that was not autoscaled.

    `own` is its registration today, `maximum` the instances that it may have where it has none, `alarm` the name of the
    alarm that wakes it. Policies of the owner stay; target tracking is added only where none follows the backlog.
    """
    who = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{endpoint}/variant/{variant}",
        "ScalableDimension": DIMENSION,
    }
    resource = who["ResourceId"]
    most = max(1, own.maximum if own is not None else maximum)
    kept = {"SuspendedState": dict(own.suspended)} if own is not None and any(own.suspended.values()) else {}
    sleeping = Step(StepKind.REGISTER_TARGET, resource, {**who, "MinCapacity": 0, "MaxCapacity": most, **kept})
    waking = Step(StepKind.PUT_POLICY, resource, {**who, **_waking()})
    ringing = Step(StepKind.PUT_ALARM, alarm, _alarm(endpoint, resource, alarm, change_id))
    silence = Step(StepKind.DELETE_ALARMS, alarm, {"AlarmNames": [alarm]})
    tracked = own is not None and any(BACKLOG in str(policy) for policy in own.policies)
    tracking = () if tracked else (Step(StepKind.PUT_POLICY, resource, {**who, **_tracking(endpoint)}),)
    if own is None:
        # A target without a policy moves nothing, so it may come first; what scales in comes last.
        gone = Step(StepKind.DEREGISTER_TARGET, resource, who)
        return (sleeping, waking, ringing, *tracking), (gone, silence)
    bounds = {"MinCapacity": own.minimum, "MaxCapacity": own.maximum}
    awake = Step(StepKind.REGISTER_TARGET, resource, {**who, **bounds, **kept})
    names = [WAKING] if tracked else [WAKING, TRACKING]
    dropped = tuple(Step(StepKind.DELETE_POLICY, resource, {**who, "PolicyName": name}) for name in names)
    return (waking, ringing, *tracking, sleeping), (awake, silence, *dropped)


def _tracking(endpoint: str) -> Mapping[str, Any]:
    metric = {
        "MetricName": BACKLOG,
        "Namespace": "AWS/SageMaker",
        "Dimensions": [{"Name": "EndpointName", "Value": endpoint}],
        "Statistic": "Average",
    }
    config = {
        "TargetValue": BACKLOG_PER_INSTANCE,
        "CustomizedMetricSpecification": metric,
        "ScaleInCooldown": SCALE_IN_S,
        "ScaleOutCooldown": SCALE_OUT_S,
    }
    return {
        "PolicyName": TRACKING,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": config,
    }


def _waking() -> Mapping[str, Any]:
    config = {
        "AdjustmentType": "ChangeInCapacity",
        "MetricAggregationType": "Average",
        "Cooldown": SCALE_OUT_S,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
    }
    return {"PolicyName": WAKING, "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": config}


def _alarm(endpoint: str, resource: str, name: str, change_id: str) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "AlarmDescription": f"A request waits for {endpoint}, which sleeps; one instance is started (kept)",
        "Namespace": "AWS/SageMaker",
        "MetricName": "HasBacklogWithoutCapacity",
        "Dimensions": [{"Name": "EndpointName", "Value": endpoint}],
        "Statistic": "Average",
        "Period": 60,
        "EvaluationPeriods": 2,
        "DatapointsToAlarm": 2,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "missing",
        "AlarmActions": [f"{POLICY_PLACEHOLDER}{resource}|{DIMENSION}|{WAKING}"],
        "Tags": [{"Key": "rightsizer:change", "Value": change_id}],
    }
