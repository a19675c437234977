"""Growth: what serves where today's fleet does not, with its cost, proposed before all savings.

Another routing is free, so it comes first where the replay says that it suffices; then more instances, or higher bounds
of the owner's autoscaling; a faster type, whose speed is a guess until it served, comes last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.endpoint import MAY_GROW_TAG, Mode, growth_refusal, may_grow_usd
from rightsizer.domain.history import PastChange, minimum_before_changes
from rightsizer.domain.option import Excluded, Option
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.gate import GateAnswer, GateCase, ask_person, decide_gate
from rightsizer.recommender.growth_fleets import (
    GrowthNeed,
    GrowthOffer,
    NeedKind,
    growth_need,
    growth_offers,
    scaled_targets,
)
from rightsizer.recommender.pricing import monthly_cost

SHOWN = 4
"""Options at most: one to take, and some to compare it with."""


def recommend_growth(base: Recommendation, context: EvaluationContext, best: Option | None) -> Recommendation | None:
    """The recommendation to grow; None where nothing is short, or where `best`, which saves, mends it too."""
    need = growth_need(context)
    if need is None or (best is not None and _does_mend(context, best, need)):
        return None
    answers = list(growth_offers(context, need))
    offers = sorted((a for a in answers if isinstance(a, GrowthOffer)), key=_growth_order)[:SHOWN]
    ruled_out = [a for a in answers if isinstance(a, Excluded)]
    parts = {o.option.target.instance_type for o in offers} | {e.instance_type for e in ruled_out}
    kept = (e for e in base.excluded if e.dimension is not None or e.instance_type not in parts)
    base = replace(
        base,
        finding=Finding.UNDER_PROVISIONED,
        reason=need.reason,
        options=tuple(replace(o.option, growth_usd=_told_usd(context, o.option)) for o in offers),
        excluded=(*kept, *ruled_out),
    )
    first = base.chosen_option
    verdict, why = decide_growth(context, first) if first else ask_person(context.endpoint, need.reason)
    return replace(base, gate=verdict, gate_reason=why)


def _does_mend(context: EvaluationContext, option: Option, need: GrowthNeed) -> bool:
    """Whether an option that saves ends the need as well."""
    counts = option.target.hourly_counts or (option.target.minimum or option.target.instance_count,)
    if option.saving_usd_per_month <= 0 or min(counts) < need.least:
        return False
    if need.kind is NeedKind.LATE:
        return option.p95_s is not None and option.p95_s <= context.objective.p95_s
    return need.kind is NeedKind.MINIMUM


def _growth_order(offer: GrowthOffer) -> tuple[bool, Decimal, bool, str]:
    """What is sure before what is guessed, the cheapest first, and of equal cost what starts nothing anew."""
    option = offer.option
    return offer.is_guess, option.usd_per_month, option.restart_needed, option.target.instance_type


def decide_growth(context: EvaluationContext, option: Option) -> GateAnswer:
    """Whether growth is applied by itself, or a person is asked; modes off and report stay silent.

    By itself only within the owner's tag rightsizer:may-grow, and where the gate lets a change through that saves. No
    cooldown and no least saving holds it back: users wait.
    """
    endpoint = context.endpoint
    if endpoint.mode in (Mode.OFF, Mode.REPORT):
        return ask_person(endpoint, REASON_TO_ASK)
    asked = _gate_as_if_it_saved(context, option) or _beyond_maximum(context, option) or _budget_reason(context, option)
    if asked is not None:
        return Gate.PROPOSE, asked
    allowed = may_grow_usd(endpoint.tags)
    within = "" if allowed is None else f", and the tag {MAY_GROW_TAG} allows USD {allowed:,.2f}"
    return Gate.APPLY, Reason(Code.SAFE_TO_APPLY, f"grows by itself: USD {option.growth_usd:,.2f} a month more{within}")


REASON_TO_ASK = Reason(Code.NEEDS_APPROVAL, "needs your approval")


def _gate_as_if_it_saved(context: EvaluationContext, option: Option) -> Reason | None:
    """Why the gate would ask about the same change if it saved, whatever changed lately; None where it would not."""
    to = context.inputs.catalogue.find(option.target.instance_type)
    gpus = (context.runs.accelerator_count, to.accelerator_count if to else context.runs.accelerator_count)
    saving = replace(option, saving_usd_per_month=Decimal(10**9), payback_days=0.0)
    demand = replace(context.demand, error_share=0.0, failed_lately=0.0)  # what fails is what growth mends
    case = GateCase(context.endpoint, saving, demand, context.runs.name, 1.0, gpus=gpus)
    calm = replace(context.policy, cooldown_hours=0.0, cooldown_type_hours=0.0)
    verdict, why = decide_gate(case, context.inputs.history, calm, context.inputs.now)
    return None if verdict is Gate.APPLY else why


def _beyond_maximum(context: EvaluationContext, option: Option) -> Reason | None:
    """Only a person goes beyond the maximum that the owner gave their autoscaling."""
    most, target = max((t.maximum for t in scaled_targets(context)), default=None), option.target
    if most is None or max(target.maximum or 0, target.instance_count) <= most:
        return None
    text = f"needs your approval: up to {target.maximum} instances, and the maximum of its autoscaling is {most}"
    return Reason(Code.AUTOSCALED, text)


def _budget_reason(context: EvaluationContext, option: Option) -> Reason | None:
    """Why the owner's tag does not allow this growth; None where it does, or where it costs nothing."""
    if added_usd(context, option) is None:
        return Reason(Code.NO_PRICE, "needs your approval: what ran before it grew has no price to compare with")
    refused = growth_refusal(context.endpoint.tags, option.growth_usd or Decimal(0))
    return None if refused is None else Reason(refused.code, f"needs your approval: {refused.sentence}")


