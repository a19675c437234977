"""Counts of their own for the days of the week that are quiet by habit."""

from collections.abc import Sequence
from dataclasses import replace

from rightsizer.flows.fleet import Shape, smallest
from rightsizer.flows.situation import Situation
from rightsizer.model.hours import DAY, on_day, week_of
from rightsizer.model.serving import Plan
from rightsizer.rules.week import quiet_weekdays


def by_the_hour(at: Situation, name: str, plan: Plan, weekly: bool) -> tuple[int, ...] | None:
    """The plan's counts by the hour of the day, or of the week where quiet days need less; None where all are alike.

    Quiet days are served again by themselves, for they tell nothing of what the others need, nor these of them. Their
    counts go in one schedule with the others, so only where hours alone are set (`weekly`).
    """
    daily = plan.counts if min(plan.counts) != max(plan.counts) else None
    days = quiet_weekdays(at.days, at.policy.days_for_week)
    if not weekly or not days or plan.maximum or at.policy.several_at_once:
        return daily
    shape = Shape(name, plan.slower, plan.workers, plan.random_routing, True, max(plan.counts))
    quiet = smallest(_only(at, days), shape)
    if quiet is None or sum(quiet.counts) >= sum(plan.counts):
        return daily
    return week_of(plan.counts, quiet.counts, days)


def late_on_quiet_days(at: Situation, counts: Sequence[int], plan: Plan) -> int:
    """Requests of the quiet days above the objective, on the fleet that those counts give them."""
    days = quiet_weekdays(at.days, at.policy.days_for_week)
    if len(counts) == DAY or not days:
        return 0
    some = _only(at, days)
    served = some.served(replace(plan, counts=tuple(on_day(counts, min(days)))))
    return round(served.late / some.stream.copies)


def _only(at: Situation, days: frozenset[int]) -> Situation:
    """The same endpoint as if only those weekdays had been seen."""
    return replace(at, days=[d for d in at.days if d.day.weekday() in days], _served={})
