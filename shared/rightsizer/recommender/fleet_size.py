"""The smallest fleet of a type that carries the past days of an endpoint: by the replay, now, grown, and as it stands.

Under the owner's policies a fleet grows by its minimum: a count alone would be undone by them. Their maximum stays.
"""

import math
from dataclasses import dataclass, replace

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import minimum_before_changes
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import HOURS
from rightsizer.domain.usage import busy_days
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.hourly_counts import concurrency_by_hour, hourly_plan, like_last_day, replay_plan
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.slowdown import workers_of

SHARES = (1.0, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)
"""Quantiles of the concurrency that a fleet is sized for, tried from safe to bold; the replay decides."""
WARIER = 4
"""Times that the margin is raised to get past a fleet that failed."""
RARE_DAYS = 0.1
"""Share of the busy days on which the guard may ring where a person accepts late requests, or was asked before."""


def may_choose_bounds(context: EvaluationContext, candidate: str) -> bool:
    """Whether the fleet of this type may be chosen with its bounds; for another type the owner's are scaled."""
    return is_minimum_raised_to_grow(context, candidate) or (context.may_set_bounds and candidate == context.runs.name)


def may_add_tracking(context: EvaluationContext, candidate: str) -> bool:
    """Whether target tracking may be added to that type: the one that runs, as two fixed instances or more."""
    if context.endpoint.scaling or candidate != context.runs.name:
        return False
    several = min(context.peak_count, context.variant.current_count) >= 2
    return several and not context.is_fleet_too_small and context.may_change(OptionKind.AUTOSCALING)


def autoscaling_maximum(context: EvaluationContext, candidate: str) -> int:
    """Instances up to which autoscaling may add: the owner's maximum stays as it is; 0 where no bounds are set."""
    if not may_choose_bounds(context, candidate):
        return 0
    return max(t.maximum for t in context.endpoint.scaling)


def largest_count(context: EvaluationContext, candidate: str, most: int) -> int:
    """Instances that are tried at most: where the owner's minimum grows, not more than their maximum."""
    return min(most, owner_maximum(context)) if is_minimum_raised_to_grow(context, candidate) else most


def wanted_bounds(context: EvaluationContext, candidate: str, fleet: Fleet) -> tuple[int | None, int | None]:
    """Minimum and maximum that the fleet needs; None for a fleet set by count or scaled by type."""
    low, count = min(fleet.counts), max(fleet.counts)
    if is_minimum_raised_to_grow(context, candidate):
        return low, owner_maximum(context)
    if fleet.maximum and may_add_tracking(context, candidate):
        return low, fleet.maximum
    less = count < context.peak_count or low != count or candidate != context.runs.name
    if not less or not may_choose_bounds(context, candidate):
        return None, None
    return low, max(autoscaling_maximum(context, candidate), count)


@dataclass(frozen=True, slots=True)
class FleetShape:
    """How a fleet of one type would serve, before its size is known."""

    name: str
    """The instance type."""
    slower: float
    workers: int
    random_routing: bool
    hourly: bool
    """Whether every hour of the day may have its own count."""
    most: int
    """Instances at most."""


def find_fleet(context: EvaluationContext, shape: FleetShape, may_keep_count: bool) -> Fleet | None:
    """The smallest fleet that carries the past days; None when none does.

    As many as today are always good enough where `may_keep_count`, and fewer in the hours that need less.
    """
    today = math.ceil(context.peak_count * context.workers / shape.workers)
    fleet = find_smallest_fleet(context, shape)
    if not may_keep_count or (fleet is not None and max(fleet.counts) <= today):
        return fleet
    as_today = Fleet(context.reference_counts, shape.workers, shape.random_routing, shape.slower)
    return find_fleet_within_reference(context, shape) or as_today


def find_smallest_fleet(context: EvaluationContext, shape: FleetShape) -> Fleet | None:
    """The smallest fleet that carries the past days with the margin; None when none up to the most does.

    A fleet that failed teaches: the next one is larger than it, whatever the replay says of it. It never gets larger
    than the owner's own was, at a load that the owner's carried.
    """
    failed = failed_instances(context, shape.name, shape.slower, shape.workers)
    above = (1 + context.policy.failed_room) * failed
    for more in range(WARIER + 1 if failed else 1):
        warier = replace(context, extra_margin=context.extra_margin + more) if more else context
        if (fleet := _search_fleet(warier, shape, above)) is not None:
            return _owners_fleet(context, shape, fleet)
    return None


