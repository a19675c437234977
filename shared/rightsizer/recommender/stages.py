"""The step that automatic mode may take now, and the stages that follow a change by the same approval."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.autoscaling import policies
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import InstanceType, is_scarce
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.fleet_size import fleet_of_option, latency_ratio
from rightsizer.recommender.gate import GateAnswer, GateCase, decide_gate, saving_too_small
from rightsizer.recommender.hourly_counts import requests_of_week
from rightsizer.recommender.latency import broken_promise
from rightsizer.recommender.options import check_fleet, saving_share, size_and_price
from rightsizer.recommender.priced_option import price_fleet
from rightsizer.recommender.scaling_options import merge_alike
from rightsizer.recommender.slowdown import Ratio

WORTH = 2
"""Times that the best option may save what a step of low risk does, which is asked about before it."""
NEAR = Decimal("1.02")
"""Costs up to this times the least are as cheap: loads that differ by chance move a cost by so much."""
SIMPLER = (
    OptionKind.INSTANCE_COUNT,
    OptionKind.INSTANCE_TYPE,
    OptionKind.TYPE_AND_COUNT,
    OptionKind.ROUTING,
    OptionKind.SCHEDULE,
    OptionKind.AUTOSCALING,
)
"""Kinds of changes of the same endpoint, the one with the fewest moving parts first."""
TWO_ZONES = 2
"""Instances that stay where one alone would leave one Availability Zone and nobody accepted that."""


def cost_order(context: EvaluationContext, option: Option) -> tuple[bool, bool, Decimal, str, str]:
    """Sort key: options that can be carried out, types with capacity, the cheapest; ties by type and kind."""
    name = option.target.instance_type
    short = name in context.types_without_capacity or (is_scarce(name) and not is_scarce(context.runs.name))
    return not option.in_place, short, option.usd_per_month, name, option.kind.value


def in_order(context: EvaluationContext, options: Iterable[Option]) -> tuple[Option, ...]:
    """The options by cost, with near-ties in a fixed order.

    Of those as cheap as the cheapest but for chance, the one that this order prefers is first. Two equal endpoints, and
    one on two days, differ by chance in what an option of theirs costs.
    """
    ranked = sorted(options, key=lambda option: cost_order(context, option))
    if not ranked:
        return ()
    apart, most = cost_order(context, ranked[0])[:2], ranked[0].usd_per_month * NEAR
    alike = [o for o in ranked if cost_order(context, o)[:2] == apart and o.usd_per_month <= most]
    first = min(alike, key=_near_tie_order)
    return (first, *(option for option in ranked if option is not first))


def _near_tie_order(option: Option) -> tuple[int, int, str, int]:
    """The lower risk, then the simpler change, then the name of the type, then fewer instances."""
    simple = SIMPLER.index(option.kind) if option.kind in SIMPLER else len(SIMPLER)
    return int(option.risk), simple, option.target.instance_type, option.target.instance_count


def gate_case(context: EvaluationContext, option: Option) -> GateCase:
    """Everything the gate looks at for the option."""
    now, then = context.runs, context.inputs.catalogue.find(option.target.instance_type)
    broken = broken_promise(context.objective)
    return GateCase(
        context.endpoint,
        option,
        context.demand,
        context.runs.name,
        saving_share(context, option),
        gpus=(now.accelerator_count, then.accelerator_count if then else now.accelerator_count),
        keeps_scaling=then is not None and _keeps_scaling(context, option, then),
        requests=requests_of_week(context.days),
        broken=broken and Reason(Code.NEEDS_APPROVAL, f"needs your approval: {broken.sentence}"),
    )


def _keeps_scaling(context: EvaluationContext, option: Option, then: InstanceType) -> bool:
    """Whether the owner's autoscaling goes on as before on the same GPU in another size.

    Its bounds and its targets stay, for these count requests, of which an instance serves as many. While the
    deployment takes it away the maximum runs, so that this may not be far from today's count.
    """
    now, target, policy = context.runs, option.target, context.policy
    most = policy.count_factor * context.variant.desired_count + policy.count_spare
    return (then.accelerator, then.accelerator_count) == (now.accelerator, now.accelerator_count) and all(
        one.policies
        and policies.may_scale_in(one)
        and all(policies.tracked_metric(row) in policies.CAPACITY_METRICS for row in one.policies)
        and (target.minimum, target.maximum) == (one.minimum, one.maximum)
        and one.maximum <= most
        for one in context.endpoint.scaling
    )


def gate_of(context: EvaluationContext, option: Option) -> GateAnswer:
    """Permitted step with the option, and its reason."""
    return decide_gate(gate_case(context, option), context.inputs.history, context.policy, context.inputs.now)


def may_apply(context: EvaluationContext, option: Option) -> bool:
    """Whether automatic mode may apply the option."""
    return gate_of(context, option)[0] is Gate.APPLY


def fleet_and_kind(option: Option) -> str:
    """The fleet, and what it alone does not show: ``1 to 4 × ml.g5.xlarge (autoscaling)``."""
    plain = (OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.TYPE_AND_COUNT, OptionKind.SCHEDULE)
    words = "" if option.kind in plain else f" ({option.kind.value.replace('-', ' ').replace('gpu', 'GPU')})"
    return f"{fleet(option.target)}{words}"


def put_allowed_first(context: EvaluationContext, sure: Sequence[Option]) -> tuple[Option, ...]:
    """Put the step that is best to take now in front; unchanged where there is none.

    The step names what it leaves for later, and why a person is asked about that.
    """
    best = sure[0]
    verdict, why = gate_of(context, best)
    if best.saving_usd_per_month <= 0 or verdict is Gate.APPLY:
        return tuple(sure)
    steps = [step for option in sure for step in (option, *_on_more_instances(context, option))]
    allowed = [step for step in steps if _may_be_taken(context, step, best)]
    if not allowed:
        return tuple(sure)
    step = in_order(context, allowed)[0]
    more = best.saving_usd_per_month - step.saving_usd_per_month
    rest = f"{fleet_and_kind(best)} would save ${more:,.2f} a month more"
    if context.endpoint.mode is not Mode.AUTO:
        lone = best.leaves_one_zone and best.performance_risk <= context.policy.risk_apply
        text = "it is in one Availability Zone only" if lone else f"its risk is {int(best.risk)} of 4"
        why = Reason(Code.RISK_TOO_HIGH, text)
    later = f"a first step: {rest}; {why.sentence}"
    kept = (o for o in sure if o != step)
    return (replace(step, notes=(*step.notes, later)), *kept)


def _may_be_taken(context: EvaluationContext, step: Option, best: Option) -> bool:
    """Whether automatic mode may apply the step, or a person should be asked about it before the best option.

    A person is asked first about what has a low risk and saves at least half as much as a best option of a higher one.
    """
    if context.endpoint.mode is Mode.AUTO:
        return may_apply(context, step)
    low = step.in_place and step.risk <= context.policy.risk_apply < best.risk
    return low and WORTH * step.saving_usd_per_month >= best.saving_usd_per_month and not _is_silent(context, step)


def _is_silent(context: EvaluationContext, option: Option) -> bool:
    return gate_of(context, option)[0] is Gate.SILENT


def _on_more_instances(context: EvaluationContext, option: Option) -> Iterator[Option]:
    """The same option on as many instances as one step may leave: two, for two zones, or half of today's."""
    today = context.variant.desired_count
    scaled = context.endpoint.scaling and option.kind is not OptionKind.AUTOSCALING
    if scaled or not option.in_place:
        return
    tried = {option.target.week_counts}
    for least in sorted({min(TWO_ZONES, today), math.ceil(today / 2)}):
        step = _with_at_least(context, option, least)
        if step is not None and step.target.week_counts not in tried and step.saving_usd_per_month > 0:
            tried.add(step.target.week_counts)
            yield step


