"""The options of an endpoint: every type of the catalogue, sized, priced and rated; or ruled out with a reason.

Each says what it leaves open, for the person who decides on it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.demand import Plan
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.older_option import HOURS_FACT
from rightsizer.domain.option import Excluded, Money, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender.candidates import Draft, drafts_of
from rightsizer.recommender.context import Situation
from rightsizer.recommender.elsewhere import volumes
from rightsizer.recommender.evidence import by_day
from rightsizer.recommender.fit import pool_refusal
from rightsizer.recommender.fleet_size import Shape, bounds, carries_alone, limit, mean_instances, sets_bounds, smallest
from rightsizer.recommender.pricing import (
    cost_of,
    host_risk,
    load_risk,
    memory_risk,
    quota_risk,
    step,
    type_option,
    vcpu_risk,
)
from rightsizer.recommender.shadow_test import Unsure, cost_of_test, hours_of_test
from rightsizer.recommender.slowdown import Ratio, width

GUESSED = 4
"""Unsure candidates whose fleet is computed, the most promising first."""
SPARE = 2
"""Candidates that are tried beyond the cheapest, so that automatic mode has a second type."""
LIKELY = 0.9
MIDDLE, QUICK = 0.5, 0.25
"""Chances of the middle slowdown or less, and of a quick one."""
QUICKER = 0.8
"""A quick slowdown over the middle one: the lower quartile over the median, 0.57 / 0.71 of phi (1,131 moves)."""
ALONE = ("whether one instance in one Availability Zone is enough while a failed one is replaced",)
OLDER = "whether the model runs without what compute capability {} has and {} has not (BF16, FP8, attention kernels)"
SMALLER_POOL = (
    "what a smaller KV cache costs: prefixes kept for later requests count as free, and will be found less often",
    "that the server's share of the card and its longest context suit the smaller card",
)
WEEKDAYS = ("other counts on some days of the week: each hour has the count of its busiest day",)
NOT_CHECKED = ("a start of the model on the candidate", "capacity of the candidate in the Availability Zones")


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that could be done."""

    sure: tuple[Option, ...]
    """Cheapest first."""
    unsure: tuple[Unsure, ...]
    excluded: tuple[Excluded, ...]
    later: tuple[Draft, ...] = ()
    """Types that serve and cannot be cheaper than the best: their fleets were not computed."""


def options_for(at: Situation) -> Options:
    """Options that save and every candidate that was ruled out."""
    drafts, excluded = drafts_of(at)
    sure: list[Option] = []
    hopeful: list[Unsure] = []
    best = at.ceiling
    certain = [d for d in drafts if d.sure]
    tried = 0
    for draft in certain:
        if draft.least_usd >= best or len(sure) >= 4:
            break
        tried += 1
        found = offer(at, draft)
        if isinstance(found, Option):
            sure.append(found)
            if draft.hardware.name not in at.lacking:
                best = min(best, float(found.usd_per_month))
        elif len(hopeful) < GUESSED and (less := _if_faster(at, draft)) is not None:
            hopeful.append(less)
        else:
            excluded.append(Excluded(draft.hardware.name, found))
    sure.sort(key=lambda o: (o.usd_per_month + o.switch_usd, o.target.instance_type))
    unsure = _unsure(at, drafts, best)
    return Options(tuple(sure), (*unsure, *hopeful), tuple(excluded), tuple(certain[tried:]))


def stand_ins(at: Situation, options: Options) -> Iterator[Option]:
    """Options of the types behind the cheapest that save too, for a lack of capacity; a few at most."""
    for draft in options.later[:SPARE]:
        found = offer(at, draft) if draft.least_usd < at.ceiling else None
        if isinstance(found, Option):
            yield found


def _unsure(at: Situation, drafts: Sequence[Draft], best: float) -> list[Unsure]:
    """The most promising candidates that a test could make sure of, cheaper than `best` US dollars a month."""
    enough = (1 - at.policy.minimum_saving_share) * best
    found = [d for d in drafts if not d.sure and d.hardware.name != at.runs.name and d.least_usd < enough]
    found.sort(key=lambda d: d.fit * d.fast * (d.least_usd - best))
    return [guess for d in found[:GUESSED] if (guess := _guess(at, d)) is not None]


