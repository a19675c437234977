"""The options of an endpoint: every type of the catalogue, sized, priced and rated; or ruled out with a reason.

Each says what it leaves open, for the person who decides on it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.older_option import HOURS_FACT
from rightsizer.domain.option import Excluded, Money, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender.candidates import CandidateType, check_candidates
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.elsewhere import volume_notes
from rightsizer.recommender.evidence import requests_by_hour
from rightsizer.recommender.fit import pool_refusal
from rightsizer.recommender.fleet_size import (
    FleetShape,
    can_one_instance_carry,
    find_smallest_fleet,
    largest_count,
    may_choose_bounds,
    mean_instances,
    wanted_bounds,
)
from rightsizer.recommender.pricing import (
    cost_of,
    host_risk,
    load_risk,
    memory_risk,
    quota_risk,
    risk_level,
    type_option,
    vcpu_risk,
)
from rightsizer.recommender.shadow_test import ShadowTestCandidate, cost_of_test, hours_of_test
from rightsizer.recommender.slowdown import Ratio, slowdown_bound

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
    unsure: tuple[ShadowTestCandidate, ...]
    excluded: tuple[Excluded, ...]
    later: tuple[CandidateType, ...] = ()
    """Types that serve and cannot be cheaper than the best: their fleets were not computed."""


def options_for(context: EvaluationContext) -> Options:
    """Options that save and every candidate that was ruled out."""
    candidates, excluded = check_candidates(context)
    sure: list[Option] = []
    hopeful: list[ShadowTestCandidate] = []
    best = context.usd_ceiling
    certain = [d for d in candidates if d.is_certain]
    tried = 0
    for candidate in certain:
        if candidate.least_usd >= best or len(sure) >= 4:
            break
        tried += 1
        found = size_and_price(context, candidate)
        if isinstance(found, Option):
            sure.append(found)
            if candidate.hardware.name not in context.types_without_capacity:
                best = min(best, float(found.usd_per_month))
        elif len(hopeful) < GUESSED and (less := _assume_faster(context, candidate)) is not None:
            hopeful.append(less)
        else:
            excluded.append(Excluded(candidate.hardware.name, found))
    sure.sort(key=lambda o: (o.usd_per_month + o.switch_usd, o.target.instance_type))
    test_candidates = _find_test_candidates(context, candidates, best)
    return Options(tuple(sure), (*test_candidates, *hopeful), tuple(excluded), tuple(certain[tried:]))


def stand_ins(context: EvaluationContext, options: Options) -> Iterator[Option]:
    """Options of the types behind the cheapest that save too, for a lack of capacity; a few at most."""
    for candidate in options.later[:SPARE]:
        found = size_and_price(context, candidate) if candidate.least_usd < context.usd_ceiling else None
        if isinstance(found, Option):
            yield found


def _find_test_candidates(
    context: EvaluationContext, candidates: Sequence[CandidateType], best: float
) -> list[ShadowTestCandidate]:
    """The most promising candidates that a test could make sure of, cheaper than `best` US dollars a month."""
    enough = (1 - context.policy.minimum_saving_share) * best
    found = [
        d for d in candidates if not d.is_certain and d.hardware.name != context.runs.name and d.least_usd < enough
    ]
    found.sort(key=lambda d: d.fit * d.fast * (d.least_usd - best))
    return [guess for d in found[:GUESSED] if (guess := _assume_test_passes(context, d)) is not None]


def _assume_test_passes(context: EvaluationContext, candidate: CandidateType) -> ShadowTestCandidate | None:
    """The option as it would be if a test went well, and how likely that is.

    The slowdown is a little below what the objective allows. Where no fleet carries the load at the middle of what
    is likely, a quick one may.
    """
    ratio = min(candidate.ratio.mid, LIKELY * context.allowed_slowdown)
    quick = min(_fast_latency_ratio(context, candidate), ratio)
    for tried, chance in ((ratio, candidate.fast), (quick, min(candidate.fast, QUICK))):
        found = size_and_price(context, replace(candidate, ratio=Ratio(tried, tried), fit=1.0, fast=1.0))
        if isinstance(found, Option):
            return _test_candidate(context, found, candidate.fit * chance)
        if not candidate.speed.source.is_guess:
            break
    return None


def _assume_faster(context: EvaluationContext, candidate: CandidateType) -> ShadowTestCandidate | None:
    """A candidate whose fleet is too busy at the bound of its slowdown, but not at less: worth measuring."""
    open_question = candidate.speed.source.is_guess and candidate.ratio.bound > candidate.ratio.mid
    if not open_question or candidate.hardware.name == context.runs.name:
        return None
    for tried, chance in ((candidate.ratio.mid, MIDDLE), (_fast_latency_ratio(context, candidate), QUICK)):
        found = size_and_price(context, replace(candidate, ratio=Ratio(tried, tried), fast=chance))
        if isinstance(found, Option):
            return _test_candidate(context, found, candidate.fit * chance)
    return None


def _test_candidate(context: EvaluationContext, option: Option, chance: float) -> ShadowTestCandidate:
    """The option with what its test costs beside today's fleet."""
    fleet = float(context.price.usd_per_hour) * context.instances
    return ShadowTestCandidate(
        option, chance, cost_of_test(option, fleet, context.policy), context.share_of_wanted_requests
    )