def _owners_fleet(context: EvaluationContext, shape: FleetShape, fleet: Fleet) -> Fleet:
    """The owner's own fleet where a change of ours would otherwise grow beyond it for the margin alone."""
    if (
        not context.has_active_change
        or shape.name != context.reference.name
        or sum(fleet.counts) <= sum(context.reference_counts)
    ):
        return fleet
    carried = max((d.request_count for d in context.base), default=0.0) * (1 + context.policy.blacklist_demand)
    if max((d.request_count for d in context.days), default=0.0) > carried:
        return fleet
    counts = context.reference_counts if shape.hourly else (min(max(context.reference_counts), shape.most),) * 24
    return Fleet(counts, shape.workers, shape.random_routing, shape.slower)


def _search_fleet(context: EvaluationContext, shape: FleetShape, above: float) -> Fleet | None:
    """The fewest instances by the hour, on average more than `above`; one count at all hours where that is no more.

    Counts by the hour follow the chance of the days: where the replay refuses them, a constant count of fewer may do.
    """
    constant = shape.hourly and not context.is_schedule_too_small
    shapes = (replace(shape, hourly=False), shape) if constant else (shape,)
    fleets = [fleet for fleet_shape in shapes if (fleet := _search_counts(context, fleet_shape, above)) is not None]
    return min(fleets, key=lambda fleet: sum(fleet.counts), default=None)


def _search_counts(context: EvaluationContext, shape: FleetShape, above: float) -> Fleet | None:
    """Smallest fleet by the hour. Where autoscaling adds instances, the counts are those that it starts from."""
    slower, workers, random_routing, most = shape.slower, shape.workers, shape.random_routing, shape.most
    levels = concurrency_by_hour(context.stream, slower * context.load_margin)
    ceiling = 0 if random_routing else autoscaling_maximum(context, shape.name)
    floor = _least_by_hour(context, shape)
    best: Fleet | None = None
    low, high = 0, len(SHARES) - 1
    while low <= high:
        middle = (low + high) // 2
        counts = hourly_plan(levels, SHARES[middle], context.load_margin, workers, most)
        counts = tuple(map(max, counts, floor))
        if not shape.hourly:
            counts = (max(counts),) * 24
        maximum = ceiling if ceiling > min(counts) else 0
        fleet = Fleet(counts, workers, random_routing, slower, context.load_margin, maximum)
        if fleet.mean_count > above and replay_if_carried(context, fleet):
            best, low = fleet, middle + 1
        elif random_routing and not shape.hourly and counts[0] < most:
            return _search_constant_count(context, fleet, max(counts[0], math.floor(above)), most)
        else:
            high = middle - 1
    return best


def _least_by_hour(context: EvaluationContext, shape: FleetShape) -> tuple[int, ...]:
    """Instances of each hour below which nothing is tried: the owner's minimum, and of a schedule that grows its own.

    Growth gives room and takes none: an hour that ran well says nothing against what runs in it.
    """
    least = (context.owner_minimum,) * HOURS
    if not (shape.hourly and context.is_schedule_too_small):
        return least
    return tuple(max(low, round(runs or 0)) for low, runs in zip(least, context.days[-1].instances, strict=True))


def _search_constant_count(context: EvaluationContext, fleet: Fleet, low: int, high: int) -> Fleet | None:
    """The smallest constant count above `low` that carries the load behind random routing, by bisection."""
    best = None
    while low < high:
        middle = (low + high + 1) // 2
        tried = replace(fleet, counts=(middle,) * 24)
        if replay_if_carried(context, tried):
            best, high = tried, middle - 1
        else:
            low = middle
    return best


def find_fleet_within_reference(context: EvaluationContext, shape: FleetShape) -> Fleet | None:
    """The smallest hourly counts up to the reference fleet's that serve as it does; None where none are fewer.

    Where the margin asks for more than runs, the hours that need less still get less.
    """
    if not shape.hourly:
        return None
    levels = concurrency_by_hour(context.stream, shape.slower * context.load_margin)
    best: Fleet | None = None
    low, high = 0, len(SHARES) - 1
    while low <= high:
        middle = (low + high) // 2
        counts = hourly_plan(levels, SHARES[middle], context.load_margin, shape.workers, shape.most)
        pairs = zip(counts, context.reference_counts, strict=True)
        counts = tuple(min(max(wanted, context.owner_minimum), runs) for wanted, runs in pairs)
        fleet = Fleet(counts, shape.workers, shape.random_routing, shape.slower)
        if carries_like_reference(context, fleet):
            best, low = fleet, middle + 1
        else:
            high = middle - 1
    failed = failed_instances(context, shape.name, shape.slower, shape.workers)
    if best is None or sum(best.counts) / 24 <= (1 + context.policy.failed_room) * failed:
        return None
    return best if sum(best.counts) < sum(context.reference_counts) else None


