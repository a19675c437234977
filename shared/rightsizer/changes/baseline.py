"""Metrics of an endpoint in periods of five minutes, and its baseline: what was usual before the change.

Alarms and proof compare with this endpoint and not with a constant. The queue of an asynchronous endpoint: by Little's
law a request waits for as long as the queue needs at the rate at which it is worked off: backlog over requests per
second. That is the backlog of each instance times the seconds that a request takes there, so half the instances with
half the work each are no worse, and a fleet that falls behind shows at once.

A fleet with few requests has slow half hours by chance: five requests that come together wait behind any type. Where
the fleet before was over the limit on two days of the week before the change, that half hour says nothing of the new
one: it is held against what the old fleet did, by how slow and by how often.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, pairwise

from rightsizer.domain.policy import SLOW_FACTOR
from rightsizer.domain.usage import OVERHEAD, MetricStatistic, MetricWindow, NoMetrics, Series

REQUESTS = MetricStatistic("Invocations", "Sum")
ERRORS = MetricStatistic("Invocation5XXErrors", "Sum")
REFUSED = MetricStatistic("Invocation4XXErrors", "Sum")
"""Callers' mistakes, and what a full server turns away (429): together with the share before, the second is told."""
LATENCY = MetricStatistic("ModelLatency", "p95")
HOST_MEMORY = MetricStatistic("MemoryUtilization", "Maximum")
GPU_MEMORY = MetricStatistic("GPUMemoryUtilization", "Maximum")
MEAN = MetricStatistic("ModelLatency", "Average")
GPU = MetricStatistic("GPUUtilization", "Sum")
"""Over all samples of all instances: over the requests it compares types whatever the count is."""
PROCESSED = (MetricStatistic("InvocationsProcessed", "Sum"), MetricStatistic("InvocationsProcesssed", "Sum"))
"""What asynchronous endpoints count instead of requests; AWS's documentation spells one with three s."""
FAILURES = MetricStatistic("InvocationFailures", "Sum")
EXPIRED = MetricStatistic("ExpiredRequests", "Sum")
"""What went wrong in a queue: the model failed, or the request waited longer than it may (RequestTTLSeconds)."""
BACKLOG = MetricStatistic("ApproximateBacklogSize", "Average")
"""Requests that wait in the queue of the endpoint (dimension EndpointName alone); sampled each minute."""
OLDEST = MetricStatistic("ApproximateAgeOfOldestRequest", "Maximum")
ASLEEP = MetricStatistic("HasBacklogWithoutCapacity", "Maximum")
"""How long the oldest request waits there, and whether any waits while there is no instance (1) or not (0)."""
NO_CAPACITY = MetricStatistic("NoCapacityInvocationFailures", "Sum")
"""Requests of an inference component that failed since it had no copy (dimension InferenceComponentName alone)."""
SIGNALS = (REQUESTS, ERRORS, REFUSED, LATENCY, HOST_MEMORY, GPU_MEMORY, MEAN, GPU)
QUEUED = (*PROCESSED, FAILURES, EXPIRED, BACKLOG, OLDEST, ASLEEP)
PERIOD_S = 300
SAMPLE_S = 60
"""Seconds of a sample of utilisation, unless MetricPublishFrequencyInSeconds says otherwise."""
PEAK = "peak_hour_requests"
USUAL = "queue_s"
"""Key of the baseline: the longest wait of half an hour before the change, seconds."""
WINDOW = 6
"""Periods in the 30 minutes that are judged together."""
KNOWN = 3
"""Of them, those of which the backlog must be known."""
LEAST = 5.0
"""Requests in the queue below which nothing is said."""
FACTOR = 2.0
FLOOR_S = 60.0
"""A wait that is no harm, whatever was usual."""
WAKING_S = 1800.0
"""The same where the fleet sleeps: the first request waits for an instance."""
BAD_REQUESTS = 5
"""Failed or slow requests below which nothing is bad."""
BAD_SHARE = 0.10
"""Share of failed requests that is bad, where no other share is declared."""
BASELINE_FACTOR = 3.0
"""Errors above this multiple of the baseline are bad, for the proof, a shadow test and the alarms that roll back."""
BREACHES = 3
"""Periods of a window that must breach for latency and memory: one slow period is no evidence."""
HABIT_DAYS = 2
"""Days before the change on which the old fleet has to be over the limit: one bad day is an incident and no habit."""
MOST_HABIT = 4.0
"""Times its limit up to which the old fleet's slowness is forgiven a change: beyond, it served nobody well."""
ONE_SLEEP = 2
"""Turns of a half hour in which a queue fell asleep, started, or did both once."""
HABIT_SPAN = timedelta(days=7)
"""The days among which they are sought: as good a fleet then rings a false alarm on one day in seven at most."""
HABIT_SIGNALS = (REQUESTS, *PROCESSED, LATENCY)
"""What is read of them."""
SLOW, OFTEN = "slow_s", "slow_periods"
"""Keys of the baseline: on so many days the old fleet had a half hour as slow as this, and so many slow periods."""
DAY = timedelta(days=1)
STUCK_S = 86_400.0
"""Stands for a queue of which nothing is worked off."""

