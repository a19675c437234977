"""Behind what can be done in place: the ways that need the endpoint's owner or its callers."""

import math
from dataclasses import replace

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk
from rightsizer.domain.packing import Needs
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import alternative_prices as rule
from rightsizer.recommender import alternative_refusals as why_not
from rightsizer.recommender.choose import replayed
from rightsizer.recommender.closed_dimensions import closed_answers, open_answers
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import volumes
from rightsizer.recommender.fallback import pool_option, pool_refusal
from rightsizer.recommender.gate import Case, Verdict, gate
from rightsizer.recommender.other_types import bill_of, cheaper, out, unsaved
from rightsizer.recommender.packing import needs_of, partners_needed
from rightsizer.recommender.priced import saving_share
from rightsizer.recommender.scale_to_zero import nap
from rightsizer.recommender.without_gpu import without_gpu

type Found = Option | Excluded
ELSEWHERE = (OptionKind.ASYNC, OptionKind.OTHER_ARCHITECTURE, OptionKind.SERVERLESS, OptionKind.INSTANCE_POOLS)
"""Dimensions that are looked at for real-time and asynchronous endpoints only."""
UNPROVEN_SHARE = 0.5
"""Chance that a migration to another chip takes a second run of both fleets."""


def with_alternatives(found: Recommendation, at: Situation) -> Recommendation:
    """The judgement with the alternatives behind its options. One is chosen only where nothing else is offered.

    An endpoint that is not carried today is left alone, and the gate never lets one of these be applied.
    """
    if found.finding is Finding.UNDER_PROVISIONED:
        return found
    needs = _needs(at)
    found = replace(found, needs=needs if isinstance(needs, Needs) else None)
    answers = [*closed_answers(found, at), *alternatives_for(found, at), _packing(at, needs)]
    options = sorted((a for a in answers if isinstance(a, Option)), key=_rank)
    ruled_out = (a for a in answers if isinstance(a, Excluded))
    found = replace(found, excluded=(*found.excluded, *ruled_out, *open_answers(found, at)))
    if not options:
        return found
    if found.options:
        asked = _asked(found, at, options) if found.gate_reason.code is Code.SAVING_TOO_SMALL else None
        return asked or replace(found, options=(*found.options, *options))
    if found.reason.code is Code.RISK_TOO_HIGH:  # a type in place may do, and only a test is missing
        later = [option for option in options if option.risk > Risk.MEDIUM and not option.in_place]
        waits = (Excluded(o.target.instance_type, _later(o), o.kind) for o in later)
        found = replace(found, excluded=(*found.excluded, *waits))
        options = [option for option in options if option not in later]
    return _proposed(found, at, options)


def _asked(found: Recommendation, at: Situation, options: list[Option]) -> Recommendation | None:
    """A closed dimension in place of an open change that saves too little; None where it does too."""
    closed = [o for o in options if o.kind in ADDABLE and _gate(at, o)[1].code is not Code.SAVING_TOO_SMALL]
    others = (*found.options, *(o for o in options if o not in closed))
    return _proposal(replace(found, options=others), at, closed) if closed else None


def alternatives_for(found: Recommendation, at: Situation) -> list[Found]:
    """An option or a reason for each dimension that is not done in place, and the pool that secures a downsize."""
    best = found.chosen if found.gate is not Gate.TEST else None
    used = out(at, OptionKind.DELETE, why_not.delete_refusal(at.endpoint, at.demand, at.policy))
    if at.endpoint.kind not in (EndpointKind.REAL_TIME, EndpointKind.ASYNC):
        reason = Reason(Code.OTHER_KIND, f"not looked at for the kind {at.endpoint.kind.value}")
        return [used, *(out(at, kind, reason) for kind in ELSEWHERE)]
    return [*_async(at), *without_gpu(at), *_chips(at), _pool(at, best), used]


def _needs(at: Situation) -> Needs | Reason:
    """What it would ask of a shared card, for the fleet's report; where it runs on what it was measured on."""
    if not at.endpoint.plain:
        return Reason(Code.OTHER_KIND, f"only plain real-time endpoints are packed, not {at.endpoint.kind.value}")
    if at.endpoint.scaling:
        most = max(target.maximum for target in at.endpoint.scaling)
        return Reason(Code.AUTOSCALED, f"autoscaling may set up to {most} instances; only what stays on one is packed")
    if at.runs.name != at.reference.name:
        text = f"it was measured on {at.reference.name}, whose days have to leave the look-back first"
        return Reason(Code.TOO_FEW_DAYS, text)
    return needs_of(at.runs, at.variant.current_count, at.demand, at.endpoint.framework, at.policy)


def _packing(at: Situation, needs: Needs | Reason) -> Excluded:
    """Why no partners are named: it shares no card, or that is known only beside the other endpoints."""
    reason = needs if isinstance(needs, Reason) else partners_needed(needs, at.endpoint.owner)
    return out(at, OptionKind.PACKING, reason)


def _later(option: Option) -> Reason:
    """Why a migration waits: measuring a type in place is cheaper than compiling a model for another chip."""
    return Reason(
        Code.RISK_TOO_HIGH,
        f"would save ${option.saving_usd_per_month:,.2f} a month after a migration; a type that runs the model as it is"
        " may do, and is to be measured first",
    )


