"""Savings of dimensions that the settings close, on the running type, offered for an approval.

Those that are open are part of every option already; here is said why none of the options moves them.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.days_of_week import has_load_jumped
from rightsizer.recommender.late_requests import budget_sentence, extra_margin, find_degradation, late_budget_used
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.weekly_counts import least_weekly_mean


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
