"""Use of an endpoint: the clean series of a window, and the usage of one day, small enough to store.

The window of a reading is aligned outwards to whole periods. Quantiles have one definition for the whole program.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, NamedTuple, cast

from rightsizer.domain.checks import aware
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError

CONFORMAL = 39
"""Outcomes from which one of them is the 97.5 % quantile of the next one: 39 / 40 (split conformal prediction)."""
SLOT_S = 300
"""Seconds of a slot. CloudWatch keeps 300 s datapoints for 63 days."""
DAY_S = 86400
SLOTS = DAY_S // SLOT_S
PER_HOUR = 3600 // SLOT_S
"""Slots of one hour."""
REGIME = 0.5
"""Days with less than this share of the busiest day's requests tell nothing about what must be carried."""
BIN = 1.02
"""Ratio between the edges of two latency bins: a quantile is known to 2 %."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of ascending values, `share` in 0..1; ValueError when there are none."""
    if not ordered:
        raise ValueError("no values to take a quantile of")
    rank = math.ceil(share * len(ordered) - 1e-9) - 1
    return ordered[min(max(rank, 0), len(ordered) - 1)]


def weighted_quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """The quantile of (value, weight) pairs sorted by value; ValueError when the weights add up to nothing."""
    total = sum(weight for _, weight in pairs)
    if total <= 0:
        raise ValueError("no weight to take a quantile of")
    reached = 0.0
    for value, weight in pairs:
        reached += weight
        if reached >= share * total - 1e-9:
            return value
    return pairs[-1][0]


@dataclass(frozen=True, slots=True)
class Grid:
    """The aligned window that is read."""

    start: datetime
    end: datetime
    period_s: int

    @property
    def size(self) -> int:
        """Number of periods."""
        return int((self.end - self.start).total_seconds()) // self.period_s


def align(start: datetime, end: datetime, period_s: int) -> Grid:
    """The window outwards to multiples of the period, in UTC."""
    first = int(start.timestamp()) // period_s * period_s
    last = -(-math.ceil(end.timestamp()) // period_s) * period_s
    return Grid(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC), period_s)


class MetricStatistic(NamedTuple):
    """One metric statistic, in CloudWatch's own words and units (``ModelLatency`` is microseconds)."""

    metric: str
    statistic: str
    """``Average``, ``Sum``, ``Maximum``, ``SampleCount``, ``p95``."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Datapoints on a fixed grid: value i belongs to the period that begins at `start` + i x `period_s`.

    NaN marks a period without a datapoint, here and nowhere else in the model: a gap is unknown, never zero.
    """

    start: datetime
    period_s: int
    values: array[float]

    def __post_init__(self) -> None:
        aware("Series.start", self.start)
        if self.period_s <= 0 or int(self.start.timestamp()) % self.period_s:
            raise InputError(
                f"a series must begin on a multiple of its period, got {self.start.isoformat()} / {self.period_s} s"
            )

    def cut(self, start: datetime, size: int, first: int = 0) -> list[float]:
        """The `size` periods from `start` on; NaN outside of the series and before the period `first`."""
        values = [math.nan] * size
        offset = round((start - self.start).total_seconds() / self.period_s)
        low, high = max(first, -offset), min(size, len(self.values) - offset)
        if low < high:
            values[low:high] = self.values[low + offset : high + offset]
        return values

    @property
    def end(self) -> datetime:
        """The end of the last period."""
        return self.start + timedelta(seconds=self.period_s * len(self.values))


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """Series of one GPU of one instance (enhanced metrics), 0 to 100 each; None without a datapoint.

    Several containers on a GPU are several series of it.
    """

    instance: str
    gpu: str
    busy: Series | None
    """``GPUUtilization`` Average."""
    memory: Series | None
    """``GPUMemoryUtilization`` Maximum."""


@dataclass(frozen=True, slots=True)
class MetricWindow:
    """Everything read for one variant over one window. A signal that is absent was not published."""

    endpoint: str
    variant: str
    start: datetime
    end: datetime
    period_s: int
    series: Mapping[MetricStatistic, Series]
    notes: tuple[Reason, ...] = ()
    """What could not be read completely (PartialData, Forbidden), and why."""
    gpus: tuple[GpuSeries, ...] = ()
    """Single GPUs of a few instances, where they were asked for and are published."""
    gpus_unread: Reason | None = None
    """Why single GPUs, though asked for, are not known; everything else holds."""
    kv_cache: Series | None = None
    """Largest share of the KV cache in use in each period, 0..1, of all instances; None where not asked or known."""
    kv_cache_unread: Reason | None = None
    """Why the KV cache, though asked for, is not known; everything else holds."""
    kind: Literal["metrics"] = "metrics"


@dataclass(frozen=True, slots=True)
class NoMetrics:
    """Nothing could be read for a variant. Missing is not idle (law 1)."""

    endpoint: str
    variant: str
    reason: Reason
    kind: Literal["no-metrics"] = "no-metrics"


