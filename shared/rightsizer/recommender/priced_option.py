"""A sized fleet as a priced and rated option: requests that it makes late, and the questions that it leaves open."""

from dataclasses import replace
from decimal import Decimal

from rightsizer.autoscaling.schedules import early_hours
from rightsizer.domain.demand import Fleet
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.older_option import HOURS_FACT
from rightsizer.domain.option import Money, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import seconds_text
from rightsizer.domain.schedule import HOURS, days_text, week_of
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.fleet_size import (
    fleet_of_option,
    latency_ratio,
    mean_instances,
    wanted_bounds,
)
from rightsizer.recommender.hourly_counts import replay_plan
from rightsizer.recommender.other_endpoint import volume_notes
from rightsizer.recommender.pricing import (
    FleetCost,
    RatedTarget,
    cost_of,
    host_risk,
    load_risk,
    mean_while_running,
    memory_risk,
    quota_risk,
    risk_level,
    type_option,
    vcpu_risk,
)
from rightsizer.recommender.scaling_options import LATE, tracked_target
from rightsizer.recommender.shadow_test import hours_of_test
from rightsizer.recommender.slowdown import chance_weight, slowdown_at, slowdown_bound

ALONE = ("whether one instance in one Availability Zone is enough while a failed one is replaced",)
OLDER = "whether the model runs without what compute capability {} has and {} has not (BF16, FP8, attention kernels)"
SMALLER_POOL = (
    "what a smaller KV cache costs: prefixes kept for later requests count as free, and will be found less often",
    "that the server's share of the card and its longest context suit the smaller card",
)
WEEKDAYS = ("other counts on some days of the week: each hour has the count of its busiest day",)
HOLIDAYS = "work on a free day that no day seen had: each hour has the count of the busiest of its days ({})"
NOT_CHECKED = ("a start of the model on the candidate", "capacity of the candidate in the Availability Zones")


def price_fleet(
    context: EvaluationContext,
    candidate: CandidateType,
    fleet: Fleet,
    routing: str | None,
    instances: float | None = None,
) -> Option:
    """The fleet as an option, with its cost, risks and open questions. `instances`: the mean, where it is known."""
    hardware, policy, count = candidate.hardware, context.policy, max(fleet.counts)
    mean = instances or (mean_instances(context, fleet) if candidate.is_certain else fleet.mean_count)
    if instances is None and not fleet.maximum:
        mean += early_hours(week_of(fleet.day_counts) or fleet.counts) / HOURS
    risks = _risks(context, candidate, fleet)
    fewest = min((*fleet.counts, *(n for counts in fleet.day_counts for n in counts.counts)))
    lone, undeclared = policy.lone_instance, context.endpoint.objective.min_instances is None
    mean = mean_while_running(mean, fewest, count, candidate.price)
    alone = fewest == 1 < min(context.reference_counts) and undeclared and lone > Risk.VERY_LOW
    if alone:
        risks[RiskResource.AVAILABILITY] = lone
    moved = hardware.name != context.runs.name
    both = moved or routing is not None  # a routing strategy is deployed: every instance is replaced
    committed, others = context.inputs.prices.commitment, _others_usd_per_hour(context)
    cost = cost_of(
        context.usd_per_month, candidate.price, mean, count, 1 - candidate.fast, committed, policy, both, others
    )
    hours = hours_of_test(context.requests_by_hour, context.instances, policy)
    hourly = fleet.counts if fewest != count else None
    minimum, maximum = wanted_bounds(context, hardware.name, fleet)
    fixed = Target(hardware.name, count, hourly, minimum, maximum, routing, day_counts=fleet.day_counts)
    target, tracking = tracked_target(context, fixed, fleet)
    left = open_questions(context, hardware, moved and not candidate.started, alone=alone, fleet=fleet)
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    option = type_option(
        context.endpoint.kind,
        (context.runs, context.variant.current_count),
        hardware,
        RatedTarget(target, candidate.price, money, risks, context.demand.confidence),
        _facts(context, candidate, hours, cost),
        (*left, LATE) if tracking else left,
    )
    known = replace(option, mean_instances=round(mean, 4), promise=_promise(context, candidate), test_hours=hours)
    return replace(known, notes=(*known.notes, *tracking))


