"""The metrics themselves: series by (namespace, name, dimensions), in blocks of arrays and a tail of single minutes.

Matching is exact in all three (GetMetricData: "If you don't specify all the dimensions, no data is returned").
Percentiles come from statistic sets only where their quantiles are known, or where the count is one or the minimum is
the maximum (CloudWatch user guide, Statistics definitions).
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from sandbox.clock import EPOCH, Clock
from sandbox.cloudwatch import columns
from sandbox.refusals import NotSimulated

type Dimensions = frozenset[tuple[str, str]]
type Key = tuple[str, str, Dimensions]
type Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A statistic set: what one period of one series saw."""

    total: float
    low: float
    high: float
    count: float
    quantiles: Mapping[float, float] = field(default_factory=dict)
    """Percentile (0 to 100) to value."""

    @classmethod
    def even(cls, value: float, count: float = 1) -> "Sample":
        """`count` samples of the same value."""
        return cls(value * count, value, value, count)

    @classmethod
    def counted(cls, total: float, count: float) -> "Sample":
        """`count` samples of 0 or more that add up to `total`, such as errors among requests."""
        share = total / count if count else 0.0
        return cls(total, 1.0 if share >= 1 else 0.0, 1.0 if total > 0 else 0.0, count)


@dataclass(slots=True)
class Block:
    """A run of equal periods. NaN in `totals` is a period without datapoints."""

    start: int
    period: int
    totals: array[float]
    counts: array[float] | float
    lows: array[float] | None = None
    highs: array[float] | None = None
    quantiles: Mapping[float, array[float]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Epoch second after the last period."""
        return self.start + self.period * len(self.totals)

    def span(self, start: int, end: int) -> range:
        """Indexes of the periods that begin in [start, end)."""
        first = max(0, -(-(start - self.start) // self.period))
        return range(first, min(len(self.totals), max(first, -(-(end - self.start) // self.period))))

    def sample(self, index: int) -> Sample:
        """The statistic set of one period."""
        count = self.counts if isinstance(self.counts, float) else self.counts[index]
        total = self.totals[index]
        mean = total / count if count else 0.0
        low = self.lows[index] if self.lows else mean
        high = self.highs[index] if self.highs else mean
        return Sample(total, low, high, count, {q: values[index] for q, values in self.quantiles.items()})


@dataclass(slots=True)
class Series:
    """One metric."""

    blocks: list[Block] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def between(self, start: int, end: int) -> Iterator[tuple[int, Sample]]:
        """(epoch second, statistic set) of every period in [start, end); blocks first."""
        for block in self.blocks:
            for index in block.span(start, end):
                if not math.isnan(block.totals[index]):
                    yield block.start + index * block.period, block.sample(index)
        for index in range(bisect_left(self.times, start), bisect_left(self.times, end)):
            yield self.times[index], self.samples[index]

    def has_disjoint_blocks(self) -> bool:
        """Whether each block begins after the one before it."""
        return all(one.end <= following.start for one, following in pairwise(self.blocks))

    def has_single(self, start: int, end: int) -> bool:
        """Whether a single minute lies in [start, end)."""
        return bisect_left(self.times, start) < bisect_left(self.times, end)

    def last(self) -> int | None:
        """Epoch second of the newest period."""
        ends = [block.end - block.period for block in self.blocks] + self.times[-1:]
        return max(ends, default=None)


class MetricStore:
    """Every series of the account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._series: dict[Key, Series] = {}
        self._statuses: dict[Key, str] = {}

    def answer_with(self, namespace: str, metric: str, dimensions: Mapping[str, str], code: str) -> None:
        """Let GetMetricData say PartialData, Forbidden or InternalError for a series (Complete to heal)."""
        self._statuses[(namespace, metric, frozenset(dimensions.items()))] = code

    def status(self, key: Key) -> str:
        """The StatusCode of a series."""
        return self._statuses.get(key, "Complete")

    def add(self, namespace: str, metric: str, dimensions: Mapping[str, str], at: datetime, sample: Sample) -> None:
        """Add one minute (or second) to a series."""
        key = namespace, metric, frozenset(dimensions.items())
        series = self._series.get(key) or self._series.setdefault(key, Series())
        moment = epoch(at)
        if not series.times or series.times[-1] <= moment:
            series.times.append(moment)
            series.samples.append(sample)
            return
        index = bisect_left(series.times, moment + 1)
        series.times.insert(index, moment)
        series.samples.insert(index, sample)

    def put(self, namespace: str, metric: str, dimensions: Mapping[str, str], block: Block) -> None:
        """Add a run of periods to a series."""
        self._series.setdefault((namespace, metric, frozenset(dimensions.items())), Series()).blocks.append(block)

    def forget(self, dimension: str, value: str) -> None:
        """Drop every series with this dimension."""
        for key in [key for key in self._series if (dimension, value) in key[2]]:
            del self._series[key]

    def known(self) -> Iterable[Key]:
        """Every series there is."""
        return self._series.keys()

    def active_since(self, key: Key, since: datetime) -> bool:
        """Whether the series has a datapoint at or after `since`."""
        last = self._series[key].last()
        return last is not None and last >= epoch(since)

    def read(self, key: Key, start: int, end: int, period: int, stat: str) -> list[tuple[int, float]]:
        """(epoch second, value) of every period of [start, end) that has datapoints, oldest first.

        Periods lie on multiples of `period` since 1970. Datapoints older than the retention of `period` are gone
        (user guide: 60 s for 15 days, 300 s for 63 days, 3600 s for 455 days; below 60 s for 3 hours).
        """
        series = self._series.get(key)
        if series is None:
            return []
        start = max(start - start % period, self._oldest(period))
        if all(block.end <= start for block in series.blocks):
            return _of_singles(series, start, end, period, stat)
        rows: list[tuple[int, float]] = []
        for block in series.blocks if series.has_disjoint_blocks() else ():
            first = max(start, -(-block.start // period) * period)
            after = min(end, block.end)  # what follows the block, and the period it ends in, go the slow way
            after -= after % period
            if first >= after or series.has_single(first, after):
                continue
            found = columns.read(block, first, after, period, stat)
            if found is not None:
                rows += _folded(series, start, first, period, stat) + found
                start = after
        return rows + _folded(series, start, end, period, stat)

    def _oldest(self, period: int) -> int:
        if period < 60:
            kept = timedelta(hours=3)
        elif period < 300:
            kept = timedelta(days=15)
        else:
            kept = timedelta(days=63) if period < 3600 else timedelta(days=455)
        oldest = epoch(self._clock.now - kept)
        return oldest - oldest % period


def _of_singles(series: Series, start: int, end: int, period: int, stat: str) -> list[tuple[int, float]]:
    """The periods of [start, end) of which single minutes are known: what alarms look at each minute."""
    times, samples = series.times, series.samples
    first, after = bisect_left(times, start), bisect_left(times, end)
    rows: list[tuple[int, float]] = []
    while first < after:
        moment = times[first] - times[first] % period
        last = bisect_left(times, moment + period, first + 1, after)
        rows.append((moment, statistic(stat, samples[first:last])))
        first = last
    return rows


def _folded(series: Series, start: int, end: int, period: int, stat: str) -> list[tuple[int, float]]:
    """The slow way to the periods of [start, end): by the statistic sets of each."""
    buckets: dict[int, list[Sample]] = {}
    for moment, sample in series.between(start, end):
        buckets.setdefault(moment - moment % period, []).append(sample)
    return [(moment, statistic(stat, samples)) for moment, samples in sorted(buckets.items())]


@lru_cache(maxsize=64)
def epoch(moment: datetime) -> int:
    """Whole epoch seconds."""
    return int((moment - EPOCH).total_seconds())


def statistic(stat: str, samples: Sequence[Sample]) -> float:
    """The statistic of several statistic sets together."""
    match stat:
        case "Sum":
            return math.fsum(sample.total for sample in samples)
        case "SampleCount":
            return math.fsum(sample.count for sample in samples)
        case "Average":
            return math.fsum(s.total for s in samples) / (math.fsum(s.count for s in samples) or 1.0)
        case "Minimum":
            return min(sample.low for sample in samples)
        case "Maximum":
            return max(sample.high for sample in samples)
    if stat.startswith("p") and stat[1:].replace(".", "", 1).isdigit() and 0 <= float(stat[1:]) <= 100:
        return _percentile(float(stat[1:]), samples)
    raise NotSimulated(f"the statistic {stat}: Sum, SampleCount, Average, Minimum, Maximum and pNN are")


def _percentile(wanted: float, samples: Sequence[Sample]) -> float:
    first = samples[0]
    if all(s.low == first.low and s.high == first.high and s.quantiles == first.quantiles for s in samples):
        return _value_at(wanted, first)  # a mixture of the same distribution is that distribution
    return _of_mixture(wanted, tuple((s.count, *_columns(s)) for s in samples))


@lru_cache(4096)
def _of_mixture(wanted: float, known: tuple[tuple[float, Numbers, Numbers], ...]) -> float:
    """The percentile of (count, percentiles, their values) of each; accounts of the same past ask for the same ones."""
    low, high = min(values[0] for _, _, values in known), max(values[-1] for _, _, values in known)
    wanted_count = math.fsum(count for count, _, _ in known) * wanted / 100
    for _ in range(50):  # bisection of the mixture's distribution function
        middle = (low + high) / 2
        below = math.fsum([count * _share_below(middle, percents, values) for count, percents, values in known])
        low, high = (middle, high) if below < wanted_count else (low, middle)
    return high


def _columns(sample: Sample) -> tuple[Numbers, Numbers]:
    knots = _knots(sample)
    return tuple(percent for percent, _ in knots), tuple(value for _, value in knots)


def _knots(sample: Sample) -> list[tuple[float, float]]:
    if sample.count > 1 and sample.high > sample.low and not sample.quantiles:
        raise NotSimulated(
            "a percentile of a statistic set without quantiles: CloudWatch has none either (count above one, "
            "minimum unlike maximum); seed the series with percentiles"
        )
    return [(0.0, sample.low), *sorted(sample.quantiles.items()), (100.0, sample.high)]


def _value_at(percent: float, sample: Sample) -> float:
    knots = _knots(sample)
    for (p0, v0), (p1, v1) in pairwise(knots):
        if percent <= p1:
            return v0 + (v1 - v0) * ((percent - p0) / (p1 - p0) if p1 > p0 else 1.0)
    return knots[-1][1]


def _share_below(value: float, percents: Numbers, values: Numbers) -> float:
    """The share of samples below a value; percentiles rise with their values."""
    at = bisect_right(values, value) - 1
    if at == len(values) - 1:
        return 1.0
    if at < 0 or value == values[at]:
        return percents[at] / 100 if at > 0 else 0.0
    p0, v0 = percents[at], values[at]
    return (p0 + (percents[at + 1] - p0) * (value - v0) / (values[at + 1] - v0)) / 100
