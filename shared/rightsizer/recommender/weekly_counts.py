"""Counts for classes of days, where weekdays and weekends differ and it pays.

A class is sized by its own days alone, as a plan for all days is by all of them: the busiest of its days decides, so a
holiday among them changes nothing. What is no habit of its weekday, as the end of a month, counts for all days. The
hour of a rise begins with its count (`autoscaling.count_schedule`), on Monday at midnight too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from rightsizer.autoscaling.count_schedule import MOST_ACTIONS, scheduled_counts
from rightsizer.domain.demand import Fleet
from rightsizer.domain.schedule import HOURS, WEEKDAYS, DayCounts, week_of
from rightsizer.domain.usage import PER_HOUR, REGIME
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.days_of_week import on_weekdays
from rightsizer.recommender.fleet_size import FleetShape, find_fleet
from rightsizer.recommender.late_requests import failed_by_hour

WEEKS = 2
"""Times that each day of the week must have been seen: what came once may be a holiday, or work on a free day."""
CLASSES = (
    ((0, 1, 2, 3, 4), (5, 6)),
    ((6, 0, 1, 2, 3), (4, 5)),
    ((0, 1, 2, 3, 4), (5,), (6,)),
)
"""Days that are taken together, the fewest classes first: weekends of Saturday and Sunday, those of Friday and Saturday
(Egypt, Israel, Saudi Arabia), and Saturday apart from Sunday, as in shops. One odd day in two weeks is no habit."""
GAIN = 0.05
"""Share of the instance hours that each more division of the week has to save: fewer classes are easier to check."""
DIFFER = 0.1
"""Share of the requests by which the busiest hours of two classes differ at least; with less it is chance."""


def find_weekly_counts(
    context: EvaluationContext, shape: FleetShape, fleet: Fleet, may_keep_count: bool
) -> tuple[DayCounts, ...]:
    """Counts for classes of days that need fewer instances than `fleet` does; () where none pay."""
    if not shape.hourly or context.peak_count < 2 or not has_whole_weeks(context):
        return ()
    best: tuple[DayCounts, ...] = ()
    least = fleet.mean_count
    for classes in CLASSES:
        enough = (1 - GAIN) * least
        if _least_mean(context, classes) > enough or not _do_days_differ(context, classes):
            continue
        found = tuple(_counts_of(context, shape, classes, may_keep_count))
        week = week_of(found)
        if week is None or sum(week) / len(week) > enough or len(scheduled_counts(week)) > MOST_ACTIONS:
            continue
        best, least = merge_alike(found), sum(week) / len(week)
    return best


def has_whole_weeks(context: EvaluationContext) -> bool:
    """Whether each day of the week was seen twice, but for the share of hours that a window may lack."""
    seen: Counter[int] = Counter()
    for day in context.days:
        hours = (day.requests[h * PER_HOUR : (h + 1) * PER_HOUR] for h in range(HOURS))
        known = HOURS if None not in day.requests else sum(1 for slots in hours if slots.count(None) < PER_HOUR)
        seen[day.day.weekday()] += known
    return min(seen[day] for day in range(len(WEEKDAYS))) >= WEEKS * HOURS * context.policy.valid_share


def least_weekly_mean(context: EvaluationContext) -> float | None:
    """Mean instances that the hours of the week need at least; None before whole weeks were seen."""
    return min(_least_mean(context, classes) for classes in CLASSES) if has_whole_weeks(context) else None


def _least_mean(context: EvaluationContext, classes: tuple[tuple[int, ...], ...]) -> float:
    """Mean instances below which no counts for these classes come: the busiest day's mean work of each hour."""
    by_day, lucky = _requests_by_date(context), days_of_no_habit(context, classes)
    least, each = float(context.owner_minimum), context.latency.mean_s / context.workers / 3600
    total = 0.0
    for weekdays in classes:
        rows = [row for date, row in by_day.items() if date.weekday() in weekdays or date in lucky]
        busiest = map(max, zip(*rows, strict=True)) if rows else [0.0] * HOURS
        total += len(weekdays) * sum(max(requests * each, least) for requests in busiest)
    return total / (HOURS * len(WEEKDAYS))


def _do_days_differ(context: EvaluationContext, classes: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the busiest requests of each hour are others in each class than in some other one."""
    by_day, lucky = _requests_by_date(context), days_of_no_habit(context, classes)
    busiest: list[list[float]] = []
    for weekdays in classes:
        rows = [row for date, row in by_day.items() if date.weekday() in weekdays or date in lucky]
        busiest.append(list(map(max, zip(*rows, strict=True))) if rows else [0.0] * HOURS)
    apart = max(sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one in busiest for other in busiest)
    return apart >= DIFFER * max(map(sum, busiest))


def days_of_no_habit(context: EvaluationContext, classes: tuple[tuple[int, ...], ...]) -> frozenset[date]:
    """Busy days of classes that are busy on half of their days or fewer: luck, on any day.

    The end of a month, or work on one of two Saturdays, is no habit of its weekday.
    """
    found: set[date] = set()
    totals = {date: sum(row) for date, row in _requests_by_date(context).items()}
    for weekdays in classes:
        own = {date: total for date, total in totals.items() if date.weekday() in weekdays}
        busy = {date for date, total in own.items() if total >= REGIME * max(own.values())}
        found |= busy if 2 * len(busy) <= len(own) else set()
    return frozenset(found)


def _requests_by_date(context: EvaluationContext) -> dict[date, tuple[float, ...]]:
    """Requests of the 24 hours of each date."""
    return dict(zip(dict.fromkeys(day.day for day in context.days), context.requests_by_hour, strict=True))


def _counts_of(
    context: EvaluationContext, shape: FleetShape, classes: tuple[tuple[int, ...], ...], may_keep_count: bool
) -> Iterator[DayCounts]:
    """The smallest counts of each class; none for a class whose days no fleet carries."""
    lucky = days_of_no_habit(context, classes)
    for weekdays in classes:
        apart = on_weekdays(context, weekdays, lucky)
        if any(day.request_count > 0 for day in apart.days):
            fleet = find_fleet(apart, shape, may_keep_count)
        else:
            fleet = Fleet((context.owner_minimum,) * HOURS, shape.workers, shape.random_routing, shape.slower)
        if fleet is None:
            return
        floor = failed_by_hour(apart, shape.name, shape.slower, shape.workers)
        counts = tuple(max(count, least) for count, least in zip(fleet.counts, floor, strict=True))
        yield DayCounts(weekdays, counts)


def merge_alike(classes: tuple[DayCounts, ...]) -> tuple[DayCounts, ...]:
    """The classes, those with the same counts as one: where Saturday runs as Friday does, nobody reads them apart."""
    days: dict[tuple[int, ...], list[int]] = {}
    for one in classes:
        days.setdefault(one.counts, []).extend(one.weekdays)
    return tuple(DayCounts(tuple(sorted(weekdays)), counts) for counts, weekdays in days.items())


def over_all_days(fleet: Fleet, classes: tuple[DayCounts, ...]) -> Fleet:
    """The fleet with the counts of the classes; its own are the most of each hour."""
    counts = tuple(max(one.counts[hour] for one in classes) for hour in range(HOURS))
    return replace(fleet, counts=counts, day_counts=classes)