def _risks(context: EvaluationContext, candidate: CandidateType, fleet: Fleet) -> dict[RiskResource, Risk]:
    hardware, policy, count = candidate.hardware, context.policy, max(fleet.counts)
    load = context.demand.load.peak_rate * context.latency.mean_s * candidate.ratio.mid / (count * fleet.workers)
    return {
        RiskResource.GPU_MEMORY: memory_risk(context.reference, hardware, context.demand, candidate.started),
        RiskResource.HOST_MEMORY: host_risk(context.reference, hardware, context.demand),
        RiskResource.VCPU: vcpu_risk(context.reference, hardware, context.demand),
        RiskResource.LATENCY: max(
            risk_level(1 - candidate.fast, policy),
            Risk.LOW if _is_little_known(context, candidate) else Risk.VERY_LOW,
        ),
        RiskResource.CAPACITY: max(
            _cap_load_risk(load_risk(load, policy), candidate.is_certain),
            quota_risk(count, context.inputs.quotas.get(hardware.name)),
        ),
    }


def _is_little_known(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether no option of this type is of very low risk: untested, few requests, or fewer days than act by itself."""
    policy, moved = context.policy, candidate.hardware.name != context.runs.name
    few_days = context.demand.confidence < (policy.confidence_smaller if moved else policy.confidence_apply)
    few_requests = context.allowed_late_share(policy.late_budget) > policy.late_budget  # their count, not their share
    return was_test_skipped(context, candidate) or few_requests or few_days


def _facts(context: EvaluationContext, candidate: CandidateType, hours: float, cost: FleetCost) -> dict[str, str]:
    facts = {
        "datasheet ratio": f"{candidate.speed.phi:.2f}",
        "slowdown of the GPU part": f"{candidate.speed.hopeful:.2f} to {candidate.speed.bound:.2f} "
        f"({candidate.speed.source})",
        "latency may grow": _growth_text(context, candidate),
        "objective": f"{seconds_text(context.objective.p95_s)} ({context.objective.source})",
        HOURS_FACT: f"{hours:g}",
        "kept by the commitment": f"USD {cost.committed} per month",
    }
    if context.outcomes:
        facts["learnt from the account"] = _lesson_text(context)
    return facts


def _others_usd_per_hour(context: EvaluationContext) -> Decimal:
    """What the instances of the other variants cost; those whose price is not known are left out."""
    found = ((context.inputs.prices.find(v.instance_type), v.current_count) for v in context.endpoint.other_variants)
    return sum((price.usd_per_hour * count for price, count in found if price is not None), Decimal(0))


def _promise(context: EvaluationContext, candidate: CandidateType) -> Promise:
    """The most likely slowdown against what runs today, which is another type than the reference after a change."""
    known = context.runs.name == context.reference.name or context.runs.name in context.measured_types
    today = context.measured_types[context.runs.name].gpu if context.runs.name in context.measured_types else 1.0
    slowdown, bound = (round(s / today, 4) if known else None for s in (candidate.speed.mid, candidate.speed.bound))
    guessed = was_test_skipped(context, candidate) and not candidate.speed.source.is_measured
    likely = sized_slowdown(context, candidate) if guessed else candidate.ratio.bound
    load, ratio = context.demand.load.peak_busy_gpus, round(likely, 4)
    return Promise(slowdown, load, context.endpoint.framework, bound, ratio)


def _lesson_text(context: EvaluationContext) -> str:
    bound, prior = slowdown_bound(context.outcomes, context.policy), context.policy.slowdown_bound
    name = context.endpoint.framework or "endpoints of unknown framework"
    return (
        f"{len(context.outcomes)} outcomes of {name}: bound {bound:.2f} times the datasheet ratio, "
        f"{prior:.2f} without them"
    )


def was_test_skipped(context: EvaluationContext, candidate: CandidateType) -> bool:
    """Whether it is taken though its bound is more than the objective allows."""
    return candidate.is_certain and candidate.ratio.bound > context.allowed_slowdown


def sized_slowdown(context: EvaluationContext, candidate: CandidateType) -> float:
    """The slowdown that counts are sized with: the middle of a measured one, else the bound.

    What is taken untested for its chance is sized so that its fleet carries the load with that chance.
    """
    speed = candidate.speed
    if speed.source.is_measured:
        return candidate.ratio.mid
    if not was_test_skipped(context, candidate):
        return candidate.ratio.bound
    seen, policy = context.outcomes, context.policy
    likely = slowdown_at(policy.untested_chance, speed.phi, seen, chance_weight(seen, policy))
    more = context.demand.gpu_share * (likely - speed.mid)
    return min(max(candidate.ratio.mid + more, candidate.ratio.mid), candidate.ratio.bound)


def _growth_text(context: EvaluationContext, candidate: CandidateType) -> str:
    if not was_test_skipped(context, candidate):
        falls = " (it falls)" if candidate.ratio.bound < 1 else ""
        return f"{candidate.ratio.bound:.2f}-fold{falls}, {context.allowed_slowdown:.2f}-fold is allowed"
    middle = f"{candidate.ratio.mid:.2f}-fold most likely, {context.allowed_slowdown:.2f}-fold is allowed"
    if candidate.speed.source.is_measured:
        worst = f"{context.worst_slowdown:.2f}-fold is bearable for a day"
        return f"{middle}; at worst {candidate.ratio.bound:.2f}-fold, {worst}"
    likely = (
        f"at most {sized_slowdown(context, candidate):.2f}-fold in {context.policy.untested_chance:.0%} of such moves"
    )
    return f"{middle}; {likely}, {candidate.ratio.bound:.2f}-fold at worst"


def _cap_load_risk(risk: Risk, replayed: bool) -> Risk:
    """A load that the replay carried with its margin is no higher risk than low."""
    return min(risk, Risk.LOW) if replayed else risk


def open_questions(
    context: EvaluationContext, candidate: InstanceType, unstarted: bool, *, alone: bool, fleet: Fleet
) -> tuple[str, ...]:
    """Unknown facts about the candidate, a single instance, and counts by the hour."""
    always = (ALONE if alone else ()) + _schedule_questions(fleet)
    return _untested_questions(context, candidate, unstarted) + always


def _schedule_questions(fleet: Fleet) -> tuple[str, ...]:
    """What counts by the hour leave open: the days that they were not sized by."""
    if not fleet.day_counts:
        return WEEKDAYS if min(fleet.counts) != max(fleet.counts) else ()
    return (HOLIDAYS.format("; ".join(days_text(counts.weekdays) for counts in fleet.day_counts)),)


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


BY_ITSELF = Policy().excess_share
"""Share of the requests that a choice of automatic mode may make late beyond those of today."""


def with_late_share(context: EvaluationContext, option: Option, hardware: InstanceType, slower: float) -> Option:
    """The option; where more requests would be late than automatic mode may cost, with their share and its risk.

    Only behind a declared objective: elsewhere nothing says which request is late. `slower`: as the fleet was sized.
    """
    served = option.kind not in (OptionKind.SCALE_TO_ZERO, OptionKind.DELETE)
    if not context.objective.declared or option.saving_usd_per_month <= 0 or not served:
        return option
    fleet, load = fleet_of_option(context, option, hardware, slower), context.load_margin
    if fleet.day_counts:  # counts of each class of days serve the days of that class
        then, as_much = replay_plan(context, replace(fleet, load=load), load)
        now = replay_plan(context, fleet)[1]
    else:
        then, now = context.replay(replace(fleet, load=load)), context.reference_replay
        as_much = context.reference_replay_at(load)  # today's fleet under the same load
    if then.requests <= 0 or then.late <= as_much.late + BY_ITSELF * then.requests:
        return option
    share = then.late / then.requests
    text = f"{100 * share:.1f} % of the requests would be late ({100 * now.late / now.requests:.1f} % are today)"
    text += f"; the objective for the p95 allows {100 * context.policy.late_most:g} %"
    risks = {
        **option.risks,
        RiskResource.LATENCY: max(option.risks.get(RiskResource.LATENCY, Risk.MEDIUM), Risk.MEDIUM),
    }
    return replace(
        option,
        risks=risks,
        risk=max(risks.values()),
        notes=(*option.notes, text),
        late_share=round(share, 4),
    )


def within_p95(context: EvaluationContext, option: Option) -> Option | None:
    """The option with the p95 of the replay itself, where that is within the objective; else None.

    Few late requests in all may hide busy minutes in which one in five is late, so the minutes that are kept decide.
    """
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    if hardware is None:
        return None
    p95_s = replay_plan(context, fleet_of_option(context, option, hardware, latency_ratio(option)))[0].p95_s
    return replace(option, p95_s=round(p95_s, 4)) if p95_s <= context.limit_s else None


def with_accepted_share(context: EvaluationContext) -> EvaluationContext:
    """The context, weighed by the objective where a person accepted late requests with a change in force."""
    accepted = any(p.late_share is not None and p.is_in_force for p in context.inputs.history.endpoint)
    return (within_objective(context) if accepted else None) or context


def within_objective(context: EvaluationContext) -> EvaluationContext | None:
    """The context in which fleets may make as many requests late as the objective allows; None without a declared one.

    None too where as many are late today: nothing is left to ask about.
    """
    policy = context.policy
    left = policy.late_most - context.baseline_late_share
    if not context.objective.declared or left <= policy.excess_share:
        return None
    lenient = replace(policy, excess_share=left, grown_share=left, late_budget=left)
    wide = replace(context, inputs=replace(context.inputs, policy=lenient), within_objective=True)
    return share_results(context, wide)
