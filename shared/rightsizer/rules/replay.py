"""Run past days again on a fleet, request by request, without chance: the same days always give the same answer."""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from rightsizer.model.digest import SLOT_S, SLOTS
from rightsizer.model.quantile import quantile
from rightsizer.model.serving import Plan, Served, Stream

PER_HOUR = 3600 // SLOT_S
BUSY_TARGET = 0.7
"""Share of the workers that target tracking keeps busy."""
LAGS = (2, 3, 4)
"""Slots after which added instances serve (alarm, provisioning: ten minutes), and for which they stay."""
WATCH_S = 1800.0
WATCH_REQUESTS, WATCH_LATE, WATCH_SHARE = 5, 3, 0.10
"""The guard of a change: in half an hour at least so many requests, so many of them late, and such a share."""


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
