"""Application Auto Scaling's operations. Sources: API reference of each; SageMaker guide, endpoint-auto-scaling*.

Policies scale by themselves only where a test asks for it (`sandbox.scaling.tracking`): else capacity moves when a
target is registered, when a scheduled action is due, and when a test says so. The alarms of target tracking are made
and removed as AWS does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.paging import page
from sandbox.refusals import AwsRefusal, NotSimulated, invalid
from sandbox.sagemaker.nouns import Endpoint, Variant
from sandbox.scaling.tracking import alarm_shape, has_rival
from sandbox.schedule import cron_problem
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]
type Identity = tuple[str, str]
"""(ResourceId, ScalableDimension)."""

VARIANT = "sagemaker:variant:DesiredInstanceCount"
CONCURRENCY = "sagemaker:variant:DesiredProvisionedConcurrency"
ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
REGISTER, POLICY, SCHEDULED = "RegisterScalableTarget", "PutScalingPolicy", "PutScheduledAction"
COMPONENT = "sagemaker:inference-component:DesiredCopyCount"
MOST_ACTIONS = 200
"""Scheduled actions of a target (Application Auto Scaling guide, quotas; not adjustable)."""


@dataclass(slots=True)
class Target:
    """A scalable target with what hangs on it."""

    identity: Identity
    arn: str
    minimum: int
    maximum: int
    created: datetime
    suspended: dict[str, bool] = field(default_factory=dict)
    policies: dict[str, Params] = field(default_factory=dict)
    scheduled: dict[str, Params] = field(default_factory=dict)


class ApplicationAutoScaling:
    """One method for each simulated operation."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.targets: dict[Identity, Target] = {}
        self.activities: list[Params] = []

    # what others ask

    def registered(self, endpoint: str) -> frozenset[str]:
        """Names of the endpoint's variants that are scalable targets of instances."""
        return frozenset(
            identity[0].split("/")[3]
            for identity in self.targets
            if identity[1] == VARIANT and identity[0].split("/")[1] == endpoint
        )

    def endpoint_deleted(self, endpoint: str) -> None:
        """DeleteEndpoint deregisters the scalable targets of its variants."""
        for identity in [one for one in self.targets if one[0].startswith(f"endpoint/{endpoint}/variant/")]:
            self._drop(identity)

    # targets

    def RegisterScalableTarget(self, p: Params) -> Params:
        """Register or change a target; parameters that are left out stay as they are. Capacity follows at once."""
        identity = self._identity(p, REGISTER)
        bounds = self._resource(identity)
        if any(key.lower().startswith("aws:") for key in p.get("Tags") or {}) and on(REGISTER, "aws tags"):
            raise invalid("Tag keys must not begin with the reserved prefix aws:")  # [assumed] text
        known = self.targets.get(identity)
        if (
            known is not None and p.get("Tags") and on(REGISTER, "tags again")
        ):  # API reference: TagResource tags an existing target; [assumed] refusal
            raise invalid("Tags can only be given when a scalable target is created; use TagResource.")
        minimum = p.get("MinCapacity", known.minimum if known else None)
        maximum = p.get("MaxCapacity", known.maximum if known else None)
        if (minimum is None or maximum is None) and on(REGISTER, "first bounds"):
            raise invalid("MinCapacity and MaxCapacity are required to register a new scalable target.")  # [assumed]
        assert minimum is not None
        assert maximum is not None
        if minimum < bounds and on(
            REGISTER, "least"
        ):  # guide: only async endpoints and inference components go to zero; [assumed] text
            raise invalid(f"Minimum capacity cannot be less than {bounds} for {identity[0]}.")
        if maximum < minimum and on(REGISTER, "turned"):
            raise invalid("Maximum capacity cannot be less than minimum capacity.")  # [assumed] text
        if known is None:
            arn = self._world.arn("application-autoscaling", f"scalable-target/{self._world.unique()}")
            known = self.targets[identity] = Target(identity, arn, minimum, maximum, self._world.clock.now)
        known.minimum, known.maximum = minimum, maximum
        known.suspended |= p.get("SuspendedState") or {}
        self._world.tags.put(known.arn, p.get("Tags") or {})
        self.move_into_bounds(known, "registering the scalable target")
        return {"ScalableTargetARN": known.arn}

    def DescribeScalableTargets(self, p: Params) -> Params:
        """Targets of these resources."""
        self._namespace(p)
        rows = [self._described(target) for target in self._matching(p)]
        shown, token = _page(rows, p, 50, "DescribeScalableTargets")
        return {"ScalableTargets": shown, "NextToken": token}

    def DeregisterScalableTarget(self, p: Params) -> Params:
        """Deregister a target: "deletes the scaling policies and the scheduled actions"."""
        identity = self._identity(p, "DeregisterScalableTarget")
        self._target(identity, "DeregisterScalableTarget")
        self._drop(identity)
        return {}

    def _drop(self, identity: Identity) -> None:
        target = self.targets.pop(identity)
        for policy in target.policies.values():
            self._unhook(policy)
        self._world.tags.forget(target.arn)

    # policies

    def PutScalingPolicy(self, p: Params) -> Params:
        """Create or overwrite a policy; a policy that was deleted and made again has another ARN."""
        target = self._target(self._identity(p, POLICY), POLICY)
        known = target.policies.get(p["PolicyName"])
        kind = p.get("PolicyType") or (known or {}).get("PolicyType")
        config_key = {
            "TargetTrackingScaling": "TargetTrackingScalingPolicyConfiguration",
            "StepScaling": "StepScalingPolicyConfiguration",
        }.get(kind or "")
        if config_key is None and on(POLICY, "type"):
            raise invalid(f"PolicyType {kind} is not supported for sagemaker.")  # PredictiveScaling: ECS only
        if has_rival(target, p) and on(POLICY, "one metric"):
            raise invalid("Only one TargetTrackingScaling policy for a given metric specification is allowed.")
        if not p.get(config_key or "") and on(POLICY, "configuration"):
            raise invalid(f"{config_key} is required for {kind}.")
        resource, _ = target.identity
        arn = known["PolicyARN"] if known else self._world.arn(
            "autoscaling",
            f"scalingPolicy:{self._world.unique()}:resource/sagemaker/{resource}:policyName/{p['PolicyName']}",
        )  # fmt: skip
        policy = {key: value for key, value in p.items() if key != "ServiceNamespace"} | {
            "ServiceNamespace": "sagemaker", "PolicyARN": arn, "PolicyType": kind,
            "CreationTime": known["CreationTime"] if known else self._world.clock.now,
        }  # fmt: skip
        policy["Alarms"] = (known or {}).get("Alarms") or []
        if kind == "TargetTrackingScaling" and not policy["Alarms"]:
            policy["Alarms"] = [self._tracking_alarm(target, policy, side) for side in ("High", "Low")]
        target.policies[p["PolicyName"]] = policy
        return {"PolicyARN": arn, "Alarms": policy["Alarms"]}

    def DescribeScalingPolicies(self, p: Params) -> Params:
        """Policies; pages of 10."""
        self._namespace(p)
        rows = [
            policy | {"Alarms": self._alarms_of(policy)}
            for target in self._matching(p)
            for policy in target.policies.values()
            if not p.get("PolicyNames") or policy["PolicyName"] in p["PolicyNames"]
        ]
        shown, token = _page(rows, p, 10, "DescribeScalingPolicies")
        return {"ScalingPolicies": shown, "NextToken": token}

    def DeleteScalingPolicy(self, p: Params) -> Params:
        """Delete a policy: its own alarms go, a customer's alarm loses the action that pointed at it."""
        target = self._target(self._identity(p, "DeleteScalingPolicy"), "DeleteScalingPolicy")
        if p["PolicyName"] not in target.policies and on("DeleteScalingPolicy", "no policy"):
            raise _missing("scaling policy", p["PolicyName"])
        self._unhook(target.policies.pop(p["PolicyName"]))
        return {}

    def _tracking_alarm(self, target: Target, policy: Params, side: str) -> Params:
        name = f"TargetTracking-{target.identity[0]}-Alarm{side}-{self._world.unique()}"
        goal = policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        parts = target.identity[0].split("/")
        dimensions = (
            [{"Name": "EndpointName", "Value": parts[1]}, {"Name": "VariantName", "Value": parts[3]}]
            if parts[0] == "endpoint"
            else [{"Name": "InferenceComponentName", "Value": parts[1]}]
        )
        self._world.alarms.put(
            {
                "AlarmName": name, "Namespace": "AWS/SageMaker", "Dimensions": dimensions,
                **alarm_shape(policy, side),
                "Threshold": goal if side == "High" else goal * 0.9, "AlarmActions": [policy["PolicyARN"]],
                "ComparisonOperator": "GreaterThanThreshold" if side == "High" else "LessThanThreshold",
                "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {policy['PolicyARN']}.",
            }
        )  # fmt: skip
        return {"AlarmName": name, "AlarmARN": self._world.arn("cloudwatch", f"alarm:{name}")}

    def _alarms_of(self, policy: Params) -> list[Params]:
        if policy["PolicyType"] == "TargetTrackingScaling":
            return list(policy["Alarms"])
        return [
            {"AlarmName": alarm.name, "AlarmARN": alarm.arn}
            for alarm in self._world.alarms.all()
            if policy["PolicyARN"] in alarm.actions()
        ]

    def _unhook(self, policy: Params) -> None:
        """DeleteScalingPolicy: "deletes the underlying alarm action, but does not delete the CloudWatch alarm"."""
        if policy["PolicyType"] == "TargetTrackingScaling":
            for row in policy["Alarms"]:
                if self._world.alarms.get(row["AlarmName"]):
                    self._world.alarms.delete(row["AlarmName"])
            return
        for alarm in list(self._world.alarms.all()):
            if policy["PolicyARN"] in alarm.actions():
                alarm.request = _without(alarm.request, policy["PolicyARN"])

    # scheduled actions

    def PutScheduledAction(self, p: Params) -> Params:
        """Create or overwrite a scheduled action."""
        target = self._target(self._identity(p, SCHEDULED), SCHEDULED)
        known = target.scheduled.get(p["ScheduledActionName"])
        whole = p.get("Schedule") and p.get("ScalableTargetAction")
        if known is None and not whole and on(SCHEDULED, "new"):
            raise invalid("Schedule and ScalableTargetAction are required for a new scheduled action.")  # [assumed]
        formed = re.fullmatch(r"(at|rate|cron)\(.+\)", p.get("Schedule", "at(x)"))
        if not formed and on(SCHEDULED, "schedule"):
            raise invalid(f"Schedule expression {p['Schedule']} is not valid.")  # [assumed] text
        if (wrong := cron_problem(p.get("Schedule", ""))) and on(SCHEDULED, wrong):
            raise invalid(f"Schedule expression {p['Schedule']} is not valid.")  # [assumed] text
        if known is None and len(target.scheduled) >= MOST_ACTIONS and on(SCHEDULED, "many"):
            raise AwsRefusal("LimitExceededException", f"More than {MOST_ACTIONS} scheduled actions.")  # [assumed] text
        arn = self._world.arn(
            "autoscaling",
            f"scheduledAction:{self._world.unique()}:resource/sagemaker/{target.identity[0]}:"
            f"scheduledActionName/{p['ScheduledActionName']}",
        )
        base = known or {"ScheduledActionARN": arn, "CreationTime": self._world.clock.now}
        target.scheduled[p["ScheduledActionName"]] = base | p
        return {}

    def DescribeScheduledActions(self, p: Params) -> Params:
        """Scheduled actions."""
        self._namespace(p)
        rows = [
            action
            for target in self._matching(p)
            for action in target.scheduled.values()
            if not p.get("ScheduledActionNames") or action["ScheduledActionName"] in p["ScheduledActionNames"]
        ]
        shown, token = _page(rows, p, 50, "DescribeScheduledActions")
        return {"ScheduledActions": shown, "NextToken": token}

    def DeleteScheduledAction(self, p: Params) -> Params:
        """Delete a scheduled action."""
        target = self._target(self._identity(p, "DeleteScheduledAction"), "DeleteScheduledAction")
        if target.scheduled.pop(p["ScheduledActionName"], None) is None and on("DeleteScheduledAction", "no action"):
            raise _missing("scheduled action", p["ScheduledActionName"])
        return {}

    # activities and tags

    def DescribeScalingActivities(self, p: Params) -> Params:
        """What scaling did, newest first."""
        self._namespace(p)
        rows = [
            row
            for row in reversed(self.activities)
            if p.get("ResourceId", row["ResourceId"]) == row["ResourceId"]
            and p.get("ScalableDimension", row["ScalableDimension"]) == row["ScalableDimension"]
        ]
        shown, token = _page(rows, p, 50, "DescribeScalingActivities")
        return {"ScalingActivities": shown, "NextToken": token}

    def ListTagsForResource(self, p: Params) -> Params:
        """Tags of a target; here a map, unlike elsewhere."""
        return {"Tags": dict(self._world.tags.of(self._known(p["ResourceARN"], "ListTagsForResource")))}

    def TagResource(self, p: Params) -> Params:
        """Tag a target."""
        self._world.tags.put(self._known(p["ResourceARN"], "TagResource"), p["Tags"])
        return {}

    def _known(self, arn: str, operation: str) -> str:
        if not any(target.arn == arn for target in self.targets.values()) and on(operation, "unknown"):
            raise AwsRefusal("ResourceNotFoundException", f"The resource {arn} does not exist.")
        return arn

    # inside

    def move_into_bounds(self, target: Target, cause: str) -> None:
        """Scale to the nearer bound when the capacity is outside; refused while the endpoint is busy."""
        if target.identity[1] != VARIANT:
            self._world.components.follow(target)
            return
        self.move(target, min(max(self.count_of(target), target.minimum), target.maximum), cause)

    def count_of(self, target: Target) -> int:
        """Desired instances of a variant."""
        return self._variant(target.identity)[1].desired_count

    def move(self, target: Target, wanted: int, cause: str) -> bool:
        """Ask for so many instances, as an activity; False where nothing is to do or the endpoint is busy."""
        endpoint, variant = self._variant(target.identity)
        if wanted == variant.desired_count or endpoint.busy:
            return False  # "auto scaling is blocked while the update operation is in progress"
        status, message = "Successful", f"Successfully set desired instance count to {wanted}."
        try:
            if wanted > variant.count and variant.instance_type:
                self._world.fleet.check_quota({variant.instance_type: wanted - variant.count})
            variant.desired_count = wanted
            self._world.fleet.scale(endpoint, self._world.fleet.timing.scale)
        except AwsRefusal as refusal:
            status, message = "Failed", f"Failed to set desired instance count to {wanted}. Reason: {refusal.message}"
        self.activities.append(
            {
                "ActivityId": self._world.unique(), "ServiceNamespace": "sagemaker", "ResourceId": target.identity[0],
                "ScalableDimension": target.identity[1], "Description": f"Setting desired instance count to {wanted}.",
                "Cause": cause, "StartTime": self._world.clock.now, "StatusCode": status, "StatusMessage": message,
            }
        )  # fmt: skip
        return True

    def _resource(self, identity: Identity) -> int:
        """Refuse a resource that does not exist; the lowest minimum capacity otherwise."""
        if identity[1] == COMPONENT:
            if identity[0].partition("/")[2] not in self._world.components.known:
                raise invalid(f"Could not find inference component {identity[0]}.")  # [assumed] text
            return 0
        endpoint, variant = self._variant(identity)
        if (variant.instance_type is None) != (identity[1] == CONCURRENCY) and on(REGISTER, "kind"):
            raise invalid(f"{identity[1]} does not apply to {identity[0]}.")  # [assumed] text
        if (variant.instance_type or "").startswith("ml.t") and on(REGISTER, "burstable"):
            raise invalid(f"Burstable instances cannot be scaled automatically: {identity[0]}.")  # [assumed] text
        config = self._world.fleet.configs.get(endpoint.config_name)
        return 0 if config and config.request.get("AsyncInferenceConfig") else 1

    def _variant(self, identity: Identity) -> tuple[Endpoint, Variant]:
        match = re.fullmatch(r"endpoint/([^/]+)/variant/([^/]+)", identity[0])
        endpoint = self._world.fleet.endpoints.get(match[1]) if match else None
        found = match and endpoint and match[2] in endpoint.variants
        if not found and on(REGISTER, "resource"):
            raise invalid(f"Unable to find the resource {identity[0]}.")  # [assumed] text
        assert match
        assert endpoint
        return endpoint, endpoint.variants[match[2]]

    def _namespace(self, p: Params) -> None:
        if p["ServiceNamespace"] != "sagemaker":
            raise NotSimulated(f"Application Auto Scaling of {p['ServiceNamespace']}: sagemaker is")

    def _identity(self, p: Params, operation: str) -> Identity:
        self._namespace(p)
        if p["ScalableDimension"] not in {VARIANT, CONCURRENCY, COMPONENT} and on(operation, "dimension"):
            raise invalid(f"Unsupported scalable dimension {p['ScalableDimension']} for sagemaker.")
        return p["ResourceId"], p["ScalableDimension"]

    def _target(self, identity: Identity, operation: str) -> Target:
        if identity not in self.targets and on(operation, "no target"):
            raise _missing("scalable target", identity[0])
        return self.targets[identity]

    def _matching(self, p: Params) -> list[Target]:
        resources = p.get("ResourceIds") or ([p["ResourceId"]] if p.get("ResourceId") else None)
        return [
            target
            for identity, target in self.targets.items()
            if (resources is None or identity[0] in resources)
            and p.get("ScalableDimension", identity[1]) == identity[1]
        ]

    def _described(self, target: Target) -> Params:
        state = {
            "DynamicScalingInSuspended": False,
            "DynamicScalingOutSuspended": False,
            "ScheduledScalingSuspended": False,
        }
        role = "aws-service-role/sagemaker.application-autoscaling.amazonaws.com/" + ROLE
        return {
            "ServiceNamespace": "sagemaker", "ResourceId": target.identity[0], "ScalableDimension": target.identity[1],
            "MinCapacity": target.minimum, "MaxCapacity": target.maximum, "CreationTime": target.created,
            "RoleARN": f"arn:aws:iam::{self._world.account}:role/{role}", "ScalableTargetARN": target.arn,
            "SuspendedState": state | target.suspended,
        }  # fmt: skip


def _without(request: Mapping[str, Any], action: str) -> Params:
    keys = ("AlarmActions", "OKActions", "InsufficientDataActions")
    return {**request, **{key: [one for one in request[key] if one != action] for key in keys if request.get(key)}}


def _page(rows: list[Params], p: Params, size: int, operation: str) -> tuple[list[Params], str | None]:
    return page(rows, p.get("NextToken"), p.get("MaxResults") or size, "InvalidNextTokenException", operation)


def _missing(kind: str, name: str) -> AwsRefusal:
    return AwsRefusal("ObjectNotFoundException", f"No {kind} found for service namespace: sagemaker, name: {name}")
