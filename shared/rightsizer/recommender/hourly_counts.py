"""Instances by the hour of the day, and the days of the week that are judged apart."""

import heapq
import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date

from rightsizer.domain.demand import Fleet, ReplayResult, Stream
from rightsizer.domain.schedule import WEEKDAYS
from rightsizer.domain.usage import PER_HOUR, DailyUsage, quantile
from rightsizer.recommender.context import EvaluationContext, on_days

ENOUGH = 100
"""Requests of an hour and its neighbours from which they have a level of their own."""
FARTHEST = 4
"""Hours on either side that an hour of few requests borrows from; more only where the whole day has few."""
HABIT_DAYS, HABIT_SHARE = 3, 0.5
"""Days, and share of the days, on which an hour of enough requests has to have some for its load to be a habit.

Three days are those before an hour-of-day profile is believed at all (`Policy.days_for_hours`).
"""


def concurrency_by_hour(stream: Stream, slower: float) -> tuple[tuple[int, ...], ...]:
    """Requests in service when each request arrives, itself included, were there workers enough; sorted, by hour."""
    by_hour: list[list[int]] = [[] for _ in range(24)]
    for arrivals, services in stream.days:
        leaving: list[float] = []
        levels: list[int] = []
        for at, work in zip(arrivals, services, strict=True):
            while leaving and leaving[0] <= at:
                heapq.heappop(leaving)
            heapq.heappush(leaving, at + work * slower)
            levels.append(len(leaving))
        first = 0
        for hour in range(24):
            last = bisect_left(arrivals, 3600 * (hour + 1), first)
            by_hour[hour] += levels[first:last]
            first = last
    for seen in by_hour:
        seen.sort()  # sorted parts are merged sooner below
    enough = ENOUGH * stream.copies
    habits = {hour for hour in _hours_of_most_days(stream) if len(by_hour[hour]) >= enough}
    near = _neighbour_hours(by_hour, enough, habits)
    return tuple(tuple(sorted([level for other in hours for level in by_hour[other]])) for hours in near)


def _hours_of_most_days(stream: Stream) -> list[int]:
    """The hours that had requests on most days; of busy days the stream keeps some requests, and counts them all."""
    least = max(HABIT_DAYS * stream.copies, HABIT_SHARE * len(stream.days))
    parts = [slice(hour * PER_HOUR, (hour + 1) * PER_HOUR) for hour in range(24)]
    return [hour for hour, part in enumerate(parts) if sum(1 for calls, _ in stream.slots if any(calls[part])) >= least]


