"""Days of the week that are judged apart: their own past days, and a plan with counts of its own on each of them."""

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.schedule import WEEKDAYS
from rightsizer.recommender.context import EvaluationContext, on_days

JUMP = 1.5
"""Requests of a day over those of the busiest day before, from which its hours are no more those of the past."""


def on_weekdays(context: EvaluationContext, weekdays: Iterable[int], also: Collection[date] = ()) -> EvaluationContext:
    """The same endpoint judged by its days of these weekdays (Monday is 0), and by those dates, alone.

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
