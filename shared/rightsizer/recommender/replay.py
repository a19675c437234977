"""Run past days again on a fleet, request by request, without chance: the same days always give the same answer.

The strain is what they would have meant for an option: its load hour by hour, and what came too late.
"""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from rightsizer.domain.demand import Plan, Served, Stream
from rightsizer.domain.recommendation import Replay
from rightsizer.domain.usage import SLOT_S, SLOTS, DayDigest, quantile

PER_HOUR = 3600 // SLOT_S
BUSY_TARGET = 0.7
"""Share of the workers that target tracking keeps busy."""
LAGS = (2, 3, 4)
"""Slots after which added instances serve (alarm, provisioning: ten minutes), and for which they stay."""
ENOUGH = 100
"""Requests of an hour and its neighbours from which they have a level of their own."""
FARTHEST = 4
"""Hours on either side that an hour of few requests borrows from; more only where the whole day has few."""
WATCH_S = 1800.0
WATCH_REQUESTS, WATCH_LATE, WATCH_SHARE = 5, 3, 0.10
"""The guard of a change: in half an hour at least so many requests, so many of them late, and such a share."""


def serve(stream: Stream, plan: Plan, limit_s: float, usual: float = 0.0) -> Served:
    """Serve every request; `late` counts the ones above `limit_s`, `usual` is the share of them today."""
    late = rung = drowned = 0
    worst = instances = 0.0
    for number, (arrivals, services) in enumerate(stream.days):
        work = stream.slots[number][1] if stream.slots else _tallied(arrivals, services)
        slots = _slots(work, plan)
        drowned += 0 if stream.whole else _drowned(stream, number, plan, slots, limit_s)
        run = _random if plan.random_routing and max(slots) > 1 else _central
        latencies = run(arrivals, services, plan, slots)
        over = [at for at, value in zip(arrivals, latencies, strict=True) if value > limit_s]
        late += len(over)
        rung += len(over) >= WATCH_LATE and _rings(arrivals, over, max(WATCH_SHARE, 3 * usual))
        worst = max(worst, _worst(arrivals, latencies))
        instances += sum(slots) / SLOTS
    late += drowned
    return Served(stream.requests, late, worst, rung, instances / max(len(stream.days), 1), drowned)


def _tallied(arrivals: Sequence[float], services: Sequence[float]) -> list[float]:
    """Seconds of service of each slot."""
    work = [0.0] * SLOTS
    for at, seconds in zip(arrivals, services, strict=True):
        work[int(at // SLOT_S)] += seconds
    return work


def _slots(work: Sequence[float], plan: Plan) -> list[int]:
    """Instances of each slot: the counts by hour, raised by target tracking where it is on."""
    counts = [count for count in plan.counts for _ in range(PER_HOUR)]
    if plan.maximum <= min(counts):
        return counts
    factor = plan.slower / (SLOT_S * BUSY_TARGET * plan.workers)
    for slot in range(LAGS[0], SLOTS):
        seen = max(work[max(slot - LAGS[-1], 0) : slot - LAGS[0] + 1])
        wanted = min(math.ceil(seen * factor - 1e-9), plan.maximum)
        if wanted > counts[slot]:
            counts[slot] = wanted
    return counts


def _drowned(stream: Stream, number: int, plan: Plan, slots: Sequence[int], limit_s: float) -> int:
    """Requests of slots that a backlog makes late: of a crowd that lasts for longer than what is kept of it."""
    calls, work = stream.slots[number]
    total = sum(calls)
    usual = sum(work) / total * plan.slower if total > 0 else 0.0
    backlog = late = 0.0
    for n, seconds, count in zip(calls, work, slots, strict=True):
        room = SLOT_S * plan.workers * count
        backlog = max(backlog + seconds * plan.slower * plan.load - room, 0.0)
        if backlog * SLOT_S / room + usual > limit_s:
            late += n
    return round(late)


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
    near = _near(by_hour, ENOUGH * stream.copies)
    return tuple(tuple(sorted(level for other in hours for level in by_hour[other])) for hours in near)


def _near(by_hour: Sequence[Sequence[int]], enough: int) -> list[set[int]]:
    """The hours that each hour borrows from: the two beside it, and further ones until there are requests enough.

    Slopes begin early, and an hour of few requests is a matter of luck: one burst in the night needs what ten quiet
    nights did not. The quieter side is asked first, so that a night does not take the count of the morning.
    """
    calls = [len(levels) for levels in by_hour]
    farthest = min(max(math.ceil((24 * enough / max(sum(calls), 1) - 1) / 2), FARTHEST), 12)
    out = []
    for hour in range(24):
        near = {(hour + far) % 24 for far in (-1, 0, 1)}
        before, after = 1, 1
        while sum(calls[h] for h in near) < enough and before + after < 2 * farthest:
            left, right = (hour - before - 1) % 24, (hour + after + 1) % 24
            if after == farthest or (before < farthest and calls[left] <= calls[right]):
                near.add(left)
                before += 1
            else:
                near.add(right)
                after += 1
        out.append(near)
    return out


def hourly_plan(
    levels: Sequence[Sequence[int]], share: float, margin: float, workers: int, most: int
) -> tuple[int, ...]:
    """Counts by hour that hold the `share` quantile of the concurrency with room to grow, at most `most`.

    The busiest hour's room is `margin` times its need; a quieter hour's shrinks with the square root of its need, for
    chance weighs more where few are served at once (square-root staffing: Halfin and Whitt 1981).
    """
    need = [quantile(values, share) / workers if values else 1.0 for values in levels]
    top = max(need)
    room = [(margin - 1) * (math.sqrt(level * top) - level) for level in need]
    return tuple(min(max(math.ceil(n + r - 1e-9), 1), most) for n, r in zip(need, room, strict=True))


def strain_of(
    days: Sequence[DayDigest],
    service_s: float,
    plan: Plan,
    then: Served,
    today: Served,
    copies: int,
    objective_s: float,
    memory_margin_gib: float | None,
) -> Replay:
    """The replay of an option with `service_s` seconds a request: `then` by its plan, `today` by today's.

    Each request was served `copies` times. Load is requests times service time over worker time, 0..1; an hour without
    a datapoint has none.
    """
    loads: list[float | None] = []
    for digest in days:
        for hour in range(24):
            known = [v for v in digest.requests[hour * PER_HOUR : (hour + 1) * PER_HOUR] if v is not None]
            room = 3600 * plan.counts[hour] * max(plan.workers, 1)
            loads.append(round(sum(known) * service_s / room, 4) if known else None)
    seen = [load for load in loads if load is not None]
    return Replay(
        days=len({d.day for d in days}),
        hours_above_80=float(sum(1 for v in seen if v > 0.8)),
        hours_above_100=float(sum(1 for v in seen if v > 1.0)),
        worst_p95_s=round(then.worst_p95_s, 4) or None,
        memory_margin_gib=round(memory_margin_gib, 2) if memory_margin_gib is not None else None,
        requests_over_objective=round(then.late / copies),
        hourly_load=tuple(loads),
        requests=round(then.requests / copies),
        over_objective_today=round(today.late / copies),
        objective_s=round(objective_s, 4),
    )
