"""Traffic with a memory: one model of a workload writes an endpoint's past and answers for its future.

What a workload does to a GPU is physics of our own making: a request takes a GPU share and a host share of time, the
GPU share grows with the ratio of speeds, the queue with the load. Speeds come from the packaged catalogue. No outside
trace is needed, and the same seed gives the same account.
"""

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Catalogue, InstanceType
from sandbox.account import Sandbox
from sandbox.sagemaker.enhanced import enhanced, gpus_of
from sandbox.sagemaker.load import Served

PERIOD = 300
DAYS = 14

type Shape = Callable[[datetime], float]
"""Requests per minute at a moment, before noise."""


@cache
def hardware() -> Catalogue:
    """The packaged catalogue."""
    return catalogue(catalog.instances(), catalog.accelerators())


@cache
def office_hours(peak: float, night: float = 0.05, weekend: float = 0.3) -> Shape:
    """A weekday curve with its top at 14:00 UTC."""

    def shape(at: datetime) -> float:
        hour = at.hour + at.minute / 60
        day = math.exp(-((hour - 14) ** 2) / 18)
        return peak * max(night, day) * (weekend if at.weekday() >= 5 else 1.0)

    return shape


@cache
def around_the_clock(level: float, swing: float = 0.4) -> Shape:
    """A wave over the day that never stops, as of users all over the world."""
    return lambda at: level * (1 + swing * math.sin((at.hour + at.minute / 60) / 24 * 2 * math.pi))


@cache
def bursts(peak: float, every_hours: int = 6, minutes: int = 20) -> Shape:
    """Batches: full load for some minutes every few hours, nearly nothing between."""
    return lambda at: peak if at.hour % every_hours == 0 and at.minute < minutes else 0.2


@cache
def month_end(level: float, factor: float = 6.0) -> Shape:
    """Quiet but for the last three days of a month."""
    return lambda at: level * (factor if (at + timedelta(days=3)).month != at.month else 1.0)


@cache
def nothing() -> Shape:
    """No request at all."""
    return lambda _: 0.0


