"""Remove autoscaling for a change and restore it: as it was, or for the new capacity.

Deregistering deletes policies and scheduled actions and strips the customer's alarms of their actions (Application Auto
Scaling); a re-created step policy has a new ARN. So everything is rebuilt from the snapshot, alarms included.

An asynchronous endpoint sleeps with no instance and wakes for the first request by two policies (developer guide,
async-inference-autoscale): target tracking on the backlog of each instance, and a step policy on the alarm
HasBacklogWithoutCapacity; without the second one an endpoint at zero wakes only when the backlog exceeds the target.
The wake-up is in place before the minimum becomes zero, and goes after it during the rollback. Inference components
go to no copy in the same way; what wakes them is NoCapacityInvocationFailures (endpoint-auto-scaling-zero-instances).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rightsizer.autoscaling.schedules import scheduled_counts
from rightsizer.domain.endpoint import SCALING_NAMESPACE, ScalableTarget, component_resource_id, variant_resource_id
from rightsizer.domain.option import Target
from rightsizer.domain.plan import POLICY_PLACEHOLDER, Step, StepKind, with_policy_places
from rightsizer.domain.reason import Code, Reason

POLICY_FIELDS = frozenset(
    {
        "PolicyName",
        "ServiceNamespace",
        "ResourceId",
        "ScalableDimension",
        "PolicyType",
        "StepScalingPolicyConfiguration",
        "TargetTrackingScalingPolicyConfiguration",
    }
)
POLICY_OUTPUT = frozenset({"PolicyARN", "Alarms", "CreationTime"})
SCHEDULED_FIELDS = frozenset(
    {
        "ServiceNamespace",
        "Schedule",
        "Timezone",
        "ScheduledActionName",
        "ResourceId",
        "ScalableDimension",
        "StartTime",
        "EndTime",
        "ScalableTargetAction",
    }
)
SCHEDULED_OUTPUT = frozenset({"ScheduledActionARN", "CreationTime"})
CAPACITY_METRICS = frozenset(
    {
        "SageMakerVariantInvocationsPerInstance",
        "SageMakerVariantConcurrentRequestsPerModelHighResolution",
    }
)
"""Targets per instance: they follow the capacity of an instance."""
HOURLY = re.compile(r"rightsizer-.+-\d\d")
"""Names of our scheduled actions: the change, the days of the week where they differ, and the hour."""
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
COMPONENT_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
BACKLOG = "ApproximateBacklogSizePerInstance"
BACKLOG_PER_INSTANCE = 5.0
"""Requests that may wait for each instance (developer guide, its example)."""
TRACKING, WAKING = "rightsizer-backlog", "rightsizer-wake"
SCALE_IN_S, SCALE_OUT_S = 600, 300


@dataclass(frozen=True, slots=True)
class CapacityExchange:
    """How a fleet compares with the one before: `new` instances serve what `old` did."""

    old: int
    new: int

    @property
    def per_instance(self) -> float:
        """Capacity of one new instance over one old instance."""
        return self.old / self.new if self.new > 0 else 1.0


def autoscaling_refusals(
    targets: Iterable[ScalableTarget], may_rewire: bool, alarms: Sequence[Mapping[str, Any]]
) -> tuple[Reason, ...]:
    """Why this autoscaling could not be given back whole; empty when it can."""
    reasons = []
    for target in targets:
        for row in target.policies:
            reasons += _unknown_fields(target, row, POLICY_FIELDS | POLICY_OUTPUT, str(row.get("PolicyName", "")))
            if row.get("PolicyType") not in ("TargetTrackingScaling", "StepScaling"):
                text = f"policy {row.get('PolicyName')} of {target.resource_id} is of type {row.get('PolicyType')}"
                reasons.append(Reason(Code.UNKNOWN_FIELD, f"{text}, which this program does not know how to put back"))
        for row in target.scheduled:
            reasons += _unknown_fields(
                target, row, SCHEDULED_FIELDS | SCHEDULED_OUTPUT, str(row.get("ScheduledActionName", ""))
            )
    if alarms and not may_rewire:
        names = ", ".join(sorted(str(a["AlarmName"]) for a in alarms))
        text = f"alarms of yours ({names}) start step policies and would have to be re-wired; the stack parameter "
        reasons.append(Reason(Code.AUTOSCALED, text + "that lets rightsizer write customers' alarms is off"))
    return tuple(reasons)


def _unknown_fields(target: ScalableTarget, row: Mapping[str, Any], known: frozenset[str], name: str) -> list[Reason]:
    odd = sorted(k for k, v in row.items() if k not in known and v not in (None, [], {}))
    if not odd:
        return []
    text = f"{name} of {target.resource_id} has fields that this program does not know: {', '.join(odd)}"
    return [Reason(Code.UNKNOWN_FIELD, text)]


def removal_steps(targets: Iterable[ScalableTarget]) -> tuple[Step, ...]:
    """Steps that deregister the targets; SageMaker refuses a change of type while they are registered."""
    return tuple(Step(StepKind.DEREGISTER_TARGET, t.resource_id, _target_key(t)) for t in targets)


def restore_steps(
    targets: Sequence[ScalableTarget],
    alarms: Sequence[Mapping[str, Any]],
    snapshot: Sequence[ScalableTarget],
) -> tuple[Step, ...]:
    """Steps that register the targets with everything on them and re-wire the alarms to the new policies.

    `snapshot` says which old policy ARN is which policy. What a schedule has moved since is not in them.
    """
    steps: list[Step] = []
    for target in targets:
        who = _target_key(target)
        bounds: dict[str, Any] = {**who, "MinCapacity": target.minimum, "MaxCapacity": target.maximum}
        if any(target.suspended.values()):
            bounds["SuspendedState"] = dict(target.suspended)
        if tags := own_tags(target):
            bounds["Tags"] = tags
        steps.append(Step(StepKind.REGISTER_TARGET, target.resource_id, bounds))
        for policy in target.policies:
            params = {k: v for k, v in policy.items() if k in POLICY_FIELDS}
            steps.append(Step(StepKind.PUT_POLICY, target.resource_id, params))
        for action in target.scheduled:
            params = {k: v for k, v in action.items() if k in SCHEDULED_FIELDS}
            steps.append(Step(StepKind.PUT_SCHEDULED, target.resource_id, params))
    return (*steps, *(Step(StepKind.PUT_ALARM, str(a["AlarmName"]), with_policy_places(a, snapshot)) for a in alarms))


def own_tags(target: ScalableTarget) -> dict[str, str]:
    """Tags of a target that a caller may set; AWS refuses tags with its prefix ``aws:``."""
    return {k: v for k, v in target.tags.items() if not k.lower().startswith("aws:")}


def retarget(
    targets: Sequence[ScalableTarget], wanted: Target, capacity: CapacityExchange
) -> tuple[ScalableTarget, ...]:
    """Scale the owner's autoscaling to the new capacity.

    Bounds follow the number of instances that serve the same, targets per instance follow the capacity of one: the
    option's figure, else the counts'. The option's own bounds and target come first. Steps and cooldowns are the
    owner's and stay.
    """
    return tuple(_retarget_target(t, wanted, capacity) for t in targets)


def _retarget_target(target: ScalableTarget, wanted: Target, capacity: CapacityExchange) -> ScalableTarget:
    def scaled(count: int) -> int:
        return count if count == 0 else max(1, math.ceil(count / ratio - 1e-9))

    ratio = wanted.per_instance or capacity.per_instance
    minimum = wanted.minimum if wanted.minimum is not None else scaled(target.minimum)
    maximum = wanted.maximum if wanted.maximum is not None else scaled(target.maximum)
    policies = tuple(_retarget_policy(p, wanted, ratio) for p in target.policies)
    scheduled = tuple(
        {
            **action,
            "ScalableTargetAction": {
                k: scaled(v) if isinstance(v, int) else v for k, v in action.get("ScalableTargetAction", {}).items()
            },
        }
        for action in target.scheduled
    )
    return replace(target, minimum=minimum, maximum=max(minimum, maximum), policies=policies, scheduled=scheduled)


def tracked_metric(policy: Mapping[str, Any]) -> str:
    """The predefined metric that a target-tracking policy follows; empty where it follows another one."""
    config = policy.get("TargetTrackingScalingPolicyConfiguration") or {}
    return str(config.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType", ""))


def may_scale_in(target: ScalableTarget) -> bool:
    """Whether its policies alone set the count and may lower it: no schedule, nothing suspended, scale-in on."""
    configs = [policy.get("TargetTrackingScalingPolicyConfiguration") or {} for policy in target.policies]
    locked = any(config.get("DisableScaleIn") for config in configs)
    return not locked and not target.scheduled and not any(target.suspended.values())


def _retarget_policy(policy: Mapping[str, Any], wanted: Target, ratio: float) -> Mapping[str, Any]:
    config = policy.get("TargetTrackingScalingPolicyConfiguration")
    if not config:
        return policy
    if tracked_metric(policy) not in CAPACITY_METRICS:
        return policy
    value = wanted.target_value or round(config["TargetValue"] * ratio, 4)
    return {**policy, "TargetTrackingScalingPolicyConfiguration": {**config, "TargetValue": value}}


def hourly_count_steps(endpoint: str, variant: str, counts: Sequence[int], change_id: str) -> tuple[Step, ...]:
    """Register the variant and schedule its counts (UTC): 24 of each day, or 168 of the week."""
    who = {
        "ServiceNamespace": SCALING_NAMESPACE,
        "ResourceId": variant_resource_id(endpoint, variant),
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    resource = str(who["ResourceId"])
    bounds = {**who, "MinCapacity": min(counts), "MaxCapacity": max(counts)}
    steps = [Step(StepKind.REGISTER_TARGET, resource, bounds)]
    for scheduled_count in scheduled_counts(counts):
        action = {
            **who,
            "ScheduledActionName": f"rightsizer-{change_id}-{scheduled_count.label}",
            "Schedule": scheduled_count.schedule,
            "ScalableTargetAction": {"MinCapacity": scheduled_count.count, "MaxCapacity": scheduled_count.count},
        }
        steps.append(Step(StepKind.PUT_SCHEDULED, resource, action))
    return tuple(steps)


def has_only_hourly_counts(target: ScalableTarget) -> bool:
    """Whether the target holds nothing but actions of `hourly_count_steps`: no policy, and no action of the owner's."""
    names = [str(action.get("ScheduledActionName", "")) for action in target.scheduled]
    return bool(names) and not target.policies and all(HOURLY.fullmatch(name) for name in names)


