"""Stages that follow a change of type by the same approval: counts by the hour, or target tracking, on the new type.

They are what the evaluation after the change would offer, were the change in force today: sized by the days that were
seen, at the speed that the change is chosen with.
"""

from dataclasses import replace

from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.allowed_step import gate_case
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.fleet_size import latency_ratio
from rightsizer.recommender.gate import saving_too_small
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.slowdown import Ratio

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