def _noise(seed: int, at: datetime) -> float:
    """Between -1.7 and 1.7, of variance one, the same for the same moment: splitmix64 of seed and second."""
    mixed = (int(at.timestamp()) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return ((mixed ^ (mixed >> 31)) / 2**64 - 0.5) * math.sqrt(12)


@dataclass(frozen=True, slots=True)
class Workload:
    """A model behind an endpoint, as measured on its home type."""

    shape: Shape
    home: str
    """Instance type on which the times below were taken."""
    gpu_s: float = 0.05
    """GPU seconds of one request."""
    host_s: float = 0.02
    compute_share: float = 0.5
    """How much of the GPU time is arithmetic; the rest is memory traffic."""
    gpu_memory_gib: float = 6.0
    """Per GPU; ignored when `preallocates`."""
    preallocates: bool = False
    gpus_used: int = 1
    host_memory_gib: float = 8.0
    cpu_cores: float = 1.0
    """Cores busy while a request is served."""
    starves_below_vcpu: int = 0
    """Below this many vCPUs every request takes four times as long: what no metric of the old fleet shows."""
    seed: int = 1

    def slowdown(self, kind: InstanceType) -> float:
        """GPU time on `kind` relative to the home type."""
        home = hardware().types[self.home].accelerator
        if kind.accelerator is None or home is None:
            return 20.0
        compute = home.fp16_tflops / kind.accelerator.fp16_tflops
        traffic = home.memory_bandwidth_gbps / kind.accelerator.memory_bandwidth_gbps
        return self.compute_share * compute + (1 - self.compute_share) * traffic

    def requests(self, at: datetime, minutes: float) -> int:
        """Requests in the period that begins at `at`: Poisson-like around the shape, the same for the same moment."""
        mean = self.shape(at) * minutes
        return max(0, round(mean + _noise(self.seed, at) * math.sqrt(mean)))

    def served(self, at: datetime, instance_type: str, count: int, minutes: float = 1.0) -> Served:
        """What a fleet of `count` instances does with the period's requests."""
        kind = hardware().types[instance_type]
        requests = self.requests(at, minutes)
        gpu_s = self.gpu_s * self.slowdown(kind)
        starved = 4.0 if kind.vcpu < self.starves_below_vcpu else 1.0
        workers = count * min(self.gpus_used, max(1, kind.accelerator_count))
        busy = min(1.0, requests * gpu_s / (workers * minutes * 60))
        alone_s = (gpu_s + self.host_s) * starved
        median_ms = 1000 * alone_s * (1 + busy**2 / (2 * max(0.05, 1 - busy)))
        wobble = 1 + 0.015 * _noise(self.seed + 1000, at)
        cores = requests * self.cpu_cores * alone_s / (count * minutes * 60)
        per_gpu = self._memory_share(kind, wobble)
        used = min(self.gpus_used, max(1, kind.accelerator_count))
        return Served(
            requests=requests,
            latency_ms=median_ms * wobble,
            gpu=100 * busy * used,
            gpu_memory=100 * per_gpu * used,
            each_gpu=tuple(1 / used if n < used else 0.0 for n in range(kind.accelerator_count)),
            cpu=min(100.0 * kind.vcpu, 100 * cores + 3),
            memory=min(99.0, 100 * self.host_memory_gib * wobble / kind.memory_gib),
        )

    def _memory_share(self, kind: InstanceType, wobble: float) -> float:
        if kind.accelerator is None:
            return 0.0
        if self.preallocates:
            return 0.9
        return min(1.0, self.gpu_memory_gib * (0.98 + 0.02 * wobble) / kind.accelerator.memory_gib)


@lru_cache(16)
def _past(work: Workload, kind: str, count: int, start: datetime, periods: int) -> tuple[Served, ...]:
    """What a fleet did in each period: accounts of the same day begin with the same past."""
    return tuple(work.served(at, kind, count, PERIOD / 60) for at in _moments(start, periods))


def _moments(start: datetime, periods: int) -> list[datetime]:
    return [start + timedelta(seconds=PERIOD * i) for i in range(periods)]


def write_past(
    box: Sandbox,
    endpoint: str,
    work: Workload,
    count: int = 1,
    *,
    variant: str = "AllTraffic",
    days: float = DAYS,
    gap: tuple[float, float] | None = None,
    without: frozenset[str] = frozenset(),
    kind: str = "",
    end: datetime | None = None,
) -> None:
    """Write `days` of five-minute metrics up to `end`, which is now unless told.

    `gap` (from, to in hours before the end) has no datapoints at all. `kind`: the instance type that served; empty:
    the one on which the workload was measured.
    """
    end = datetime.fromtimestamp((end or box.clock.now).timestamp() // PERIOD * PERIOD, box.clock.now.tzinfo)
    start = end - timedelta(days=days)
    moments = _moments(start, int(days * 86400 / PERIOD))
    rows = _past(work, kind or work.home, count, start, len(moments))
    kept = [1.0] * len(rows)
    if gap:
        edge = [end - timedelta(hours=hours) for hours in gap]
        kept = [math.nan if edge[0] <= at < edge[1] else 1.0 for at in moments]
    calls = [row.requests * keep for row, keep in zip(rows, kept, strict=True)]
    latency = [row.latency_ms * 1000 if row.requests else math.nan for row in rows]
    columns: Mapping[str, list[float]] = {
        "GPUUtilization": [row.gpu or 0.0 for row in rows],
        "GPUMemoryUtilization": [row.gpu_memory or 0.0 for row in rows],
        "CPUUtilization": [row.cpu for row in rows],
        "MemoryUtilization": [row.memory for row in rows],
    }
    samples = float(PERIOD / 60 * count)
    for metric in sorted(set(columns) - without):
        values = array("d", (v * keep for v, keep in zip(columns[metric], kept, strict=True)))
        peaks = array("d", (v * 1.15 if metric == "GPUUtilization" else v for v in values))
        box.put_series(endpoint, variant, metric, start, PERIOD, values, samples=samples, maximum=peaks)
        _write_each_gpu(box, (endpoint, variant, metric), start, count, rows[0].each_gpu, values)
    if "Invocations" not in without:
        _write_requests(
            box, (endpoint, variant), start, calls, [v * keep for v, keep in zip(latency, kept, strict=True)]
        )


def _write_requests(
    box: Sandbox, of: tuple[str, str], start: datetime, calls: Sequence[float], latency: Sequence[float]
) -> None:
    """Calls, errors and latency (microseconds) of each period."""
    endpoint, variant = of
    box.put_series(endpoint, variant, "Invocations", start, PERIOD, calls)
    box.put_series(endpoint, variant, "Invocation5XXErrors", start, PERIOD, [c * 0 for c in calls])
    micros = array("d", (v * 1.1 for v in latency))
    times = {"p50": 1.0, "p90": 1.6, "p95": 2.0, "p99": 3.0}
    box.put_series(
        endpoint,
        variant,
        "ModelLatency",
        start,
        PERIOD,
        micros,
        samples=[c if c == c else 0.0 for c in calls],
        percentiles={name: array("d", (v / 1.1 * factor for v in micros)) for name, factor in times.items()},
    )


def _write_each_gpu(
    box: Sandbox,
    of: tuple[str, str, str],
    start: datetime,
    count: int,
    shares: Sequence[float],
    values: Sequence[float],
) -> None:
    """The part of each GPU of the fleet, where the configuration has enhanced metrics."""
    endpoint, variant, metric = of
    if not metric.startswith("GPU") or not enhanced(box.world.fleet, box.config_name(endpoint)):
        return
    for gpu, beside in gpus_of(endpoint, count, len(shares)):
        own = [value * shares[gpu] for value in values]
        box.put_series(endpoint, variant, metric, start, PERIOD, own, samples=PERIOD / 60, dimensions=beside)
