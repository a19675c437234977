"""Fold CloudWatch's datapoints of one variant into the usage of its days, one for each UTC day."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from math import log
from operator import mul

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.usage import (
    BIN,
    DAY_S,
    OVERHEAD,
    SLOT_S,
    DailyUsage,
    Fit,
    MetricStatistic,
    MetricWindow,
    Series,
    Spread,
    known_values,
)
from rightsizer.errors import InputError

INVOCATIONS = ("Invocations", "InvocationsProcessed", "InvocationsProcesssed")
LAST = 1.0
"""Requests above a quantile from which the mass up to the next one is spread; fewer are the slowest ones themselves."""
FAST_US = 20.0
"""A twentieth of a median below it is under a microsecond, which no bin is."""
PERCENTILES = ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"))
SHARES = tuple(share for share, _ in PERCENTILES)
_LOG_BIN = math.log(BIN)
_NAN = math.nan

type Values = Sequence[float]


def full_slots(day: DailyUsage) -> frozenset[int]:
    """Slots with at least half of the requests of the busiest one."""
    most = max(known_values(day.requests), default=0.0)
    return frozenset(i for i, n in enumerate(day.requests) if n and 2 * n >= most)


LEAST_PUBLISHING = 0.75
"""What published was one instance at least: fewer samples tell of another rhythm."""


@dataclass(frozen=True, slots=True)
class VariantSetup:
    """Type, count and start of the variant that published the datapoints."""

    hardware: InstanceType
    count: int
    """Instances now; used where CloudWatch does not tell the count."""
    since: datetime | None = None
    """Datapoints before this belong to another configuration and are left out."""
    counts: Series | None = None
    """Instances over time, where they are known from elsewhere; 0 means that nothing ran."""
    publish_s: int = 60
    """Seconds between two samples of utilisation of one instance: what the sample count is divided by."""


def daily_usage(window: MetricWindow, setup: VariantSetup) -> tuple[DailyUsage, ...]:
    """Digests of the days of the window, oldest first; days without any datapoint are left out.

    Sums without a datapoint are zero where another metric shows that the variant ran, unknown elsewhere. InputError
    when the period does not divide five minutes.
    """
    if SLOT_S % window.period_s:
        raise InputError(f"digests need a period that divides {SLOT_S} s, got {window.period_s} s")
    days = []
    day = window.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while day < window.end:
        usage = _Day(window, setup, day).digest()
        if usage is not None:
            days.append(usage)
        day += timedelta(days=1)
    return tuple(days)


class _Day:
    """The series of one day, cut to its grid of base periods."""

    def __init__(self, window: MetricWindow, setup: VariantSetup, day: datetime) -> None:
        self.window, self.setup, self.day = window, setup, day
        self.period = window.period_s
        self.size = 86400 // self.period
        self.first = 0
        if setup.since is not None:
            self.first = min(max(math.ceil((setup.since - day).total_seconds() / self.period), 0), self.size)

    def cut(self, series: Series | None) -> list[float]:
        """The day's values of a series, NaN outside it and before the setup; the only one of a series by the day."""
        if series is not None and series.period_s == DAY_S:
            return series.cut(self.day, 1)
        if series is None or series.period_s != self.period:
            return [_NAN] * self.size
        return series.cut(self.day, self.size, self.first)

    def get(self, metric: str, statistic: str) -> list[float]:
        return self.cut(self.window.series.get(MetricStatistic(metric, statistic)))

    def digest(self) -> DailyUsage | None:
        gpu, memory = self.get("GPUUtilization", "Average"), self.get("GPUMemoryUtilization", "Average")
        cpu, host = self.get("CPUUtilization", "Average"), self.get("MemoryUtilization", "Average")
        calls = self._calls()
        counts = self._counts()
        rows = zip(gpu, memory, cpu, host, strict=True)
        ran = [g == g or m == m or c == c or h == h for g, m, c, h in rows]
        asleep = [count == 0 for count in counts]
        if not any(ran) and not any(v == v for v in calls):
            return None
        answered = [v == v for v in self.get("ModelLatency", "Average")]  # a request that nobody counted
        rows = zip(calls, ran, asleep, answered, strict=True)
        calls = [v if v == v else (0.0 if (up or away) and not some else _NAN) for v, up, away, some in rows]
        # AWS counts in the backlog what is being processed too: a slot in which none ends has a request all the same.
        waiting = self.get("ApproximateBacklogSize", "Maximum")
        if len(waiting) == self.size:  # read by the day it tells nothing of its periods
            calls = [_NAN if number == 0 and held > 0 else number for number, held in zip(calls, waiting, strict=True)]
        gpus = max(self.setup.hardware.accelerator_count, 1)
        latency, total = self._latency(calls)
        busy = [v / 100 * n * self.period for v, n in zip(gpu, counts, strict=True)]
        made = DailyUsage(
            day=self.day.date(),
            instance_type=self.setup.hardware.name,
            gpus=self.setup.hardware.accelerator_count,
            requests=self._slots(calls),
            busy_s=self._slots(busy),
            instances=self._hours(counts),
            latency=latency,
            latency_total_s=total,
            errors=sum(v for v in self.get("Invocation5XXErrors", "Sum") if v == v),
            within=_variation_within(calls, SLOT_S // self.period),
            gpu=Spread.from_values(gpu, self.get("GPUUtilization", "Maximum"), gpus),
            gpu_memory=Spread.from_values(memory, self.get("GPUMemoryUtilization", "Maximum"), gpus),
            host_memory=Spread.from_values(host, self.get("MemoryUtilization", "Maximum"), 1),
            cpu=Spread.from_values(cpu, self.get("CPUUtilization", "Maximum"), max(self.setup.hardware.vcpu, 1)),
            cpu_mean=_mean(cpu, 100.0),
            host=_fit(self._unrounded(gpu), self._unrounded(cpu), SLOT_S // self.period),
            backlog=self._largest("ApproximateBacklogSize"),
            oldest_request_s=self._largest("ApproximateAgeOfOldestRequest"),
            expired=sum(v for v in self.get("ExpiredRequests", "Sum") if v == v),
            publishing=self._publishing(sum(ran)),
            overhead_s=self._overhead(calls),
        )
        return self._with_refused(made)

    def _with_refused(self, made: DailyUsage) -> DailyUsage:
        """The day with its 4XX answers, told apart by how much else came."""
        refused = self.get("Invocation4XXErrors", "Sum")
        slots = [(i, n) for i, n in enumerate(self._slots(refused)) if n] if any(n > 0 for n in refused) else []
        full = full_slots(made) if slots else ()
        while_full = sum(n for i, n in slots if i in full)
        return replace(made, refused=(while_full, sum(n for _, n in slots) - while_full)) if slots else made

    def _overhead(self, calls: Values) -> float | None:
        """Mean time around the model of a request, seconds."""
        values = self.cut(self.window.series.get(OVERHEAD))
        if len(values) < self.size:  # read by the day: one datapoint
            return _mean(values, 1e6)
        known = [(v, n) for v, n in zip(values, calls, strict=True) if v == v and n > 0]
        return round(sum(v * n for v, n in known) / sum(n for _, n in known) / 1e6, 4) if known else None

    def _largest(self, metric: str) -> float | None:
        return max((v for v in self.get(metric, "Maximum") if v == v), default=None)

    def _calls(self) -> list[float]:
        for metric in INVOCATIONS:
            if MetricStatistic(metric, "Sum") in self.window.series:
                values = self.get(metric, "Sum")
                if any(v == v for v in values):
                    return values
        return [_NAN] * self.size

    def _counts(self) -> list[float]:
        """Instances in each base period: told, else counted from the samples of a metric, else as now.

        How often one instance publishes is in the configuration. It is not inferred from the datapoints: the count of
        now says nothing about a period in which the fleet had another size, or which is not over.
        """
        if self.setup.counts is not None:
            return self.cut(self.setup.counts)
        samples = self.get("CPUUtilization", "SampleCount")
        now = float(self.setup.count)
        if now <= 0 or len(samples) != self.size or not any(v > 0 for v in samples):
            return [now] * self.size
        each = self.setup.publish_s / self.period
        return [max(round(v * each), 1) if v == v else now for v in samples]

    def _publishing(self, periods: int) -> float | None:
        """Mean instances that published, by the samples of a whole day in so many periods; None where not known."""
        samples = self.get("CPUUtilization", "SampleCount")
        found = samples[0] * self.setup.publish_s / (periods * self.period) if len(samples) == 1 and periods else 0.0
        return found if found > LEAST_PUBLISHING else None

    def _slots(self, values: Values) -> tuple[float | None, ...]:
        """A value for each slot, to three decimals; whole ones need no rounding, which is dear."""
        rows = self._unrounded(values)
        return tuple([v if v is None or v.is_integer() else round(v, 3) for v in rows])

    def _unrounded(self, values: Values) -> Sequence[float | None]:
        width = SLOT_S // self.period
        if width == 1:
            return [v if v == v else None for v in values]
        out: list[float | None] = []
        for i in range(0, self.size, width):
            part = [v for v in values[i : i + width] if v == v]
            out.append(sum(part) / len(part) * width if 2 * len(part) > width else None)
        return out

    def _hours(self, values: Values) -> tuple[float | None, ...]:
        width = 3600 // self.period
        out: list[float | None] = []
        for i in range(0, self.size, width):
            part = [v for v in values[i : i + width] if v == v]
            out.append(sum(part) / len(part) if part else None)
        return tuple(out)

    def _latency(self, calls: Values) -> tuple[tuple[tuple[int, float], ...], float]:
        """Sparse histogram of the latencies in milliseconds and their sum in seconds.

        A period with all quantiles is put into its bins in the loop itself, as `_masses` would do: calls for it were
        half of what folding a day took (docs/performance.md, "Reading metrics").
        """
        mean = self.get("ModelLatency", "Average")
        quantiles = [self.get("ModelLatency", name) for _, name in PERCENTILES]
        bins: defaultdict[int, float] = defaultdict(float)
        total, half, spread_from = 0.0, SHARES[0], [LAST / (1 - share) for share in SHARES]
        for n, average, p50, p90, p95, p99 in zip(calls, mean, *quantiles, strict=True):
            if not n > 0 or not average > 0:
                continue
            total += n * average / 1e6
            if not (n > 2 and p50 >= FAST_US and p90 > 0 and p95 > 0 and p99 > 0):
                for at, weight in _masses(n, average, (p50, p90, p95, p99)):
                    bins[at] += weight
                continue
            w50, w90, w95, w99 = _weights(SHARES, bisect_left(spread_from, n))
            rest = (average - w50 * p50 - w90 * p90 - w95 * p95 - w99 * p99) / half
            lowest = min(max(rest, 0.05 * p50), p50)
            bins[round(log(lowest / 1000) / _LOG_BIN)] += n * half
            bins[round(log(p50 / 1000) / _LOG_BIN)] += n * w50
            bins[round(log(p90 / 1000) / _LOG_BIN)] += n * w90
            bins[round(log(p95 / 1000) / _LOG_BIN)] += n * w95
            bins[round(log(p99 / 1000) / _LOG_BIN)] += n * w99
        return tuple((b, round(w, 4)) for b, w in sorted(bins.items())), total


def _masses(calls: float, mean: float, quantiles: Sequence[float]) -> Sequence[tuple[int, float]]:
    """The requests of one period by their bins, from its ascending `quantiles`; its mean is kept where it can be.

    Below the lowest quantile the mass lies where the mean asks for it.
    """
    known = [(share, value) for share, value in zip(SHARES, quantiles, strict=True) if value > 0] if calls > 1 else []
    if not known:
        return ((_bin(mean), calls),)
    shares, values = zip(*known, strict=True)
    weights = _weights(shares, sum(calls * (1 - low) > LAST for low in shares))
    rest = (mean - sum(map(mul, weights, values))) / shares[0]
    lowest = min(max(rest, 0.05 * values[0]), values[0])
    mass = zip((lowest, *values), (shares[0], *weights), strict=True)
    return [(_bin(value), calls * weight) for value, weight in mass if weight]


@cache
def _weights(shares: tuple[float, ...], spread: int) -> tuple[float, ...]:
    """Mass that lies at the quantile of each of these shares: of what is between two of them, and above the last.

    Half lies at either end; where less than LAST requests lie above the lower one, as they do from the one numbered
    `spread` on, all at the upper one, which is nearly the slowest request.
    """
    mass = [0.0] * len(shares)
    for i, (low, high) in enumerate(pairwise((*shares, 1.0))):
        half = (high - low) / 2 if i < spread else 0.0
        mass[i] += half
        mass[min(i + 1, len(shares) - 1)] += high - low - half
    return tuple(mass)


def _fit(gpu: Sequence[float | None], cpu: Sequence[float | None], parts: int) -> Fit | None:
    """vCPUs busy (y) against GPUs busy (x) of each slot, from sums of percentages over its `parts`."""
    scale = 100.0 * parts
    pairs = [(g / scale, c / scale) for g, c in zip(gpu, cpu, strict=True) if g is not None and c is not None]
    if not pairs:
        return None
    xs, ys = zip(*pairs, strict=True)
    sums = sum(xs), sum(ys), sum(map(mul, xs, xs)), sum(map(mul, xs, ys)), sum(map(mul, ys, ys))
    return Fit(float(len(pairs)), *(round(value, 6) for value in sums))


def _mean(values: Values, scale: float) -> float | None:
    present = [v for v in values if v == v]
    return round(sum(present) / len(present) / scale, 4) if present else None


def _bin(microseconds: float) -> int:
    return round(log((microseconds if microseconds > 1.0 else 1.0) / 1000) / _LOG_BIN)


def _variation_within(calls: Values, width: int) -> float | None:
    """Squared variation of the rate inside the slots: variance of the counts above chance, over their square."""
    if width < 2:
        return None
    above = square = 0.0
    for i in range(0, len(calls), width):
        part = [v for v in calls[i : i + width] if v == v]
        if len(part) == width:
            middle = sum(part) / width
            above += sum((v - middle) ** 2 for v in part) / (width - 1) - middle
            square += middle**2 - middle / width
    return round(max(above / square, 0.0), 4) if square > 0 else None
