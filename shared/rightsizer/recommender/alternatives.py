"""Alternatives behind the search: dimensions that the settings close, and ways of the owner or the callers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rightsizer.domain.option import Excluded, Option, Risk
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Needs, Recommendation
from rightsizer.recommender.allowed_step import gate_of
from rightsizer.recommender.choose import NO_CHEAPER, replay_option
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.dimension import Offering, collect_offers
from rightsizer.recommender.packing import needs_at


def add_alternatives(
    recommendation: Recommendation, context: EvaluationContext, dimensions: Iterable[Offering]
) -> Recommendation:
    """The recommendation with the alternatives behind its options. One is chosen only where nothing else is offered.

    An endpoint that is not carried today is left alone, and the gate never lets one of these be applied.
    """
    if recommendation.finding is Finding.UNDER_PROVISIONED:
        return recommendation
    needs = needs_at(context)
    recommendation = replace(recommendation, needs=needs if isinstance(needs, Needs) else None)
    answers = list(_answers(recommendation, context, dimensions))
    options = sorted((a for a in answers if isinstance(a, Option)), key=_alternative_order)
    ruled_out = (a for a in answers if isinstance(a, Excluded))
    recommendation = replace(recommendation, excluded=(*recommendation.excluded, *ruled_out))
    if not options:
        return recommendation
    if recommendation.options:
        may_come_first = recommendation.offers_test or recommendation.gate_reason.code is Code.SAVING_TOO_SMALL
        asked = _prefer_closed_dimension(recommendation, context, options) if may_come_first else None
        return asked or replace(recommendation, options=(*recommendation.options, *options))
    if recommendation.reason.code is Code.RISK_TOO_HIGH:  # a type in place may do, and only a test is missing
        later = [option for option in options if option.risk > Risk.MEDIUM and not option.in_place]
        waits = (Excluded(o.target.instance_type, _migration_wait_reason(o), o.kind) for o in later)
        recommendation = replace(recommendation, excluded=(*recommendation.excluded, *waits))
        options = [option for option in options if option not in later]
    return _propose_first(recommendation, context, options)


def _answers(
    recommendation: Recommendation, context: EvaluationContext, dimensions: Iterable[Offering]
) -> Iterator[Option | Excluded]:
    """The options and the reasons of each dimension that does not compete with the fleets.

    First what was looked at for this, then what is not looked at on such an endpoint, then what the search moved.
    """
    opened = ADDABLE & context.policy.by_itself
    behind = [offering for offering in dimensions if not offering.competes]
    behind.sort(
        key=lambda offering: (not opened.isdisjoint(offering.kinds), offering.out_of_scope(context) is not None)
    )
    for offering in behind:
        yield from collect_offers(offering, context, recommendation)


def _prefer_closed_dimension(
    recommendation: Recommendation, context: EvaluationContext, options: list[Option]
) -> Recommendation | None:
    """A closed dimension in place of an open change that saves too little, or of a test that would save less than it
    does for sure; None where it saves too little too.
    """
    least = recommendation.saving_usd_per_month if recommendation.offers_test else 0
    better = (o for o in options if o.kind in ADDABLE and o.saving_usd_per_month > least)
    closed = [o for o in better if gate_of(context, o)[1].code is not Code.SAVING_TOO_SMALL]
    others = (*recommendation.options, *(o for o in options if o not in closed))
    return _with_options_first(replace(recommendation, options=others), context, closed) if closed else None


def _migration_wait_reason(option: Option) -> Reason:
    """Why a migration waits: measuring a type in place is cheaper than compiling a model for another chip."""
    return Reason(
        Code.RISK_TOO_HIGH,
        f"would save ${option.saving_usd_per_month:,.2f} a month after a migration; a type that runs the model as it is"
        " may do, and is to be measured first",
    )


def _alternative_order(option: Option) -> tuple[bool, float, str]:
    return not option.in_place, -float(option.saving_usd_per_month), option.target.instance_type


def _propose_first(base: Recommendation, context: EvaluationContext, options: list[Option]) -> Recommendation:
    """The first that saves enough as a proposal. What saves too little is ruled out, and alone changes nothing."""
    reasons = [(option, gate_of(context, option)[1]) for option in options]
    enough = [option for option, why in reasons if why.code is not Code.SAVING_TOO_SMALL]
    small = (Excluded(context.runs.name, why, option.kind) for option, why in reasons if option not in enough)
    base = replace(base, excluded=(*base.excluded, *small))
    return _with_options_first(base, context, enough) if enough else base


def _with_options_first(base: Recommendation, context: EvaluationContext, options: list[Option]) -> Recommendation:
    """The first of the options as what is recommended, the others and those of `base` behind it."""
    best = options[0]
    verdict, why = gate_of(context, best)
    where = "but on another endpoint, so its owner decides. On this endpoint"
    if best.in_place:
        where = "which the stack's parameter Limits does not open to automatic mode. Without it"
        if why.code is Code.AUTOSCALED:
            where = "which its owner decides. Without it"
    what = f"{best.kind.value} ({_fleet_text(best)})" if best.target.instance_type else _fleet_text(best)
    text = f"{what} would save ${best.saving_usd_per_month:,.2f} a month, {where}"
    keeps = NO_CHEAPER if base.reason.code is Code.ALREADY_RIGHT else base.reason.sentence
    reason = Reason(Code.CHEAPER_OPTION, f"{text}: {keeps}")
    return replace(
        base,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(*options, *base.options),
        gate=verdict,
        gate_reason=why,
        replay=replay_option(context, best) if best.in_place else None,
    )


def _fleet_text(option: Option) -> str:
    target = option.target
    if not target.instance_type:
        return option.price.instance_type
    bounds = (target.minimum or target.instance_count, target.maximum or target.instance_count)
    counts = target.week_counts if target.hourly_counts else bounds
    low, high = min(counts), max(counts)
    return f"{low} × {target.instance_type}" if low == high else f"{low} to {high} × {target.instance_type}"
