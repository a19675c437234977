"""The smallest fleet of a type that carries the past days of an endpoint: by the replay, now, grown, and as it stands.

Under the owner's policies a fleet grows by its minimum: a count alone would be undone by them. Their maximum stays.
"""

import math
from dataclasses import dataclass, replace

from rightsizer.domain.demand import Plan, Served
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.context import Situation
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.replay import concurrency, hourly_plan
from rightsizer.recommender.slowdown import workers_of

SHARES = (1.0, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)
"""Quantiles of the concurrency that a fleet is sized for, tried from safe to bold; the replay decides."""
WARIER = 4
"""Times that the margin is raised to get past a fleet that failed."""
JUMP = 1.5
"""Requests of a day over those of the busiest day before, from which its hours are no more those of the past."""


def sets_bounds(at: Situation, candidate: str) -> bool:
    """Whether the fleet of this type may be chosen with its bounds; for another type the owner's are scaled."""
    return grows(at, candidate) or _opened(at, candidate)


def _opened(at: Situation, candidate: str) -> bool:
    return at.bounded and (at.policy.several_at_once or candidate == at.runs.name)


def top(at: Situation, candidate: str, most: int) -> int:
    """Instances up to which autoscaling may add: the owner's maximum stays as it is; 0 where no bounds are set."""
    if not sets_bounds(at, candidate):
        return 0
    return most if at.policy.several_at_once else max(t.maximum for t in at.endpoint.scaling)


def limit(at: Situation, candidate: str, most: int) -> int:
    """Instances that are tried at most: where the owner's minimum grows, not more than their maximum."""
    return min(most, room(at)) if grows(at, candidate) else most


def bounds(at: Situation, candidate: str, plan: Plan) -> tuple[int | None, int | None]:
    """The minimum and the maximum that the fleet needs; None where it is set by its count, or scaled by the type."""
    low, count = min(plan.counts), max(plan.counts)
    if grows(at, candidate):
        return low, room(at)
    less = count < at.peak or low != count or candidate != at.runs.name
    if not less or not sets_bounds(at, candidate):
        return None, None
    return low, max(top(at, candidate, at.peak * at.policy.count_factor), count)


@dataclass(frozen=True, slots=True)
class Shape:
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


def smallest(at: Situation, shape: Shape) -> Plan | None:
    """The smallest fleet that carries the past days with the margin; None when none up to the most does.

    A fleet that failed teaches: the next one is larger than it, whatever the replay says of it. It never gets larger
    than the owner's own was, at a load that the owner's carried.
    """
    failed = failed_instances(at, shape.name, shape.slower, shape.workers)
    for more in range(WARIER + 1):
        plan = _sized(replace(at, cautious=at.cautious + more) if more else at, shape)
        if plan is None or sum(plan.counts) / 24 > (1 + at.policy.failed_room) * failed:
            return _as_owned(at, shape, plan)
    return None


def _as_owned(at: Situation, shape: Shape, plan: Plan | None) -> Plan | None:
    """The owner's own fleet where a change of ours would otherwise grow beyond it for the margin alone."""
    if plan is None or not at.changed or shape.name != at.reference.name or sum(plan.counts) <= sum(at.fleet):
        return plan
    carried = max((d.request_count for d in at.base), default=0.0) * (1 + at.policy.blacklist_demand)
    if max((d.request_count for d in at.days), default=0.0) > carried:
        return plan
    counts = at.fleet if shape.hourly else (min(max(at.fleet), shape.most),) * 24
    return Plan(counts, shape.workers, shape.random_routing, shape.slower)


def _sized(at: Situation, shape: Shape) -> Plan | None:
    """Where autoscaling adds instances, it is part of the fleet: the counts are what it starts from."""
    slower, workers, random_routing, most = shape.slower, shape.workers, shape.random_routing, shape.most
    levels = concurrency(at.stream, slower * at.margin)
    ceiling = 0 if random_routing else top(at, shape.name, most)
    best: Plan | None = None
    low, high = 0, len(SHARES) - 1
    while low <= high:
        middle = (low + high) // 2
        counts = hourly_plan(levels, SHARES[middle], at.margin, workers, most)
        counts = tuple(max(c, at.floor) for c in counts)
        if not shape.hourly:
            counts = (max(counts),) * 24
        maximum = ceiling if ceiling > min(counts) else 0
        plan = Plan(counts, workers, random_routing, slower, at.margin, maximum)
        if carries(at, plan):
            best, low = plan, middle + 1
        elif random_routing and not shape.hourly and counts[0] < most:
            return _more(at, plan, counts[0], most)
        else:
            high = middle - 1
    return best


def _more(at: Situation, plan: Plan, low: int, high: int) -> Plan | None:
    """The smallest constant count above `low` that carries the load behind random routing, by bisection."""
    best = None
    while low < high:
        middle = (low + high + 1) // 2
        tried = replace(plan, counts=(middle,) * 24)
        if carries(at, tried):
            best, high = tried, middle - 1
        else:
            low = middle
    return best


def mean_instances(at: Situation, plan: Plan) -> float:
    """Instances on average at the load seen, what autoscaling adds included."""
    if not plan.maximum:
        return sum(plan.counts) / 24
    return at.served(replace(plan, load=1.0)).mean_instances


