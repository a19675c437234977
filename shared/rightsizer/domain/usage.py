"""How it was used: clean series of what CloudWatch published for one variant."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from rightsizer.domain.checks import aware
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError


class Signal(NamedTuple):
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

    def present(self) -> Iterator[float]:
        """The datapoints that exist, in order."""
        return (v for v in self.values if v == v)

    @property
    def end(self) -> datetime:
        """The end of the last period."""
        return self.start + timedelta(seconds=self.period_s * len(self.values))


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """What one GPU of one instance published (enhanced metrics), 0 to 100 each; None where it published nothing.

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
    series: Mapping[Signal, Series]
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


SIGNALS: tuple[Signal, ...] = (
    Signal("Invocations", "Sum"),
    Signal("Invocation5XXErrors", "Sum"),
    Signal("ModelLatency", "Average"),
    Signal("ModelLatency", "p50"),
    Signal("ModelLatency", "p90"),
    Signal("ModelLatency", "p95"),
    Signal("ModelLatency", "p99"),
    Signal("GPUUtilization", "Average"),
    Signal("GPUUtilization", "Maximum"),
    Signal("GPUMemoryUtilization", "Average"),
    Signal("GPUMemoryUtilization", "Maximum"),
    Signal("CPUUtilization", "Average"),
    Signal("CPUUtilization", "Maximum"),
    Signal("CPUUtilization", "SampleCount"),
    Signal("MemoryUtilization", "Average"),
    Signal("MemoryUtilization", "Maximum"),
)
"""What is read of every variant. The sample count of CPU utilisation tells how many instances ran."""


OF_EACH_GPU = (Signal("GPUUtilization", "Average"), Signal("GPUMemoryUtilization", "Maximum"))
"""What is read of single GPUs: of `GpuSeries` the fields `busy` and `memory`."""


def unread(windows: Iterable[MetricWindow | NoMetrics]) -> Reason | None:
    """Why what was published is not all known, or None. That nothing was published is an answer. Total."""
    for window in windows:
        match window:
            case MetricWindow(notes=(first, *_)):
                return first
            case NoMetrics(reason=reason) if reason.code is not Code.NO_DATAPOINTS:
                return reason
    return None


ASYNC_SIGNALS: tuple[Signal, ...] = (
    Signal("ApproximateBacklogSize", "Maximum"),
    Signal("InvocationsProcessed", "Sum"),
    Signal("InvocationsProcesssed", "Sum"),
)
"""Read of asynchronous endpoints too, which publish no `Invocations`. AWS's documentation spells one with three s."""