def _with_at_least(context: EvaluationContext, option: Option, least: int) -> Option | None:
    """The option with no hour below so many instances; None where such a fleet is no option."""
    target = option.target
    hardware = context.inputs.catalogue.find(target.instance_type)
    candidate = check_candidate(context, hardware) if hardware is not None else None
    if hardware is None or not isinstance(candidate, CandidateType):
        return None
    raised = (replace(counts, counts=tuple(max(n, least) for n in counts.counts)) for counts in target.day_counts)
    classes = merge_alike(tuple(raised))
    classes = classes if len(classes) > 1 else ()
    fleet = fleet_of_option(context, option, hardware, latency_ratio(option))
    larger = replace(fleet, counts=tuple(max(count, least) for count in fleet.counts), day_counts=classes)
    step = check_fleet(context, candidate, price_fleet(context, candidate, larger, target.routing))
    return step if isinstance(step, Option) else None


FIRST = frozenset({OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT})
"""What a plan begins with: while a type is taken, nothing else can be."""
LATER = frozenset({OptionKind.SCHEDULE, OptionKind.AUTOSCALING})
"""What follows: a change of its own each, that deploys nothing."""


def with_later_stages(recommendation: Recommendation, context: EvaluationContext) -> Recommendation:
    """The recommendation with the stage that follows a change of type by the same approval, where a person is asked.

    None that saves too little for a change of its own, or is riskier than the change and than automatic mode takes.
    """
    first = recommendation.chosen_option
    if first is None or recommendation.gate is not Gate.PROPOSE or not _may_begin_a_plan(context, first):
        return recommendation
    then = _context_after(context, first)
    later = _option_on_new_type(then, first) if then is not None else None
    if then is None or later is None or later.risk > max(first.risk, context.policy.risk_apply):
        return recommendation
    return (
        recommendation
        if saving_too_small(gate_case(then, later), context.policy)
        else replace(recommendation, stages=(later,))
    )


