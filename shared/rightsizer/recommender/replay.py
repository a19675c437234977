"""Run past days again on a fleet, request by request, without chance: the same days always give the same answer.

The requests of past days become arrivals and services. The strain is what they would have meant for an option: its load
hour by hour, and what came too late.
"""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date

from rightsizer.autoscaling.target_tracking import BUSY_TARGET
from rightsizer.domain.demand import Fleet, ReplayResult, Stream
from rightsizer.domain.recommendation import Replay
from rightsizer.domain.usage import PER_HOUR, SLOT_S, SLOTS, DailyUsage, busy_days, quantile

LAGS = (2, 3, 4)
"""Slots after which added instances serve (alarm, provisioning: ten minutes), and for which they stay."""
WATCH_S = 1800.0
WATCH_REQUESTS, WATCH_LATE, WATCH_SHARE = 5, 3, 0.10
"""The guard of a change: in half an hour at least so many requests, so many of them late, and such a share."""
HEAVY = 10
"""Requests of a slot, or of an hour, from which its own weight is believed."""
TABLE = 1024
FEW, COPIES = 2000, 8
"""Requests below which the days are served several times, each time with other chance; how often at most."""
MINUTES = SLOT_S // 60
SEEDED_FROM, SEEDS, COPY_SEEDS = date(2026, 11, 6).toordinal(), 63, 31
"""A date of seed 0 (any would do; with this one the answers of the labelled days stay), the dates with seeds of their
own, which are as many as CloudWatch keeps, and the seeds between two copies of a day: dates a month
apart may share one."""
ROUGHEST = 1 / 3
"""Squared variation of uniform weights from nothing to twice the mean."""


def replay_requests(
    stream: Stream, fleet: Fleet, limit_s: float, baseline: float = 0.0, alarm_s: float = 0.0
) -> ReplayResult:
    """Serve every request; `late` counts the ones above `limit_s`.

    The alarm of a change hears those above `alarm_s`, where that is more; `baseline` is the share of them today.
    """
    alarm_s = max(alarm_s, limit_s)
    late = rung = drowned = 0
    worst = instances = 0.0
    served: list[float] = []
    for number, (arrivals, services) in enumerate(stream.days):
        work = stream.slots[number][1] if stream.slots else _service_by_slot(arrivals, services)
        slots = _slots(work, fleet)
        drowned += 0 if stream.whole else _late_in_backlog(stream, number, fleet, slots, limit_s)
        run = _random_queues if fleet.random_routing and max(slots) > 1 else _central_queue
        latencies = run(arrivals, services, fleet, slots)
        over = _late_arrivals(arrivals, latencies, limit_s)
        late += len(over)
        heard = over if alarm_s == limit_s else _late_arrivals(arrivals, latencies, alarm_s)
        if len(heard) >= WATCH_LATE:
            anyway = _late_arrivals(arrivals, services, alarm_s)
            rung += _is_alarm_rung(arrivals, heard, anyway, max(WATCH_SHARE, 3 * baseline))
        worst = _worst_p95_s(arrivals, latencies, worst)
        served += latencies
        instances += sum(slots) / SLOTS
    late += drowned
    p95 = quantile(sorted(served), 0.95) if served else 0.0
    return ReplayResult(stream.requests, late, worst, rung, instances / max(len(stream.days), 1), drowned, p95)


def _late_arrivals(arrivals: Sequence[float], seconds: Sequence[float], limit_s: float) -> list[float]:
    """When the requests arrived that take longer than the limit."""
    if max(seconds, default=0.0) <= limit_s:
        return []
    return [at for at, value in zip(arrivals, seconds, strict=True) if value > limit_s]


