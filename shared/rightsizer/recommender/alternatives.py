"""Alternatives behind the search: dimensions that the settings close, and ways of the owner or the callers."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from rightsizer.autoscaling.policies import may_scale_in
from rightsizer.autoscaling.target_tracking import BUSY_TARGET, TRACKING, choose_metric, metric_reason
from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Effort, Excluded, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Needs, Recommendation
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.choose import NO_CHEAPER, replay_option
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.dimension import Offering, collect_offers
from rightsizer.recommender.fleet_size import mean_instances, replay_if_carried, replayed_p95_s
from rightsizer.recommender.hourly_counts import has_load_jumped
from rightsizer.recommender.late_requests import budget_sentence, extra_margin, find_degradation, late_budget_used
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.packing import needs_at
from rightsizer.recommender.priced_option import price_fleet
from rightsizer.recommender.scaling_options import LATE, least_weekly_mean, service_s
from rightsizer.recommender.stages import gate_of

MIGRATION_USD, MONTHS = Decimal(10_000), 12
"""Two weeks of an engineer for another chip (Neuron's phases: assess, a week of pilot, roll out), and the months in
which it has to pay for itself; both assumptions. A change that pays later is not why an endpoint is too large."""


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


def migration_cost_reason(option: Option) -> Reason | None:
    """Why a migration saves too little for its work.

    None where it pays within a year, and for options that take less work.
    """
    a_year = MONTHS * option.saving_usd_per_month
    if option.effort is not Effort.VERY_HIGH or a_year >= MIGRATION_USD:
        return None
    text = f"a migration to {option.target.instance_type} would save USD {a_year:,.2f} a year and takes about two weeks"
    return Reason(Code.SAVING_TOO_SMALL, f"{text} of work, taken as USD {MIGRATION_USD:,}")


def _alternative_order(option: Option) -> tuple[bool, float, str]:
    return not option.in_place, -float(option.saving_usd_per_month), option.target.instance_type


def _propose_first(base: Recommendation, context: EvaluationContext, options: list[Option]) -> Recommendation:
    """The first that saves enough as a proposal. What saves too little is ruled out, and alone changes nothing."""
    reasons = [(option, migration_cost_reason(option) or gate_of(context, option)[1]) for option in options]
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


def answers(
    recommendation: Recommendation,
    context: EvaluationContext,
    kind: OptionKind,
    saves_nothing: Callable[[EvaluationContext], Reason | None],
) -> list[Option | Reason]:
    """Answers for closed and open dimensions: an option that saves more, or the reason against one.

    A closed dimension gets an option only where it saves more than what is open. An open one gets the reason why no
    option moves it, where none does.
    """
    if kind in context.policy.by_itself:
        offered = any(option.kind is kind for option in recommendation.options)
        return [] if offered else [_unmoved(recommendation, context, kind, saves_nothing)]
    no = skip_reason(context) or _no_use_reason(context) or saves_nothing(context)
    return [no or _answer(context, kind, recommendation.saving_usd_per_month)]


def skip_reason(context: EvaluationContext) -> Reason | None:
    """Why no closed dimension is looked at: another kind, users who wait, a type not measured."""
    other = _kind_reason(context)
    if other is not None:
        return other
    if context.runs.name != context.reference.name:
        text = f"it was measured on {context.reference.name}, whose days have to leave the look-back first"
        return Reason(Code.TOO_FEW_DAYS, text)
    if has_load_jumped(context):
        return Reason(Code.UNDER_PROVISIONED, "the traffic jumped, and a day of the new traffic has to be seen first")
    return _waiting_users_reason(context)


def _kind_reason(context: EvaluationContext) -> Reason | None:
    """Why neither an open nor a closed dimension is looked at on such an endpoint."""
    if context.endpoint.is_plain:
        return None
    return Reason(Code.OTHER_KIND, f"only where one real-time variant serves, not for {context.endpoint.kind.value}")


def _waiting_users_reason(context: EvaluationContext) -> Reason | None:
    """Why nothing gets smaller now: users wait, or waited too often."""
    harm = find_degradation(context)
    if harm is not None:
        return harm.reason
    used = late_budget_used(context)
    return Reason(Code.LATE_BUDGET_SPENT, budget_sentence(used, context)) if used is not None else None


def _unmoved(
    recommendation: Recommendation,
    context: EvaluationContext,
    kind: OptionKind,
    saves_nothing: Callable[[EvaluationContext], Reason | None],
) -> Reason:
    """Why the fleets that were computed with the dimension do not move it."""
    why = _kind_reason(context) or _no_use_reason(context) or saves_nothing(context) or _waiting_users_reason(context)
    if why is not None:
        return why
    first = (
        recommendation.chosen_option.kind
        if recommendation.chosen_option is not None and recommendation.chosen_option.kind in ADDABLE
        else None
    )
    if first is not None:
        text = f"{first.value} is offered, and one change moves one of them: {kind.value} is looked at again after it"
        return Reason(Code.NOT_APPLICABLE, text)
    mine = next(
        (e.reason for e in recommendation.excluded if e.instance_type == context.runs.name and e.dimension is None),
        None,
    )
    if mine is not None:
        return mine
    return _too_little_reason(kind, recommendation.saving_usd_per_month)


def _too_little_reason(kind: OptionKind, least: Decimal) -> Reason:
    sentence = f"{kind.value} saves no more than what is offered without it (${least:,.2f} a month)"
    return Reason(Code.NOT_CHEAPER, sentence)


def _answer(context: EvaluationContext, kind: OptionKind, least: Decimal) -> Option | Reason:
    """The option of the search with that dimension open too."""
    context = share_results(context, replace(context, extra_margin=context.extra_margin + extra_margin(context)))
    dimensions = context.policy.by_itself | {kind}
    opened = share_results(
        context, replace(context, inputs=replace(context.inputs, policy=replace(context.policy, by_itself=dimensions)))
    )
    draft = check_candidate(opened, context.runs)
    option = size_and_price(opened, draft) if isinstance(draft, CandidateType) else draft
    if isinstance(option, Reason):
        return option
    if option.kind is not kind or option.saving_usd_per_month <= least:
        return _too_little_reason(kind, least)
    setting = json.dumps({"dimensions": sorted(ADDABLE & dimensions)})
    return replace(option, notes=(*option.notes, f"automatic mode looks at this only where Limits says {setting}"))


def _no_use_reason(context: EvaluationContext) -> Reason | None:
    """Why no dimension of the search can save anything; told before any fleet is computed."""
    if context.peak_count >= 2:
        return None
    return Reason(Code.NOT_APPLICABLE, "of use only where two instances or more run")


def even_hours_reason(context: EvaluationContext) -> Reason | None:
    """Why hourly counts save too little, by the least mean count that the hours need."""
    load = context.demand.load
    if not load.hourly_known:
        days = len({day.day for day in context.days})
        return Reason(
            Code.TOO_FEW_DAYS,
            f"the load of each hour is not known after {days} of {context.policy.days_for_hours} days",
        )
    needed = (
        sum(
            max(float(context.owner_minimum), rate * context.latency.mean_s / context.workers)
            for rate in load.hourly_rate
        )
        / 24
    )
    weekly = least_weekly_mean(context)
    needed = needed if weekly is None else min(needed, weekly)
    saved = 1 - needed / max(context.instances, 1.0)
    if saved >= context.policy.minimum_saving_share:
        return None
    return Reason(
        Code.NOT_CHEAPER,
        f"the hours of the day need {needed:.1f} of {context.instances:.1f} instances at least: following them"
        f" would save {100 * max(saved, 0.0):.0f} % at most",
    )


HIGHER = 1.1
"""Target over the owner's from which it is another one: a latency that moves by a tenth moves the formula as much."""


def policy_target_option(context: EvaluationContext, recommendation: Recommendation) -> Option | None:
    """The owner's policy with a higher target, where the replay carries the load with fewer instances than with theirs.

    What ran on average shrinks as the replay on the one target does against the replay on the other.
    None where the policy is followed in a way that the replay does not know, where its target is not lower than what
    the replay keeps busy, or where nothing more is saved than by what is found.
    """
    own = _only_target(context)
    if own is None or skip_reason(context) is not None:
        return None
    config = own.policies[0][TRACKING]
    wanted = choose_metric(context.workers, service_s(context, 1.0), own.minimum)
    if (
        not isinstance(wanted, tuple)
        or wanted[0] != _metric(config)
        or wanted[1] < HIGHER * float(config["TargetValue"])
    ):
        return None
    fleet = Fleet(
        (own.minimum,) * 24, context.workers, context.is_random_routing, 1.0, context.load_margin, own.maximum
    )
    candidate = check_candidate(context, context.runs)
    if not isinstance(candidate, CandidateType) or replay_if_carried(context, fleet) is None:
        return None
    busy = BUSY_TARGET * float(config["TargetValue"]) / wanted[1]
    today = mean_instances(context, replace(fleet, busy=busy))
    less = max(context.instances * mean_instances(context, fleet) / today, float(own.minimum))
    priced = price_fleet(context, candidate, fleet, None, less)
    if priced.saving_usd_per_month <= max(recommendation.saving_usd_per_month, Decimal(0)):
        return None
    return _moved(context, candidate, priced, own, float(config["TargetValue"]), wanted)


def _only_target(context: EvaluationContext) -> ScalableTarget | None:
    """The one target of the variant with one policy that may scale in and out, and nothing else; None elsewhere."""
    targets = context.endpoint.scaling
    if len(targets) != 1 or targets[0].minimum < 1 or targets[0].minimum >= targets[0].maximum:
        return None
    (own,) = targets
    followed = len(own.policies) == 1 and TRACKING in own.policies[0]
    return own if followed and may_scale_in(own) else None


def _metric(config: Mapping[str, Any]) -> str:
    return str((config.get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType", ""))


def _moved(
    context: EvaluationContext,
    candidate: CandidateType,
    priced: Option,
    own: ScalableTarget,
    before: float,
    wanted: tuple[str, float],
) -> Option:
    """The priced fleet as an option that moves the target alone, at medium risk: the owner chose theirs."""
    metric, value = wanted
    target = Target(context.runs.name, own.minimum, minimum=own.minimum, maximum=own.maximum, target_value=value)
    risks = {**priced.risks, RiskResource.LATENCY: max(Risk.MEDIUM, priced.risks[RiskResource.LATENCY])}
    mean = priced.mean_instances or float(own.minimum)
    note = (
        f"{metric} {before:g} keeps {context.instances:.1f} instances on average, and {value:g} would keep {mean:.1f}:"
        f" {metric_reason(metric)}"
    )
    option = replace(
        priced,
        kind=OptionKind.AUTOSCALING,
        target=target,
        risks=risks,
        risk=max(risks.values()),
        notes=(*priced.notes, note),
        not_checked=(*priced.not_checked, LATE),
    )
    return replace(option, p95_s=replayed_p95_s(context, option, candidate.hardware))
