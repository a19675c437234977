"""What the load needs, whatever it runs on."""

from dataclasses import dataclass
from enum import StrEnum


class MemoryClass(StrEnum):
    """What an observed GPU memory says about the need."""

    PREALLOCATED = "pre-allocated"
    """Nothing by itself: the server takes a fixed share of whatever card it gets."""
    STATIC = "static"
    ELASTIC = "elastic"
    UNKNOWN = "unknown"
    """No GPU memory metric."""


@dataclass(frozen=True, slots=True)
class KvPool:
    """The GPU memory that a pre-allocating server keeps for requests, on the day that needed most."""

    gib: float
    """What it took beside the weights."""
    used: float
    """Largest share in use, 0..1."""
    card_gib: float
    """GiB that a card must have, with margin, for each GiB in use: the server takes a share of the card."""


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """GPU memory that one GPU must offer."""

    kind: MemoryClass
    need_gib: float | None
    """With margin, per GPU; None when it cannot be known from outside."""
    lower_gib: float
    """The need is at least this; 0 when nothing is known."""
    peak_gib: float
    """Largest that was held; of a server whose `pool` is known, weights and what of the pool was in use."""
    margin: float
    """1.06 means 6 % above the largest value seen."""
    growing: bool = False
    pool: KvPool | None = None
    """Known where detailed observability shows its use; then a pre-allocating server's need is known too."""


@dataclass(frozen=True, slots=True)
class Load:
    """When the requests come. Rates are per second, planned: a high percentile with a margin."""

    peak_rate: float
    mean_rate: float
    hourly_rate: tuple[float, ...]
    """24 planned rates by hour of the day UTC; the peak in every hour while there are too few days."""
    hourly_known: bool
    peak_busy_gpus: float | None
    """Planned GPUs at work in the busiest hour, of the type that runs now."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Model latency in seconds on the type that runs now."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    squared_variation: float
    """Squared coefficient of variation of the service time."""
    bins: tuple[tuple[float, float], ...] = ()
    """(seconds, share of the requests), ascending: what a limit would cut off."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Everything that a candidate must satisfy."""

    days: float
    """Days with data, fractions counted."""
    valid_share: float
    requests: float
    confidence: float
    load: Load
    latency: Latency | None
    gpu_s_per_request: float | None
    """None with too few requests or without GPU metrics."""
    gpu_share: float
    """Share of the latency that scales with the GPU, 0..1; 1 when unknown."""
    concurrency: float
    """Mean requests in service per GPU while any is."""
    memory: MemoryNeed
    host_memory_gib: float | None
    vcpu: float | None
    cpu_p95: float | None
    gpu_mean: float | None
    gpu_peak: float | None
    gpus_used: int | None
    """GPUs that work, when fewer than there are and known; None when unknown."""
    error_share: float
    silent_days: int
    """Whole latest days without any request, while utilisation was published."""
    backlog: float | None = None
    """Largest backlog of an asynchronous endpoint; None when none was published."""
    host_threads: float | None = None
    """vCPUs that the host's part of one request keeps busy; None without CPU metrics."""
    gpus_seen: bool = False
    """Whether `gpus_used` was counted on single GPUs; else it is a bound from what they publish together."""
    gpu_skew: tuple[float, float] | None = None
    """Mean utilisation of the busiest and of the least busy GPU of an instance, 0..1; None where not seen singly."""
