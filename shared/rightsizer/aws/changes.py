"""Reads and writes of a change: SageMaker, Application Auto Scaling, CloudWatch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.artefacts import RegistryClient, images
from rightsizer.aws.components import alarm_body, component_names, component_sights, endpoint_sight, utc
from rightsizer.aws.configuration import UNKNOWN, keep_unknown_fields
from rightsizer.aws.ec2 import is_sold
from rightsizer.aws.errors import DENIED, THROTTLED, code_of, text_of, translate_read_errors
from rightsizer.aws.iam import Identity, alarm_visibility, denied_restore_actions, role_pass
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import (
    SCALING_NAMESPACE,
    EndpointRef,
    ScalableTarget,
    component_resource_id,
    variant_resource_id,
)
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, Gone, ImageSight
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.preflight import RolePass
from rightsizer.errors import (
    PermissionMissingError,
    ReadError,
    RightsizerError,
    ThrottledError,
    VanishedError,
    WriteRefusedError,
)

if TYPE_CHECKING:
    from types_boto3_application_autoscaling import ApplicationAutoScalingClient
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_ec2 import EC2Client
    from types_boto3_iam import IAMClient
    from types_boto3_sagemaker import SageMakerClient

ALARM_TYPES: tuple[Literal["MetricAlarm", "CompositeAlarm"], ...] = ("MetricAlarm", "CompositeAlarm")


@dataclass(frozen=True, slots=True)
class AwsChanger:
    """Keeps the promises of `ports.changes.Changer`. No cache, no waiting."""

    sagemaker: "SageMakerClient"
    autoscaling: "ApplicationAutoScalingClient"
    cloudwatch: "CloudWatchClient"
    ec2: "EC2Client"
    iam: "IAMClient"
    ecr: RegistryClient
    sts: Identity

    def __post_init__(self) -> None:
        keep_unknown_fields(self.sagemaker, "DescribeEndpointConfig")
        keep_unknown_fields(self.sagemaker, "DescribeInferenceComponent")

    def endpoint(self, name: str) -> EndpointSight | Gone:
        """DescribeEndpoint; Gone when SageMaker cannot find it."""
        try:
            with translate_read_errors("sagemaker:DescribeEndpoint", f"looking at endpoint {name}"):
                answer: Any = self.sagemaker.describe_endpoint(EndpointName=name)
                return endpoint_sight(answer)
        except VanishedError:
            return Gone(name)

    def config(self, name: str) -> ConfigSight | None:
        """DescribeEndpointConfig and its tags; None when SageMaker cannot find it."""
        try:
            with translate_read_errors("sagemaker:DescribeEndpointConfig", f"looking at configuration {name}"):
                answer = self.sagemaker.describe_endpoint_config(EndpointConfigName=name)
            with translate_read_errors("sagemaker:ListTags", f"reading the tags of configuration {name}"):
                tags = self._tags(answer["EndpointConfigArn"])
        except VanishedError:
            return None
        body: dict[str, Any] = {k: v for k, v in answer.items() if k not in ("ResponseMetadata", UNKNOWN)}
        unknown: Any = answer.get(UNKNOWN, ())
        return ConfigSight(name, body, utc(answer["CreationTime"]), tuple(unknown), tags)

    def tags(self, ref: EndpointRef) -> Mapping[str, str]:
        """ListTags of the endpoint."""
        with translate_read_errors("sagemaker:ListTags", f"reading the tags of endpoint {ref.name}"):
            return self._tags(ref.arn)

    def _tags(self, arn: str) -> dict[str, str]:
        pages = self.sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
        return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

    def scaling(
        self, endpoint: str, variants: Sequence[str], components: Sequence[str] = ()
    ) -> tuple[ScalableTarget, ...]:
        """Every registration of the endpoint's variants, as the API has it."""
        with translate_read_errors(
            "application-autoscaling:DescribeScalableTargets", f"reading the autoscaling of {endpoint}"
        ):
            wanted = [variant_resource_id(endpoint, variant) for variant in variants]
            return tuple(self._targets([*wanted, *(component_resource_id(c) for c in components)]))

    def _targets(self, wanted: list[str]) -> Iterator[ScalableTarget]:
        if not wanted:
            return  # an empty filter would list the whole account
        pages = self.autoscaling.get_paginator("describe_scalable_targets").paginate(
            ServiceNamespace=SCALING_NAMESPACE, ResourceIds=wanted
        )
        for target in (t for page in pages for t in page["ScalableTargets"]):
            resource, dimension = target["ResourceId"], target["ScalableDimension"]
            yield ScalableTarget(
                resource,
                dimension,
                target["MinCapacity"],
                target["MaxCapacity"],
                {k: bool(v) for k, v in target.get("SuspendedState", {}).items()},
                tuple(self._rows("describe_scaling_policies", "ScalingPolicies", resource, dimension)),
                tuple(self._rows("describe_scheduled_actions", "ScheduledActions", resource, dimension)),
                self._target_tags(target.get("ScalableTargetARN", "")),
            )

    def _target_tags(self, arn: str) -> dict[str, str]:
        return dict(self.autoscaling.list_tags_for_resource(ResourceARN=arn)["Tags"]) if arn else {}

    def _rows(self, operation: Any, key: str, resource: str, dimension: str) -> Iterator[dict[str, Any]]:
        pages = self.autoscaling.get_paginator(operation).paginate(
            ServiceNamespace=SCALING_NAMESPACE, ResourceId=resource, ScalableDimension=dimension
        )
        for page in pages:
            yield from page[key]

    def alarms(self, names: Sequence[str]) -> Mapping[str, AlarmSight]:
        """DescribeAlarms by name, 100 at a time; without types AWS answers with metric alarms only."""
        found: dict[str, AlarmSight] = {}
        with translate_read_errors("cloudwatch:DescribeAlarms", f"looking at {len(names)} alarms"):
            for start in range(0, len(names), 100):
                some = list(names[start : start + 100])
                answer: Any = self.cloudwatch.describe_alarms(AlarmNames=some, AlarmTypes=ALARM_TYPES, MaxRecords=100)
                for alarm in (*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())):
                    name = alarm["AlarmName"]
                    found[name] = AlarmSight(name, alarm["StateValue"], alarm_body(alarm))
        return found

    def alarms_with_actions(self, arns: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """Every metric alarm with one of these policies among its actions; it is looked for by each ARN."""
        found: dict[str, Mapping[str, Any]] = {}
        with translate_read_errors("cloudwatch:DescribeAlarms", "looking for alarms that point at scaling policies"):
            for arn in arns:
                for page in self.cloudwatch.get_paginator("describe_alarms").paginate(ActionPrefix=arn):
                    found.update({alarm["AlarmName"]: alarm_body(alarm) for alarm in page.get("MetricAlarms", [])})
        return tuple(found.values())

    def component_names(self, endpoint: str) -> Sequence[str]:
        """See `rightsizer.aws.components`."""
        return component_names(self.sagemaker, endpoint)

    def components(self, names: Sequence[str]) -> Mapping[str, ComponentSight]:
        """See `rightsizer.aws.components`."""
        return component_sights(self.sagemaker, names)

    def tags_of(self, arn: str) -> Mapping[str, str]:
        """ListTags of that ARN."""
        with translate_read_errors("sagemaker:ListTags", f"reading the tags of {arn}"):
            return self._tags(arn)

    def is_sold(self, instance_type: str, subnets: Sequence[str]) -> bool | None:
        """See `rightsizer.aws.ec2`."""
        return is_sold(self.ec2, instance_type, subnets)

    def images(self, ref: EndpointRef, names: Sequence[str]) -> Mapping[str, ImageSight]:
        """See `rightsizer.aws.artefacts`."""
        return images(self.ecr, ref, names)

    def alarm_visibility(self, models: Sequence[str], roles: Sequence[str] = ()) -> Mapping[str, bool | None]:
        """See `rightsizer.aws.iam`."""
        return alarm_visibility(self.sagemaker, self.iam, models, roles)

    def role_pass(self, role: str) -> RolePass:
        """See `rightsizer.aws.iam`."""
        return role_pass(self.sts, self.iam, role)

    def denied_restore_actions(self, ref: EndpointRef, targets: Sequence[ScalableTarget]) -> tuple[str, ...]:
        """See `rightsizer.aws.iam`."""
        return denied_restore_actions(self.sts, self.iam, ref, targets)

    def perform(self, step: Step) -> None:
        """Call the one operation of the step with its own parameters."""
        client: Any = {
            "sagemaker": self.sagemaker,
            "application-autoscaling": self.autoscaling,
            "cloudwatch": self.cloudwatch,
        }[step.service]
        try:
            getattr(client, _METHODS[step.kind])(**step.params)
        except (ClientError, BotoCoreError) as error:
            raise write_error(error, step) from error


_METHODS: Mapping[StepKind, str] = {
    StepKind.CREATE_CONFIG: "create_endpoint_config",
    StepKind.TAG_CONFIG: "add_tags",
    StepKind.UPDATE_ENDPOINT: "update_endpoint",
    StepKind.SET_CAPACITY: "update_endpoint_weights_and_capacities",
    StepKind.SET_COPIES: "update_inference_component_runtime_config",
    StepKind.UPDATE_COMPONENT: "update_inference_component",
    StepKind.REGISTER_TARGET: "register_scalable_target",
    StepKind.DEREGISTER_TARGET: "deregister_scalable_target",
    StepKind.PUT_POLICY: "put_scaling_policy",
    StepKind.DELETE_POLICY: "delete_scaling_policy",
    StepKind.PUT_SCHEDULED: "put_scheduled_action",
    StepKind.PUT_ALARM: "put_metric_alarm",
    StepKind.DELETE_ALARMS: "delete_alarms",
}


def write_error(error: ClientError | BotoCoreError, step: Step) -> RightsizerError:
    """Error for a write that failed or whose result is unknown; the next read of AWS decides."""
    if not isinstance(error, ClientError):
        return ReadError(f"{step.key}: {error}")
    code, text = code_of(error), text_of(error)
    if code in DENIED:
        return PermissionMissingError(step.kind.value, step.key, text)
    if code in THROTTLED - {"LimitExceededException"} or "rate exceeded" in text.lower():
        return ThrottledError(f"{step.key}: AWS throttles {step.kind.value} ({code})")
    return WriteRefusedError(step.key, code, text)