def _service_by_slot(arrivals: Sequence[float], services: Sequence[float]) -> list[float]:
    """Seconds of service of each slot."""
    work = [0.0] * SLOTS
    for at, seconds in zip(arrivals, services, strict=True):
        work[int(at // SLOT_S)] += seconds
    return work


def _slots(work: Sequence[float], fleet: Fleet) -> list[int]:
    """Instances of each slot: the counts by hour, raised by target tracking where it is on."""
    counts = [count for count in fleet.counts for _ in range(PER_HOUR)]
    least = min(counts)
    if fleet.maximum <= least:
        return counts
    factor = fleet.slower / (SLOT_S * (fleet.busy or BUSY_TARGET) * fleet.workers)
    if math.ceil(max(work) * factor - 1e-9) <= least:
        return counts
    for slot in range(LAGS[0], SLOTS):
        seen = max(work[max(slot - LAGS[-1], 0) : slot - LAGS[0] + 1])
        wanted = min(math.ceil(seen * factor - 1e-9), fleet.maximum)
        if wanted > counts[slot]:
            counts[slot] = wanted
    return counts


def _late_in_backlog(stream: Stream, number: int, fleet: Fleet, slots: Sequence[int], limit_s: float) -> int:
    """Requests of slots that a backlog makes late: of a crowd that lasts for longer than what is kept of it."""
    calls, work = stream.slots[number]
    total = sum(calls)
    slower, load, each = fleet.slower, fleet.load, SLOT_S * fleet.workers
    baseline = sum(work) / total * slower if total > 0 else 0.0
    if baseline <= limit_s and max(work) * slower * load <= each * min(slots):
        return 0
    backlog = late = 0.0
    for n, seconds, count in zip(calls, work, slots, strict=True):
        room = each * count
        backlog = max(backlog + seconds * slower * load - room, 0.0)
        if backlog * SLOT_S / room + baseline > limit_s:
            late += n
    return round(late)


def _is_alarm_rung(arrivals: Sequence[float], over: Sequence[float], anyway: Sequence[float], share: float) -> bool:
    """Whether half an hour has so many late requests that the guard would bring the old configuration back.

    A half hour that would be as bad by those that are late `anyway`, on any fleet, counts for the others alone.
    """
    for number in range(WATCH_LATE - 1, len(over)):
        at = over[number]
        late = number + 1 - bisect_left(over, at - WATCH_S)
        seen = bisect_right(arrivals, at) - bisect_left(arrivals, at - WATCH_S)
        usual = bisect_right(anyway, at) - bisect_left(anyway, at - WATCH_S)
        counted = late if usual <= share * seen else late - usual
        if counted >= WATCH_LATE and seen >= WATCH_REQUESTS and counted > share * seen:
            return True
    return False


def _worst_p95_s(arrivals: Sequence[float], latencies: Sequence[float], least: float) -> float:
    """The largest p95 of an hour with at least 20 requests, of a day without one the largest latency; `least` or more.

    An hour whose largest latency is below what is known already needs no sorting.
    """
    worst, first, is_busy = least, 0, False
    for hour in range(1, 25):
        last = bisect_left(arrivals, 3600 * hour, first)
        if last - first >= 20:
            is_busy = True
            part = latencies[first:last]
            if max(part) > worst:
                worst = max(worst, quantile(sorted(part), 0.95))
        first = last
    return worst if is_busy else max(least, max(latencies, default=0.0))


def _central_queue(
    arrivals: Sequence[float], services: Sequence[float], fleet: Fleet, slots: Sequence[int]
) -> list[float]:
    """One queue; idle workers leave first when an hour has fewer."""
    counts = [c * fleet.workers for c in slots]
    free: list[float] = []
    out = []
    slower, busy, until = fleet.slower, fleet.slower * fleet.load, 0
    for at, work in zip(arrivals, services, strict=True):
        if at >= until:
            until = _set_workers(free, counts, at)
        start = free[0]
        if start < at:
            start = at
        heapq.heapreplace(free, start + work * busy)
        out.append(start - at + work * slower)
    return out


def _set_workers(free: list[float], counts: Sequence[int], at: float) -> int:
    """Make the workers as many as they are from then on; the second of the day up to which that holds."""
    slot = int(at // SLOT_S)
    wanted = counts[slot]
    while len(free) < wanted:
        heapq.heappush(free, at)
    while len(free) > wanted:
        heapq.heappop(free)
    while slot < SLOTS and counts[slot] == wanted:
        slot += 1
    return SLOT_S * slot


def _random_queues(
    arrivals: Sequence[float], services: Sequence[float], fleet: Fleet, slots: Sequence[int]
) -> list[float]:
    """One queue for each instance, chosen without looking."""
    queues = [[0.0] * fleet.workers for _ in range(max(slots))]
    out = []
    state, slower, load = 99991, fleet.slower, fleet.load
    for at, work in zip(arrivals, services, strict=True):
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        free = queues[int(state / 0x80000000 * slots[int(at // SLOT_S)])]
        start = free[0]
        if start < at:
            start = at
        seconds = work * slower
        heapq.heapreplace(free, start + seconds * load)
        out.append(start - at + seconds)
    return out


def replay_of(
    days: Sequence[DailyUsage],
    service_s: float,
    fleet: Fleet,
    played: tuple[ReplayResult, ReplayResult],
    objective_s: float,
    memory_margin_gib: float | None,
) -> Replay:
    """The replay of an option with `service_s` seconds a request, `played` by its plan and by today's.

    Load is requests times service time over worker time, 0..1; an hour without a datapoint has none.
    """
    then, today = played
    loads: list[float | None] = []
    for usage in days:
        counts = fleet.on(usage.day.weekday()).counts
        for hour in range(24):
            known = [v for v in usage.requests[hour * PER_HOUR : (hour + 1) * PER_HOUR] if v is not None]
            room = 3600 * counts[hour] * max(fleet.workers, 1)
            loads.append(round(sum(known) * service_s / room, 4) if known else None)
    seen = [load for load in loads if load is not None]
    return Replay(
        days=len({d.day for d in days}),
        hours_above_80=float(sum(1 for v in seen if v > 0.8)),
        hours_above_100=float(sum(1 for v in seen if v > 1.0)),
        worst_p95_s=round(then.worst_p95_s, 4) or None,
        memory_margin_gib=round(memory_margin_gib, 2) if memory_margin_gib is not None else None,
        requests_over_objective=round(then.late),
        hourly_load=tuple(loads),
        requests=round(then.requests),
        over_objective_today=round(today.late),
        objective_s=round(objective_s, 4),
    )


def stream_of(days: Sequence[DailyUsage], bins: Sequence[tuple[float, float]], limit: int) -> Stream:
    """Requests of the days, at most about `limit` of them: where there are more, the heaviest slots of each hour.

    What breaks a fleet are its heaviest minutes, so light slots may be left out; slots of more requests than an hour's
    part of the limit are cut short. Service times follow `bins`, (seconds, share) ascending.
    """
    days = busy_days(days)
    usual, mean = _usual_requests(days), sum(value * share for value, share in bins)
    calls = [[usual[i] if v is None else v for i, v in enumerate(d.requests)] for d in days]
    factors = [_work(d) for d in days]
    work = [[n * mean * f[i] for i, n in enumerate(c)] for c, f in zip(calls, factors, strict=True)]
    whole = sum(map(sum, calls)) <= limit
    copies = min(math.ceil(FEW / max(sum(map(sum, calls)), 1.0)), COPIES) if whole else 1
    each = limit / 24
    kept = [range(SLOTS)] * len(days) if whole else _heaviest_slots(calls, work, each)
    table = _table(bins)
    served = [
        _scatter_arrivals(
            [(i, c[i], f[i]) for i in k], table, _seed(d, copy), each if not whole else math.inf, roughness(d)
        )
        for copy in range(copies)
        for d, c, k, f in zip(days, calls, kept, factors, strict=True)
    ]
    return Stream(tuple(served), tuple(zip(calls, work, strict=True)) * copies, whole, copies)


def _seed(usage: DailyUsage, copy: int) -> int:
    """Seed of a day's arrivals: of its date, so that a look-back that moves on by a day serves its days as before."""
    return (usage.day.toordinal() - SEEDED_FROM) % SEEDS + COPY_SEEDS * copy


def roughness(usage: DailyUsage) -> float:
    """Squared variation of the rate between the minutes of a slot, chance taken out.

    Where only five-minute counts are known, half of what neighbouring slots show: what is rough there is rough inside.
    """
    if usage.within is not None:
        return min(usage.within, ROUGHEST)
    above = square = 0.0
    for first in range(0, SLOTS, PER_HOUR):
        part = [v for v in usage.requests[first : first + PER_HOUR] if v is not None]
        if len(part) < PER_HOUR // 2 or sum(part) <= 0:
            continue
        middle = sum(part) / len(part)
        above += sum((v - middle) ** 2 for v in part) / (len(part) - 1) - middle
        square += middle**2
    return min(max(above / square / 2, 0.0), ROUGHEST) if square > 0 else 0.0


def _heaviest_slots(calls: Sequence[Sequence[float]], work: Sequence[Sequence[float]], each: float) -> list[list[int]]:
    """Of each day the slots to keep: in each hour of the day the heaviest over all days, about `each` requests."""
    kept: list[list[int]] = [[] for _ in calls]
    for first in range(0, SLOTS, PER_HOUR):
        ranked = [(-w[i], number, i) for number, w in enumerate(work) for i in range(first, first + PER_HOUR)]
        total = 0.0
        for _, number, slot in sorted(ranked):
            kept[number].append(slot)
            total += calls[number][slot]
            if total >= each:
                break
    return [sorted(slots) for slots in kept]


def _table(bins: Sequence[tuple[float, float]]) -> list[float]:
    out: list[float] = []
    reached = 0.0
    for value, share in bins:
        reached += share
        out += [value] * (min(round(reached * TABLE), TABLE) - len(out))
    return out + [bins[-1][0]] * (TABLE - len(out))


def _usual_requests(days: Sequence[DailyUsage]) -> list[float]:
    """Mean requests of each slot over the days that know it; the mean of all where none does."""
    out: list[float] = []
    known = [v for d in days for v in d.requests if v is not None]
    overall = sum(known) / len(known) if known else 0.0
    for slot in range(SLOTS):
        seen = [v for d in days if (v := d.requests[slot]) is not None]
        out.append(sum(seen) / len(seen) if seen else overall)
    return out


def _scatter_arrivals(
    slots: Sequence[tuple[int, float, float]], table: Sequence[float], seed: int, most: float, rough: float
) -> tuple[list[float], list[float]]:
    """Arrivals and service times of one day. A fixed congruential sequence stands in for chance.

    `slots` are those of the day that count: the number of each, its requests and the work of one over the day's mean.
    """
    state = (seed * 7919 + 12345) & 0x7FFFFFFF
    arrivals: list[float] = []
    services: list[float] = []
    carried = 0.0
    spread = math.sqrt(3 * rough)  # half the width of a uniform weight with that squared variation
    for slot, calls, weight in slots:
        length = SLOT_S * min(1.0, most / calls) if calls > 0 else SLOT_S
        carried += calls * length / SLOT_S
        n = int(carried)
        carried -= n
        edges = [0.0]
        for _ in range(MINUTES):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            edges.append(edges[-1] + max(1 + spread * (state / 0x40000000 - 1), 0.0))
        scale = edges[-1] / 0x80000000
        part = [(state := (1103515245 * state + 12345) & 0x7FFFFFFF) * scale for _ in range(n)]
        if spread:
            part = [_minutes_into(edges, at) for at in part]
        part.sort()
        begin = SLOT_S * slot
        for at in part:
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            arrivals.append(begin + at * length / MINUTES)
            services.append(table[state * TABLE >> 31] * weight)
    return arrivals, services


def _minutes_into(edges: Sequence[float], at: float) -> float:
    """Minutes into the slot at which that much of its weight has come; `edges` are the weights up to each minute."""
    minute = bisect_right(edges, at, 1, MINUTES) - 1
    return minute + (at - edges[minute]) / max(edges[minute + 1] - edges[minute], 1e-9)


def _work(usage: DailyUsage) -> list[float]:
    """GPU seconds of a request in each slot over those of the day: heavy requests come together.

    That of the slot's hour where the slot has fewer than HEAVY requests; 1 where the hour has too, or it is unknown.
    """
    pairs = list(zip(usage.busy_s, usage.requests, strict=True))
    mean = _gpu_seconds_each(pairs, 0.0)
    hours = [_gpu_seconds_each(pairs[first : first + PER_HOUR], HEAVY) for first in range(0, SLOTS, PER_HOUR)]
    found = [
        (work / count if work is not None and count is not None and count >= HEAVY else 0.0) or hours[slot // PER_HOUR]
        for slot, (work, count) in enumerate(pairs)
    ]
    return [each / mean if mean > 0 and each > 0 else 1.0 for each in found]


def _gpu_seconds_each(pairs: Sequence[tuple[float | None, float | None]], least: float) -> float:
    """GPU seconds of a request where both are known; 0 with fewer than `least` requests."""
    known = [(work, count) for work, count in pairs if work is not None and count is not None]
    calls = sum([count for _, count in known])
    return sum([work for work, _ in known]) / calls if calls > 0 and calls >= least else 0.0
