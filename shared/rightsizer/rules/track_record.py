"""Hold the slowdowns and risks that were promised against what was measured and what happened (decision.md 4.8)."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from rightsizer.model.history import PastChange, Remembered
from rightsizer.model.option import Risk
from rightsizer.model.policy import Policy
from rightsizer.model.track_record import RiskLevel, SpeedOutcome, SpeedSummary, TrackRecord

FARTHEST = 1000.0
"""Slowdowns beyond this, or below its inverse, are no measurement: the accelerators of the catalogue that are farthest
apart are Inferentia1 and B200, with 149-fold bandwidth."""
TAIL = 0.025
"""What lies outside of a range at 95 % confidence, on each side."""


def track_record(remembered: Iterable[Remembered], since: datetime, until: datetime, policy: Policy) -> TrackRecord:
    """The record of what ended between these; what still runs is left out. The order of `remembered` is nothing.

    Slowdowns that are no positive numbers count as not measured, or as not promised.
    """
    ended = [one for one in remembered if one.past.ended != "running" and since <= one.past.at < until]
    found = [outcome for outcome in map(_outcome, ended) if outcome is not None]
    found.sort(key=lambda one: (one.endpoint, one.change_id))
    found.sort(key=lambda one: one.at, reverse=True)
    changes = [one.past for one in ended if one.past.ended != "tested"]
    told = [(past, risk) for past in changes if (risk := _stated(past)) is not None]
    harm = [float(past.fell_short) for past, _ in told]
    errors = [(policy.stated_chance(risk)[1] - past.fell_short) ** 2 for past, risk in told]
    return TrackRecord(
        since=since,
        until=until,
        ended=len(ended),
        outcomes=tuple(found),
        overall=_summary("", found),
        frameworks=_groups(found, lambda one: one.framework),
        endpoints=_groups(found, lambda one: one.endpoint),
        changes=len(changes),
        levels=tuple(_levels(told, policy)),
        brier=_mean(errors),
        brier_without=_mean(harm),
    )


def _outcome(one: Remembered) -> SpeedOutcome | None:
    """What was measured of it; None where nothing was, or nothing that can be a slowdown."""
    past = one.past
    promised, bound, measured, latency = map(
        _readable, (past.promised_slowdown, past.promised_bound, past.realised_slowdown, past.latency_ratio)
    )
    if measured is None or past.ended == "running":
        return None
    return SpeedOutcome(
        endpoint=one.endpoint,
        change_id=one.change_id,
        at=past.at,
        from_type=past.from_type,
        to_type=past.to_type,
        framework=past.framework,
        ended=past.ended,
        promised=promised,
        bound=bound,
        measured=measured,
        ratio=measured / promised if promised is not None else None,
        beyond=measured > bound if bound is not None else None,
        latency_ratio=latency,
    )


def _readable(value: float | None) -> float | None:
    known = value is not None and math.isfinite(value) and 1 / FARTHEST <= value <= FARTHEST
    return value if known else None


def _groups(found: Sequence[SpeedOutcome], name_of: Callable[[SpeedOutcome], str]) -> tuple[SpeedSummary, ...]:
    """The groups in which something was promised."""
    names = {name_of(one) for one in found}
    made = [_summary(name, [one for one in found if name_of(one) == name]) for name in names]
    return tuple(sorted((group for group in made if group.n), key=lambda group: (-group.n, group.name)))


def _summary(name: str, found: Sequence[SpeedOutcome]) -> SpeedSummary:
    logs = [math.log(one.ratio) for one in found if one.ratio is not None]
    n = len(logs)
    mean = math.fsum(logs) / n if n else 0.0
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (n - 1)) if n > 1 else None
    bounded = [one.beyond for one in found if one.beyond is not None]
    return SpeedSummary(
        name=name,
        n=n,
        bias=math.exp(mean) if n else None,
        spread=math.exp(spread) if spread is not None else None,
        bounded=len(bounded),
        beyond=sum(bounded),
    )


def _stated(past: PastChange) -> int | None:
    """The risk that was stated of a change that tells whether it was right; None of the others.

    One that stands unproven, or went back for want of capacity or because somebody asked, tells neither.
    """
    known = past.stated_risk is not None and past.stated_risk in set(Risk)
    return past.stated_risk if known and (past.ended == "proven" or past.fell_short) else None


def _levels(told: Sequence[tuple[PastChange, int]], policy: Policy) -> Iterable[RiskLevel]:
    for risk in sorted({risk for _, risk in told}):
        ended = [past.fell_short for past, stated in told if stated == risk]
        first, last = policy.stated_chance(risk)
        low, high = exact_range(sum(ended), len(ended))
        yield RiskLevel(risk, first, last, len(ended), sum(ended), low, high)


def exact_range(hits: int, n: int) -> tuple[float, float]:
    """The exact range of a chance at 95 % confidence: Clopper and Pearson, Biometrika 26 (1934) 404.

    `hits` of `n`, at least one. Exact, for with one or two changes every approximation finds what chance alone made.
    """
    low = _root(lambda chance: _at_most(n - hits, n, 1 - chance) - TAIL) if hits else 0.0
    high = _root(lambda chance: TAIL - _at_most(hits, n, chance)) if hits < n else 1.0
    return low, high


def _at_most(hits: int, n: int, chance: float) -> float:
    """The chance of `hits` or fewer of `n`, each with that chance between 0 and 1."""
    whole = math.lgamma(n + 1)
    logs = (
        whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(chance) + (n - k) * math.log1p(-chance)
        for k in range(hits + 1)
    )
    return math.fsum(map(math.exp, logs))


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of 0..1 crosses zero, to 1e-12."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
