"""Run past days again on a fleet, request by request, without chance: the same days always give the same answer."""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.model.digest import SLOT_S, SLOTS, DayDigest
from rightsizer.model.quantile import quantile

HEAVY = 10
TABLE = 1024
PER_HOUR = 3600 // SLOT_S
REGIME = 0.5
"""Days with less than this share of the busiest day's requests tell nothing about what must be carried."""
BUSY_TARGET = 0.7
"""Share of the workers that target tracking keeps busy."""
LAGS = (2, 3, 4)
"""Slots after which added instances serve (alarm, provisioning: ten minutes), and for which they stay."""
WATCH_S = 1800.0
WATCH_REQUESTS, WATCH_LATE, WATCH_SHARE = 5, 3, 0.10
"""The guard of a change: in half an hour at least so many requests, so many of them late, and such a share."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of some past days: arrival in seconds from the day's midnight, service in seconds on today's type."""

    days: tuple[tuple[Sequence[float], Sequence[float]], ...]
    whole: bool = True
    """Whether the days are complete; of very busy ones only some slots are kept."""

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
    maximum: int = 0
    """Instances up to which target tracking adds to the counts; 0 without autoscaling."""


@dataclass(frozen=True, slots=True)
class Served:
    """What happened to the requests."""

    requests: int
    late: int
    worst_p95_s: float
    """The largest p95 of an hour with at least 20 requests."""
    rung: int = 0
    """Days on which the guard of a change would have rung."""
    mean_instances: float = 0.0
    """Instances on average, what autoscaling added included."""


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
    return Stream(tuple(reversed(chosen)), whole=bool(days) and days[-1].request_count <= limit)


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
    work = _work(digest)
    services = []
    for at in arrivals:
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        services.append(table[int(state / 0x80000000 * TABLE)] * work[int(at // 3600)])
    return arrivals, services


def _work(digest: DayDigest) -> list[float]:
    """GPU seconds of a request in each hour over those of the day: heavy requests come together.

    1 where it is unknown, or known from fewer than HEAVY requests.
    """
    work, calls = [0.0] * 24, [0.0] * 24
    for slot, (busy, count) in enumerate(zip(digest.busy_s, digest.requests, strict=True)):
        if busy is not None and count is not None:
            work[slot // PER_HOUR] += busy
            calls[slot // PER_HOUR] += count
    mean = sum(work) / sum(calls) if sum(calls) > 0 else 0.0
    return [w / c / mean if c >= HEAVY and w > 0 and mean > 0 else 1.0 for w, c in zip(work, calls, strict=True)]


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


def serve(stream: Stream, plan: Plan, limit_s: float, usual: float = 0.0) -> Served:
    """Serve every request; `late` counts the ones above `limit_s`, `usual` is the share of them today."""
    late = total = rung = 0
    worst = instances = 0.0
    for arrivals, services in stream.days:
        slots = _slots(arrivals, services, plan, stream.whole)
        run = _random if plan.random_routing and max(slots) > 1 else _central
        latencies = run(arrivals, services, plan, slots)
        total += len(latencies)
        over = [at for at, value in zip(arrivals, latencies, strict=True) if value > limit_s]
        late += len(over)
        rung += len(over) >= WATCH_LATE and _rings(arrivals, over, max(WATCH_SHARE, 3 * usual))
        worst = max(worst, _worst(arrivals, latencies))
        instances += sum(slots) / SLOTS
    return Served(total, late, worst, rung, instances / max(len(stream.days), 1))


def _slots(arrivals: Sequence[float], services: Sequence[float], plan: Plan, whole: bool) -> list[int]:
    """Instances of each slot: the counts by hour, raised by target tracking where it is on."""
    counts = [count for count in plan.counts for _ in range(PER_HOUR)]
    if not whole or plan.maximum <= min(counts):
        return counts
    busy = [0.0] * SLOTS
    for at, work in zip(arrivals, services, strict=True):
        busy[int(at // SLOT_S)] += work
    factor = plan.slower * plan.load / (SLOT_S * BUSY_TARGET * plan.workers)
    for slot in range(LAGS[0], SLOTS):
        seen = max(busy[max(slot - LAGS[-1], 0) : slot - LAGS[0] + 1])
        wanted = min(math.ceil(seen * factor - 1e-9), plan.maximum)
        if wanted > counts[slot]:
            counts[slot] = wanted
    return counts


def _rings(arrivals: Sequence[float], over: Sequence[float], share: float) -> bool:
    """Whether half an hour has so many late requests that the guard would bring the old configuration back."""
    for number in range(WATCH_LATE - 1, len(over)):
        at = over[number]
        late = number + 1 - bisect_left(over, at - WATCH_S)
        seen = bisect_right(arrivals, at) - bisect_left(arrivals, at - WATCH_S)
        if late >= WATCH_LATE and seen >= WATCH_REQUESTS and late > share * seen:
            return True
    return False


def _worst(arrivals: Sequence[float], latencies: Sequence[float]) -> float:
    by_hour: list[list[float]] = [[] for _ in range(24)]
    for at, value in zip(arrivals, latencies, strict=True):
        by_hour[int(at // 3600)].append(value)
    return max((quantile(sorted(v), 0.95) for v in by_hour if len(v) >= 20), default=max(latencies, default=0.0))


def _central(arrivals: Sequence[float], services: Sequence[float], plan: Plan, slots: Sequence[int]) -> list[float]:
    """One queue; idle workers leave first when an hour has fewer."""
    counts = [c * plan.workers for c in slots]
    free = [0.0] * counts[0]
    out = []
    slower, busy, now_count = plan.slower, plan.slower * plan.load, counts[0]
    for at, work in zip(arrivals, services, strict=True):
        wanted = counts[int(at // SLOT_S)]
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


def _random(arrivals: Sequence[float], services: Sequence[float], plan: Plan, slots: Sequence[int]) -> list[float]:
    """One queue for each instance, chosen without looking."""
    queues = [[0.0] * plan.workers for _ in range(max(slots))]
    out = []
    state = 99991
    for at, work in zip(arrivals, services, strict=True):
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        free = queues[int(state / 0x80000000 * slots[int(at // SLOT_S)])]
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