OVERHEAD = MetricStatistic("OverheadLatency", "Average")  # read where a p95 is declared: callers wait for it too
SIGNALS: tuple[MetricStatistic, ...] = (
    MetricStatistic("Invocations", "Sum"),
    MetricStatistic("Invocation5XXErrors", "Sum"),
    MetricStatistic("Invocation4XXErrors", "Sum"),
    MetricStatistic("ModelLatency", "Average"),
    MetricStatistic("ModelLatency", "p50"),
    MetricStatistic("ModelLatency", "p90"),
    MetricStatistic("ModelLatency", "p95"),
    MetricStatistic("ModelLatency", "p99"),
    OVERHEAD,
    MetricStatistic("GPUUtilization", "Average"),
    MetricStatistic("GPUUtilization", "Maximum"),
    MetricStatistic("GPUMemoryUtilization", "Average"),
    MetricStatistic("GPUMemoryUtilization", "Maximum"),
    MetricStatistic("CPUUtilization", "Average"),
    MetricStatistic("CPUUtilization", "Maximum"),
    MetricStatistic("CPUUtilization", "SampleCount"),
    MetricStatistic("MemoryUtilization", "Average"),
    MetricStatistic("MemoryUtilization", "Maximum"),
)
"""What is read of every variant. The sample count of CPU utilisation tells how many instances ran."""
OF_EACH_GPU = (MetricStatistic("GPUUtilization", "Average"), MetricStatistic("GPUMemoryUtilization", "Maximum"))
"""What is read of single GPUs: of `GpuSeries` the fields `busy_days` and `memory`."""


def unread_reason(windows: Iterable[MetricWindow | NoMetrics]) -> Reason | None:
    """Why some published datapoints are not known, or None. An endpoint that published none is fully known."""
    for window in windows:
        match window:
            case MetricWindow(notes=(first, *_)):
                return first
            case NoMetrics(reason=reason) if reason.code is not Code.NO_DATAPOINTS:
                return reason
    return None


ASYNC_SIGNALS: tuple[MetricStatistic, ...] = (
    MetricStatistic("ApproximateBacklogSize", "Maximum"),
    MetricStatistic("ApproximateAgeOfOldestRequest", "Maximum"),
    MetricStatistic("ExpiredRequests", "Sum"),
    MetricStatistic("InvocationsProcessed", "Sum"),
    MetricStatistic("InvocationsProcesssed", "Sum"),
)
"""Read of asynchronous endpoints too, which publish no `Invocations`. AWS's documentation spells one with three s."""
_SUMS_AND_MEANS = {"Invocation5XXErrors", "ExpiredRequests", OVERHEAD.metric}
OF_A_DAY = frozenset(
    signal
    for signal in (*SIGNALS, *ASYNC_SIGNALS)
    if signal.metric in _SUMS_AND_MEANS or (signal.statistic == "Maximum" and signal.metric != "ApproximateBacklogSize")
)
"""Of these daily usage keeps the highest, the mean or the sum of a day: one datapoint of a day says as much as 288."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a utilisation share over the datapoints of a day."""

    p5: float
    p50: float
    p95: float
    p99: float
    peak: float

    @classmethod
    def from_values(cls, values: Sequence[float], peaks: Sequence[float], divisor: float) -> "Spread | None":
        """Percentages, of `divisor` chips together, as shares of one; None without a datapoint, which NaN marks."""
        ordered = sorted([v for v in values if v == v])
        if not ordered:
            return None
        top = max([ordered[-1], *[v for v in peaks if v == v]])
        scale = 100.0 * divisor
        p5, p50, p95, p99 = (round(quantile(ordered, q) / scale, 5) for q in (0.05, 0.5, 0.95, 0.99))
        return cls(p5, p50, p95, p99, round(top / scale, 5))


@dataclass(frozen=True, slots=True)
class Fit:
    """Sums of a straight line y = level + slope x by least squares; sums of several days add up."""

    n: float
    x: float
    y: float
    xx: float
    xy: float
    yy: float

    def __add__(self, other: "Fit") -> "Fit":
        return Fit(
            self.n + other.n,
            self.x + other.x,
            self.y + other.y,
            self.xx + other.xx,
            self.xy + other.xy,
            self.yy + other.yy,
        )