def mean_instances(context: EvaluationContext, fleet: Fleet) -> float:
    """Instances on average at the load seen, what autoscaling adds included."""
    if not fleet.maximum:
        return fleet.mean_count
    return context.replay(replace(fleet, load=1.0)).mean_instances


def fleet_before_changes(context: EvaluationContext) -> Target:
    """The fleet that served before our changes. Under the owner's own policies it is their minimum that comes back.

    That is the least that any hour ran, from where the policies add; the most, where the minimum was not what we took.
    With another type their bounds and targets come back as they were: a larger minimum would be paid at every hour.
    """
    name, count = context.reference.name, max(context.reference_counts)
    hourly = (
        context.reference_counts
        if min(context.reference_counts) != count and context.may_set_hourly_counts(name, rerouted=False)
        else None
    )
    scaled = [target for target in context.endpoint.scaling if target.policies]
    if not scaled:
        return Target(name, count, hourly)
    high = max(t.maximum for t in scaled)
    if context.runs.name != name:
        served = context.measured_types.get(context.runs.name)
        slower = max(served.latency, 1.0) if served is not None else 1.0
        high = max(math.ceil(high / slower - 1e-9), count)
        seen = min((runs for day in context.base for runs in day.instances if runs), default=1.0)
        low = max(math.floor(seen + 0.01), 1)  # the fewest of any hour: from there the owner's policies add what comes
        return Target(name, count, minimum=low, maximum=high, per_instance=round(slower, 4))
    least = min(context.reference_counts)
    least = count if least <= min(t.minimum for t in scaled) else least
    owners = minimum_before_changes(context.inputs.history.endpoint) or high
    return Target(name, count, minimum=min(least, high, owners), maximum=high)


def latency_ratio(option: Option) -> float:
    """Latency of a request that does not wait on the option over today's; 1 where nothing was reckoned."""
    return (option.promise.latency_ratio if option.promise else None) or 1.0


def replayed_p95_s(context: EvaluationContext, option: Option, hardware: InstanceType) -> float:
    """The p95 on the option, waiting included: today's times what the replay on its own counts makes of it.

    The replay keeps the heaviest minutes of busy endpoints, so its own p95 is above that of a whole day: only the
    ratio of both fleets' is taken.
    """
    then, today = replay_plan(context, fleet_of_option(context, option, hardware, latency_ratio(option)))
    grown = then.p95_s / today.p95_s if today.p95_s > 0 else latency_ratio(option)
    return round(context.latency.p95_s * grown, 4)


def fleet_of_option(context: EvaluationContext, option: Option, hardware: InstanceType, slower: float) -> Fleet:
    """The fleet of an option to replay days on, `slower` times as slow; `hardware` is its type."""
    target = option.target
    counts = target.hourly_counts or (max(target.instance_count, 1),) * 24
    classes = target.day_counts
    workers = workers_of(hardware, context.reference, context.demand, context.latency)
    random_routing = context.is_random_routing and target.routing is None
    return Fleet(counts, workers, random_routing, slower, maximum=target.maximum or 0, day_counts=classes)


def replay_if_carried(context: EvaluationContext, fleet: Fleet) -> ReplayResult | None:
    """Replay of the fleet; None when too many requests would have been late.

    At the plan's own load nobody may notice it. With the growth of the policy on top it still has to hold the
    objective, though not for each request: a load that has grown is met by the next evaluation. The guard of a change
    sees the load that comes, so it may not ring at the load that was seen.
    """
    served = context.replay(fleet)
    if not _is_unnoticed(context, served, context.reference_replay):
        return None
    may = context.reference_replay.rings_alarm + _rings_allowed(context)
    if served.rings_alarm > may and context.replay(replace(fleet, load=1.0)).rings_alarm > may:
        return None
    grown = 1 + context.policy.down_with_growth
    if 1 < fleet.load < grown:
        held = context.replay(replace(fleet, load=grown))
        if (
            held.late
            > context.reference_replay.late + context.allowed_late_share(context.policy.grown_share) * held.requests
        ):
            return None
    return served


def _rings_allowed(context: EvaluationContext) -> float:
    """Days on which the guard may ring beyond those of today; of what a person decides or was asked, one in ten."""
    person = context.within_objective or context.judges_again
    return RARE_DAYS * len({d.day for d in busy_days(context.days)}) * context.stream.copies if person else 0