def _guess(at: Situation, draft: Draft) -> Unsure | None:
    """The option as it would be if a test went well, and how likely that is.

    The slowdown is a little below what the objective allows. Where no fleet carries the load at the middle of what
    is likely, a quick one may.
    """
    ratio = min(draft.ratio.mid, LIKELY * at.stretch)
    quick = min(_quick(at, draft), ratio)
    for tried, chance in ((ratio, draft.fast), (quick, min(draft.fast, QUICK))):
        found = offer(at, replace(draft, ratio=Ratio(tried, tried), fit=1.0, fast=1.0))
        if isinstance(found, Option):
            return _unsure_of(at, found, draft.fit * chance)
        if not draft.speed.source.is_guess:
            break
    return None


def _if_faster(at: Situation, draft: Draft) -> Unsure | None:
    """A candidate whose fleet is too busy at the bound of its slowdown, but not at less: worth measuring."""
    open_question = draft.speed.source.is_guess and draft.ratio.bound > draft.ratio.mid
    if not open_question or draft.hardware.name == at.runs.name:
        return None
    for tried, chance in ((draft.ratio.mid, MIDDLE), (_quick(at, draft), QUICK)):
        found = offer(at, replace(draft, ratio=Ratio(tried, tried), fast=chance))
        if isinstance(found, Option):
            return _unsure_of(at, found, draft.fit * chance)
    return None


def _unsure_of(at: Situation, option: Option, chance: float) -> Unsure:
    """The option with what its test costs beside today's fleet."""
    fleet = float(at.price.usd_per_hour) * at.instances
    return Unsure(option, chance, cost_of_test(option, fleet, at.policy), at.told)


def _quick(at: Situation, draft: Draft) -> float:
    """The latency ratio where the GPU's part is as quick as one move in four is."""
    return draft.ratio.mid - (1 - QUICKER) * at.demand.gpu_share * draft.speed.mid


def offer(at: Situation, draft: Draft) -> Option | Reason:
    """The candidate's cheapest fleet as an option, or the reason why it is none."""
    found = _fleet_of(at, draft)
    if not isinstance(found, Option):
        return found
    return _beyond_quota(at, found) or _pool_too_small(at, draft, found) or found


def _pool_too_small(at: Situation, draft: Draft, option: Option) -> Reason | None:
    """Why the KV cache of its cards would not hold the requests of today's peak; None where a start has shown it."""
    if draft.started:
        return None
    counts = option.target.hourly_counts or (option.target.instance_count,) * 24
    fewer = 1.0 if at.endpoint.scaling else max(then / max(n, 1) for then, n in zip(at.fleet, counts, strict=True))
    return pool_refusal(at.reference, draft.hardware, at.demand.memory, draft.ratio.bound * max(fewer, 1.0))


def _beyond_quota(at: Situation, option: Option) -> Reason | None:
    """Why the account may not run the new fleet, which starts beside the old one; None where no quota forbids it."""
    name, count = option.target.instance_type, option.target.instance_count
    quota = at.given.quotas.get(name)
    if quota is None or count <= quota or name == at.runs.name:
        return None
    sentence = f"the account's quota for {name} endpoints is {quota}, and {count} instances are needed"
    return Reason(Code.NO_QUOTA, sentence)


def _fleet_of(at: Situation, draft: Draft) -> Option | Reason:
    """The smallest fleet of the candidate that carries the load.

    Counts are sized with the middle of a measured slowdown, for they can be changed again and the days on the type
    show it; memory, and a slowdown that nobody measured, with the bound (but where a likely one is dared untested).
    """
    if at.endpoint.scaling and not at.changed and not sets_bounds(at, draft.hardware.name):
        return _rescaled(at, draft)
    switch = at.may(OptionKind.ROUTING)
    random_routing = at.random and not switch
    hourly = at.hourly(draft.hardware.name, switch and at.random)
    hourly = hourly and at.policy.days_for_hours <= len({d.day for d in at.days})
    today = math.ceil(at.peak * at.workers / draft.workers)
    most = limit(at, draft.hardware.name, at.policy.count_factor * today + at.policy.count_spare)
    slower = draft.ratio.mid if draft.speed.source.is_measured or _dared(at, draft) else draft.ratio.bound
    single = Plan((1,) * 24, draft.workers, random_routing, slower)
    same = draft.hardware.name == at.reference.name
    plan: Plan | None = None
    if at.peak == 1 and (same or carries_alone(at, single)):
        plan = single
    elif not (today == 1 and 2 * float(draft.price.usd_per_hour) >= float(at.price.usd_per_hour)):
        plan = smallest(at, Shape(draft.hardware.name, slower, draft.workers, random_routing, hourly, most))
    if (plan is None or max(plan.counts) > today) and _as_today(at, draft):
        plan = Plan(at.fleet, draft.workers, random_routing, slower)
    if plan is None:
        return Reason(
            Code.TOO_BUSY,
            f"{draft.hardware.name} would miss the p95 of {at.goal.p95_s:.2f} s even with {most}"
            f" {'instance' if most == 1 else 'instances'}",
        )
    option = _option(at, draft, plan, LEAST if switch and at.random and max(plan.counts) > 1 else None)
    if option.saving_usd_per_month <= 0 and not at.tight:
        return Reason(
            Code.NOT_CHEAPER, f"{_fleet(plan)} {draft.hardware.name} would cost ${option.usd_per_month:,.2f} a month"
        )
    return option