@dataclass(frozen=True, slots=True)
class EachGpu:
    """The GPUs of one instance on one day, seen one by one; the busiest first. Shares of one GPU, 0..1."""

    peaks: tuple[float, ...]
    """Highest utilisation; of several instances the higher one at each rank."""
    means: tuple[float, ...]
    """Mean utilisation, on the instance that worked most."""


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """One UTC day of one variant on one instance type. A day with two types has two digests.

    Slots are five minutes long. None is unknown (no datapoint), never zero (law 1).
    """

    day: date
    instance_type: str
    gpus: int
    """Accelerators per instance, as the shares below were divided by it."""
    requests: tuple[float | None, ...]
    """Requests of each slot, over all instances."""
    busy_s: tuple[float | None, ...]
    """GPU seconds worked in each slot, over all GPUs of all instances."""
    instances: tuple[float | None, ...]
    """Mean instance count of each hour, 24 values."""
    latency: tuple[tuple[int, float], ...]
    """Sparse histogram: (bin, requests); bin i holds latencies of about BIN ** i milliseconds."""
    latency_total_s: float
    """Sum of the latencies of all requests with a datapoint."""
    errors: float
    gpu: Spread | None
    """Utilisation per GPU, 0..1."""
    gpu_memory: Spread | None
    """Memory used per GPU, share of what the type lists, 0..1; of the fullest GPU where `each_gpu` is known."""
    host_memory: Spread | None
    cpu: Spread | None
    """Per vCPU, 0..1."""
    cpu_mean: float | None = None
    """Mean vCPUs busy per instance."""
    backlog: float | None = None
    """Largest backlog of an asynchronous endpoint; None when none was published."""
    host: Fit | None = None
    """vCPUs busy against GPUs busy, per instance and slot: what the host works for a second of GPU work."""
    within: float | None = None
    """Squared variation of the request rate between the base periods of a slot, chance taken out; None at 300 s."""
    each_gpu: EachGpu | None = None
    """Single GPUs; None where they were not published, not read, or for too little of the day."""
    kv_cache: Spread | None = None
    """Share of the KV cache in use, 0..1, of the fullest instance; None where it is not known for most of the day."""
    oldest_request_s: float | None = None
    """Longest that a request had waited in the queue of an asynchronous endpoint; None when that was not published."""
    expired: float = 0.0
    """Requests that expired in that queue (RequestTTLSeconds)."""
    refused: tuple[float, float] = (0.0, 0.0)
    """Requests answered by 4XX: in slots with at least half of the requests of the day's busiest one, and in others."""
    publishing: float | None = None
    """Mean instances that published, of a fleet of fixed size on a day read whole; None where that was not asked."""
    overhead_s: float | None = None
    """Mean of what passed around the model (OverheadLatency), seconds; None where it was not read or published."""
    stopped: tuple[int, ...] = ()
    """Slots without a datapoint in which office hours had it stopped; ascending. They are not stored with a day."""

    def __post_init__(self) -> None:
        if len(self.requests) != SLOTS or len(self.busy_s) != SLOTS or len(self.instances) != 24:
            raise InputError(f"a digest of {self.day} needs {SLOTS} slots and 24 hours")
        if self.gpus < 0:
            raise InputError(f"a digest of {self.day} has {self.gpus} GPUs")

    @property
    def valid_slots(self) -> int:
        """Slots with utilisation datapoints."""
        return SLOTS - self.busy_s.count(None)

    @property
    def request_count(self) -> float:
        """Requests of the day, as far as they were published."""
        return sum(filter(None, self.requests))


@dataclass(frozen=True, slots=True)
class VariantUsage:
    """All days kept of one variant, oldest first."""

    endpoint: str
    variant: str
    days: tuple[DailyUsage, ...]
    notes: tuple[Reason, ...] = ()
    """What could not be read beside them, and why; the days hold without it."""

    def __iter__(self) -> Iterator[DailyUsage]:
        return iter(self.days)


@dataclass(frozen=True, slots=True)
class EndpointUsage:
    """Usage of each production variant of an endpoint that has several.

    A variant without an accelerator is left out.
    """

    endpoint: str
    variants: tuple[VariantUsage | NoMetrics, ...]

    def of_variant(self, name: str) -> VariantUsage | NoMetrics | None:
        """Usage of one variant; None where it was not read."""
        return next((one for one in self.variants if one.variant == name), None)


@dataclass(frozen=True, slots=True)
class KeptUsage:
    """Stored usage of one variant: complete days, and the dates that they cover."""

    endpoint: str
    variant: str
    modified_at: datetime
    """When the endpoint was last modified, as the digests were made: a later change asks for a full read."""
    first: date
    """First day that was read; a day without a digest had no datapoint."""
    until: date
    """First day that was not read yet."""
    days: tuple[DailyUsage, ...]

    def __post_init__(self) -> None:
        if self.until < self.first:
            raise InputError(f"kept digests of {self.endpoint} end on {self.until}, before their first day")


def known_values(values: Sequence[float | None]) -> Sequence[float]:
    """The known ones of the values; the values themselves where none is missing, as on most days."""
    if None in values:
        return [value for value in values if value is not None]
    return cast("Sequence[float]", values)


def busy_days(days: Sequence[DailyUsage]) -> list[DailyUsage]:
    """The days that tell what must be carried: those with requests, at least half of the busiest day's."""
    counts = [d.request_count for d in days]
    busiest = max(counts, default=0.0)
    return [d for d, count in zip(days, counts, strict=True) if count >= REGIME * busiest]
