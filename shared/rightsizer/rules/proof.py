"""Tell from the requests served whether a change is proven, must go back, or has to be watched on.

An idle endpoint trips no alarm, so time proves nothing: proven means at least 200 requests, or one daily peak with half
the usual requests, served well, and the probation over. Bad means: in any 30 minutes at least 5 bad requests and more
than max(10 %, 3 x baseline) of them; or p95 over the objective; or memory over 97 %.

What was not seen proves nothing (law 1): requests of a period without a latency do not count where latency is
judged, and a read that was refused or came in part waits for the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.model.change import Change, FailureClass
from rightsizer.model.limits import ChangeLimits
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import Verdict
from rightsizer.model.usage import MetricWindow, NoMetrics, Signal, unread

REQUESTS = Signal("Invocations", "Sum")
ERRORS = Signal("Invocation5XXErrors", "Sum")
LATENCY = Signal("ModelLatency", "p95")
HOST_MEMORY = Signal("MemoryUtilization", "Maximum")
GPU_MEMORY = Signal("GPUMemoryUtilization", "Maximum")
MEAN = Signal("ModelLatency", "Average")
PROCESSED = (Signal("InvocationsProcessed", "Sum"), Signal("InvocationsProcesssed", "Sum"))
"""What asynchronous endpoints count instead of requests; AWS's documentation spells one with three s."""
FAILURES = Signal("InvocationFailures", "Sum")
EXPIRED = Signal("ExpiredRequests", "Sum")
"""What went wrong in a queue: the model failed, or the request waited longer than it may (RequestTTLSeconds)."""
SIGNALS = (REQUESTS, ERRORS, LATENCY, HOST_MEMORY, GPU_MEMORY, MEAN)
QUEUED = (*PROCESSED, FAILURES, EXPIRED)
PERIOD_S = 300
WINDOW = 6
"""Periods in the 30 minutes that are judged together."""
BAD_REQUESTS = 5
BAD_SHARE = 0.10
BASELINE_FACTOR = 3.0
SLOW_FACTOR = 2.0
"""Without an objective: p95 above this multiple of the baseline is bad."""
MEMORY_LIMIT = 97.0
ON_TARGET = 0.5
"""Of the instance hours of a fleet with pools, the share that may run elsewhere while the first pool is proven."""
BREACHES = 3
"""Periods of a window that must breach for latency and memory: one slow period is no evidence."""


@dataclass(frozen=True, slots=True)
class _Period:
    at: datetime
    requests: float
    errors: float
    p95_s: float | None
    memory: float | None


def signals(asynchronous: bool) -> tuple[Signal, ...]:
    """What is read of a variant. Asynchronous endpoints publish no `Invocations`, but what left their queue.

    Source: developer guide, async-inference-monitor. Failed downloads of the input and uploads of the answer are not
    read: they tell about buckets, not about the instance.
    """
    return (*SIGNALS, *QUEUED) if asynchronous else SIGNALS


def judge(change: Change, windows: Sequence[MetricWindow | NoMetrics], now: datetime, limits: ChangeLimits) -> Verdict:
    """The verdict on an applied change; `windows` cover the time since it was turned, one a variant. Total."""
    verdict = _judged(change, windows, now, limits)
    return replace(verdict, figures=figures(windows))