def _told_usd(context: EvaluationContext, option: Option) -> Decimal:
    """What growth adds in all, as far as prices are known."""
    added = added_usd(context, option)
    return max(option.usd_per_month - context.usd_per_month if added is None else added, Decimal(0))


def added_usd(context: EvaluationContext, option: Option) -> Decimal | None:
    """US dollars a month that growth adds to the fleet of the owner. None where a price is missing.

    What earlier growth added counts too: a budget is for all of it, not for each step.
    """
    first = first_growth(context.inputs.history.endpoint)
    if first is None:
        return option.usd_per_month - context.usd_per_month
    price = context.inputs.prices.find(first.from_type)
    return None if price is None else option.usd_per_month - monthly_cost(price, first.from_count)


def beyond_owner_reason(context: EvaluationContext, option: Option) -> Reason | None:
    """Why automatic mode may not give a fleet of ours more than ran before our changes; None where it may.

    What ran then comes back without a question. Beyond it the owner's tag has to allow all that is added.
    """
    beyond = minimum_beyond_owner(context.inputs.history.endpoint, option, context.endpoint.tags)
    if beyond is not None:
        return Reason(beyond.code, f"needs your approval: {beyond.sentence}")
    if option.usd_per_month <= owner_usd(context):
        return None
    first, added = first_growth(context.inputs.history.endpoint), option.usd_per_month - owner_usd(context)
    if first is not None and (known := added_usd(context, option)) is not None:
        added = known
    refused = growth_refusal(context.endpoint.tags, added)
    return None if refused is None else Reason(refused.code, f"needs your approval: {refused.sentence}")


def minimum_beyond_owner(history: Sequence[PastChange], option: Option, tags: Mapping[str, str]) -> Reason | None:
    """Why a minimum is above the owner's, and their tag does not allow it; None where it may be.

    What it adds is paid at every hour. Where no change is recorded nothing tells what was theirs.
    """
    owners, wanted = minimum_before_changes(history), option.target.minimum or 0
    if owners is None or wanted <= owners:
        return None
    refused = growth_refusal(tags, (wanted - owners) * option.price.usd_per_instance_month)
    text = f"a minimum of {wanted}, and it was {owners} before our changes: "
    return None if refused is None else Reason(refused.code, text + refused.sentence)


def owner_usd(context: EvaluationContext) -> Decimal:
    """US dollars a month of the fleet before our changes; 0 where its type has no price."""
    price = context.inputs.prices.find(context.reference.name)
    return monthly_cost(price, sum(context.reference_counts) / 24) if price is not None else Decimal(0)


def first_growth(history: Sequence[PastChange]) -> PastChange | None:
    """The first growth that is in force: what ran before it is what its owner gave."""
    return next((past for past in history if past.grows and past.is_in_force), None)
