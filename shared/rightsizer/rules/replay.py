"""Run past days again on a fleet, request by request, without chance: the same days always give the same answer."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.model.digest import SLOT_S, SLOTS, DayDigest
from rightsizer.model.quantile import quantile

GOLDEN = 0.6180339887498949
TABLE = 1024
PER_HOUR = 3600 // SLOT_S
REGIME = 0.5
"""Days with less than this share of the busiest day's requests tell nothing about what must be carried."""
QUANTILES = (1.0, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8)


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of some past days: arrival in seconds from the day's midnight, service in seconds on today's type."""

    days: tuple[tuple[Sequence[float], Sequence[float]], ...]

    @property
    def size(self) -> int:
        """How many requests there are."""
        return sum(len(arrivals) for arrivals, _ in self.days)


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet to serve with."""

    counts: tuple[int, ...]
    """24 instance counts by hour of the day UTC."""
    workers: int
    """Requests that an instance serves at once."""
    random_routing: bool
    slower: float
    """Service time over today's."""
    load: float = 1.0
    """Load over the load seen: a request occupies its worker that much longer, but is not itself slower."""


@dataclass(frozen=True, slots=True)
class Served:
    """What happened to the requests."""

    requests: int
    late: int
    worst_p95_s: float
    """The largest p95 of an hour with at least 20 requests."""


def stream_of(days: Sequence[DayDigest], bins: Sequence[tuple[float, float]], limit: int) -> Stream:
    """Requests of the most recent days, at most about `limit` of them, whole days.

    Arrivals are scattered within their five minutes as independent requests are; the margin of the load covers what
    bunches there are. Service times follow `bins`, (seconds, share) ascending.
    """
    table = _table(bins)
    busiest = max((d.request_count for d in days), default=0.0)
    days = [d for d in days if d.request_count >= REGIME * busiest]
    usual = _usual(days)
    chosen: list[tuple[Sequence[float], Sequence[float]]] = []
    total = 0.0
    for number, digest in enumerate(reversed(days)):
        total += digest.request_count
        if chosen and total > limit:
            break
        chosen.append(_scatter(digest, usual, table, number, min(1.0, limit / max(digest.request_count, 1.0))))
    return Stream(tuple(reversed(chosen)))


def _table(bins: Sequence[tuple[float, float]]) -> list[float]:
    out: list[float] = []
    reached = 0.0
    for value, share in bins:
        reached += share
        out += [value] * (min(round(reached * TABLE), TABLE) - len(out))
    return out + [bins[-1][0]] * (TABLE - len(out))


def _usual(days: Sequence[DayDigest]) -> list[float]:
    """Mean requests of each slot over the days that know it; the mean of all where none does."""
    out: list[float] = []
    known = [v for d in days for v in d.requests if v is not None]
    overall = sum(known) / len(known) if known else 0.0
    for slot in range(SLOTS):
        seen = [v for d in days if (v := d.requests[slot]) is not None]
        out.append(sum(seen) / len(seen) if seen else overall)
    return out


def _scatter(
    digest: DayDigest, usual: Sequence[float], table: Sequence[float], seed: int, keep: float
) -> tuple[list[float], list[float]]:
    """Arrivals and service times of one day. A fixed congruential sequence stands in for chance."""
    state = (seed * 7919 + 12345) & 0x7FFFFFFF
    arrivals: list[float] = []
    carried = 0.0
    for slot in _kept(digest, usual, keep):
        seen = digest.requests[slot]
        carried += usual[slot] if seen is None else seen
        n = int(carried)
        carried -= n
        part = []
        for _ in range(n):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            part.append(SLOT_S * (slot + state / 0x80000000))
        part.sort()
        arrivals += part
    services = [table[int(((k + 1) * GOLDEN % 1.0) * TABLE)] for k in range(len(arrivals))]
    return arrivals, services


