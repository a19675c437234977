"""What is read of an endpoint that is watched, period by period, and what was usual before the change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.domain.usage import MetricWindow, NoMetrics, Signal

REQUESTS = Signal("Invocations", "Sum")
ERRORS = Signal("Invocation5XXErrors", "Sum")
LATENCY = Signal("ModelLatency", "p95")
HOST_MEMORY = Signal("MemoryUtilization", "Maximum")
GPU_MEMORY = Signal("GPUMemoryUtilization", "Maximum")
MEAN = Signal("ModelLatency", "Average")
GPU = Signal("GPUUtilization", "Sum")
"""Over all samples of all instances: over the requests it compares types whatever the count is."""
PROCESSED = (Signal("InvocationsProcessed", "Sum"), Signal("InvocationsProcesssed", "Sum"))
"""What asynchronous endpoints count instead of requests; AWS's documentation spells one with three s."""
FAILURES = Signal("InvocationFailures", "Sum")
EXPIRED = Signal("ExpiredRequests", "Sum")
"""What went wrong in a queue: the model failed, or the request waited longer than it may (RequestTTLSeconds)."""
BACKLOG = Signal("ApproximateBacklogSize", "Average")
"""Requests that wait in the queue of the endpoint (dimension EndpointName alone); sampled each minute."""
SIGNALS = (REQUESTS, ERRORS, LATENCY, HOST_MEMORY, GPU_MEMORY, MEAN, GPU)
QUEUED = (*PROCESSED, FAILURES, EXPIRED, BACKLOG)
PERIOD_S = 300
SAMPLE_S = 60
"""Seconds of a sample of utilisation, unless MetricPublishFrequencyInSeconds says otherwise."""
PEAK = "peak_hour_requests"

type Windows = Sequence[MetricWindow | NoMetrics]


@dataclass(frozen=True, slots=True)
class Period:
    """What one variant served within five minutes."""

    at: datetime
    requests: float
    errors: float
    p95_s: float | None
    memory: float | None
    backlog: float | None = None
    """Requests that waited in the queue, on average."""


def signals(asynchronous: bool) -> tuple[Signal, ...]:
    """What is read of a variant. Asynchronous endpoints publish no `Invocations`, but what left their queue.

    Source: developer guide, async-inference-monitor. Failed downloads of the input and uploads of the answer are not
    read: they tell about buckets, not about the instance.
    """
    return (*SIGNALS, *QUEUED) if asynchronous else SIGNALS


def figures(windows: Windows) -> dict[str, float]:
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
    work = [pair for w in windows if isinstance(w, MetricWindow) for pair in _work(w)]
    calls = sum(count for _, count in work)
    if calls > 0:
        found |= {"gpu_requests": calls, "gpu_s": SAMPLE_S / 100 * sum(percent for percent, _ in work) / calls}
    return found


def _work(window: MetricWindow) -> Iterator[tuple[float, float]]:
    """(percent of GPUs, requests) of each period that has both."""
    calls, percent = window.series.get(REQUESTS), window.series.get(GPU)
    if calls is None or percent is None:
        return iter(())
    pairs = zip(percent.values, calls.values, strict=False)
    return ((value, count) for value, count in pairs if value == value and count == count)


def _values(window: MetricWindow, signal: Signal) -> Iterator[float]:
    series = window.series.get(signal)
    return (v for v in (series.values if series is not None else ()) if v == v)


def by_hour(rows: Sequence[Period]) -> dict[datetime, float]:
    """Requests by the hour in which they were served."""
    found: dict[datetime, float] = {}
    for p in rows:
        hour = p.at.replace(minute=0, second=0, microsecond=0)
        found[hour] = found.get(hour, 0.0) + p.requests
    return found


def periods(window: MetricWindow) -> Iterator[Period]:
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
        yield Period(
            at=window.start + timedelta(seconds=window.period_s * i),
            requests=max(at(signal, i) or 0.0 for signal in (REQUESTS, *PROCESSED)),
            errors=max(at(ERRORS, i) or 0.0, at(FAILURES, i) or 0.0) + (at(EXPIRED, i) or 0.0),
            p95_s=None if latency is None else latency / 1_000_000,
            memory=at(HOST_MEMORY, i),
            backlog=at(BACKLOG, i),
        )
