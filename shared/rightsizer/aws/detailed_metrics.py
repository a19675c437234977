"""Metrics beside the standard ones: of single GPUs, and of a language model server's KV cache."""

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session, request_threads
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.scaling_group import MeasuredUse
from rightsizer.domain.usage import Grid, Series
from rightsizer.errors import ReadError

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


METRICS = (
    "vllm:kv_cache_usage_perc",
    "vllm_kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "sglang_token_usage",
)
"""The first that is there at a moment counts. The servers' names have a colon, the guide's sample an underscore; vLLM
before version 1 called it GPU cache."""
PERMISSIONS = "cloudwatch:GetMetricData and cloudwatch:ListMetrics"
"""What QueryMetrics asks for: IAM knows no action of that name (CloudWatch guide, "Query metrics with PromQL")."""
SECONDS = 25.0
"""CloudWatch gives a query up after 20 s."""
LATEST = 2
"""Days without any datapoint, the running one among them, after which no earlier day is asked for."""
WORKERS = 4
LARGEST = 1 << 20
"""Bytes: a day has 288 datapoints of some 30 bytes."""


class KvCaches:
    """Reader of KV caches during one reading of metrics.

    A request that was refused or unanswered once is not sent again.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: Reason | None = None

    def read(self, endpoint: str, variant: str, grid: Grid) -> Series | Reason:
        """The largest share of the cache in use, of all instances, in each period; or why it is not known. Total."""
        if self._failed is not None:
            return self._failed
        values = array("d", [math.nan]) * grid.size
        try:
            for at, share in self._shares(endpoint, variant, grid):
                values[(at - grid.start) // timedelta(seconds=grid.period_s)] = share
        except ReadError as error:
            self._failed = reason_of(error)
            return self._failed
        if all(value != value for value in values):
            return _unpublished_reason(endpoint, variant)
        return Series(grid.start, grid.period_s, values)

    def _shares(self, endpoint: str, variant: str, grid: Grid) -> Iterator[tuple[datetime, float]]:
        ask = partial(self._day, query_of(endpoint, variant, grid.period_s), f"{endpoint}/{variant}")
        days = list(_days(grid))
        latest = [found for day in days[:LATEST] for found in ask(day)]
        yield from latest
        if latest:
            with request_threads(WORKERS) as pool:
                for found in pool.map(ask, days[LATEST:]):
                    yield from found

    def _day(self, query: str, whose: str, day: Grid) -> list[tuple[datetime, float]]:
        purpose = f"reading the KV cache of {whose}"
        first = day.start + timedelta(seconds=day.period_s)
        with translate_read_errors(PERMISSIONS, purpose):
            answer = self._session.client("cloudwatch-promql", seconds=SECONDS).query_metrics(
                Query=query, Start=int(first.timestamp()), End=int(day.end.timestamp()), Step=day.period_s
            )
            body = answer["Body"].read(LARGEST)
        try:
            return list(parse_shares(body, day))
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise ReadError(f"{purpose}: CloudWatch answered what is no share of a cache ({error!r:.120})") from None


def query_of(endpoint: str, variant: str, period_s: int) -> str:
    """The highest share in use of a period and of all instances, as PromQL.

    Names with dots are quoted, as Prometheus 3 and AWS's guide ask for: with underscores in place of the dots nothing
    matches, and nobody says so. The maximum is taken by CloudWatch, so that no limit on series cuts instances off.
    """
    labels = {"aws.sagemaker.endpoint.name": endpoint, "aws.sagemaker.variant.name": variant}
    where = ",".join(f'"{name}"="{value}"' for name, value in labels.items())
    return " or ".join(f'max(max_over_time({{"{metric}",{where}}}[{period_s}s]))' for metric in METRICS)


def parse_shares(body: bytes, day: Grid) -> Iterator[tuple[datetime, float]]:
    """Beginning of the period and share of each datapoint of the day; ValueError and its kin where it is none."""
    answer: Mapping[str, Any] = json.loads(body)
    if answer["status"] != "success" or answer.get("warnings"):
        raise ValueError(str(answer.get("error") or answer.get("warnings") or answer["status"]))
    if answer["data"]["resultType"] != "matrix":
        raise ValueError(f"result type {answer['data']['resultType']}")
    seen: dict[int, float] = {}
    for series in answer["data"]["result"]:
        for at, text in series["values"]:
            share, place = float(text), math.ceil((float(at) - day.start.timestamp()) / day.period_s) - 1
            if share != share or not 0 <= place < day.size:
                continue
            if not 0 <= share <= 1:
                raise ValueError(f"{share} is not between 0 and 1")
            seen[place] = max(share, seen.get(place, 0.0))
    for place, share in seen.items():
        yield day.start + timedelta(seconds=place * day.period_s), share


def _days(grid: Grid) -> Sequence[Grid]:
    """The window in UTC days, the latest first."""
    grids, end = [], grid.end
    while end > grid.start:
        midnight = (end - timedelta(seconds=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        start = max(midnight, grid.start)
        grids.append(Grid(start, end, grid.period_s))
        end = start
    return grids


def _unpublished_reason(endpoint: str, variant: str) -> Reason:
    sentence = f"no KV cache of {endpoint}/{variant} was published, though its configuration has detailed observability"
    return Reason(Code.NO_DATAPOINTS, f"{sentence}; what its server needs of the GPU memory stays unknown")