def _neighbour_hours(by_hour: Sequence[Sequence[int]], enough: int, habits: Collection[int]) -> list[set[int]]:
    """The hours that each hour borrows from: the two beside it, and further ones until there are requests enough.

    Slopes begin early, and an hour of few requests is a matter of luck: one burst in the night needs what ten quiet
    nights did not. The quieter side is asked first, so that a night does not take the count of the morning. A load that
    comes at the same hour day by day is no luck: `habits` lend nothing beyond the hours beside them.
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
                lender = left
                before += 1
            else:
                lender = right
                after += 1
            if lender not in habits:
                near.add(lender)
        out.append(near)
    return out


def hourly_plan(
    levels: Sequence[Sequence[int]], share: float, margin: float, workers: int, most: int
) -> tuple[int, ...]:
    """Counts by hour that hold the `share` quantile of the concurrency, 1 to `most` instances.

    `levels` contain the margin already (the requests were served that much longer), and the busiest hour gets no other
    room. A quieter hour's shrinks only with the square root of its need, for chance weighs more where few are served at
    once (square-root staffing: Halfin and Whitt 1981). An hour that one instance holds with the margin, or without a
    request, gets one: the replay decides whether it survives beside the busy ones.
    """
    need = [quantile(values, share) / workers if values else 0.0 for values in levels]
    top = max(need)
    return tuple(min(1 if n <= 1 else math.ceil(n + _room(n, top, margin) - 1e-9), most) for n in need)


def _room(need: float, top: float, margin: float) -> float:
    """Instances beyond the need of an hour, where the busiest hour needs `top`."""
    return (margin - 1) * (math.sqrt(need * top) - need)


def requests_of_week(days: Sequence[DailyUsage]) -> tuple[float, ...]:
    """Requests of the 168 hours of the week, from Monday 00:00 UTC on, over all days."""
    week = [0.0] * (24 * 7)
    for day in days:
        for slot, value in enumerate(day.requests):
            week[24 * day.day.weekday() + slot // PER_HOUR] += value or 0.0
    return tuple(week)


JUMP = 1.5
"""Requests of a day over those of the busiest day before, from which its hours are no more those of the past."""


def on_weekdays(context: EvaluationContext, weekdays: Iterable[int], also: Collection[date] = ()) -> EvaluationContext:
    """The context of the days on these weekdays (Monday is 0) and of those dates alone.

    Fewer days are less evidence: the margin of the load grows with it. The latency is that of all days.
    """
    wanted = set(weekdays)
    days = [day for day in context.days if day.day.weekday() in wanted or day.day in also]
    base = [day for day in context.base if day.day.weekday() in wanted] or context.base
    return on_days(context, days, base)


def like_last_day(context: EvaluationContext) -> EvaluationContext:
    """The days that run the counts of the last day; all where no schedule by weekdays is in force."""
    last = next((past for past in reversed(context.inputs.history.endpoint) if past.is_in_force), None)
    day = context.days[-1].day.weekday()
    weekdays = next((counts.weekdays for counts in last.day_counts if day in counts.weekdays), None) if last else None
    return on_weekdays(context, weekdays) if weekdays is not None else context


def has_load_jumped(context: EvaluationContext) -> bool:
    """Whether the last day had far more requests than any day that the fleet was chosen for.

    Where weekdays have counts of their own, any of the same class: a weekend that doubled is below every weekday.
    """
    context = like_last_day(context)
    baseline = max((d.request_count for d in context.days[:-1]), default=math.inf)
    return context.days[-1].request_count > JUMP * baseline


def replay_plan(
    context: EvaluationContext, fleet: Fleet, reference_load: float = 1.0
) -> tuple[ReplayResult, ReplayResult]:
    """The replay of a plan and of the reference fleet on the same days, each request counted once.

    `reference_load` is the multiple of the load that the reference fleet serves; the plan has its own. Where days of
    the week differ each class is replayed alone: quiet days too, which say nothing of a plan that is the same on all.
    """
    if not fleet.day_counts:
        copies = context.stream.copies
        return _once(context.replay(fleet), copies), _once(context.reference_replay_at(reference_load), copies)
    then, today = [], []
    for counts in fleet.day_counts:
        apart = on_weekdays(context, counts.weekdays)
        share = len(counts.weekdays) / len(WEEKDAYS)
        if not any(day.request_count > 0 for day in apart.days):
            then.append(ReplayResult(0, 0, 0.0, mean_instances=share * sum(counts.counts) / len(counts.counts)))
            continue
        copies = apart.stream.copies
        plan = apart.replay(replace(fleet, counts=counts.counts, day_counts=()))
        then.append(replace(_once(plan, copies), mean_instances=share * plan.mean_instances))
        today.append(_once(apart.reference_replay_at(reference_load), copies))
    return _together(then), _together(today)


def _once(replay: ReplayResult, copies: int) -> ReplayResult:
    """The result without the other chances that few requests were given."""
    return replace(replay, requests=round(replay.requests / copies), late=round(replay.late / copies))


def _together(replays: list[ReplayResult]) -> ReplayResult:
    """The results as one; the latencies are those of the slowest class."""
    return ReplayResult(
        sum(replay.requests for replay in replays),
        sum(replay.late for replay in replays),
        max((replay.worst_p95_s for replay in replays), default=0.0),
        sum(replay.rings_alarm for replay in replays),
        sum(replay.mean_instances for replay in replays),
        sum(replay.late_in_backlog for replay in replays),
        max((replay.p95_s for replay in replays), default=0.0),
    )
