"""Under which dimensions CloudWatch keeps the metrics of single GPUs (enhanced metrics of SageMaker endpoints).

Source: SageMaker guide, "Monitor SageMaker AI endpoints with enhanced metrics": beside EndpointName and
VariantName there are InstanceId, ContainerId and one for the GPU, which the guide calls AcceleratorId and AWS's samples
GpuId. So it is found by what its name says.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.domain.reason import Code, Reason

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

UTILISATION = "/aws/sagemaker/Endpoints"
MOST_INSTANCES = 4
"""Instances whose GPUs are read: all run the same container behind one router, and each GPU costs two statistics."""
GPU_WORDS = ("accelerator", "gpu")
OURS = ("EndpointName", "VariantName")


@dataclass(frozen=True, slots=True)
class GpuPlace:
    """One GPU of one instance, and the dimensions of its series beside endpoint and variant."""

    instance: str
    gpu: str
    dimensions: tuple[tuple[str, str], ...]


def places_of(client: "CloudWatchClient", endpoint: str, variant: str) -> tuple[GpuPlace, ...]:
    """The GPUs of a few instances that published in the last three hours; empty where none did. ReadError.

    Where a GPU has several series, as for several containers on it, those with the fewest dimensions.
    """
    with reading("cloudwatch:ListMetrics", f"looking for single GPUs of {endpoint}/{variant}"):
        pages = client.get_paginator("list_metrics").paginate(
            Namespace=UTILISATION,
            MetricName="GPUUtilization",
            Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}],
            RecentlyActive="PT3H",
        )
        rows = [row for page in pages for row in page["Metrics"]]
    found: dict[tuple[str, str], list[GpuPlace]] = {}
    for place in _places(rows):
        found.setdefault((place.instance, place.gpu), []).append(place)
    instances = sorted({instance for instance, _ in found})[:MOST_INSTANCES]
    return tuple(place for key in sorted(found) if key[0] in instances for place in _coarsest(found[key]))


def unpublished(endpoint: str, variant: str) -> Reason:
    """That enhanced metrics are on and yet no GPU is seen by itself."""
    sentence = f"no GPU of {endpoint}/{variant} published by itself, though its configuration enables enhanced metrics"
    return Reason(Code.NO_DATAPOINTS, f"{sentence}; the GPUs that it uses are bounded by what they publish together")


def _coarsest(places: Sequence[GpuPlace]) -> list[GpuPlace]:
    fewest = min(len(place.dimensions) for place in places)
    return sorted((p for p in places if len(p.dimensions) == fewest), key=lambda p: p.dimensions)


def _places(rows: Iterable[Mapping[str, Any]]) -> Iterator[GpuPlace]:
    for row in rows:
        named = {d["Name"]: d["Value"] for d in row["Dimensions"] if d["Name"] not in OURS}
        gpu = next((name for name in sorted(named) if any(word in name.lower() for word in GPU_WORDS)), None)
        if gpu is not None and "InstanceId" in named:
            yield GpuPlace(named["InstanceId"], named[gpu], tuple(sorted(named.items())))
