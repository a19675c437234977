"""One day of one variant, small enough to keep: what remains of CloudWatch's datapoints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from rightsizer.domain.quantile import quantile
from rightsizer.domain.reason import Reason
from rightsizer.errors import InputError

SLOT_S = 300
"""Seconds of a slot. CloudWatch keeps 300 s datapoints for 63 days."""
SLOTS = 86400 // SLOT_S
REGIME = 0.5
"""Days with less than this share of the busiest day's requests tell nothing about what must be carried."""
BIN = 1.02
"""Ratio between the edges of two latency bins: a quantile is known to 2 %."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a utilisation share over the datapoints of a day."""

    p5: float
    p50: float
    p95: float
    p99: float
    peak: float

    @classmethod
    def of(cls, values: Sequence[float], peaks: Sequence[float], divisor: float) -> "Spread | None":
        """Percentages, of `divisor` chips together, as shares of one; None without a datapoint, which NaN marks."""
        ordered = sorted(v for v in values if v == v)
        if not ordered:
            return None
        top = max(max((v for v in peaks if v == v), default=ordered[-1]), ordered[-1])
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
class DayDigest:
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
class UsageDigest:
    """All days kept of one variant, oldest first."""

    endpoint: str
    variant: str
    days: tuple[DayDigest, ...]
    notes: tuple[Reason, ...] = ()
    """What could not be read beside them, and why; the days hold without it."""

    def __iter__(self) -> Iterator[DayDigest]:
        return iter(self.days)


@dataclass(frozen=True, slots=True)
class KeptUsage:
    """What is remembered of one variant between evaluations: the digests of complete days, and which days they are."""

    endpoint: str
    variant: str
    modified_at: datetime
    """When the endpoint was last modified, as the digests were made: a later change asks for a full read."""
    first: date
    """First day that was read; a day without a digest had no datapoint."""
    until: date
    """First day that was not read yet."""
    days: tuple[DayDigest, ...]

    def __post_init__(self) -> None:
        if self.until < self.first:
            raise InputError(f"kept digests of {self.endpoint} end on {self.until}, before their first day")


def busy(days: Sequence[DayDigest]) -> list[DayDigest]:
    """The days that tell what must be carried: those with requests, at least half of the busiest day's."""
    busiest = max((d.request_count for d in days), default=0.0)
    return [d for d in days if d.request_count >= REGIME * busiest]