def carries_like_reference(context: EvaluationContext, fleet: Fleet) -> bool:
    """Whether a fleet no larger than the reference fleet serves as it does: as observed, with margin, with growth."""
    if replay_if_carried(context, fleet) is None:
        return False
    more, before = (
        context.replay(replace(fleet, load=context.load_margin)),
        context.reference_replay_at(context.load_margin),
    )
    if not _is_unnoticed(context, more, before) or more.rings_alarm > before.rings_alarm:
        return False
    growth = 1 + context.policy.down_with_growth
    held, grown = context.replay(replace(fleet, load=growth)), context.reference_replay_at(growth)
    return held.late <= grown.late + context.allowed_late_share(context.policy.grown_share) * held.requests


def can_still_carry(context: EvaluationContext) -> bool:
    """Whether the fleet that a change of ours set still carries the last days."""
    if not context.has_active_change or context.runs.name != context.reference.name or context.peak_count < 2:
        return True
    context = like_last_day(context)
    counts = tuple(max(1, round(c or max(context.reference_counts))) for c in context.days[-1].instances)
    return _is_unnoticed(
        context,
        context.replay(Fleet(counts, context.workers, context.is_random_routing, 1.0)),
        context.reference_replay,
    )


def _is_unnoticed(context: EvaluationContext, served: ReplayResult, before: ReplayResult) -> bool:
    return served.late <= before.late + context.allowed_late_share(context.policy.excess_share) * served.requests


def is_minimum_raised_to_grow(context: EvaluationContext, candidate: str) -> bool:
    """Whether more of this type means a higher minimum, whatever dimensions the settings open.

    It takes nothing of the owner's that a change of ours had not taken before, and deploys nothing.
    """
    return context.is_fleet_too_small and candidate == context.runs.name and bool(_scaled_targets(context))


def owner_maximum(context: EvaluationContext) -> int:
    """The owner's own maximum, above which nothing grows."""
    return max(target.maximum for target in _scaled_targets(context))


def is_minimum_raised(context: EvaluationContext, option: Option) -> bool:
    """Whether the option raises the minimum that is registered now, and leaves the maximum as it is."""
    target = option.target
    bounds = option.kind is OptionKind.AUTOSCALING and target.instance_type == context.runs.name
    if not bounds or target.minimum is None or not _scaled_targets(context):
        return False
    return target.minimum > max(t.minimum for t in _scaled_targets(context)) and target.maximum == owner_maximum(
        context
    )


def minimum_refusal(context: EvaluationContext, option: Option) -> Reason | None:
    """Why the option does not raise the autoscaling minimum.

    None if it does, or if it changes something else.
    """
    if option.kind is not OptionKind.AUTOSCALING or not _scaled_targets(context) or is_minimum_raised(context, option):
        return None
    low = max(t.minimum for t in _scaled_targets(context))
    text = (
        f"the load needs more, and autoscaling already starts from {low} of at most {owner_maximum(context)} instances:"
    )
    return Reason(Code.AUTOSCALED, f"{text} raise its maximum, or lower the target of its policy")


def registered_reason(context: EvaluationContext, option: Option) -> Reason | None:
    """Why what is registered leaves nothing to save; None for other options, and where a fleet has to grow.

    Bounds that start no lower than those that are registered, or a count that the policies come down to by themselves.
    """
    target, live = option.target, {(t.minimum, t.maximum) for t in _scaled_targets(context)}
    if context.is_fleet_too_small or target.instance_type != context.runs.name:
        return None
    low = min((minimum for minimum, _ in live), default=math.inf)
    bounds = option.kind is OptionKind.AUTOSCALING and target.target_value is None
    if bounds and target.minimum is not None and target.minimum >= low:
        text = f"its autoscaling starts from {low} already, and ran {context.instances:.1f} instances on average:"
        return Reason(Code.NOT_CHEAPER, f"{text} bounds of {target.minimum} to {target.maximum} save nothing")
    if option.kind is OptionKind.INSTANCE_COUNT and target.instance_count >= low:
        text = f"its autoscaling comes down to {low} instances by itself,"
        return Reason(Code.NOT_CHEAPER, f"{text} and ran {context.instances:.1f} instances on average")
    return context.endpoint.scheduled_minimum if bounds else None


def _scaled_targets(context: EvaluationContext) -> list[ScalableTarget]:
    return [target for target in context.endpoint.scaling if target.policies]