type Windows = Sequence[MetricWindow | NoMetrics]


@dataclass(frozen=True, slots=True)
class ServicePeriod:
    """Service of one variant within five minutes."""

    at: datetime
    requests: float
    errors: float
    p95_s: float | None
    memory: float | None
    backlog: float | None = None
    """Requests that waited in the queue, on average."""
    oldest_s: float | None = None
    """How long the oldest request of the queue waited, seconds."""
    expired: float = 0.0
    """Requests that expired there; they are among the errors too."""
    is_asleep: bool = False
    """Whether requests waited there, or failed, while no instance ran."""
    refused: float = 0.0
    """Requests that were answered by 4XX."""


def watched_metrics(asynchronous: bool) -> tuple[MetricStatistic, ...]:
    """Metrics to read of a variant.

    Asynchronous endpoints publish no `Invocations`, but what left their queue.

    Source: developer guide, async-inference-monitor. Failed downloads of the input and uploads of the answer are not
    read: they tell about buckets, not about the instance.
    """
    return (*SIGNALS, *QUEUED) if asynchronous else SIGNALS


def serving_figures(windows: Windows) -> dict[str, float]:
    """How it serves: ``mean_s`` and ``p95_s`` (medians of the periods), ``gpu_memory_percent`` (largest). Total.

    ``gpu_s`` are the GPU seconds of a request, over the ``gpu_requests`` for which both are known, at one sample a
    minute: another frequency is the same before and after a change, so that only the ratio means something.
    """
    found: dict[str, float] = {}
    scales = (("mean_s", MEAN, 1e-6), ("p95_s", LATENCY, 1e-6), ("gpu_memory_percent", GPU_MEMORY, 1.0))
    for name, signal, scale in scales:
        values = sorted(v for w in windows if isinstance(w, MetricWindow) for v in _values(w, signal))
        if values:
            found[name] = scale * (values[-1] if signal is GPU_MEMORY else values[len(values) // 2])
    work = [pair for w in windows if isinstance(w, MetricWindow) for pair in _gpu_periods(w)]
    calls = sum(count for _, count in work)
    if calls > 0:
        found |= {"gpu_requests": calls, "gpu_s": SAMPLE_S / 100 * sum(percent for percent, _ in work) / calls}
    return found


def _gpu_periods(window: MetricWindow) -> Iterator[tuple[float, float]]:
    """(percent of GPUs, requests) of each period that has both."""
    calls, percent = window.series.get(REQUESTS), window.series.get(GPU)
    if calls is None or percent is None:
        return iter(())
    pairs = zip(percent.values, calls.values, strict=False)
    return ((value, count) for value, count in pairs if value == value and count == count)


def _values(window: MetricWindow, signal: MetricStatistic) -> Iterator[float]:
    series = window.series.get(signal)
    return (v for v in (series.values if series is not None else ()) if v == v)


def requests_by_hour(rows: Sequence[ServicePeriod]) -> dict[datetime, float]:
    """Requests by the hour in which they were served."""
    found: dict[datetime, float] = {}
    for p in rows:
        hour = p.at.replace(minute=0, second=0, microsecond=0)
        found[hour] = found.get(hour, 0.0) + p.requests
    return found


def periods_of(window: MetricWindow) -> Iterator[ServicePeriod]:
    """One row a period. A gap in the requests counts as none served, which proves nothing and harms nothing."""
    series = {signal: window.series.get(signal) for signal in (*SIGNALS, *QUEUED, NO_CAPACITY)}
    longest = max((len(s.values) for s in series.values() if s is not None), default=0)
    known = {signal: _known_values(one, longest) for signal, one in series.items()}
    latencies, errors, failures, expired = (known[signal] for signal in (LATENCY, ERRORS, FAILURES, EXPIRED))
    served, without = [known[signal] for signal in (REQUESTS, *PROCESSED)], (known[ASLEEP], known[NO_CAPACITY])
    for i in range(longest):
        latency, lost = latencies[i], expired[i] or 0.0
        yield ServicePeriod(
            at=window.start + timedelta(seconds=window.period_s * i),
            requests=max([values[i] or 0.0 for values in served]),
            errors=max(errors[i] or 0.0, failures[i] or 0.0) + lost,
            p95_s=None if latency is None else latency / 1_000_000,
            memory=known[HOST_MEMORY][i],
            backlog=known[BACKLOG][i],
            oldest_s=known[OLDEST][i],
            expired=lost,
            is_asleep=any([(values[i] or 0.0) > 0 for values in without]),
            refused=known[REFUSED][i] or 0.0,
        )


def _known_values(series: Series | None, length: int) -> list[float | None]:
    """So many values; None where none is known."""
    found: list[float | None] = [] if series is None else [v if v == v else None for v in series.values]
    return found + [None] * (length - len(found))


def longest_wait_s(rows: Sequence[ServicePeriod]) -> float | None:
    """The longest wait of half an hour with a real queue, seconds; None where none was seen.

    A batch that comes once a week waits behind any fleet, so two quiet days say nothing of how long it may.
    """
    return max((seconds for _, seconds, backlog in queue_waits(rows) if backlog >= LEAST), default=None)


def queue_waits(rows: Sequence[ServicePeriod]) -> Iterator[tuple[ServicePeriod, float, float]]:
    """Of each half hour: its first period, the wait in seconds, and the backlog on average.

    A half hour in which the queue fell asleep or started once is left out: what waits then says nothing of the fleet
    that works it off (`waking_verdict` judges starts). One that went by without an instance as a whole is judged, and
    one with more turns: its instances come and go.
    """
    for start in range(len(rows) - WINDOW + 1):
        periods = rows[start : start + WINDOW]
        asleep = [period.is_asleep for period in periods]
        if 0 < sum(one is not other for one, other in pairwise(asleep)) <= ONE_SLEEP:
            continue
        known = [p.backlog for p in periods if p.backlog is not None]
        if len(known) < KNOWN:
            continue
        backlog, rate = math.fsum(known) / len(known), sum(p.requests for p in periods) / (PERIOD_S * len(periods))
        seconds = backlog / rate if rate > 0 else (STUCK_S if backlog >= LEAST else 0.0)
        yield periods[0], min(seconds, STUCK_S), backlog


def baseline(windows: Windows) -> dict[str, float]:
    """Usual figures of an endpoint before its change, as `Change.baseline` has them.

    Empty when nothing was published; then only absolute limits hold.
    """
    by_variant = {w.variant: tuple(periods_of(w)) for w in windows if isinstance(w, MetricWindow)}
    rows = [p for periods in by_variant.values() for p in periods]
    requests, errors = sum(p.requests for p in rows), sum(p.errors for p in rows)
    found: dict[str, float] = {}
    if requests > 0:
        found[PEAK] = _peak(rows)
        found |= {f"{PEAK}/{name}": _peak(periods) for name, periods in by_variant.items() if periods}
        found["error_share"] = errors / requests
        found["errors_per_minute"] = max((p.errors for p in rows), default=0.0) * 60 / PERIOD_S
    if (refused := max((p.refused for p in rows), default=0.0)) or requests > 0:
        found["refused_per_minute"] = refused * 60 / PERIOD_S
        found["refused_share"] = max(map(most_refused, by_variant.values()))
    waited = [longest_wait_s(periods) for periods in by_variant.values()]
    if known := [seconds for seconds in waited if seconds is not None]:
        found[USUAL] = max(known)
    if (usual := _median_p95_s(rows)) is not None:
        found["p95_s"] = usual
    if len(by_variant) > 1:
        each = {name: _median_p95_s(periods) for name, periods in by_variant.items()}
        found |= {f"p95_s/{name}": value for name, value in each.items() if value is not None}
    served = serving_figures(windows)
    return found | {name: served[name] for name in ("mean_s", "gpu_s", "gpu_requests") if served.get(name)}


def most_refused(rows: Sequence[ServicePeriod]) -> float:
    """The largest share of the requests of half an hour that was answered by 4XX."""
    windows = (rows[start : start + WINDOW] for start in range(max(len(rows) - WINDOW + 1, 1)))
    sums = ((sum(p.refused for p in w), sum(p.requests for p in w)) for w in windows)
    return max((refused / max(calls, refused) for refused, calls in sums if refused >= BAD_REQUESTS), default=0.0)


def usual_overhead_s(windows: Windows) -> float:
    """Mean of what passes around the model of a request (OverheadLatency), seconds; 0 where it is not known."""
    known = [window.series for window in windows if isinstance(window, MetricWindow)]
    both = [
        (series[OVERHEAD].values, series[REQUESTS].values) for series in known if {OVERHEAD, REQUESTS} <= set(series)
    ]
    pairs = [(v, n) for values, calls in both for v, n in zip(values, calls, strict=False) if v == v and n > 0]
    return sum(v * n for v, n in pairs) / sum(n for _, n in pairs) / 1e6 if pairs else 0.0


def usual_p95_s(baseline: Mapping[str, float], variant: str) -> float:
    """The usual p95 of a variant before the change, seconds; 0 where it is not known.

    Of the whole endpoint where it was not kept for each variant.
    """
    return baseline.get(f"p95_s/{variant}", baseline.get("p95_s", 0.0))


def _median_p95_s(rows: Sequence[ServicePeriod]) -> float | None:
    known = sorted(p.p95_s for p in rows if p.p95_s is not None)
    return known[len(known) // 2] if known else None


def _peak(rows: Sequence[ServicePeriod]) -> float:
    """Requests of the busiest hour of a day; the median of the days."""
    by_day: dict[datetime, float] = {}
    for hour, requests in requests_by_hour(rows).items():
        day = hour.replace(hour=0)
        by_day[day] = max(by_day.get(day, 0.0), requests)
    return sorted(by_day.values())[len(by_day) // 2]


def habit_start(end: datetime, *changed: datetime | None) -> datetime:
    """From when on the days before `end` tell the habit: the week, not before the fleet that runs began.

    The last two days count in any case. `changed`: when the fleet was changed, as far as that is known.
    """
    began = max((at for at in changed if at is not None), default=end - HABIT_SPAN)
    return min(max(end - HABIT_SPAN, began), end - HABIT_DAYS * DAY)


def slowness_before(windows: Windows, baseline: Mapping[str, float], objective_p95_s: float | None) -> dict[str, float]:
    """How slow and how often each variant was over its limit by habit before a change; empty where none was.

    ``slow_s/NAME``: seconds that three periods of one half hour reached on two of the days. ``slow_periods/NAME``:
    periods over the limit that two of them had. The limit is the objective, else twice the usual p95; the seconds are
    at most `MOST_HABIT` times as many. Total.
    """
    found: dict[str, float] = {}
    for window in windows:
        if not isinstance(window, MetricWindow):
            continue
        limit = objective_p95_s or SLOW_FACTOR * usual_p95_s(baseline, window.variant)
        days = periods_by_day(list(periods_of(window)))
        slowest = [_slowest_half_hour(day) for day in days]
        slow = min(_reached_twice(slowest), MOST_HABIT * limit)
        if 0 < limit < slow:
            found[f"{SLOW}/{window.variant}"] = slow
            often = [(float(breaches(day, limit)), at) for day, (_, at) in zip(days, slowest, strict=True)]
            found[f"{OFTEN}/{window.variant}"] = _reached_twice(often)
    return found


def slow_before_s(baseline: Mapping[str, float], variant: str) -> float:
    """How slow the fleet before was as a habit, seconds; 0 where it kept the limit, or nobody knows."""
    return baseline.get(f"{SLOW}/{variant}", 0.0)


def breaches(periods: Sequence[ServicePeriod], limit: float) -> int:
    """Periods with requests of which the p95 was over the limit."""
    return sum(p.p95_s is not None and p.requests >= 1 and p.p95_s > limit for p in periods)


def _slowest_half_hour(periods: Sequence[ServicePeriod]) -> tuple[float, datetime]:
    """The largest limit that any half hour would have been over, seconds, and when; 0 with too few requests."""
    slowest = 0.0, periods[0].at
    for start in range(len(periods)):
        window = periods[start : start + WINDOW]
        values = sorted((p.p95_s for p in window if p.p95_s is not None and p.requests >= 1), reverse=True)
        if len(values) >= BREACHES and sum(p.requests for p in window) >= BAD_REQUESTS:
            slowest = max(slowest, (values[BREACHES - 1], periods[start].at))
    return slowest


def periods_by_day(periods: Sequence[ServicePeriod]) -> list[list[ServicePeriod]]:
    """The periods in parts of 24 hours, from the last one back."""
    days: dict[int, list[ServicePeriod]] = {}
    for p in periods:
        days.setdefault((periods[-1].at - p.at) // DAY, []).append(p)
    return [days[number] for number in sorted(days, reverse=True)]


def _reached_twice(values: Sequence[tuple[float, datetime]]) -> float:
    """What two of the days reached, half a day apart at least: one incident around midnight is on two days."""
    pairs = combinations(values, HABIT_DAYS)
    return max((min(one, other) for (one, at), (other, then) in pairs if abs(then - at) >= DAY / 2), default=0.0)
