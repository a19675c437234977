"""Late requests since our own changes: forbidden options, and the extra margin."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from rightsizer.domain.history import PastChange
from rightsizer.domain.usage import BIN, DailyUsage, busy_days
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.finding import (
    LatencyDegradation,
    late_budget_multiple,
    latency_degradation,
    outgrown_reason,
)
from rightsizer.recommender.latency import share_of_late_requests
from rightsizer.recommender.queued_sleep import sleeps_already
from rightsizer.recommender.slowdown import rest_until

BUDGET = 1.0
"""Multiple of the allowed late requests from which nothing gets smaller, and a fleet of ours grows."""
WEEK, WORK_DAYS = 7, 5
HARDER = 3.0
"""Times its usual share of late requests that the old fleet is given credit for on harder days."""
NO_FASTER = 0.95
"""Slowdown against the reference type from which a type is no faster than it."""
FREE, GAIN, WARIEST = 0.5, 1.0, 3.0
"""Part of the allowed late requests that costs nothing, caution for each allowance beyond it, and its limit."""


def find_degradation(context: EvaluationContext) -> LatencyDegradation | None:
    """Evidence that a change of ours must be taken back at once."""
    changes = [p for p in context.inputs.history.endpoint if p.is_in_force]
    if not changes:
        return None
    since = [d for d in context.days if d.day >= changes[-1].at.date() and d.instance_type == context.runs.name]
    grown = outgrown_reason(context.runs, context.reference, context.demand.memory)
    if grown is not None:
        return LatencyDegradation(grown, is_severe=True)
    same = context.runs.name == context.reference.name
    if same and sleeps_already(context.endpoint):
        return None  # who wakes it waits for a start, as was said before: the proof of that change judges its queue
    if same and context.instances >= sum(context.reference_counts) / 24 - 0.01:
        return None
    baseline = share_of_late_requests(context.latency.bins, context.objective.p95_s)
    uneven = unevenness(context)
    for days in (since[-2:], since):
        found = latency_degradation(days, context.objective, baseline, context.policy, uneven)
        if found is not None and not found.is_severe and baseline > 0:
            harder = baseline * hardness(context, days)
            found = latency_degradation(days, context.objective, harder, context.policy, uneven)
        if found is not None:
            return found
    return None


def extra_margin(context: EvaluationContext) -> float:
    """Caution for the share of the allowed late requests that was used since our first change; a fleet can grow."""
    return (
        min(max(GAIN * (_budget_used(context, _days_since_change(context)) - FREE), 0.0), WARIEST)
        if context.peak_count > 1
        else 0.0
    )


def late_budget_used(context: EvaluationContext) -> float | None:
    """Multiple of the allowed late requests that the fleets which we left standing used up; None within the budget.

    Days of a change that was taken back do not count here: what runs since is not to blame for them. Nor do days on
    the owner's own fleet, before a change of ours stood for the first time.
    """
    changes = _deployed_changes(context)
    returned = {p.at.date() for p in changes if p.is_refuted}
    first = min((p.at.date() for p in changes if p.is_in_force), default=date.max)
    days = [d for d in context.days if d.day >= first and d.day not in returned]
    if context.peak_count == 1 or _budget_used(context, days) <= BUDGET:
        return None
    used = _budget_used(context, days, hardness(context, days))
    return used if used > BUDGET else None


def budget_sentence(used: float, context: EvaluationContext) -> str:
    """The beginning of the sentence that says how much of the budget was used."""
    few = f", of few {context.policy.late_a_week:g} a week" if context.objective.declared else ""
    return (
        f"since our first change {used:.2f} times as many requests as allowed came later than before"
        f" ({100 * context.policy.late_budget:g} % of them may{few})"
    )


def failed_instances(
    context: EvaluationContext, name: str, slower: float, workers: int, *, tracked: bool = False
) -> float:
    """Mean instances of the largest fleet of a type that failed under today's load; 0 without one.

    It failed when its change was taken back, or when a day under it had more late requests than days differ by. What
    failed on the reference type fails on one that is no faster (`slower` is its slowdown) and serves no more at once.
    A schedule by days of the week counts with the largest mean that it had on the days of this context. `tracked`: of a
    fleet that target tracking changed, its minimum, for another minimum.
    """
    fleets = _failed_fleets(context, name, slower, workers)
    return max((failed.least if tracked and failed.least else failed.mean for failed in fleets), default=0.0)


def failed_by_hour(context: EvaluationContext, name: str, slower: float, workers: int) -> tuple[int, ...]:
    """24 counts: the most that failed in each hour of these days, of fleets whose hours are known."""
    known = [failed.counts for failed in _failed_fleets(context, name, slower, workers) if failed.counts]
    return tuple(max((math.ceil(counts[hour] - 0.01) for counts in known), default=0) for hour in range(24))


@dataclass(frozen=True, slots=True)
class _FailedFleet:
    mean: float
    counts: tuple[float, ...] = ()
    """Instances by the hour of the day; () where only the mean is known."""
    least: float = 0.0
    """Minimum of the target tracking that was added; 0 where none was."""


def _failed_fleets(context: EvaluationContext, name: str, slower: float, workers: int) -> list[_FailedFleet]:
    policy, load = context.policy, context.demand.load.peak_busy_gpus
    back = [p for p in _deployed_changes(context) if p.is_refuted]
    rests = [p for p in back if rest_until(p, 1, load, policy, context.inputs.now) is not None]
    alike = {name, context.reference.name} if slower >= NO_FASTER and workers <= context.workers else {name}
    weekdays = {day.day.weekday() for day in context.days}
    failed = [
        failed_fleet
        for p in rests
        if p.from_type == p.to_type and p.to_type in alike
        for failed_fleet in _fleets_of(p, weekdays)
    ]
    failed += [_FailedFleet(p.from_count) for p in _grown_from(context) if p.from_type in alike]
    returned, least = {p.at.date() for p in back}, sum(context.reference_counts) / 24 - 0.01
    busiest = max((d.request_count for d in context.days[-WEEK:]), default=0.0) * (1 + policy.blacklist_demand)
    for day in _days_since_change(context):
        counts = [c for c in day.instances if c]
        mean = sum(counts) / max(len(counts), 1)
        ours = day.instance_type in alike and day.day not in returned and mean < least
        if ours and day.request_count <= busiest and _had_degradation(context, day):
            failed.append(_FailedFleet(mean, tuple(count or 0.0 for count in day.instances)))
    return failed


def _grown_from(context: EvaluationContext) -> Iterator[PastChange]:
    """Growth that stands: the fleet before it was too small for its load, as one that failed."""
    policy, load, now = context.policy, context.demand.load.peak_busy_gpus, context.inputs.now
    for past in context.inputs.history.endpoint:
        if past.grows and past.is_in_force and rest_until(past, 1, load, policy, now) is not None:
            yield past


def _fleets_of(past: PastChange, weekdays: Collection[int]) -> list[_FailedFleet]:
    """What a change set on these days of the week."""
    classes = [one.counts for one in past.day_counts if not set(weekdays).isdisjoint(one.weekdays)]
    if not classes:
        least = past.instances_against(tracked=True) if past.tracked else 0.0
        return [_FailedFleet(past.instances_against(tracked=False), least=least)]
    return [_FailedFleet(sum(counts) / len(counts), counts) for counts in classes]


def _had_degradation(context: EvaluationContext, day: DailyUsage) -> bool:
    baseline = share_of_late_requests(context.latency.bins, context.objective.p95_s)
    uneven = unevenness(context)
    if latency_degradation([day], context.objective, baseline, context.policy, uneven) is None:
        return False
    harder = baseline * hardness(context, [day])
    return latency_degradation([day], context.objective, harder, context.policy, uneven) is not None


def _deployed_changes(context: EvaluationContext) -> list[PastChange]:
    return [p for p in context.inputs.history.endpoint if p.was_deployed]


def _days_since_change(context: EvaluationContext) -> list[DailyUsage]:
    """The days since our first change."""
    first = min((p.at.date() for p in _deployed_changes(context)), default=date.max)
    return [d for d in context.days if d.day >= first]


def _budget_used(context: EvaluationContext, days: Sequence[DailyUsage], harder: float = 1.0) -> float:
    """The part of the allowed late requests that was used, where days were that much harder on any fleet.

    Where the owner's own days differ by more than chance, what such days explain uses up none.
    """
    if _is_explained(context, days):
        return 0.0
    return late_budget_multiple(
        days,
        context.objective,
        share_of_late_requests(context.latency.bins, context.objective.p95_s) * harder,
        context.policy,
    )


def _is_explained(context: EvaluationContext, days: Sequence[DailyUsage]) -> bool:
    """Whether two standard deviations of the owner's uneven days explain the late requests of these."""
    uneven = unevenness(context)
    latency = latency_of(days)
    if uneven <= 1 or latency is None:
        return False
    total = sum(weight for d in days for _, weight in d.latency)
    usual = share_of_late_requests(context.latency.bins, context.objective.p95_s) * total
    late = share_of_late_requests(latency.bins, context.objective.p95_s) * total
    return late - usual <= 2 * math.sqrt(uneven * usual)


