"""Compare promised slowdowns and risks with measurements and outcomes."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from rightsizer.domain.history import EndedChange, PastEnd
from rightsizer.domain.option import Risk
from rightsizer.domain.outcome import RiskLevel, SpeedOutcome, SpeedSummary, TrackRecord
from rightsizer.domain.policy import Policy

FARTHEST = 1000.0
"""Slowdowns beyond this, or below its inverse, are no measurement: the accelerators of the catalogue that are farthest
apart are Inferentia1 and B200, with 149-fold bandwidth."""
TAIL = 0.025
"""What lies outside of a range at 95 % confidence, on each side."""
WIDEST = 0.25
"""Width of the range of a chance up to which it says something about the chance that was stated."""


def track_record(remembered: Iterable[EndedChange], since: datetime, until: datetime, policy: Policy) -> TrackRecord:
    """The record of what ended between these; what still runs is left out. The order of `remembered` is nothing.

    Slowdowns that are no positive numbers count as not measured, or as not promised. A change that stood, and that a
    restoring one of ours took back later, fell short as one that went back by itself did.
    """
    ended = [one for one in remembered if one.past.ended is not PastEnd.RUNNING and since <= one.past.at < until]
    outcomes = [outcome for outcome in map(_outcome, ended) if outcome is not None]
    outcomes.sort(key=lambda one: (one.endpoint, one.change_id))
    outcomes.sort(key=lambda one: one.at, reverse=True)
    changes = [one for one in ended if one.past.ended is not PastEnd.TESTED]
    told = list(_rated_changes(changes))
    harm = [float(short) for _, short in told]
    errors = [(policy.stated_chance(risk)[1] - short) ** 2 for risk, short in told]
    return TrackRecord(
        since=since,
        until=until,
        ended=len(ended),
        outcomes=tuple(outcomes),
        overall=_summary("", outcomes),
        frameworks=_groups(outcomes, lambda one: one.framework),
        endpoints=_groups(outcomes, lambda one: one.endpoint),
        changes=len(changes),
        levels=tuple(_levels(told, policy)),
        brier=_mean(errors),
        brier_without=_mean(harm),
    )


def _outcome(ended: EndedChange) -> SpeedOutcome | None:
    """What was measured of it; None where nothing was, or nothing that can be a slowdown."""
    past = ended.past
    promised, bound, measured, latency = map(
        _finite_ratio, (past.promised_slowdown, past.promised_bound, past.realised_slowdown, past.latency_ratio)
    )
    if measured is None or past.ended is PastEnd.RUNNING:
        return None
    return SpeedOutcome(
        endpoint=ended.endpoint,
        change_id=ended.change_id,
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


def _finite_ratio(value: float | None) -> float | None:
    known = value is not None and math.isfinite(value) and 1 / FARTHEST <= value <= FARTHEST
    return value if known else None


def _groups(outcomes: Sequence[SpeedOutcome], name_of: Callable[[SpeedOutcome], str]) -> tuple[SpeedSummary, ...]:
    """The groups in which something was promised."""
    names = {name_of(outcome) for outcome in outcomes}
    summaries = [_summary(name, [outcome for outcome in outcomes if name_of(outcome) == name]) for name in names]
    return tuple(sorted((group for group in summaries if group.n), key=lambda group: (-group.n, group.name)))


def _summary(name: str, outcomes: Sequence[SpeedOutcome]) -> SpeedSummary:
    logs = [math.log(outcome.ratio) for outcome in outcomes if outcome.ratio is not None]
    n = len(logs)
    mean = math.fsum(logs) / n if n else 0.0
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (n - 1)) if n > 1 else None
    bounded = [outcome.beyond for outcome in outcomes if outcome.beyond is not None]
    return SpeedSummary(
        name=name,
        n=n,
        bias=math.exp(mean) if n else None,
        spread=math.exp(spread) if spread is not None else None,
        bounded=len(bounded),
        beyond=sum(bounded),
    )


def _rated_changes(changes: Sequence[EndedChange]) -> Iterable[tuple[int, bool]]:
    """Stated risk, and whether it fell short, of each change that tells whether its risk was right.

    One that stands unproven, or went back for want of capacity or because somebody asked, tells neither.
    """
    restored = _restored_changes(changes)
    for ended in changes:
        risk, short = ended.past.stated_risk, ended.past.has_fallen_short or ended in restored
        if risk is not None and risk in set(Risk) and (short or ended.past.ended is PastEnd.PROVEN):
            yield risk, short


def _restored_changes(changes: Sequence[EndedChange]) -> frozenset[EndedChange]:
    """The changes that stood until one of ours restored what was there before.

    Of an endpoint that is the last one before it that was left in force, where it led to the type that was left: what
    hurts now is blamed on the newest change by the recommendation too.
    """
    found = set()
    for back in (ended for ended in changes if ended.past.restores):
        earlier = [
            ended
            for ended in changes
            if ended.endpoint == back.endpoint and ended.past.at < back.past.at and ended.past.is_in_force
        ]
        last = max(earlier, key=lambda ended: (ended.past.at, ended.change_id), default=None)
        if last is not None and last.past.ended is not PastEnd.HANDED_OVER and last.past.to_type == back.past.from_type:
            found.add(last)
    return frozenset(found)


def _levels(told: Sequence[tuple[int, bool]], policy: Policy) -> Iterable[RiskLevel]:
    for risk in sorted({risk for risk, _ in told}):
        ended = [short for stated, short in told if stated == risk]
        first, last = policy.stated_chance(risk)
        low, high = exact_range(sum(ended), len(ended))
        missing = outcomes_needed(sum(ended), len(ended)) - len(ended)
        yield RiskLevel(risk, first, last, len(ended), sum(ended), low, high, missing)


def outcomes_needed(hits: int, n: int) -> int:
    """Outcomes needed for a range of the chance of at most WIDEST, with the share of `hits`.

    From then on one more outcome does not turn what is said: of three, one that went back by chance would.
    """
    wanted = n
    while True:
        low, high = exact_range(round(hits * wanted / n), wanted)
        if high - low <= WIDEST:
            return wanted
        wanted += 1


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
