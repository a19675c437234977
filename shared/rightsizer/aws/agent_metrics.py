"""What the CloudWatch agent measures on EC2 GPU instances (AgentReader).

Source: CloudWatch User Guide, "Collect NVIDIA GPU metrics" and "Metrics collected by the CloudWatch agent": namespace
CWAgent; ``nvidia_smi_memory_used`` in MiB, ``nvidia_smi_utilization_gpu`` in per cent, ``mem_used`` in bytes. The
dimension AutoScalingGroupName is there when the agent's ``append_dimensions`` has it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.domain.scaling_group import MeasuredUse

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

NAMESPACE = "CWAgent"
BY = "AutoScalingGroupName"
HOUR = 3600
MOST_SERIES = 400
"""Series that are read for one metric; GetMetricData takes 500 queries."""
MIB = 1024.0


class AgentMetrics:
    """Keeps the promise of `ports_spot.AgentReader`."""

    def __init__(self, cloudwatch: "CloudWatchClient") -> None:
        self._cloudwatch = cloudwatch

    def measured(self, group: str, start: datetime, end: datetime) -> MeasuredUse | None:
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
        with reading("cloudwatch:ListMetrics", f"looking for {metric} of the group {group}"):
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
        with reading("cloudwatch:GetMetricData", "reading the CloudWatch agent's metrics"):
            pages = self._cloudwatch.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries, StartTime=start, EndTime=end
            )
            found = [row for page in pages for row in page["MetricDataResults"]]
        for row in found:
            yield from zip(row.get("Timestamps", []), row.get("Values", []), strict=True)
