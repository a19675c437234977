"""Demand of the load on any hardware, its peak, and the service of a fleet on past days."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rightsizer.domain.schedule import DayCounts

SPEAKS_FOR = 10
"""Requests that one request of the heaviest slots stands for, at most."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The busiest hour of the day (UTC) and its usual weekdays (Monday is 0)."""

    hour: int
    weekdays: tuple[int, ...]
    """Never empty. A weekday that was not seen counts as one like the others."""


class MemoryClass(StrEnum):
    """Meaning of an observed GPU memory for the need."""

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
    leak_gib: float = 0.0
    """GiB by which it grows a day, where nearly every day held more than the day before; else 0."""
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
    weekly_growth: float = 1.0
    """Requests of a day over those of the same weekday a week before, where they grow; else 1."""


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
class RefusedShares:
    """Shares of the requests that were answered by 4XX."""

    of_all: float = 0.0
    busy: float = 0.0
    """While at least half of a day's most requests came."""
    quiet: float | None = None
    """While less came; None where too few came then to tell."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Everything that a candidate must satisfy."""

    days: float
    """Days with data, fractions counted."""
    valid_share: float
    requests: float
    confidence: float
    """Days' worth of evidence: the lesser of days with requests and of hours with data, however few the requests."""
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
    oldest_request_s: float | None = None
    """Longest that a request waited in that queue, seconds; None when it was not published."""
    expired: float = 0.0
    """Requests that expired in that queue."""
    expiry_s: float | None = None
    """On the days with expired requests, the shortest of the longest waits: some expired no later; None without any."""
    host_threads: float | None = None
    """vCPUs that the host's part of one request keeps busy; None without CPU metrics."""
    gpus_seen: bool = False
    """Whether `gpus_used` was counted on single GPUs; else it is a bound from what they publish together."""
    gpu_skew: tuple[float, float] | None = None
    """Mean utilisation of the busiest and of the least busy GPU of an instance, 0..1; None where not seen singly."""
    unseen_hours: float = 0.0
    """Hours up to now without any GPU datapoint, of those that are complete and in which it was not stopped by us."""
    unseen_instances: float = 0.0
    """Instances of a fleet of fixed size that published nothing on the last two complete days, at the least."""
    refused: RefusedShares = RefusedShares()
    failed_lately: float = 0.0
    """What failed of the requests of the last two days, where ten or more did; else 0."""
    overhead_s: float = 0.0
    """Mean of what passes around the model of a request (OverheadLatency), seconds; 0 where it is not known."""
    uncounted: bool = False
    """Whether requests were answered that nobody counted: a latency was published, and no `Invocations` with it."""

    @property
    def told_silent_days(self) -> int:
        """Silent days for a sentence: no more than were seen, since the first and last are partial."""
        return min(self.silent_days, math.ceil(self.days))


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of some past days: arrival in seconds from the day's midnight, service in seconds on today's type."""

    days: tuple[tuple[Sequence[float], Sequence[float]], ...]
    slots: tuple[tuple[Sequence[float], Sequence[float]], ...] = ()
    """Of each day the requests and the seconds of service of all its five-minute slots; () where unknown."""
    whole: bool = True
    """Whether every request is there; of busy endpoints only the heaviest slots of each hour are kept."""
    copies: int = 1
    """Times that each day is there, with other chance: few requests alone would prove a fleet by luck."""

    @property
    def size(self) -> int:
        """How many requests there are to serve."""
        return sum(len(arrivals) for arrivals, _ in self.days)

    @property
    def requests(self) -> int:
        """How many requests those that are kept speak for: lighter slots have fewer late ones, not none."""
        return self.size if self.whole else min(round(sum(sum(c) for c, _ in self.slots)), SPEAKS_FOR * self.size)


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet to serve with."""

    counts: tuple[int, ...]
    """24 instance counts by hour of the day UTC."""
    workers: int
    """Requests that an instance serves at once."""
    random_routing: bool
    slower: float
    """Service time over today's."""
    load: float = 1.0
    """Factor on the observed load: a request occupies its worker that much longer, but is not itself slower."""
    maximum: int = 0
    """Instances up to which target tracking adds to the counts; 0 without autoscaling."""
    busy: float | None = None
    """Share of its workers that target tracking keeps busy; None: as the policies that are added."""
    day_counts: tuple[DayCounts, ...] = ()
    """Counts of each class of days where days of the week differ; `counts` are then the most of each hour."""

    def on(self, weekday: int) -> "Fleet":
        """The fleet as it is on a day of the week (Monday is 0)."""
        own = next((counts.counts for counts in self.day_counts if weekday in counts.weekdays), self.counts)
        return replace(self, counts=own, day_counts=()) if self.day_counts else self

    @property
    def mean_count(self) -> float:
        """Instances on average over the hours of the week, without what autoscaling adds."""
        classes = self.day_counts or (DayCounts((0,), self.counts),)
        hours = sum(len(counts.weekdays) * len(counts.counts) for counts in classes)
        return sum(len(counts.weekdays) * sum(counts.counts) for counts in classes) / hours


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Result of a replay: late requests, worst p95, and the instances used."""

    requests: int
    late: int
    worst_p95_s: float
    """The largest p95 of an hour with at least 20 requests."""
    rings_alarm: int = 0
    """Days on which the guard of a change would have rung."""
    mean_instances: float = 0.0
    """Instances on average, what autoscaling added included."""
    late_in_backlog: int = 0
    """Of the late ones those that a backlog over whole slots makes late; counted over every request, kept or not."""
    p95_s: float = 0.0
    """The p95 of all requests that were served, waiting included; 0 without one."""
