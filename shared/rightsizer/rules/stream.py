"""The requests of past days as arrivals and services, without chance: the same days give the same stream."""

import math
from collections.abc import Sequence

from rightsizer.model.digest import SLOT_S, SLOTS, DayDigest
from rightsizer.model.serving import Stream

HEAVY = 10
"""Requests of an hour from which its own weight is believed."""
TABLE = 1024
PER_HOUR = 3600 // SLOT_S
REGIME = 0.5
"""Days with less than this share of the busiest day's requests tell nothing about what must be carried."""


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