def _as_today(at: Situation, draft: Draft) -> bool:
    """Whether as many instances as today are no worse than today's, whatever room to grow there is."""
    alike = draft.workers == at.workers and draft.ratio.bound <= 1 and at.random == at.random_base
    return alike and not at.changed and not at.endpoint.scaling


def _rescaled(at: Situation, draft: Draft) -> Option | Reason:
    """Another type under the customer's own autoscaling: same policy, bounds scaled by what the type can do."""
    low = min(t.minimum for t in at.endpoint.scaling)
    high = max(t.maximum for t in at.endpoint.scaling)
    roomy = draft.ratio.bound <= 1.05 or draft.ratio.bound * 1.3 <= at.stretch
    if not roomy:
        return Reason(
            Code.TOO_SLOW,
            f"{draft.hardware.name} may be {draft.ratio.bound:.2f} times slower; {at.stretch:.2f} times is the most,"
            " which leaves too little room while autoscaling takes minutes to add instances",
        )
    grown = max(draft.ratio.mid, 1.0)
    busy = at.demand.load.mean_rate * at.latency.mean_s * draft.ratio.mid / draft.workers
    mean = max(low, min(at.instances * grown, max(at.instances, busy / at.policy.rho_one)))
    plan = Plan((max(math.ceil(mean - 1e-9), 1),) * 24, draft.workers, at.random, draft.ratio.bound)
    option = _option(at, draft, plan, LEAST if at.may(OptionKind.ROUTING) and at.random else None, mean)
    maximum = max(math.ceil(high * grown), low)
    bounds = replace(option.target, minimum=max(low, 1), maximum=maximum, per_instance=round(1 / grown, 4))
    option = replace(option, target=bounds)
    if option.saving_usd_per_month <= 0:
        return Reason(Code.NOT_CHEAPER, f"{draft.hardware.name} would cost ${option.usd_per_month:,.2f} a month")
    return option


def _fleet(plan: Plan) -> str:
    low, high = min(plan.counts), max(plan.counts)
    return f"{low} x" if low == high else f"{low} to {high} x"


def _option(at: Situation, draft: Draft, plan: Plan, routing: str | None, instances: float | None = None) -> Option:
    hardware, policy, count = draft.hardware, at.policy, max(plan.counts)
    mean = instances or (mean_instances(at, plan) if draft.sure else sum(plan.counts) / 24)
    load = at.demand.load.peak_rate * at.latency.mean_s * draft.ratio.mid / (count * plan.workers)
    risks = {
        RiskResource.GPU_MEMORY: memory_risk(at.reference, hardware, at.demand, draft.started),
        RiskResource.HOST_MEMORY: host_risk(at.reference, hardware, at.demand),
        RiskResource.VCPU: vcpu_risk(at.reference, hardware, at.demand),
        RiskResource.LATENCY: max(
            step(1 - draft.fast, policy), Risk.LOW if _dared(at, draft) or at.few else Risk.VERY_LOW
        ),
        RiskResource.CAPACITY: max(
            _capped(load_risk(load, policy), draft.sure), quota_risk(count, at.given.quotas.get(hardware.name))
        ),
    }
    alone = min(plan.counts) == 1 < min(at.fleet) and at.endpoint.objective.min_instances is None
    if alone:
        risks[RiskResource.AVAILABILITY] = Risk.MEDIUM
    moved = hardware.name != at.runs.name
    both = moved or routing is not None  # a routing strategy is deployed: every instance is replaced
    committed, others = at.given.prices.commitment, _others_usd_per_hour(at)
    cost = cost_of(at.usd, draft.price, mean, count, 1 - draft.fast, committed, policy, both, others)
    hours = hours_of_test(by_day(at.days), at.instances, policy)
    facts = {
        "datasheet ratio": f"{draft.speed.phi:.2f}",
        "slowdown of the GPU part": f"{draft.speed.hopeful:.2f} to {draft.speed.bound:.2f} ({draft.speed.source})",
        "latency may grow": _growth(at, draft),
        "objective": f"{at.goal.p95_s:.2f} s ({at.goal.source})",
        HOURS_FACT: f"{hours:g}",
        "kept by the commitment": f"USD {cost.committed} per month",
    }
    if at.outcomes:
        facts["learnt from the account"] = _learnt(at)
    hourly = plan.counts if min(plan.counts) != count else None
    minimum, maximum = bounds(at, hardware.name, plan)
    target = Target(hardware.name, count, hourly_counts=hourly, minimum=minimum, maximum=maximum, routing=routing)
    option = type_option(
        at.endpoint.kind,
        (at.runs, at.variant.current_count),
        hardware,
        target,
        draft.price,
        Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days),
        risks,
        at.demand.confidence,
        round(at.latency.p95_s * draft.ratio.bound, 4),
        facts,
        left_open(at, hardware, moved and not draft.started, alone=alone, hourly=hourly is not None),
    )
    return replace(option, mean_instances=round(mean, 4), promise=_promise(at, draft), test_hours=hours)


