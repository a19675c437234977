"""Inference components as they stand. SageMaker sends no event about them, so they are asked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.aws.raw import UNKNOWN
from rightsizer.aws.sights import utc
from rightsizer.domain.component import ComponentSight, request_of, unknown
from rightsizer.domain.live_state import MOVING
from rightsizer.errors import VanishedError

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient


def copies(sagemaker: "SageMakerClient", names: Sequence[str]) -> Mapping[str, int]:
    """Copies of each component that run now; `MOVING` while it is being changed. Raises ReadError."""
    found = {}
    with reading("sagemaker:DescribeInferenceComponent", "looking at inference components"):
        for name in names:
            answer = sagemaker.describe_inference_component(InferenceComponentName=name)
            settled = answer["InferenceComponentStatus"] in ("InService", "Failed")
            found[name] = answer.get("RuntimeConfig", {}).get("CurrentCopyCount", 0) if settled else MOVING
    return found


def sights(sagemaker: "SageMakerClient", names: Sequence[str]) -> Mapping[str, ComponentSight]:
    """Each component with its whole specification; those that do not exist are left out. Raises ReadError."""
    return {name: seen for name in names if (seen := _sight(sagemaker, name)) is not None}


def of_endpoint(sagemaker: "SageMakerClient", endpoint: str) -> Mapping[str, ComponentSight]:
    """The same of every component of an endpoint. Raises ReadError."""
    with reading("sagemaker:ListInferenceComponents", f"listing the components of {endpoint}"):
        pages = sagemaker.get_paginator("list_inference_components").paginate(EndpointNameEquals=endpoint)
        names = [row["InferenceComponentName"] for page in pages for row in page["InferenceComponents"]]
    return sights(sagemaker, names)


def _sight(sagemaker: "SageMakerClient", name: str) -> ComponentSight | None:
    try:
        with reading("sagemaker:DescribeInferenceComponent", f"looking at inference component {name}"):
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
        unknown_fields=(*answer.get(UNKNOWN, ()), *(path for each in shown for path in unknown(each))),
    )


def _images(shown: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """(as specified, as resolved) of each container."""
    for each in shown:
        image = (each.get("Container") or {}).get("DeployedImage") or {}
        if image.get("SpecifiedImage"):
            yield image["SpecifiedImage"], image.get("ResolvedImage", "")