def _kept(digest: DayDigest, usual: Sequence[float], keep: float) -> list[int]:
    """All slots, or of each hour its busiest ones, about `keep` of them: a sample errs towards the crowd."""
    if keep >= 1:
        return list(range(SLOTS))
    each = max(1, math.ceil(PER_HOUR * keep))
    counts = [usual[i] if v is None else v for i, v in enumerate(digest.requests)]
    return [
        slot
        for hour in range(0, SLOTS, PER_HOUR)
        for slot in sorted(sorted(range(hour, hour + PER_HOUR), key=lambda i: (-counts[i], i))[:each])
    ]


def serve(stream: Stream, plan: Plan, limit_s: float) -> Served:
    """Serve every request; `late` counts the ones above `limit_s`."""
    late = total = 0
    worst = 0.0
    for arrivals, services in stream.days:
        run = _random if plan.random_routing and max(plan.counts) > 1 else _central
        latencies = run(arrivals, services, plan)
        total += len(latencies)
        late += sum(1 for value in latencies if value > limit_s)
        worst = max(worst, _worst(arrivals, latencies))
    return Served(total, late, worst)


def _worst(arrivals: Sequence[float], latencies: Sequence[float]) -> float:
    by_hour: list[list[float]] = [[] for _ in range(24)]
    for at, value in zip(arrivals, latencies, strict=True):
        by_hour[int(at // 3600)].append(value)
    return max((quantile(sorted(v), 0.95) for v in by_hour if len(v) >= 20), default=max(latencies, default=0.0))


def _central(arrivals: Sequence[float], services: Sequence[float], plan: Plan) -> list[float]:
    """One queue; idle workers leave first when an hour has fewer."""
    counts = [c * plan.workers for c in plan.counts]
    free = [0.0] * counts[0]
    out = []
    slower, busy, now_count = plan.slower, plan.slower * plan.load, counts[0]
    for at, work in zip(arrivals, services, strict=True):
        wanted = counts[int(at // 3600)]
        if wanted != now_count:
            while len(free) < wanted:
                heapq.heappush(free, at)
            while len(free) > wanted:
                heapq.heappop(free)
            now_count = wanted
        start = free[0]
        if start < at:
            start = at
        heapq.heapreplace(free, start + work * busy)
        out.append(start - at + work * slower)
    return out


def _random(arrivals: Sequence[float], services: Sequence[float], plan: Plan) -> list[float]:
    """One queue for each instance, chosen without looking."""
    queues = [[0.0] * plan.workers for _ in range(max(plan.counts))]
    out = []
    state = 99991
    for at, work in zip(arrivals, services, strict=True):
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        free = queues[int(state / 0x80000000 * plan.counts[int(at // 3600)])]
        start = max(free[0], at)
        heapq.heapreplace(free, start + work * plan.slower * plan.load)
        out.append(start - at + work * plan.slower)
    return out


def concurrency(stream: Stream, slower: float) -> tuple[tuple[int, ...], ...]:
    """Requests in service when each request arrives, itself included, were there workers enough; sorted, by hour."""
    by_hour: list[list[int]] = [[] for _ in range(24)]
    for arrivals, services in stream.days:
        leaving: list[float] = []
        for at, work in zip(arrivals, services, strict=True):
            while leaving and leaving[0] <= at:
                heapq.heappop(leaving)
            heapq.heappush(leaving, at + work * slower)
            by_hour[int(at // 3600)].append(len(leaving))
    # An hour borrows from its neighbours: few days make single hours a matter of luck, and slopes begin early.
    return tuple(tuple(sorted(by_hour[h - 1] + by_hour[h] + by_hour[(h + 1) % 24])) for h in range(24))


def hourly_plan(
    levels: Sequence[Sequence[int]], share: float, margin: float, workers: int, most: int
) -> tuple[int, ...]:
    """Counts by hour that hold the `share` quantile of the concurrency, raised by `margin`, at most `most`."""
    counts = []
    for values in levels:
        need = quantile(values, share) * margin / workers if values else 1.0
        counts.append(min(max(int(-(-need // 1)), 1), most))
    return tuple(counts)