def _may_begin_a_plan(context: EvaluationContext, first: Option) -> bool:
    plain = context.endpoint.is_plain and not context.endpoint.scaling and first.in_place
    moved = first.kind in FIRST and first.target.instance_type != context.runs.name
    return plain and moved and first.target.instance_count >= 2 and not (first.restores or first.grows)


def _context_after(context: EvaluationContext, first: Option) -> EvaluationContext | None:
    """The context as it would be with the change in force; None without the type's figures."""
    target, hardware = first.target, context.inputs.catalogue.find(first.target.instance_type)
    if hardware is None:
        return None
    count = target.instance_count
    variant = replace(
        context.variant,
        instance_type=hardware.name,
        current_count=count,
        desired_count=count,
        routing=target.routing or context.variant.routing,
    )
    past = PastChange(
        context.inputs.now, context.runs.name, hardware.name, context.variant.current_count, count, PastEnd.PROVEN,
        from_routing=context.variant.routing,
    )  # fmt: skip
    history = replace(context.inputs.history, endpoint=(*context.inputs.history.endpoint, past))
    then = replace(
        context,
        endpoint=replace(context.endpoint, variants=(variant,)),
        inputs=replace(context.inputs, history=history),
        runs=hardware,
        price=first.price,
        instances=float(count),
        _replays={},
        _of_days={},
    )
    share_results(context, then)
    vars(then).pop("history", None)  # the one that it has now tells of the change
    return then


def _option_on_new_type(then: EvaluationContext, first: Option) -> Option | None:
    """Counts by the hour or target tracking on the type, at the speed that the change is chosen with."""
    candidate = check_candidate(then, then.runs)
    if not isinstance(candidate, CandidateType):
        return None
    slower = latency_ratio(first)
    sure = replace(candidate, ratio=Ratio(slower, slower), fit=1.0, fast=1.0, started=True)
    option = size_and_price(then, sure)
    return option if isinstance(option, Option) and option.kind in LATER else None