def figures(windows: Sequence[MetricWindow | NoMetrics]) -> dict[str, float]:
    """How it serves: ``mean_s`` and ``p95_s`` (medians of the periods), ``gpu_memory_percent`` (largest). Total."""
    found: dict[str, float] = {}
    for name, signal, scale in (
        ("mean_s", MEAN, 1e-6),
        ("p95_s", LATENCY, 1e-6),
        ("gpu_memory_percent", GPU_MEMORY, 1.0),
    ):
        values = sorted(v for w in windows if isinstance(w, MetricWindow) for v in _values(w, signal))
        if values:
            found[name] = scale * (values[-1] if signal is GPU_MEMORY else values[len(values) // 2])
    return found


def _values(window: MetricWindow, signal: Signal) -> Iterator[float]:
    series = window.series.get(signal)
    return (v for v in (series.values if series is not None else ()) if v == v)


def _judged(
    change: Change, windows: Sequence[MetricWindow | NoMetrics], now: datetime, limits: ChangeLimits
) -> Verdict:
    since = change.turned_at or now
    per_variant = [[p for p in _periods(w) if p.at >= since] for w in windows if isinstance(w, MetricWindow)]
    for periods in per_variant:
        bad = _bad(change, periods)
        if bad is not None:
            return bad
    seen = [[p for p in periods if p.p95_s is not None or _limit(change) is None] for periods in per_variant]
    requests = sum(p.requests for periods in seen for p in periods)
    over = now - since >= limits.probation
    elsewhere = _elsewhere(change)
    enough = not elsewhere and (requests >= limits.proof_requests or _peak_served(change, seen))
    hours = (now - since).total_seconds() / 3600
    missed = unread(windows)
    if missed is not None and (now - since < limits.proof_limit):
        text = f"{requests:,.0f} requests were seen in {hours:.1f} h, but not all could be read: {missed.sentence}"
        return Verdict("not-yet", Reason(Code.UNPROVEN, text))
    if missed is not None:
        text = f"not all could be read for {hours / 24:.0f} days: {missed.sentence}; applied, unproven"
        return Verdict("given-up", Reason(Code.UNPROVEN, text))
    if enough and over:
        text = f"{requests:,.0f} requests served well in {hours:.1f} h on {change.option.target.instance_type}"
        return Verdict("proven", Reason(Code.PROVEN, text))
    if not enough and now - since >= limits.proof_limit:
        text = elsewhere or f"only {requests:,.0f} requests in {hours / 24:.0f} days"
        return Verdict("given-up", Reason(Code.UNPROVEN, f"{text}; applied, unproven"))
    missing = elsewhere or f"{limits.proof_requests} are wanted"
    wanted = f"watched for {limits.probation}" if enough else missing
    return Verdict("not-yet", Reason(Code.UNPROVEN, f"{requests:,.0f} requests served well in {hours:.1f} h; {wanted}"))


def _elsewhere(change: Change) -> str:
    """Why served requests prove nothing about the new type: most hours ran on another pool. Empty where they do not."""
    if change.off_target <= ON_TARGET:
        return ""
    kind = change.option.target.instance_type
    hours = change.fallback_hours + change.unseen_hours
    return f"{hours:.1f} of {change.instance_hours:.1f} instance hours are not known to have run on {kind}"


def _limit(change: Change) -> float | None:
    """The p95 that must be kept, seconds: the objective, or a multiple of what was usual; None if unknown."""
    if change.option.restores:
        return None  # going back to what was slow would help nobody
    usual = change.baseline.get("p95_s", 0.0)
    return change.objective_p95_s or (SLOW_FACTOR * usual if usual > 0 else None)


def _peak_served(change: Change, per_variant: Sequence[Sequence[_Period]]) -> bool:
    """Whether one hour had half the requests of the usual daily peak hour, on an endpoint with few requests."""
    usual = change.baseline.get("peak_hour_requests", 0.0)
    if usual <= 0:
        return False
    by_hour: dict[datetime, float] = {}
    for periods in per_variant:
        for p in periods:
            hour = p.at.replace(minute=0, second=0, microsecond=0)
            by_hour[hour] = by_hour.get(hour, 0.0) + p.requests
    return max(by_hour.values(), default=0.0) >= usual / 2


def _bad(change: Change, periods: Sequence[_Period]) -> Verdict | None:
    for start in range(len(periods)):
        window = periods[start : start + WINDOW]
        verdict = _errors(change, window) or _slow(change, window) or _memory(window)
        if verdict is not None:
            return verdict
    return None


def _errors(change: Change, window: Sequence[_Period]) -> Verdict | None:
    requests, errors = sum(p.requests for p in window), sum(p.errors for p in window)
    limit = max(BAD_SHARE, BASELINE_FACTOR * change.baseline.get("error_share", 0.0))
    if errors < BAD_REQUESTS or errors <= limit * max(requests, errors):
        return None
    text = f"{errors:.0f} of {requests:.0f} requests failed within 30 minutes from {window[0].at:%Y-%m-%d %H:%M} UTC"
    return Verdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def _slow(change: Change, window: Sequence[_Period]) -> Verdict | None:
    limit = _limit(change)
    if limit is None:
        return None
    slow = [p.p95_s for p in window if p.p95_s is not None and p.requests >= 1 and p.p95_s > limit]
    if len(slow) < BREACHES or sum(p.requests for p in window) < BAD_REQUESTS:
        return None
    kind = "objective" if change.objective_p95_s else "bound, twice the p95 of before,"
    share = f"{len(slow)} of {len(window)} periods"
    text = f"p95 was {max(slow) * 1000:.0f} ms in {share}; the {kind} is {limit * 1000:.0f} ms"
    return Verdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def _memory(window: Sequence[_Period]) -> Verdict | None:
    high = [p.memory for p in window if p.memory is not None and p.memory > MEMORY_LIMIT]
    if len(high) < BREACHES:
        return None
    text = f"memory was at {max(high):.0f} % in {len(high)} of {len(window)} periods; the limit is {MEMORY_LIMIT:.0f} %"
    return Verdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.MEMORY)


def _periods(window: MetricWindow) -> Iterator[_Period]:
    """One row a period. A gap in the requests counts as none served, which proves nothing and harms nothing."""
    series = {signal: window.series.get(signal) for signal in (*SIGNALS, *QUEUED)}
    longest = max((len(s.values) for s in series.values() if s is not None), default=0)

    def at(signal: Signal, i: int) -> float | None:
        s = series[signal]
        if s is None or i >= len(s.values) or s.values[i] != s.values[i]:
            return None
        return s.values[i]

    for i in range(longest):
        latency = at(LATENCY, i)
        yield _Period(
            at=window.start + timedelta(seconds=window.period_s * i),
            requests=max(at(signal, i) or 0.0 for signal in (REQUESTS, *PROCESSED)),
            errors=max(at(ERRORS, i) or 0.0, at(FAILURES, i) or 0.0) + (at(EXPIRED, i) or 0.0),
            p95_s=None if latency is None else latency / 1_000_000,
            memory=at(HOST_MEMORY, i),
        )


def baseline(windows: Sequence[MetricWindow | NoMetrics]) -> dict[str, float]:
    """What was usual: ``peak_hour_requests``, ``p95_s`` (median), ``error_share``, ``errors_per_minute``.

    Empty when nothing was published; then only absolute limits hold.
    """
    rows = [p for w in windows if isinstance(w, MetricWindow) for p in _periods(w)]
    requests, errors = sum(p.requests for p in rows), sum(p.errors for p in rows)
    found: dict[str, float] = {}
    by_day: dict[datetime, dict[datetime, float]] = {}
    for p in rows:
        hour = p.at.replace(minute=0, second=0, microsecond=0)
        hours = by_day.setdefault(hour.replace(hour=0), {})
        hours[hour] = hours.get(hour, 0.0) + p.requests
    peaks = sorted(max(hours.values()) for hours in by_day.values())
    if requests > 0:
        found["peak_hour_requests"] = peaks[len(peaks) // 2]
        found["error_share"] = errors / requests
        found["errors_per_minute"] = max((p.errors for p in rows), default=0.0) * 60 / PERIOD_S
    latencies = sorted(p.p95_s for p in rows if p.p95_s is not None)
    if latencies:
        found["p95_s"] = latencies[len(latencies) // 2]
    mean = figures(windows).get("mean_s")
    return found | ({"mean_s": mean} if mean else {})