def _rank(option: Option) -> tuple[bool, float, str]:
    return not option.in_place, -float(option.saving_usd_per_month), option.target.instance_type


def _gate(at: Situation, option: Option) -> Verdict:
    case = Case(at.endpoint, option, at.demand, at.runs.name, saving_share(at, option), at.goal.declared, 0.0)
    return gate(case, at.given.history, at.policy, at.given.now)


def _proposed(base: Recommendation, at: Situation, options: list[Option]) -> Recommendation:
    """The first that saves enough as a proposal. What saves too little is ruled out, and alone changes nothing."""
    reasons = [(option, _gate(at, option)[1]) for option in options]
    enough = [option for option, why in reasons if why.code is not Code.SAVING_TOO_SMALL]
    small = (out(at, option.kind, why) for option, why in reasons if option not in enough)
    base = replace(base, excluded=(*base.excluded, *small))
    return _proposal(base, at, enough) if enough else base


def _proposal(base: Recommendation, at: Situation, options: list[Option]) -> Recommendation:
    """The first of the options as what is recommended, the others and those of `base` behind it."""
    best = options[0]
    verdict, why = _gate(at, best)
    where = "but not on the same endpoint: its owner decides. In place"
    if best.in_place:
        where = "which Limits does not open to automatic mode. Otherwise"
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{best.kind.value} ({_fleet(best)}) would save ${best.saving_usd_per_month:,.2f} a month, {where}:"
        f" {base.reason.sentence}",
    )
    return replace(
        base,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(*options, *base.options),
        gate=verdict,
        gate_reason=why,
        replay=replayed(at, best) if best.in_place else None,
    )


def _fleet(option: Option) -> str:
    target = option.target
    if not target.instance_type:
        return option.price.instance_type
    counts = target.hourly_counts or (target.minimum or target.instance_count, target.maximum or target.instance_count)
    low, high = min(counts), max(counts)
    return f"{low} x {target.instance_type}" if low == high else f"{low} to {high} x {target.instance_type}"


def _async(at: Situation) -> list[Found]:
    if at.endpoint.kind is EndpointKind.ASYNC:
        return [out(at, OptionKind.ASYNC, Reason(Code.NOT_APPLICABLE, "its callers use it asynchronously already"))]
    tag = at.endpoint.tags.get(why_not.ASYNC_TAG, "")
    asleep = nap(at.days, rule.ASYNC_TIMEOUT_MINUTES).asleep_share if tag else 0.0
    days = len({d.day for d in at.days})
    reason = why_not.async_refusal(tag, at.latency.p95_s, asleep, rule.ASYNC_TIMEOUT_MINUTES, days, at.policy)
    if reason is not None:
        return [out(at, OptionKind.ASYNC, reason)]
    count = at.variant.current_count
    bill = bill_of(at, at.price, at.instances * (1 - asleep), count, 0.0)
    if bill.saving <= 0:
        return [out(at, OptionKind.ASYNC, unsaved(at, "sleeping"))]
    return [rule.async_option((at.runs.name, count), at.price, bill, at.demand, asleep)]


def _chips(at: Situation) -> list[Found]:
    """The cheapest type of Inferentia or Trainium that may serve; each cheaper one that may not, and why."""
    found: list[Found] = []
    for hardware, price in cheaper(at, [h for h in at.given.catalogue if h.accelerator and not h.has_gpu]):
        quota = at.given.quotas.get(hardware.name)
        reason = why_not.chip_refusal(at.reference, hardware, at.demand, at.stretch, at.policy, quota)
        if reason is not None:
            found.append(Excluded(hardware.name, reason, OptionKind.OTHER_ARCHITECTURE))
            continue
        more = _more(at, why_not.latency_ratio(at.demand, why_not.chip_ratio(at.reference, hardware, at.policy)))
        count = math.ceil(at.variant.current_count * more - 0.01)
        mean = count if not at.endpoint.scaling else at.instances * more
        bill = bill_of(at, price, mean, count, UNPROVEN_SHARE)
        if bill.saving > 0:
            option = rule.chip_option(hardware, count, price, bill, at.demand)
            return [*found, replace(option, not_checked=option.not_checked + volumes(at.runs, hardware))]
        found.append(Excluded(hardware.name, unsaved(at, hardware.name), OptionKind.OTHER_ARCHITECTURE))
    if not found:
        sentence = "no type with Inferentia or Trainium is cheaper here than what runs"
        return [out(at, OptionKind.OTHER_ARCHITECTURE, Reason(Code.NOT_CHEAPER, sentence))]
    return found


def _more(at: Situation, slower: float) -> float:
    """Instances for each of today's, at least one: so many that the planned load keeps below what one server may."""
    fleet = at.variant.current_count * at.workers
    load = at.demand.load.peak_rate * at.latency.mean_s * slower / fleet
    return max(1.0, load / at.policy.rho_one)


def _pool(at: Situation, best: Option | None) -> Found:
    now = (at.runs.name, at.variant.current_count)
    reason = pool_refusal(best, now, at.endpoint.ref.region, at.endpoint.plain)
    if best is None or reason is not None:
        return out(at, OptionKind.INSTANCE_POOLS, reason or Reason(Code.NOT_APPLICABLE, "no new type is chosen"))
    return pool_option(best, now, at.usd)
