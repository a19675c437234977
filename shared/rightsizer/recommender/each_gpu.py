"""Fold what single GPUs published (enhanced metrics) into the digest of their day."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time

from rightsizer.domain.usage import DayDigest, EachGpu, MetricWindow, Series, Signal, Spread

COVERED = 0.8
"""Share of the day's datapoints that single GPUs must have too: the valid minutes that a window needs."""
AVERAGE = Signal("GPUUtilization", "Average")

type Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class _Instance:
    """Rows of the GPUs of one instance, of which none is missing."""

    busy: Rows
    memory: Rows

    def covers(self, slot: int) -> bool:
        """Whether every GPU has both datapoints: a GPU without is unknown, not idle."""
        return all(row[slot] == row[slot] for row in (*self.busy, *self.memory))


def with_each_gpu(digest: DayDigest, window: MetricWindow, since: datetime | None) -> DayDigest:
    """The digest with what each GPU did, and the memory of the fullest in place of their mean where that is more.

    As it was where too little of the day was seen on instances of which every GPU published. Datapoints before
    `since` belong to another configuration.
    """
    if digest.gpus < 2 or not window.gpus:
        return digest
    start, size = datetime.combine(digest.day, time(), UTC), 86400 // window.period_s
    first = math.ceil((since - start).total_seconds() / window.period_s) if since else 0
    first = min(max(first, 0), size)

    def cut(series: Series | None) -> list[float]:
        return series.cut(start, size, first) if series is not None else [math.nan] * size

    known = [one for one in _instances(window, cut).values() if len(one.busy) == digest.gpus]
    published = {i for i, value in enumerate(cut(window.series.get(AVERAGE))) if value == value}
    seen = [{i for i in published if one.covers(i)} for one in known]
    covered = sorted(set().union(*seen))
    if not published or len(covered) < COVERED * len(published):
        return digest
    pairs = [(one, slots) for one, slots in zip(known, seen, strict=True) if slots]
    full = [max(row[i] for one, slots in pairs if i in slots for row in one.memory) for i in covered]
    fullest, mean = Spread.of(full, full, 1), digest.gpu_memory
    higher = fullest is not None and (mean is None or fullest.peak > mean.peak)
    return replace(digest, each_gpu=_each(pairs), gpu_memory=fullest if higher else mean)


def _instances(window: MetricWindow, cut: Callable[[Series | None], list[float]]) -> Mapping[str, _Instance]:
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for one in window.gpus:
        gpus, rows = found.setdefault(one.instance, {}), (cut(one.busy), cut(one.memory))
        busy, memory = gpus.get(one.gpu, rows)
        gpus[one.gpu] = _higher(busy, rows[0]), _higher(memory, rows[1])
    return {name: _Instance(*zip(*gpus.values(), strict=True)) for name, gpus in found.items()}


def _higher(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The higher value of each period; the one that there is where the other has none."""
    return [b if not a >= b and b == b else a for a, b in zip(one, other, strict=True)]


def _each(pairs: Sequence[tuple[_Instance, set[int]]]) -> EachGpu:
    peaks = [_ranked(max(row[i] for i in slots) for row in one.busy) for one, slots in pairs]
    means = [_ranked(sum(row[i] for i in slots) / len(slots) for row in one.busy) for one, slots in pairs]
    return EachGpu(tuple(max(rank) for rank in zip(*peaks, strict=True)), max(means))


def _ranked(percentages: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(value / 100, 5) for value in sorted(percentages, reverse=True))
