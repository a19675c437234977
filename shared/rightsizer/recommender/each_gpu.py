"""What single GPUs published (enhanced metrics) and how full the KV cache was (detailed observability), by the day."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time

from rightsizer.domain.usage import DailyUsage, EachGpu, MetricStatistic, MetricWindow, Series, Spread

COVERED = 0.8
"""Share of the day's datapoints that single GPUs must have too: the valid minutes that a window needs."""
AVERAGE = MetricStatistic("GPUUtilization", "Average")
MEMORY = MetricStatistic("GPUMemoryUtilization", "Average")

type Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class _Instance:
    """Rows of the GPUs of one instance, of which none is missing."""

    busy: Rows
    memory: Rows

    def has_datapoint(self, slot: int) -> bool:
        """Whether every GPU has both datapoints: a GPU without is unknown, not idle."""
        return all(row[slot] == row[slot] for row in (*self.busy, *self.memory))


def add_each_gpu(usage: DailyUsage, window: MetricWindow, since: datetime | None) -> DailyUsage:
    """Daily usage with each GPU's figures, and the memory of the fullest where above the mean.

    As it was where too little of the day was seen on instances of which every GPU published. Datapoints before
    `since` belong to another configuration.
    """
    if usage.gpus < 2 or not window.gpus:
        return usage
    start, size = datetime.combine(usage.day, time(), UTC), 86400 // window.period_s
    first = math.ceil((since - start).total_seconds() / window.period_s) if since else 0
    first = min(max(first, 0), size)

    def cut(series: Series | None) -> list[float]:
        return series.cut(start, size, first) if series is not None else [math.nan] * size

    instances = [instance for instance in _instances(window, cut).values() if len(instance.busy) == usage.gpus]
    published = {i for i, value in enumerate(cut(window.series.get(AVERAGE))) if value == value}
    seen = [{i for i in published if instance.has_datapoint(i)} for instance in instances]
    covered = sorted(set().union(*seen))
    if not published or len(covered) < COVERED * len(published):
        return usage
    pairs = [(instance, slots) for instance, slots in zip(instances, seen, strict=True) if slots]
    full = [max(row[i] for instance, slots in pairs if i in slots for row in instance.memory) for i in covered]
    fullest, mean = Spread.from_values(full, full, 1), usage.gpu_memory
    higher = fullest is not None and (mean is None or fullest.peak > mean.peak)
    return replace(usage, each_gpu=_each_gpu(pairs), gpu_memory=fullest if higher else mean)


def _instances(window: MetricWindow, cut: Callable[[Series | None], list[float]]) -> Mapping[str, _Instance]:
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for gpu_series in window.gpus:
        gpus, rows = found.setdefault(gpu_series.instance, {}), (cut(gpu_series.busy), cut(gpu_series.memory))
        busy, memory = gpus.get(gpu_series.gpu, rows)
        gpus[gpu_series.gpu] = _higher_values(busy, rows[0]), _higher_values(memory, rows[1])
    return {name: _Instance(*zip(*gpus.values(), strict=True)) for name, gpus in found.items()}


def _higher_values(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The higher value of each period; the one that there is where the other has none."""
    return [b if not a >= b and b == b else a for a, b in zip(one, other, strict=True)]


def _each_gpu(pairs: Sequence[tuple[_Instance, set[int]]]) -> EachGpu:
    peaks = [_ranked_shares(max(row[i] for i in slots) for row in instance.busy) for instance, slots in pairs]
    means = [
        _ranked_shares(sum(row[i] for i in slots) / len(slots) for row in instance.busy) for instance, slots in pairs
    ]
    return EachGpu(tuple(max(rank) for rank in zip(*peaks, strict=True)), max(means))


def _ranked_shares(percentages: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(value / 100, 5) for value in sorted(percentages, reverse=True))


def add_kv_cache(usage: DailyUsage, window: MetricWindow, since: datetime | None) -> DailyUsage:
    """Daily usage with the shares of the KV cache in use; unchanged with too few datapoints.

    Datapoints before `since` belong to another configuration.
    """
    memory = window.series.get(MEMORY)
    if window.kv_cache is None or memory is None:
        return usage
    start, size = datetime.combine(usage.day, time(), UTC), 86400 // window.period_s
    first = math.ceil((since - start).total_seconds() / window.period_s) if since else 0
    first = min(max(first, 0), size)
    pairs = zip(memory.cut(start, size, first), window.kv_cache.cut(start, size), strict=True)
    shares = [share for held, share in pairs if held == held]
    if sum(share == share for share in shares) < COVERED * len(shares):
        return usage
    percent = [100 * share for share in shares]
    return replace(usage, kv_cache=Spread.from_values(percent, percent, 1))
