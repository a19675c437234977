"""Inference components as AWS shows them, and AWS's answers as parts of the live state.

SageMaker sends no event about components, so they are asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rightsizer.aws.configuration import UNKNOWN
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.scaling import ScalingReader
from rightsizer.aws.session import Session
from rightsizer.aws.tags import TagReader, Tags
from rightsizer.domain.component import ComponentSight, DescribedComponent, UnreadComponent, request_of, unknown_paths
from rightsizer.domain.endpoint import component_resource_id
from rightsizer.domain.live_state import EndpointSight, VariantSight
from rightsizer.domain.reason import Reason, reason_of
from rightsizer.errors import ReadError, VanishedError

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient

OUTPUT_ONLY_OF_ALARM = frozenset(
    {
        "AlarmArn",
        "AlarmConfigurationUpdatedTimestamp",
        "StateValue",
        "StateReason",
        "StateReasonData",
        "StateUpdatedTimestamp",
        "StateTransitionedTimestamp",
        "EvaluationState",
    }
)
"""Fields of DescribeAlarms that PutMetricAlarm does not take."""


def component_sights(sagemaker: "SageMakerClient", names: Sequence[str]) -> Mapping[str, ComponentSight]:
    """Each component with its whole specification; those that do not exist are left out. Raises ReadError."""
    return {name: sight for name in names if (sight := _sight(sagemaker, name)) is not None}


def components_of_endpoint(sagemaker: "SageMakerClient", endpoint: str) -> Mapping[str, ComponentSight]:
    """Each component of an endpoint, by its name. Raises ReadError."""
    return component_sights(sagemaker, component_names(sagemaker, endpoint))


def component_names(sagemaker: "SageMakerClient", endpoint: str) -> Sequence[str]:
    """Names of every component of an endpoint. Raises ReadError."""
    with translate_read_errors("sagemaker:ListInferenceComponents", f"listing the components of {endpoint}"):
        pages = sagemaker.get_paginator("list_inference_components").paginate(EndpointNameEquals=endpoint)
        return [row["InferenceComponentName"] for page in pages for row in page["InferenceComponents"]]


class SageMakerComponents:
    """Describes the components of an endpoint for an evaluation (port `ComponentReader`)."""

    def __init__(self, session: Session) -> None:
        self._client: SageMakerClient = session.client("sagemaker")
        self._scaling = ScalingReader(session.client("application-autoscaling"))
        self._tags = TagReader(session.client("resourcegroupstaggingapi"), self._client)

    def describe(self, endpoint: str) -> Sequence[DescribedComponent]:
        """Each component with its own scalable target; one that cannot be described stops no other.

        Raises ReadError where they cannot be listed.
        """
        found: list[ComponentSight | UnreadComponent] = []
        for name in component_names(self._client, endpoint):
            try:
                sight = _sight(self._client, name)
            except ReadError as error:
                found.append(UnreadComponent(name, reason_of(error)))
            else:
                found += [sight] if sight is not None else []
        found = [c if isinstance(c, UnreadComponent) else _with_tags(c, self._tags.list_tags(c.arn)) for c in found]
        resources = [component_resource_id(c.name) for c in found if isinstance(c, ComponentSight)]
        try:
            targets = self._scaling.read(resources)
        except ReadError as error:
            unread = reason_of(error)
            return [c if isinstance(c, UnreadComponent) else (c, unread) for c in found]
        return [
            c
            if isinstance(c, UnreadComponent)
            else (c, next(iter(targets.get(component_resource_id(c.name), ())), None))
            for c in found
        ]


def _with_tags(sight: ComponentSight, tags: Tags | Reason) -> ComponentSight:
    """The component with its tags, or with why they could not be read: then nobody is known to allow a change."""
    return replace(sight, tags_unread=tags) if isinstance(tags, Reason) else replace(sight, tags=tags)


def _sight(sagemaker: "SageMakerClient", name: str) -> ComponentSight | None:
    try:
        with translate_read_errors("sagemaker:DescribeInferenceComponent", f"looking at inference component {name}"):
            answer: Any = sagemaker.describe_inference_component(InferenceComponentName=name)
    except VanishedError:
        return None
    several = answer.get("Specifications") or ()
    shown = [*several] or [answer.get("Specification") or {}]
    return ComponentSight(
        name=name,
        arn=answer["InferenceComponentArn"],
        endpoint=answer["EndpointName"],
        status=answer["InferenceComponentStatus"],
        modified_at=utc(answer["LastModifiedTime"]),
        desired=answer.get("RuntimeConfig", {}).get("DesiredCopyCount", 0),
        specifications=tuple(request_of(each) for each in shown),
        several=bool(several),
        images=tuple(_images(shown)),
        failure_reason=answer.get("FailureReason", ""),
        unknown_fields=(*answer.get(UNKNOWN, ()), *(path for each in shown for path in unknown_paths(each))),
        variant=answer.get("VariantName", ""),
        current=_running_copies(answer, name),
    )


def _running_copies(answer: Mapping[str, Any], name: str) -> int:
    """Copies that run. Raises ReadError where AWS does not say it: that is not none. An adapter has no copies."""
    said: int | None = (answer.get("RuntimeConfig") or {}).get("CurrentCopyCount")
    if said is not None or (answer.get("Specification") or {}).get("BaseInferenceComponentName"):
        return said or 0
    raise ReadError(f"looking at inference component {name}: AWS's answer does not say how many copies run; try later")


def _images(shown: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """(as specified, as resolved) of each container."""
    for each in shown:
        image = (each.get("Container") or {}).get("DeployedImage") or {}
        if image.get("SpecifiedImage"):
            yield image["SpecifiedImage"], image.get("ResolvedImage", "")


def endpoint_sight(answer: Mapping[str, Any]) -> EndpointSight:
    """The answer of DescribeEndpoint."""
    capture = answer.get("DataCaptureConfig") or {}
    return EndpointSight(
        status=answer["EndpointStatus"],
        config_name=answer.get("EndpointConfigName", ""),
        modified_at=utc(answer["LastModifiedTime"]),
        failure_reason=answer.get("FailureReason", ""),
        pending_config=(answer.get("PendingDeploymentSummary") or {}).get("EndpointConfigName", ""),
        variants=tuple(_variant(v) for v in answer.get("ProductionVariants", [])),
        capture_stopped=capture.get("CaptureStatus") == "Stopped",
        asynchronous=bool(answer.get("AsyncInferenceConfig")),
        created_at=utc(answer["CreationTime"]) if "CreationTime" in answer else None,
        deployment=answer.get("LastDeploymentConfig") or {},
    )


def _variant(variant: Mapping[str, Any]) -> VariantSight:
    return VariantSight(
        variant["VariantName"],
        variant.get("CurrentInstanceCount", 0),
        variant.get("DesiredInstanceCount", variant.get("CurrentInstanceCount", 0)),
        float(variant.get("CurrentWeight", 1.0)),
        float(variant.get("DesiredWeight", variant.get("CurrentWeight", 1.0))),
        tuple((i.get("SpecifiedImage", ""), i.get("ResolvedImage", "")) for i in variant.get("DeployedImages", [])),
        tuple(
            (pool["InstanceType"], pool.get("CurrentInstanceCount", 0)) for pool in variant.get("InstancePools") or ()
        ),
    )


def alarm_body(alarm: Mapping[str, Any]) -> dict[str, Any]:
    """A row of DescribeAlarms as PutMetricAlarm takes it."""
    return {k: v for k, v in alarm.items() if k not in OUTPUT_ONLY_OF_ALARM}


def utc(value: datetime) -> datetime:
    """The time in UTC."""
    return value.astimezone(UTC)
