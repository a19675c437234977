"""The requests of past days as arrivals and services, without chance: the same days give the same stream."""

import math
from bisect import bisect_right
from collections.abc import Sequence

from rightsizer.domain.demand import Stream
from rightsizer.domain.usage import SLOT_S, SLOTS, DayDigest, busy

HEAVY = 10
"""Requests of a slot, or of an hour, from which its own weight is believed."""
TABLE = 1024
PER_HOUR = 3600 // SLOT_S
FEW, COPIES = 2000, 8
"""Requests below which the days are served several times, each time with other chance; how often at most."""
MINUTES = SLOT_S // 60
ROUGHEST = 1 / 3
"""Squared variation of uniform weights from nothing to twice the mean."""


def stream_of(days: Sequence[DayDigest], bins: Sequence[tuple[float, float]], limit: int) -> Stream:
    """Requests of the days, at most about `limit` of them: where there are more, the heaviest slots of each hour.

    What breaks a fleet are its heaviest minutes, so light slots may be left out; slots of more requests than an hour's
    part of the limit are cut short. Service times follow `bins`, (seconds, share) ascending.
    """
    days = busy(days)
    usual, mean = _usual(days), sum(value * share for value, share in bins)
    calls = [[usual[i] if v is None else v for i, v in enumerate(d.requests)] for d in days]
    factors = [_work(d) for d in days]
    work = [[n * mean * f[i] for i, n in enumerate(c)] for c, f in zip(calls, factors, strict=True)]
    whole = sum(map(sum, calls)) <= limit
    copies = min(math.ceil(FEW / max(sum(map(sum, calls)), 1.0)), COPIES) if whole else 1
    each = limit / 24
    kept = [range(SLOTS)] * len(days) if whole else _heaviest(calls, work, each)
    table = _table(bins)
    served = [
        _scatter(c, k, f, table, number + 31 * copy, each if not whole else math.inf, roughness(d))
        for copy in range(copies)
        for number, (d, c, k, f) in enumerate(zip(days, calls, kept, factors, strict=True))
    ]
    return Stream(tuple(served), tuple(zip(calls, work, strict=True)) * copies, whole, copies)


def roughness(digest: DayDigest) -> float:
    """Squared variation of the rate between the minutes of a slot, chance taken out.

    Where only five-minute counts are known, half of what neighbouring slots show: what is rough there is rough inside.
    """
    if digest.within is not None:
        return min(digest.within, ROUGHEST)
    above = square = 0.0
    for first in range(0, SLOTS, PER_HOUR):
        part = [v for v in digest.requests[first : first + PER_HOUR] if v is not None]
        if len(part) < PER_HOUR // 2 or sum(part) <= 0:
            continue
        middle = sum(part) / len(part)
        above += sum((v - middle) ** 2 for v in part) / (len(part) - 1) - middle
        square += middle**2
    return min(max(above / square / 2, 0.0), ROUGHEST) if square > 0 else 0.0


def _heaviest(calls: Sequence[Sequence[float]], work: Sequence[Sequence[float]], each: float) -> list[list[int]]:
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
    calls: Sequence[float],
    slots: Sequence[int],
    factors: Sequence[float],
    table: Sequence[float],
    seed: int,
    most: float,
    rough: float,
) -> tuple[list[float], list[float]]:
    """Arrivals and service times of one day. A fixed congruential sequence stands in for chance."""
    state = (seed * 7919 + 12345) & 0x7FFFFFFF
    arrivals: list[float] = []
    services: list[float] = []
    carried = 0.0
    spread = math.sqrt(3 * rough)  # half the width of a uniform weight with that squared variation
    for slot in slots:
        length = SLOT_S * min(1.0, most / calls[slot]) if calls[slot] > 0 else SLOT_S
        carried += calls[slot] * length / SLOT_S
        n = int(carried)
        carried -= n
        edges = [0.0]
        for _ in range(MINUTES):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            edges.append(edges[-1] + max(1 + spread * (state / 0x40000000 - 1), 0.0))
        part: list[float] = []
        scale = edges[-1] / 0x80000000
        for _ in range(n):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            at = state * scale
            minute = bisect_right(edges, at, 1, MINUTES) - 1
            part.append(minute + (at - edges[minute]) / max(edges[minute + 1] - edges[minute], 1e-9))
        part.sort()
        weight = factors[slot]
        for at in part:
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            arrivals.append(SLOT_S * slot + at * length / MINUTES)
            services.append(table[int(state / 0x80000000 * TABLE)] * weight)
    return arrivals, services


def _work(digest: DayDigest) -> list[float]:
    """GPU seconds of a request in each slot over those of the day: heavy requests come together.

    That of the slot's hour where the slot has fewer than HEAVY requests; 1 where the hour has too, or it is unknown.
    """
    pairs = list(zip(digest.busy_s, digest.requests, strict=True))
    mean = _each(pairs, 0.0)
    hours = [_each(pairs[first : first + PER_HOUR], HEAVY) for first in range(0, SLOTS, PER_HOUR)]
    found = (_each([pair], HEAVY) or hours[slot // PER_HOUR] for slot, pair in enumerate(pairs))
    return [each / mean if mean > 0 and each > 0 else 1.0 for each in found]


def _each(pairs: Sequence[tuple[float | None, float | None]], least: float) -> float:
    """GPU seconds of a request where both are known; 0 with fewer than `least` requests."""
    known = [(work, count) for work, count in pairs if work is not None and count is not None]
    calls = sum(count for _, count in known)
    return sum(work for work, _ in known) / calls if calls > 0 and calls >= least else 0.0
