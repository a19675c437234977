"""CloudWatch metrics in batches: GetMetricData within its limits, pages folded, one bad query alone.

Limits (CloudWatch API reference, GetMetricData): 500 queries and 100,800 datapoints a request. A long reading has a
pace, so that it stays within CloudWatch's quota instead of running into it. Source: CloudWatch user guide, "CloudWatch
service quotas": GetMetricData gives 396,000 datapoints a second, account and Region together, where StartTime is more
than three hours ago; it throttles beyond.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from rightsizer.aws.cloudwatch import fold, read_fast, timestamps_as_seconds
from rightsizer.aws.detailed_metrics import UTILISATION, KvCaches, places_of, unpublished_reason
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session, request_threads
from rightsizer.domain.reason import Code, Reason, reason_of, time_text
from rightsizer.domain.usage import (
    DAY_S,
    OF_EACH_GPU,
    GpuSeries,
    Grid,
    MetricStatistic,
    MetricWindow,
    NoMetrics,
    Series,
    align,
)
from rightsizer.errors import PermissionMissingError, ReadError, ThrottledError
from rightsizer.ports.evaluation import MetricRequest

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryTypeDef, MetricStatTypeDef

MAX_QUERIES = 500
MAX_POINTS = 100_800
INVOCATION = "AWS/SageMaker"
UTILISATION_METRICS = frozenset(
    {
        "CPUUtilization",
        "MemoryUtilization",
        "DiskUtilization",
        "GPUUtilization",
        "GPUMemoryUtilization",
        "GPUUtilizationNormalized",
        "GPUMemoryUtilizationNormalized",
        "CPUUtilizationNormalized",
        "MemoryUtilizationNormalized",
    }
)
OF_COMPONENTS = "/aws/sagemaker/InferenceComponents"
"""Namespace of the utilisation of components, 0..100 of what each reserved."""
ENDPOINT_METRICS = frozenset(
    {
        "ApproximateBacklogSize",
        "ApproximateBacklogSizePerInstance",
        "ApproximateAgeOfOldestRequest",
        "HasBacklogWithoutCapacity",
    }
)
"""Published with the dimension EndpointName alone."""
QUOTA = 396_000
SHARE = 0.75
"""Of the quota that we take at most: others read metrics too."""
INVOCATIONS = 4
"""Of `evaluate` at the same time (MaximumConcurrency of its queue); each takes its part."""
AT_ONCE = 2_000_000
"""Datapoints that are read without waiting: 25 to 30 endpoints over a fortnight. Retries cover what is throttled."""


class RateLimiter:
    """Gives leave to read; may be shared by threads."""

    def __init__(
        self,
        per_second: float = QUOTA * SHARE / INVOCATIONS,
        at_once: float = AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._most = per_second, at_once
        self._clock, self._sleep = clock, sleep
        self._lock, self._stock, self._seen = Lock(), at_once, clock()

    def take(self, points: int) -> None:
        """Wait until so many datapoints may be asked for."""
        with self._lock:
            now = self._clock()
            self._stock = min(self._most, self._stock + (now - self._seen) * self._rate) - points
            self._seen = now
            wait = -self._stock / self._rate
        if wait > 0:
            self._sleep(wait)


@dataclass(frozen=True, slots=True)
class _Query:
    """One statistic of one request."""

    request: int
    endpoint: str
    variant: str
    signal: MetricStatistic
    grid: Grid
    of_component: bool = False
    beside: tuple[tuple[str, str], ...] = ()
    """Dimensions of one GPU, beside those of the variant."""


@dataclass(slots=True)
class _Answer:
    """What came back for one query."""

    grid: Grid
    values: array[float] | None = None
    reason: Reason | None = None
    status: str = ""


class CloudWatchMetrics:
    """Reads metrics of variants (port `MetricReader`)."""

    def __init__(self, session: Session, workers: int = 4, pace: RateLimiter | None = None) -> None:
        self._session = session
        self._pace = pace or RateLimiter()
        self._client: CloudWatchClient = session.client("cloudwatch", validated=False)
        read_fast(self._client)
        self._workers = workers

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        """One answer for each request, in their order; the window is aligned to the period outwards.

        A window without a period is not asked for: CloudWatch refuses a StartTime that equals the EndTime.
        """
        grid, caches = align(start, end, period_s), KvCaches(self._session)
        if grid.size < 1:
            yield from (
                NoMetrics(metric_request.endpoint, metric_request.variant, _late_start_reason(metric_request, start))
                for metric_request in requests
            )
            return
        days = align(start, end, DAY_S)
        queries = [
            _Query(
                number,
                request.endpoint,
                request.variant,
                signal,
                days if signal in request.by_day else grid,
                request.of_component,
            )
            for number, request in enumerate(requests)
            for signal in request.signals
        ]
        batches = list(_batches(queries))
        pending: dict[int, dict[MetricStatistic, _Answer]] = {number: {} for number in range(len(requests))}
        done = 0
        with request_threads(self._workers) as pool:
            for i in range(0, len(batches), self._workers):
                group = batches[i : i + self._workers]
                for batch, answers in zip(group, pool.map(self._fetch, group), strict=True):
                    for query, answer in zip(batch, answers, strict=True):
                        pending[query.request][query.signal] = answer
                while done < len(requests) and len(pending[done]) == len(set(requests[done].signals)):
                    yield self._window(requests[done], pending.pop(done), grid, caches)
                    done += 1
        for number in range(done, len(requests)):
            yield self._window(requests[number], pending[number], grid, caches)

    def _window(
        self, request: MetricRequest, answers: Mapping[MetricStatistic, _Answer], grid: Grid, caches: KvCaches
    ) -> MetricWindow | NoMetrics:
        """The window, with single GPUs and the KV cache where they are asked for, or why they are not known."""
        window = _window(request, answers, grid)
        if isinstance(window, NoMetrics) or window.notes:
            return window
        if request.kv_cache:
            series = caches.read(request.endpoint, request.variant, grid)
            if isinstance(series, Series):
                window = replace(window, kv_cache=series)
            else:
                window = replace(window, kv_cache_unread=series)
        return self._with_gpus(request, window, grid) if request.each_gpu else window

    def _with_gpus(self, request: MetricRequest, window: MetricWindow, grid: Grid) -> MetricWindow:
        try:
            places = places_of(self._client, request.endpoint, request.variant)
        except ReadError as error:
            return replace(window, gpus_unread=reason_of(error))
        queries = [
            _Query(0, request.endpoint, request.variant, s, grid, beside=p.dimensions)
            for p in places
            for s in OF_EACH_GPU
        ]
        answers = [answer for batch in _batches(queries) for answer in self._fetch(batch)]
        failed = next((answer.reason for answer in answers if answer.reason is not None), None)
        series = [Series(grid.start, grid.period_s, a.values) if a.values is not None else None for a in answers]
        if failed is not None or not any(series):
            return replace(window, gpus_unread=failed or unpublished_reason(request.endpoint, request.variant))
        pairs = zip(places, series[::2], series[1::2], strict=True)
        return replace(window, gpus=tuple(GpuSeries(p.instance, p.gpu, busy, memory) for p, busy, memory in pairs))

    def _fetch(self, batch: Sequence[_Query]) -> list[_Answer]:
        """Answers of a batch; statistics that came back incomplete are asked once more, by themselves."""
        answers = self._ask(batch)
        again = [i for i, answer in enumerate(answers) if answer.status in ("PartialData", "InternalError")]
        if again:
            for i, answer in zip(again, self._ask([batch[i] for i in again]), strict=True):
                answers[i] = answer if answer.reason is None else answers[i]
        for query, answer in zip(batch, answers, strict=True):
            if answer.reason is None:
                answer.reason = _incomplete_reason(query, answer.status)
        return answers

    def _ask(self, batch: Sequence[_Query]) -> list[_Answer]:
        """One request with its pages. A batch that CloudWatch refuses is halved until the bad query stands alone."""
        try:
            return self._pages(batch)
        except (PermissionMissingError, ThrottledError) as error:
            return [_Answer(query.grid, reason=reason_of(error)) for query in batch]
        except ReadError as error:
            if len(batch) == 1:
                return [_Answer(batch[0].grid, reason=reason_of(error))]
            half = len(batch) // 2
            return self._ask(batch[:half]) + self._ask(batch[half:])

    def _pages(self, batch: Sequence[_Query]) -> list[_Answer]:
        answers = [_Answer(query.grid) for query in batch]
        points, grid = sum(query.grid.size for query in batch), batch[0].grid
        token: dict[str, Any] = {}
        while True:
            self._pace.take(min(points, MAX_POINTS))
            doing = f"reading {len(batch)} metric statistics"
            with translate_read_errors("cloudwatch:GetMetricData", doing), timestamps_as_seconds():
                page: Any = self._client.get_metric_data(
                    MetricDataQueries=[_query(i, query) for i, query in enumerate(batch)],
                    StartTime=grid.start,
                    EndTime=grid.end,
                    ScanBy="TimestampAscending",
                    MaxDatapoints=MAX_POINTS,
                    **token,
                )
            for result in page["MetricDataResults"]:
                number = int(result["Id"][1:])
                answer = answers[number]
                answer.status = result.get("StatusCode", "Complete")
                answer.values = fold(answer.values, result, batch[number].grid)
            if not page.get("NextToken"):
                return answers
            token = {"NextToken": page["NextToken"]}


def _batches(queries: Sequence[_Query]) -> Iterator[list[_Query]]:
    """The queries in their order, as many together as one request may ask for."""
    batch: list[_Query] = []
    points = 0
    for query in queries:
        points += query.grid.size
        if batch and (len(batch) == MAX_QUERIES or points > MAX_POINTS):
            yield batch
            batch, points = [], query.grid.size
        batch.append(query)
    if batch:
        yield batch


def _query(number: int, query: _Query) -> "MetricDataQueryTypeDef":
    metric = query.signal.metric
    dimensions: list[DimensionTypeDef] = [{"Name": "EndpointName", "Value": query.endpoint}]
    if query.of_component:
        dimensions = [{"Name": "InferenceComponentName", "Value": query.variant}]
    elif metric not in ENDPOINT_METRICS:
        dimensions.append({"Name": "VariantName", "Value": query.variant})
    dimensions += [{"Name": name, "Value": value} for name, value in query.beside]
    utilisation = OF_COMPONENTS if query.of_component else UTILISATION
    stat: MetricStatTypeDef = {
        "Metric": {
            "Namespace": utilisation if metric in UTILISATION_METRICS else INVOCATION,
            "MetricName": metric,
            "Dimensions": dimensions,
        },
        "Period": query.grid.period_s,
        "Stat": query.signal.statistic,
    }
    return {"Id": f"q{number}", "MetricStat": stat, "ReturnData": True}


def _late_start_reason(request: MetricRequest, start: datetime) -> Reason:
    where = f"{request.endpoint}/{request.variant}"
    return Reason(Code.NO_DATAPOINTS, f"{where}: no period has begun since {time_text(start)}")


def _incomplete_reason(query: _Query, status: str) -> Reason | None:
    name = f"{query.signal.metric} {query.signal.statistic} of {query.endpoint}/{query.variant}"
    match status:
        case "Complete":
            return None
        case "Forbidden":
            return Reason(
                Code.PERMISSION_MISSING, f"{name}: CloudWatch forbids it; cloudwatch:GetMetricData is missing"
            )
        case "":
            return Reason(Code.READ_FAILED, f"{name}: CloudWatch did not answer this query")
        case _:
            return Reason(Code.READ_FAILED, f"{name}: CloudWatch answered {status} twice; datapoints may be missing")


def _window(request: MetricRequest, answers: Mapping[MetricStatistic, _Answer], grid: Grid) -> MetricWindow | NoMetrics:
    series = {
        signal: Series(answer.grid.start, answer.grid.period_s, answer.values)
        for signal, answer in answers.items()
        if answer.values is not None
    }
    notes = tuple(dict.fromkeys(answer.reason for answer in answers.values() if answer.reason is not None))
    if series:
        return MetricWindow(request.endpoint, request.variant, grid.start, grid.end, grid.period_s, series, notes)
    days = (grid.end - grid.start).total_seconds() / 86400
    silent = Reason(
        Code.NO_DATAPOINTS,
        f"CloudWatch has no datapoint of {request.endpoint}/{request.variant} in {days:.0f} days",
    )
    return NoMetrics(request.endpoint, request.variant, notes[0] if notes else silent)
