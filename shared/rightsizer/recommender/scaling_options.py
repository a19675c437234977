"""Scaling that a fleet of fixed size may get: target tracking, or counts for classes of days."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from rightsizer.autoscaling.schedules import MOST_ACTIONS, scheduled_counts
from rightsizer.autoscaling.target_tracking import choose_metric, metric_reason, target_text
from rightsizer.domain.demand import Fleet
from rightsizer.domain.option import Risk, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import HOURS, WEEKDAYS, DayCounts, week_of
from rightsizer.domain.usage import PER_HOUR, REGIME
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import (
    FleetShape,
    find_fleet,
    may_add_tracking,
    mean_instances,
    replay_if_carried,
)
from rightsizer.recommender.hourly_counts import on_weekdays
from rightsizer.recommender.late_requests import failed_by_hour, failed_instances

EVEN = 0.8
"""Mean load over the busiest, from which it is even: what runs would have to be kept full to give back a fifth."""
NEARLY = 0.02
"""Share of the instances by which target tracking has to need fewer than a schedule or a count, which are simpler."""
FOLLOWS = 1.1
"""Mean instances over the minimum from which a policy follows the load; below it, it is a bold count in disguise.

On replayed image pools such fleets (11 to 32 with a mean of 11.1, where the search took a count of 15) brought the
harm-free saving of six seeds from 36 to 28 % of a clairvoyant's, and no probation would have seen them scale.
"""
LATE = "how fast an instance of this model starts: added ones serve ten minutes after the load in the replay"
LEAST = 2
"""Instances at least, unless the owner or the environment says how few: one is in one Availability Zone alone."""


def no_tracking_reason(context: EvaluationContext) -> Reason | None:
    """Why target tracking cannot be added, or cannot save anything; None where it may."""
    if context.endpoint.scaling:
        return Reason(Code.AUTOSCALED, "a scalable target exists already, and a second one cannot be registered")
    load = context.demand.load
    if load.peak_rate > 0 and load.mean_rate > EVEN * load.peak_rate:
        share = 100 * load.mean_rate / load.peak_rate
        text = f"the load is too even for it: its mean is {share:.0f} % of its peak, and autoscaling follows changes"
        return Reason(Code.NOT_CHEAPER, text)
    metric = choose_metric(context.workers, service_s(context, 1.0), context.peak_count)
    return metric if isinstance(metric, Reason) else None


def with_tracking(context: EvaluationContext, shape: FleetShape, fleet: Fleet | None, rerouted: bool) -> Fleet | None:
    """The fleet that was found, or the one with target tracking where that needs fewer instances. Total.

    `rerouted`: the option changes how requests are routed too, and one change moves one of them.
    """
    if rerouted or not may_add_tracking(context, shape.name) or no_tracking_reason(context) is not None:
        return fleet
    tracked = _tracked_fleet(context, shape)
    if isinstance(tracked, Reason):
        return fleet
    if fleet is None or mean_instances(context, tracked) < (1 - NEARLY) * mean_instances(context, fleet):
        return tracked
    return fleet


def too_late_reason(context: EvaluationContext) -> Reason | None:
    """Why target tracking does not follow the load of a fleet without autoscaling; None where it does, or has one.

    None too where one instance runs now: nothing is replayed for a fleet that is gone.
    """
    if context.endpoint.scaling or context.runs.name != context.reference.name or context.variant.current_count < 2:
        return None
    shape = FleetShape(context.runs.name, 1.0, context.workers, context.is_random_routing, False, context.peak_count)
    fleet = _tracked_fleet(context, shape)
    return fleet if isinstance(fleet, Reason) else None


def _tracked_fleet(context: EvaluationContext, shape: FleetShape) -> Fleet | Reason:
    """The smallest minimum that carries the past days and is left for a part of the day; or why there is none."""
    fleet = _smallest_tracked(context, shape)
    if fleet is None:
        text = "no minimum below what runs carries the load in the replay: added instances serve ten minutes late"
        return Reason(Code.NOT_CHEAPER, text)
    metric, low, mean = _metric_of(context, fleet), min(fleet.counts), mean_instances(context, fleet)
    if isinstance(metric, Reason):
        return metric
    if mean < FOLLOWS * low:
        text = f"the policy would hardly act: the load needs {mean:.1f} instances on average, and {low} at the least"
        return Reason(Code.NOT_CHEAPER, text)
    return fleet


def _smallest_tracked(context: EvaluationContext, shape: FleetShape) -> Fleet | None:
    """The smallest minimum below what runs that carries the past days, with target tracking up to what runs.

    By bisection: what a minimum carries, a larger one does. A fleet that failed is not tried again.
    """
    failed = failed_instances(context, shape.name, shape.slower, shape.workers, tracked=True)
    one_may_do = context.endpoint.objective.min_instances or context.policy.lone_instance is Risk.VERY_LOW
    least = context.owner_minimum if one_may_do else LEAST
    low = max(least, math.floor((1 + context.policy.failed_room) * failed) + 1)
    most, best = context.peak_count, None
    high = most - 1
    while low <= high:
        middle = (low + high) // 2
        counts = (middle,) * 24
        fleet = Fleet(counts, shape.workers, shape.random_routing, shape.slower, context.load_margin, most)
        if replay_if_carried(context, fleet):
            best, high = fleet, middle - 1
        else:
            low = middle + 1
    return best


def minimum_like_owners(context: EvaluationContext, fleet: Fleet) -> Fleet | None:
    """The autoscaled fleet with the smallest minimum that serves as the owner's does; None where none does.

    Both are replayed with tracking that keeps BUSY_TARGET of their workers busy, whatever the owner's target is:
    requests wait for instances that come late on either. On a slower type they wait for more of them. A higher minimum
    ends that, often at no cost: tracking then adds fewer.
    """
    low, high = min(fleet.counts), max(target.maximum for target in context.endpoint.scaling)
    theirs = context.replay(Fleet((low,) * HOURS, context.workers, context.random_base, 1.0, maximum=high))
    more = context.allowed_late_share(context.policy.excess_share)

    def serves(minimum: int) -> bool:
        then = context.replay(replace(fleet, counts=(minimum,) * HOURS))
        return then.late <= theirs.late + more * then.requests and then.rings_alarm <= theirs.rings_alarm

    counts = range(low, max(fleet.maximum, low) + 1)
    found = bisect_left(counts, True, key=serves)
    return replace(fleet, counts=(counts[found],) * HOURS) if found < len(counts) else None


def tracked_target(context: EvaluationContext, target: Target, fleet: Fleet) -> tuple[Target, tuple[str, ...]]:
    """The target with the policy that is added for the fleet, and a note on it; unchanged where none is."""
    if not fleet.maximum or not may_add_tracking(context, target.instance_type):
        return target, ()
    found = _metric_of(context, fleet)
    if isinstance(found, Reason):
        return target, ()
    target = replace(target, metric=found[0], target_value=found[1])
    return target, (f"why {target_text(target)}: {metric_reason(found[0])}",)


def _metric_of(context: EvaluationContext, fleet: Fleet) -> tuple[str, float] | Reason:
    return choose_metric(fleet.workers, service_s(context, fleet.slower), min(fleet.counts))


def service_s(context: EvaluationContext, slower: float) -> float:
    """Mean seconds of service of a request, without waiting."""
    return sum(value * share for value, share in context.service_times) * slower


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