def unevenness(context: EvaluationContext) -> float:
    """How much more late requests of the owner's days differ than by chance alone; 1 at least.

    It is the index of dispersion, variance over mean (Cox and Lewis 1966): 1 where each request is late by itself.
    Requests that come together are late together, so that two days of the same fleet differ by many. The worst day is
    left out: an incident is no measure of ordinary days. With fewer than a working week of others, 1.
    """
    limit, days = context.objective.p95_s, []
    for usage in busy_days(context.base):
        total = sum(weight for _, weight in usage.latency)
        if total > 0:
            late = sum(weight for index, weight in usage.latency if BIN**index / 1000 > limit)
            days.append((late / total, late, total))
    kept = sorted(days)[:-1]
    if len(kept) < WORK_DAYS or not any(late for _, late, _ in kept):
        return 1.0
    share = sum(late for _, late, _ in kept) / sum(total for _, _, total in kept)
    return max(sum((late - share * total) ** 2 / (share * total) for _, late, total in kept) / len(kept), 1.0)


def hardness(context: EvaluationContext, days: Sequence[DailyUsage]) -> float:
    """How many times more requests the reference fleet would have had late on these days, 1 to HARDER.

    Of each day the same number of requests is served, for of fewer only the heaviest minutes are kept. What two
    standard deviations of both counts explain is chance, and no harder day.
    """
    a_day = context.policy.replay_requests / max(len(busy_days(days)), 1)
    usual, then = (
        context.reference_replay_of(some, round(a_day * len(busy_days(some)))) for some in (context.base[-WEEK:], days)
    )
    if not usual.late or not then.late:
        return 1.0
    ratio = (then.late / then.requests) / (usual.late / usual.requests)
    chance = 2 * math.sqrt(1 / then.late + 1 / usual.late)
    return min(max(ratio / (1 + chance), 1.0), HARDER)
