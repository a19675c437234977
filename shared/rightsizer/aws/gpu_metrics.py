"""Metrics of single GPUs: of SageMaker endpoints by their dimensions, of EC2 instances as the agent measures them.

Source: SageMaker guide, "Monitor SageMaker AI endpoints with enhanced metrics": beside EndpointName and
VariantName there are InstanceId, ContainerId and one for the GPU, which the guide calls AcceleratorId and AWS's samples
GpuId. So it is found by what its name says.

EC2 (AgentReader): CloudWatch User Guide, "Collect NVIDIA GPU metrics" and "Metrics collected by the CloudWatch agent":
namespace CWAgent; ``nvidia_smi_memory_used`` in MiB, ``nvidia_smi_utilization_gpu`` in per cent, ``mem_used`` in bytes.
The dimension AutoScalingGroupName is there when the agent's ``append_dimensions`` has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import MeasuredUse

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

UTILISATION = "/aws/sagemaker/Endpoints"
MOST_INSTANCES = 4
"""Instances whose GPUs are read: all run the same container behind one router, and each GPU costs two statistics."""
GPU_WORDS = ("accelerator", "gpu")
OURS = ("EndpointName", "VariantName")
NAMESPACE = "CWAgent"
BY = "AutoScalingGroupName"
HOUR = 3600
MOST_SERIES = 400
"""Series that are read for one metric; GetMetricData takes 500 queries."""
MIB = 1024.0


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
    with translate_read_errors("cloudwatch:ListMetrics", f"looking for single GPUs of {endpoint}/{variant}"):
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
    return tuple(place for key in sorted(found) if key[0] in instances for place in _coarsest_places(found[key]))


def unpublished_reason(endpoint: str, variant: str) -> Reason:
    """Reason that enhanced metrics are on, yet no single GPU published any."""
    sentence = f"no GPU of {endpoint}/{variant} published by itself, though its configuration enables enhanced metrics"
    return Reason(Code.NO_DATAPOINTS, f"{sentence}; the GPUs that it uses are bounded by what they publish together")


def _coarsest_places(places: Sequence[GpuPlace]) -> list[GpuPlace]:
    fewest = min(len(place.dimensions) for place in places)
    return sorted((p for p in places if len(p.dimensions) == fewest), key=lambda p: p.dimensions)


def _places(rows: Iterable[Mapping[str, Any]]) -> Iterator[GpuPlace]:
    for row in rows:
        named = {d["Name"]: d["Value"] for d in row["Dimensions"] if d["Name"] not in OURS}
        gpu = next((name for name in sorted(named) if any(word in name.lower() for word in GPU_WORDS)), None)
        if gpu is not None and "InstanceId" in named:
            yield GpuPlace(named["InstanceId"], named[gpu], tuple(sorted(named.items())))


class AgentMetrics:
    """Keeps the promise of `ports.spot.AgentReader`."""

    def __init__(self, cloudwatch: "CloudWatchClient") -> None:
        self._cloudwatch = cloudwatch

    def measured_use(self, group: str, start: datetime, end: datetime) -> MeasuredUse | None:
        """Peaks over the window; None when no instance of the group sends the NVIDIA metrics."""
        memory = self._series(group, "nvidia_smi_memory_used")
        if not memory:
            return None
        values, hours = self._peak(memory, "Maximum", start, end)
        if values is None:
            return None
        busy, _ = self._peak(self._series(group, "nvidia_smi_utilization_gpu"), "Average", start, end)
        host, _ = self._peak(self._series(group, "mem_used"), "Maximum", start, end)
        return MeasuredUse(
            gpu_memory_gib=values / MIB,
            gpu_share=None if busy is None else min(1.0, busy / 100),
            memory_gib=None if host is None else host / MIB**3,
            series=len(memory),
            days=hours / 24,
        )

    def _series(self, group: str, metric: str) -> list[Any]:
        with translate_read_errors("cloudwatch:ListMetrics", f"looking for {metric} of the group {group}"):
            pages = self._cloudwatch.get_paginator("list_metrics").paginate(
                Namespace=NAMESPACE, MetricName=metric, Dimensions=[{"Name": BY, "Value": group}]
            )
            found = [row for page in pages for row in page["Metrics"]]
        return found[:MOST_SERIES]

    def _peak(self, series: list[Any], stat: str, start: datetime, end: datetime) -> tuple[float | None, int]:
        """The highest hour of any series, and in how many hours there was any data; None without data."""
        first = start.replace(minute=0, second=0, microsecond=0)
        last = end.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        peak, hours = None, set[datetime]()
        for at, value in self._points(series, stat, first, last):
            peak = value if peak is None else max(peak, value)
            hours.add(at)
        return peak, len(hours)

    def _points(self, series: list[Any], stat: str, start: datetime, end: datetime) -> Iterator[tuple[datetime, float]]:
        if not series:
            return
        queries: Any = [
            {"Id": f"q{n}", "MetricStat": {"Metric": metric, "Period": HOUR, "Stat": stat}}
            for n, metric in enumerate(series)
        ]
        with translate_read_errors("cloudwatch:GetMetricData", "reading the CloudWatch agent's metrics"):
            pages = self._cloudwatch.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries, StartTime=start, EndTime=end
            )
            found = [row for page in pages for row in page["MetricDataResults"]]
        for row in found:
            yield from zip(row.get("Timestamps", []), row.get("Values", []), strict=True)