def _others_usd_per_hour(at: Situation) -> Decimal:
    """What the instances of the other variants cost; those whose price is not known are left out."""
    found = ((at.given.prices.find(v.instance_type), v.current_count) for v in at.endpoint.beside)
    return sum((price.usd_per_hour * count for price, count in found if price is not None), Decimal(0))


def _promise(at: Situation, draft: Draft) -> Promise:
    """The most likely slowdown against what runs today, which is another type than the reference after a change."""
    known = at.runs.name == at.reference.name or at.runs.name in at.links
    today = at.links[at.runs.name].gpu if at.runs.name in at.links else 1.0
    slowdown, bound = (round(s / today, 4) if known else None for s in (draft.speed.mid, draft.speed.bound))
    return Promise(slowdown, at.demand.load.peak_busy_gpus, at.endpoint.framework, bound)


def _learnt(at: Situation) -> str:
    bound, prior = width(at.outcomes, at.policy), at.policy.slowdown_bound
    name = at.endpoint.framework or "endpoints of unknown framework"
    return (
        f"{len(at.outcomes)} outcomes of {name}: bound {bound:.2f} times the datasheet ratio, {prior:.2f} without them"
    )


def _dared(at: Situation, draft: Draft) -> bool:
    """Whether it is taken though its bound is more than the objective allows."""
    return draft.sure and draft.ratio.bound > at.stretch


def _growth(at: Situation, draft: Draft) -> str:
    if not _dared(at, draft):
        return f"{draft.ratio.bound:.2f}-fold, {at.stretch:.2f}-fold is allowed"
    middle = f"{draft.ratio.mid:.2f}-fold most likely, {at.stretch:.2f}-fold is allowed"
    return f"{middle}; at worst {draft.ratio.bound:.2f}-fold, {at.bearable:.2f}-fold is bearable for a day"


def _capped(risk: Risk, replayed: bool) -> Risk:
    """A load that the replay carried with its margin is no higher risk than low."""
    return min(risk, Risk.LOW) if replayed else risk


def saving_share(at: Situation, option: Option) -> float:
    """Saving as a share of what the endpoint costs now."""
    return float(option.saving_usd_per_month / at.usd) if at.usd > Decimal(0) else 0.0


def left_open(at: Situation, candidate: InstanceType, unstarted: bool, *, alone: bool, hourly: bool) -> tuple[str, ...]:
    """What nobody knows of the candidate, of a single instance, and of counts by the hour."""
    always = (ALONE if alone else ()) + (WEEKDAYS if hourly else ())
    return _not_checked(at, candidate, unstarted) + always


def _not_checked(at: Situation, candidate: InstanceType, unstarted: bool) -> tuple[str, ...]:
    """What a candidate that the model never ran on leaves open."""
    stored = volumes(at.runs, candidate) + _smaller_pool(at, candidate)
    if not unstarted:
        return stored
    old, new = (h.accelerator.compute_capability if h.accelerator else None for h in (at.runs, candidate))
    if old is None or new is None or new >= old:
        return NOT_CHECKED + stored
    return (*NOT_CHECKED, *stored, OLDER.format(*(".".join(map(str, capability)) for capability in (old, new))))


def _smaller_pool(at: Situation, candidate: InstanceType) -> tuple[str, ...]:
    """What the use of a KV cache leaves open where it gets smaller."""
    old, new = at.reference.accelerator, candidate.accelerator
    smaller = old is not None and new is not None and new.usable_gib < old.usable_gib
    return SMALLER_POOL if smaller and at.demand.memory.pool is not None else ()