def _target_key(target: ScalableTarget) -> dict[str, Any]:
    return {
        "ServiceNamespace": SCALING_NAMESPACE,
        "ResourceId": target.resource_id,
        "ScalableDimension": target.dimension,
    }


def scale_to_zero_steps(
    endpoint: str, variant: str, own: ScalableTarget | None, maximum: int, alarm: str, change_id: str
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Steps that let the variant scale to zero, and steps that undo them.

    The count of a variant without autoscaling before is not among the latter.

    `own` is its registration today, `maximum` the instances that it may have where it has none, `alarm` the name of the
    alarm that wakes it. Policies of the owner stay; target tracking is added only where none follows the backlog.
    """
    who = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": variant_resource_id(endpoint, variant),
        "ScalableDimension": DIMENSION,
    }
    resource = who["ResourceId"]
    most = max(1, own.maximum if own is not None else maximum)
    kept = {"SuspendedState": dict(own.suspended)} if own is not None and any(own.suspended.values()) else {}
    sleeping = Step(StepKind.REGISTER_TARGET, resource, {**who, "MinCapacity": 0, "MaxCapacity": most, **kept})
    waking = Step(StepKind.PUT_POLICY, resource, {**who, **_wake_policy()})
    ringing = Step(StepKind.PUT_ALARM, alarm, _wake_alarm(endpoint, resource, alarm, change_id))
    silence = Step(StepKind.DELETE_ALARMS, alarm, {"AlarmNames": [alarm]})
    tracked = own is not None and any(BACKLOG in str(policy) for policy in own.policies)
    tracking = () if tracked else (Step(StepKind.PUT_POLICY, resource, {**who, **_backlog_policy(endpoint)}),)
    if own is None:
        # A target without a policy moves nothing, so it may come first; what scales in comes last.
        gone = Step(StepKind.DEREGISTER_TARGET, resource, who)
        return (sleeping, waking, ringing, *tracking), (gone, silence)
    bounds = {"MinCapacity": own.minimum, "MaxCapacity": own.maximum}
    awake = Step(StepKind.REGISTER_TARGET, resource, {**who, **bounds, **kept})
    names = [WAKING] if tracked else [WAKING, TRACKING]
    dropped = tuple(Step(StepKind.DELETE_POLICY, resource, {**who, "PolicyName": name}) for name in names)
    return (waking, ringing, *tracking, sleeping), (awake, silence, *dropped)


def component_sleep_steps(
    component: str, own: ScalableTarget | None, copies: int, alarm: str, change_id: str
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Steps that let an inference component go to no copy and wake, and steps that undo them.

    The copies of a component without autoscaling before are not among the latter. Policies of the owner stay; target
    tracking is added only where there is none: today's copies while requests come, and none without.
    """
    resource = component_resource_id(component)
    who = {"ServiceNamespace": SCALING_NAMESPACE, "ResourceId": resource, "ScalableDimension": COMPONENT_DIMENSION}
    most = max(1, own.maximum if own is not None else copies)
    sleeping = Step(StepKind.REGISTER_TARGET, resource, {**who, "MinCapacity": 0, "MaxCapacity": most})
    waking = Step(StepKind.PUT_POLICY, resource, {**who, **_wake_policy()})
    ringing = Step(StepKind.PUT_ALARM, alarm, _capacity_alarm(component, resource, alarm, change_id))
    silence = Step(StepKind.DELETE_ALARMS, alarm, {"AlarmNames": [alarm]})
    tracked = own is not None and any(policy.get("PolicyType") == "TargetTrackingScaling" for policy in own.policies)
    tracking = () if tracked else (Step(StepKind.PUT_POLICY, resource, {**who, **_calls_policy()}),)
    if own is None:
        gone = Step(StepKind.DEREGISTER_TARGET, resource, who)
        return (sleeping, waking, ringing, *tracking), (silence, gone)
    bounds = {"MinCapacity": own.minimum, "MaxCapacity": own.maximum}
    awake = Step(StepKind.REGISTER_TARGET, resource, {**who, **bounds})
    names = [WAKING] if tracked else [WAKING, TRACKING]
    dropped = tuple(Step(StepKind.DELETE_POLICY, resource, {**who, "PolicyName": name}) for name in names)
    return (waking, ringing, *tracking, sleeping), (awake, silence, *dropped)


def component_minimum_steps(component: str, own: ScalableTarget, minimum: int) -> tuple[Step, tuple[Step, ...]]:
    """Step that lowers the minimum of a component's autoscaling, and steps that give its copies back.

    The copies of the old minimum are asked for as well, so that a return for which nothing has room is seen.
    """
    resource = component_resource_id(component)
    old = {**_target_key(own), "MinCapacity": own.minimum, "MaxCapacity": own.maximum}
    copies = {"InferenceComponentName": component, "DesiredRuntimeConfig": {"CopyCount": own.minimum}}
    lower = Step(StepKind.REGISTER_TARGET, resource, {**old, "MinCapacity": minimum})
    return lower, (Step(StepKind.REGISTER_TARGET, resource, old), Step(StepKind.SET_COPIES, component, copies))


def _calls_policy() -> Mapping[str, Any]:
    config = {
        "TargetValue": 1.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"},
        "ScaleInCooldown": SCALE_IN_S,
        "ScaleOutCooldown": SCALE_OUT_S,
    }
    return {
        "PolicyName": TRACKING,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": config,
    }


def _backlog_policy(endpoint: str) -> Mapping[str, Any]:
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


def _wake_policy() -> Mapping[str, Any]:
    config = {
        "AdjustmentType": "ChangeInCapacity",
        "MetricAggregationType": "Average",
        "Cooldown": SCALE_OUT_S,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
    }
    return {"PolicyName": WAKING, "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": config}


def _wake_alarm(endpoint: str, resource: str, name: str, change_id: str) -> dict[str, Any]:
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


def _capacity_alarm(component: str, resource: str, name: str, change_id: str) -> dict[str, Any]:
    """One request without capacity is enough: AWS's own example takes more than one, and would sleep on."""
    return {
        "AlarmName": name,
        "AlarmDescription": f"A request found no copy of {component}; the first one is started (kept)",
        "Namespace": "AWS/SageMaker",
        "MetricName": "NoCapacityInvocationFailures",
        "Dimensions": [{"Name": "InferenceComponentName", "Value": component}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "DatapointsToAlarm": 1,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "missing",
        "AlarmActions": [f"{POLICY_PLACEHOLDER}{resource}|{COMPONENT_DIMENSION}|{WAKING}"],
        "Tags": [{"Key": "rightsizer:change", "Value": change_id}],
    }