def before_ours(at: Situation) -> Target:
    """The fleet that served before our changes. Under the owner's own policies it is their minimum that comes back.

    That is the least that any hour ran, from where the policies add; the most, where the minimum was not what we took.
    """
    name, count = at.reference.name, max(at.fleet)
    hourly = at.fleet if min(at.fleet) != count and at.hourly(name, rerouted=False) else None
    if at.policy.several_at_once:
        # A fleet may grow with its load; a single instance gets no autoscaling that it never had.
        most = at.peak * at.policy.count_factor if at.peak > 1 else count
        return Target(name, count, hourly, maximum=most if at.bounded else None)
    scaled = [target for target in at.endpoint.scaling if target.policies]
    if not scaled or at.runs.name != name:
        return Target(name, count, hourly)
    high, least = max(t.maximum for t in scaled), min(at.fleet)
    if least <= min(t.minimum for t in scaled):
        least = count
    return Target(name, count, minimum=min(least, high), maximum=high)


def plan_of(at: Situation, option: Option, hardware: InstanceType, slower: float) -> Plan:
    """The fleet of an option to replay days on, `slower` times as slow; `hardware` is its type."""
    target = option.target
    counts = target.hourly_counts or (max(target.instance_count, 1),) * 24
    workers = workers_of(hardware, at.reference, at.demand, at.latency)
    random_routing = at.random and target.routing is None
    return Plan(counts, workers, random_routing, slower, maximum=target.maximum or 0)


def carries(at: Situation, plan: Plan) -> Served | None:
    """What the plan would have done; None when too many requests would have missed the goal.

    At the plan's own load nobody may notice it. With the growth of the policy on top it still has to hold the
    objective, though not for each request: a load that has grown is met by the next evaluation. The guard of a change
    sees the load that comes, so it may not ring at the load that was seen.
    """
    served = at.served(plan)
    if not _unnoticed(at, served, at.before):
        return None
    if served.rung > at.before.rung and at.served(replace(plan, load=1.0)).rung > at.before.rung:
        return None
    grown = 1 + at.policy.down_with_growth
    if 1 < plan.load < grown:
        held = at.served(replace(plan, load=grown))
        if held.late > at.before.late + at.allowed(at.policy.grown_share) * held.requests:
            return None
    return served


def carries_alone(at: Situation, plan: Plan) -> bool:
    """Whether one instance in place of one does: as it was, and both of them with the margin and with growth on top."""
    if carries(at, plan) is None:
        return False
    more, before = at.served(replace(plan, load=at.margin)), at.before_at(at.margin)
    if not _unnoticed(at, more, before) or more.rung > before.rung:
        return False
    growth = 1 + at.policy.down_with_growth
    held, grown = at.served(replace(plan, load=growth)), at.before_at(growth)
    return held.late <= grown.late + at.allowed(at.policy.grown_share) * held.requests


def jumped(at: Situation) -> bool:
    """Whether the last day had far more requests than any day that the fleet was chosen for."""
    usual = max((d.request_count for d in at.days[:-1]), default=math.inf)
    return at.days[-1].request_count > JUMP * usual


def still_carries(at: Situation) -> bool:
    """Whether the fleet that we set, on the type it was measured on, still carries the last days as they were."""
    if not at.changed or at.runs.name != at.reference.name or at.peak < 2:
        return True
    counts = tuple(max(1, round(c or max(at.fleet))) for c in at.days[-1].instances)
    return _unnoticed(at, at.served(Plan(counts, at.workers, at.random, 1.0)), at.before)


def _unnoticed(at: Situation, served: Served, before: Served) -> bool:
    return served.late <= before.late + at.allowed(at.policy.excess_share) * served.requests


def grows(at: Situation, candidate: str) -> bool:
    """Whether more of this type means a higher minimum, whatever dimensions the settings open.

    It takes nothing of the owner's that a change of ours had not taken before, and deploys nothing.
    """
    return at.tight and candidate == at.runs.name and bool(_scaled(at)) and not at.policy.several_at_once


def room(at: Situation) -> int:
    """The owner's own maximum, above which nothing grows."""
    return max(target.maximum for target in _scaled(at))


def raises(at: Situation, option: Option) -> bool:
    """Whether the option raises the minimum that is registered now, and leaves the maximum as it is."""
    target = option.target
    bounds = option.kind is OptionKind.AUTOSCALING and target.instance_type == at.runs.name
    if not bounds or target.minimum is None or not _scaled(at):
        return False
    return target.minimum > max(t.minimum for t in _scaled(at)) and target.maximum == room(at)


def held(at: Situation, option: Option) -> Reason | None:
    """Why bounds that should grow do not; None where they do, or where the option moves something else."""
    if option.kind is not OptionKind.AUTOSCALING or not _scaled(at) or at.policy.several_at_once or raises(at, option):
        return None
    low = max(t.minimum for t in _scaled(at))
    text = f"the load needs more, and autoscaling already starts from {low} of at most {room(at)} instances: raise "
    return Reason(Code.AUTOSCALED, f"{text}its maximum, or lower the target of its policy")


def _scaled(at: Situation) -> list[ScalableTarget]:
    return [target for target in at.endpoint.scaling if target.policies]
