"""How slow a changed fleet may be: the latency limits of its proof and of its roll-back alarms.

A fleet with few requests has slow half hours by chance: five requests that come together wait behind any type. Where
the fleet before was over the limit on each of the days before the change, that half hour says nothing of the new one:
it is held against what the old fleet did, by how slow and by how often.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from rightsizer.changes.baseline import (
    BAD_REQUESTS,
    BASELINE_FACTOR,
    WINDOW,
    ServicePeriod,
    Windows,
    periods_of,
    usual_p95_s,
)
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricWindow

SLOW_FACTOR = 2.0
"""Without an objective: p95 above this multiple of the baseline is bad."""
BREACHES = 3
"""Periods of a window that must breach for latency and memory: one slow period is no evidence."""
HABIT_DAYS = 2
"""Days before the change on which the old fleet has to be over the limit: one bad day is an incident and no habit."""
SLOW, OFTEN = "slow_s", "slow_periods"
"""Keys of the baseline: on so many days the old fleet had a half hour as slow as this, and so many slow periods."""
DAY = timedelta(days=1)


def latency_limit_s(change: Change, variant: str) -> float | None:
    """The p95 that a variant must keep, seconds: the objective, or a multiple of what was usual; None if unknown.

    Growth begins above the objective: it goes back only where it serves far worse than before.
    """
    if change.option.adds_only:
        return None  # going back to what was slow would help nobody
    baseline, objective = usual_p95_s(change.baseline, variant), change.objective_p95_s
    usual = SLOW_FACTOR * baseline if baseline > 0 else None
    return max(objective, usual or 0.0) if objective and change.option.grows else objective or usual


def slowness_before(windows: Windows, baseline: Mapping[str, float], objective_p95_s: float | None) -> dict[str, float]:
    """How slow and how often each variant was over its limit by habit before a change; empty where none was.

    ``slow_s/NAME``: seconds that three periods of one half hour reached on each of two days. ``slow_periods/NAME``:
    periods over the limit that each of two days had. The limit is the objective, else twice the usual p95. Total.
    """
    found: dict[str, float] = {}
    for window in windows:
        if not isinstance(window, MetricWindow):
            continue
        limit = objective_p95_s or SLOW_FACTOR * usual_p95_s(baseline, window.variant)
        days = _by_day(list(periods_of(window)))
        slow = _reached_on_days([_slowest_half_hour_s(day) for day in days])
        if 0 < limit < slow:
            found[f"{SLOW}/{window.variant}"] = slow
            found[f"{OFTEN}/{window.variant}"] = _reached_on_days([float(_breaches(day, limit)) for day in days])
    return found


def slow_before_s(baseline: Mapping[str, float], variant: str) -> float:
    """How slow the fleet before was as a habit, seconds; 0 where it kept the limit, or nobody knows."""
    return baseline.get(f"{SLOW}/{variant}", 0.0)


def latency_verdict(change: Change, variant: str, periods: Sequence[ServicePeriod]) -> ProofVerdict | None:
    """Verdict on a variant that serves too slowly; None while it keeps its limit, or no worse than before."""
    limit = latency_limit_s(change, variant)
    if limit is None:
        return None
    habit = slow_before_s(change.baseline, variant)
    if habit <= limit:
        kind = "objective" if change.objective_p95_s == limit else "bound, twice the p95 of before,"
        return _half_hour_verdict(periods, limit, f"the {kind} is")
    most = SLOW_FACTOR * habit
    return _half_hour_verdict(periods, most, "the bound, twice the slowest half hours of before, is") or _often_verdict(
        periods, limit, change.baseline.get(f"{OFTEN}/{variant}", 0.0)
    )


def _half_hour_verdict(periods: Sequence[ServicePeriod], limit: float, name: str) -> ProofVerdict | None:
    for start in range(len(periods)):
        window = periods[start : start + WINDOW]
        slow = [p.p95_s for p in window if p.p95_s is not None and p.requests >= 1 and p.p95_s > limit]
        if len(slow) >= BREACHES and sum(p.requests for p in window) >= BAD_REQUESTS:
            share = f"{len(slow)} of {len(window)} periods"
            return _bad(f"p95 was {max(slow) * 1000:.0f} ms in {share}; {name} {limit * 1000:.0f} ms")
    return None


def _often_verdict(periods: Sequence[ServicePeriod], limit: float, usual: float) -> ProofVerdict | None:
    """Bad where a day since the change has far more slow periods than the days before it had."""
    most = max((_breaches(day, limit) for day in _by_day(periods)), default=0)
    if most <= BASELINE_FACTOR * max(usual, 1.0):
        return None
    return _bad(
        f"p95 was over {limit * 1000:.0f} ms in {most} periods of a day; the fleet before had {usual:.0f} on such a day"
    )


def _bad(text: str) -> ProofVerdict:
    return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def _breaches(periods: Sequence[ServicePeriod], limit: float) -> int:
    return sum(p.p95_s is not None and p.requests >= 1 and p.p95_s > limit for p in periods)


def _slowest_half_hour_s(periods: Sequence[ServicePeriod]) -> float:
    """The largest limit that any half hour would have been over, seconds; 0 where none had enough requests."""
    slowest = 0.0
    for start in range(len(periods)):
        window = periods[start : start + WINDOW]
        values = sorted((p.p95_s for p in window if p.p95_s is not None and p.requests >= 1), reverse=True)
        if len(values) >= BREACHES and sum(p.requests for p in window) >= BAD_REQUESTS:
            slowest = max(slowest, values[BREACHES - 1])
    return slowest


def _by_day(periods: Sequence[ServicePeriod]) -> list[list[ServicePeriod]]:
    """The periods in parts of 24 hours, from the last one back."""
    days: dict[int, list[ServicePeriod]] = {}
    for p in periods:
        days.setdefault((periods[-1].at - p.at) // DAY, []).append(p)
    return [days[number] for number in sorted(days, reverse=True)]


def _reached_on_days(values: Sequence[float]) -> float:
    """What at least `HABIT_DAYS` of the days reached; 0 with fewer days."""
    return sorted(values, reverse=True)[HABIT_DAYS - 1] if len(values) >= HABIT_DAYS else 0.0