def _fast_latency_ratio(context: EvaluationContext, candidate: CandidateType) -> float:
    """The latency ratio where the GPU's part is as quick as one move in four is."""
    return candidate.ratio.mid - (1 - QUICKER) * context.demand.gpu_share * candidate.speed.mid


def size_and_price(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """The candidate's cheapest fleet as an option, or the reason why it is none."""
    found = _size_fleet(context, candidate)
    if not isinstance(found, Option):
        return found
    return _quota_reason(context, found) or _pool_reason(context, candidate, found) or found


def _pool_reason(context: EvaluationContext, candidate: CandidateType, option: Option) -> Reason | None:
    """Why the KV cache of its cards would not hold the requests of today's peak; None where a start has shown it."""
    if candidate.started:
        return None
    counts = option.target.hourly_counts or (option.target.instance_count,) * 24
    fewer = (
        1.0
        if context.endpoint.scaling
        else max(then / max(n, 1) for then, n in zip(context.reference_counts, counts, strict=True))
    )
    return pool_refusal(
        context.reference, candidate.hardware, context.demand.memory, candidate.ratio.bound * max(fewer, 1.0)
    )


def _quota_reason(context: EvaluationContext, option: Option) -> Reason | None:
    """Why the account may not run the new fleet, which starts beside the old one; None where no quota forbids it."""
    name, count = option.target.instance_type, option.target.instance_count
    quota = context.inputs.quotas.get(name)
    if quota is None or count <= quota or name == context.runs.name:
        return None
    sentence = f"the account's quota for {name} endpoints is {quota}, and {count} instances are needed"
    return Reason(Code.NO_QUOTA, sentence)


def _size_fleet(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """The smallest fleet of the candidate that carries the load.

    Counts are sized with the middle of a measured slowdown, for they can be changed again and the days on the type
    show it; memory, and a slowdown that nobody measured, with the bound (but where a likely one is dared untested).
    """
    if (
        context.endpoint.scaling
        and not context.has_active_change
        and not may_choose_bounds(context, candidate.hardware.name)
    ):
        return _rescale_bounds(context, candidate)
    switch = context.may_change(OptionKind.ROUTING)
    random_routing = context.is_random_routing and not switch
    hourly = context.may_set_hourly_counts(candidate.hardware.name, switch and context.is_random_routing)
    hourly = hourly and context.policy.days_for_hours <= len({d.day for d in context.days})
    today = math.ceil(context.peak_count * context.workers / candidate.workers)
    most = largest_count(
        context, candidate.hardware.name, context.policy.count_factor * today + context.policy.count_spare
    )
    slower = (
        candidate.ratio.mid
        if candidate.speed.source.is_measured or _was_test_skipped(context, candidate)
        else candidate.ratio.bound
    )
    single = Fleet((1,) * 24, candidate.workers, random_routing, slower)
    same = candidate.hardware.name == context.reference.name
    fleet: Fleet | None = None
    if context.peak_count == 1 and (same or can_one_instance_carry(context, single)):
        fleet = single
    elif not (today == 1 and 2 * float(candidate.price.usd_per_hour) >= float(context.price.usd_per_hour)):
        fleet = find_smallest_fleet(
            context, FleetShape(candidate.hardware.name, slower, candidate.workers, random_routing, hourly, most)
        )
    if (fleet is None or max(fleet.counts) > today) and _may_keep_count(context, candidate):
        fleet = Fleet(context.reference_counts, candidate.workers, random_routing, slower)
    if fleet is None:
        return Reason(
            Code.TOO_BUSY,
            f"{candidate.hardware.name} would miss the p95 of {context.objective.p95_s:.2f} s even with {most}"
            f" {'instance' if most == 1 else 'instances'}",
        )
    option = _option(
        context, candidate, fleet, LEAST if switch and context.is_random_routing and max(fleet.counts) > 1 else None
    )
    if option.saving_usd_per_month <= 0 and not context.is_fleet_too_small:
        return Reason(
            Code.NOT_CHEAPER,
            f"{_fleet_text(fleet)} {candidate.hardware.name} would cost ${option.usd_per_month:,.2f} a month",
        )
    return option


def _may_keep_count(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether as many instances as today are no worse than today's, whatever room to grow there is."""
    alike = (
        candidate.workers == context.workers
        and candidate.ratio.bound <= 1
        and context.is_random_routing == context.random_base
    )
    return alike and not context.has_active_change and not context.endpoint.scaling


def _rescale_bounds(context: EvaluationContext, candidate: CandidateType) -> Option | Reason:
    """Another type under the customer's own autoscaling: same policy, bounds scaled by what the type can do."""
    low = min(t.minimum for t in context.endpoint.scaling)
    high = max(t.maximum for t in context.endpoint.scaling)
    roomy = candidate.ratio.bound <= 1.05 or candidate.ratio.bound * 1.3 <= context.allowed_slowdown
    if not roomy:
        return Reason(
            Code.TOO_SLOW,
            f"{candidate.hardware.name} may be {candidate.ratio.bound:.2f} times slower; "
            f"{context.allowed_slowdown:.2f} times is the most,"
            " which leaves too little room while autoscaling takes minutes to add instances",
        )
    grown = max(candidate.ratio.mid, 1.0)
    busy = context.demand.load.mean_rate * context.latency.mean_s * candidate.ratio.mid / candidate.workers
    mean = max(low, min(context.instances * grown, max(context.instances, busy / context.policy.rho_one)))
    fleet = Fleet(
        (max(math.ceil(mean - 1e-9), 1),) * 24, candidate.workers, context.is_random_routing, candidate.ratio.bound
    )
    option = _option(
        context,
        candidate,
        fleet,
        LEAST if context.may_change(OptionKind.ROUTING) and context.is_random_routing else None,
        mean,
    )
    maximum = max(math.ceil(high * grown), low)
    bounds = replace(option.target, minimum=max(low, 1), maximum=maximum, per_instance=round(1 / grown, 4))
    option = replace(option, target=bounds)
    if option.saving_usd_per_month <= 0:
        return Reason(Code.NOT_CHEAPER, f"{candidate.hardware.name} would cost ${option.usd_per_month:,.2f} a month")
    return option


def _fleet_text(fleet: Fleet) -> str:
    low, high = min(fleet.counts), max(fleet.counts)
    return f"{low} x" if low == high else f"{low} to {high} x"


def _option(
    context: EvaluationContext,
    candidate: CandidateType,
    fleet: Fleet,
    routing: str | None,
    instances: float | None = None,
) -> Option:
    hardware, policy, count = candidate.hardware, context.policy, max(fleet.counts)
    mean = instances or (mean_instances(context, fleet) if candidate.is_certain else sum(fleet.counts) / 24)
    load = context.demand.load.peak_rate * context.latency.mean_s * candidate.ratio.mid / (count * fleet.workers)
    risks = {
        RiskResource.GPU_MEMORY: memory_risk(context.reference, hardware, context.demand, candidate.started),
        RiskResource.HOST_MEMORY: host_risk(context.reference, hardware, context.demand),
        RiskResource.VCPU: vcpu_risk(context.reference, hardware, context.demand),
        RiskResource.LATENCY: max(
            risk_level(1 - candidate.fast, policy),
            Risk.LOW if _was_test_skipped(context, candidate) or context.has_few_requests else Risk.VERY_LOW,
        ),
        RiskResource.CAPACITY: max(
            _cap_load_risk(load_risk(load, policy), candidate.is_certain),
            quota_risk(count, context.inputs.quotas.get(hardware.name)),
        ),
    }
    alone = min(fleet.counts) == 1 < min(context.reference_counts) and context.endpoint.objective.min_instances is None
    if alone:
        risks[RiskResource.AVAILABILITY] = Risk.MEDIUM
    moved = hardware.name != context.runs.name
    both = moved or routing is not None  # a routing strategy is deployed: every instance is replaced
    committed, others = context.inputs.prices.commitment, _others_usd_per_hour(context)
    cost = cost_of(
        context.usd_per_month, candidate.price, mean, count, 1 - candidate.fast, committed, policy, both, others
    )
    hours = hours_of_test(requests_by_hour(context.days), context.instances, policy)
    facts = {
        "datasheet ratio": f"{candidate.speed.phi:.2f}",
        "slowdown of the GPU part": f"{candidate.speed.hopeful:.2f} to {candidate.speed.bound:.2f} "
        f"({candidate.speed.source})",
        "latency may grow": _growth_text(context, candidate),
        "objective": f"{context.objective.p95_s:.2f} s ({context.objective.source})",
        HOURS_FACT: f"{hours:g}",
        "kept by the commitment": f"USD {cost.committed} per month",
    }
    if context.outcomes:
        facts["learnt from the account"] = _lesson_text(context)
    hourly = fleet.counts if min(fleet.counts) != count else None
    minimum, maximum = wanted_bounds(context, hardware.name, fleet)
    target = Target(hardware.name, count, hourly_counts=hourly, minimum=minimum, maximum=maximum, routing=routing)
    option = type_option(
        context.endpoint.kind,
        (context.runs, context.variant.current_count),
        hardware,
        target,
        candidate.price,
        Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days),
        risks,
        context.demand.confidence,
        round(context.latency.p95_s * candidate.ratio.bound, 4),
        facts,
        open_questions(context, hardware, moved and not candidate.started, alone=alone, hourly=hourly is not None),
    )
    return replace(option, mean_instances=round(mean, 4), promise=_promise(context, candidate), test_hours=hours)


def _others_usd_per_hour(context: EvaluationContext) -> Decimal:
    """What the instances of the other variants cost; those whose price is not known are left out."""
    found = ((context.inputs.prices.find(v.instance_type), v.current_count) for v in context.endpoint.other_variants)
    return sum((price.usd_per_hour * count for price, count in found if price is not None), Decimal(0))


def _promise(context: EvaluationContext, candidate: CandidateType) -> Promise:
    """The most likely slowdown against what runs today, which is another type than the reference after a change."""
    known = context.runs.name == context.reference.name or context.runs.name in context.measured_types
    today = context.measured_types[context.runs.name].gpu if context.runs.name in context.measured_types else 1.0
    slowdown, bound = (round(s / today, 4) if known else None for s in (candidate.speed.mid, candidate.speed.bound))
    return Promise(slowdown, context.demand.load.peak_busy_gpus, context.endpoint.framework, bound)


def _lesson_text(context: EvaluationContext) -> str:
    bound, prior = slowdown_bound(context.outcomes, context.policy), context.policy.slowdown_bound
    name = context.endpoint.framework or "endpoints of unknown framework"
    return (
        f"{len(context.outcomes)} outcomes of {name}: bound {bound:.2f} times the datasheet ratio, "
        f"{prior:.2f} without them"
    )


def _was_test_skipped(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether it is taken though its bound is more than the objective allows."""
    return candidate.is_certain and candidate.ratio.bound > context.allowed_slowdown


def _growth_text(context: EvaluationContext, candidate: CandidateType) -> str:
    if not _was_test_skipped(context, candidate):
        return f"{candidate.ratio.bound:.2f}-fold, {context.allowed_slowdown:.2f}-fold is allowed"
    middle = f"{candidate.ratio.mid:.2f}-fold most likely, {context.allowed_slowdown:.2f}-fold is allowed"
    return (
        f"{middle}; at worst {candidate.ratio.bound:.2f}-fold, {context.worst_slowdown:.2f}-fold is bearable for a day"
    )


def _cap_load_risk(risk: Risk, replayed: bool) -> Risk:
    """A load that the replay carried with its margin is no higher risk than low."""
    return min(risk, Risk.LOW) if replayed else risk


def saving_share(context: EvaluationContext, option: Option) -> float:
    """Saving as a share of what the endpoint costs now."""
    return float(option.saving_usd_per_month / context.usd_per_month) if context.usd_per_month > Decimal(0) else 0.0


def open_questions(
    context: EvaluationContext, candidate: InstanceType, unstarted: bool, *, alone: bool, hourly: bool
) -> tuple[str, ...]:
    """What nobody knows of the candidate, of a single instance, and of counts by the hour."""
    always = (ALONE if alone else ()) + (WEEKDAYS if hourly else ())
    return _untested_questions(context, candidate, unstarted) + always


def _untested_questions(context: EvaluationContext, candidate: InstanceType, unstarted: bool) -> tuple[str, ...]:
    """What a candidate that the model never ran on leaves open."""
    stored = volume_notes(context.runs, candidate) + _pool_questions(context, candidate)
    if not unstarted:
        return stored
    old, new = (h.accelerator.compute_capability if h.accelerator else None for h in (context.runs, candidate))
    if old is None or new is None or new >= old:
        return NOT_CHECKED + stored
    return (*NOT_CHECKED, *stored, OLDER.format(*(".".join(map(str, capability)) for capability in (old, new))))


def _pool_questions(context: EvaluationContext, candidate: InstanceType) -> tuple[str, ...]:
    """What the use of a KV cache leaves open where it gets smaller."""
    old, new = context.reference.accelerator, candidate.accelerator
    smaller = old is not None and new is not None and new.usable_gib < old.usable_gib
    return SMALLER_POOL if smaller and context.demand.memory.pool is not None else ()
