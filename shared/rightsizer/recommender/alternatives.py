"""Behind what can be done in place: the ways that need the endpoint's owner or its callers.

Serving without a GPU where it is not used is one: a type of each CPU architecture and serverless, or why not.
"""

import math
from dataclasses import replace

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk
from rightsizer.domain.policy import ADDABLE
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Needs, Recommendation
from rightsizer.recommender import alternative_refusals
from rightsizer.recommender.alternative_refusals import (
    ASYNC_TAG,
    SECONDS_PER_MONTH,
    Bill,
    async_refusal,
    busy_seconds,
    chip_ratio,
    chip_refusal,
    cpu_refusal,
    delete_refusal,
    host_refusal,
    latency_ratio,
    memory_of,
    pool_option,
    pool_refusal,
    serverless_reason,
    serverless_refusal,
)
from rightsizer.recommender.choose import replayed
from rightsizer.recommender.closed_dimensions import closed_answers, open_answers
from rightsizer.recommender.context import Situation
from rightsizer.recommender.gate import Case, Verdict, gate
from rightsizer.recommender.options import saving_share
from rightsizer.recommender.packing import needs_of, partners_needed
from rightsizer.recommender.pricing import cost_of, volumes
from rightsizer.recommender.scale_to_zero import nap, tolerates_cold

ELSEWHERE = (OptionKind.ASYNC, OptionKind.OTHER_ARCHITECTURE, OptionKind.SERVERLESS, OptionKind.INSTANCE_POOLS)
"""Dimensions that are looked at for real-time and asynchronous endpoints only."""
UNPROVEN_SHARE = 0.5
"""Chance that a migration to another chip takes a second run of both fleets."""

type Found = Option | Excluded
type Sold = tuple[InstanceType, Price]


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
    used = out(at, OptionKind.DELETE, delete_refusal(at.endpoint, at.demand, at.policy))
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
    tag = at.endpoint.tags.get(ASYNC_TAG, "")
    asleep = nap(at.days, alternative_refusals.ASYNC_TIMEOUT_MINUTES).asleep_share if tag else 0.0
    days = len({d.day for d in at.days})
    reason = async_refusal(tag, at.latency.p95_s, asleep, alternative_refusals.ASYNC_TIMEOUT_MINUTES, days, at.policy)
    if reason is not None:
        return [out(at, OptionKind.ASYNC, reason)]
    count = at.variant.current_count
    bill = bill_of(at, at.price, at.instances * (1 - asleep), count, 0.0)
    if bill.saving <= 0:
        return [out(at, OptionKind.ASYNC, unsaved(at, "sleeping"))]
    return [alternative_refusals.async_option((at.runs.name, count), at.price, bill, at.demand, asleep)]


def _chips(at: Situation) -> list[Found]:
    """The cheapest type of Inferentia or Trainium that may serve; each cheaper one that may not, and why."""
    found: list[Found] = []
    for hardware, price in cheaper(at, [h for h in at.given.catalogue if h.accelerator and not h.has_gpu]):
        quota = at.given.quotas.get(hardware.name)
        reason = chip_refusal(at.reference, hardware, at.demand, at.stretch, at.policy, quota)
        if reason is not None:
            found.append(Excluded(hardware.name, reason, OptionKind.OTHER_ARCHITECTURE))
            continue
        more = _more(at, latency_ratio(at.demand, chip_ratio(at.reference, hardware, at.policy)))
        count = math.ceil(at.variant.current_count * more - 0.01)
        mean = count if not at.endpoint.scaling else at.instances * more
        bill = bill_of(at, price, mean, count, UNPROVEN_SHARE)
        if bill.saving > 0:
            option = alternative_refusals.chip_option(hardware, count, price, bill, at.demand)
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


def cheaper(at: Situation, types: list[InstanceType]) -> list[tuple[InstanceType, Price]]:
    """Those of the types that are sold here below today's price of an instance, cheapest first."""
    priced = ((hardware, at.given.prices.find(hardware.name)) for hardware in types)
    found = [(h, p) for h, p in priced if p is not None and p.listed and p.usd_per_hour < at.price.usd_per_hour]
    return sorted(found, key=lambda pair: (pair[1].usd_per_hour, pair[0].name))


def bill_of(at: Situation, price: Price, mean: float, count: int, risk_share: float) -> Bill:
    """US dollars of `mean` instances, at most `count` of them, against today's."""
    cost = cost_of(at.usd, price, mean, count, risk_share, at.given.prices.commitment, at.policy, True)
    return Bill(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days, at.usd)


def unsaved(at: Situation, what: str) -> Reason:
    """That it would save nothing, with today's bill and what is committed."""
    plan = at.given.prices.commitment.usd_per_hour
    return Reason(
        Code.NOT_CHEAPER, f"{what} saves nothing: today it costs ${at.usd:,.2f} a month (committed: ${plan} an hour)"
    )


def out(at: Situation, kind: OptionKind, reason: Reason) -> Excluded:
    """The dimension ruled out for what runs."""
    return Excluded(at.runs.name, reason, kind)


def without_gpu(at: Situation) -> list[Option | Excluded]:
    """The cheapest type of each CPU architecture and serverless inference, each as an option or with its reason."""
    reason = cpu_refusal(at.demand, at.policy)
    if reason is not None:
        return [out(at, kind, reason) for kind in (OptionKind.OTHER_ARCHITECTURE, OptionKind.SERVERLESS)]
    held = memory_of(at.reference, at.demand)
    plain = cheaper(at, [h for h in at.given.catalogue if h.accelerator is None and not h.family.startswith("t")])
    found = [
        _cheapest(at, arch, [sold for sold in plain if sold[0].cpu_arch == arch], held)
        for arch in alternative_refusals.CPU_CALLERS
    ]
    return [*found, _serverless(at, held)]


def _cheapest(at: Situation, arch: str, sold: list[Sold], held: float) -> Option | Excluded:
    """The cheapest type of the architecture that may serve; else the reason of the dearest, for others are smaller."""
    refused: Excluded | None = None
    for hardware, price in sold:
        found = _on(at, hardware, price, held)
        if isinstance(found, Option):
            return found
        refused = Excluded(hardware.name, found, OptionKind.OTHER_ARCHITECTURE)
    if refused is not None:
        return refused
    usd = f"USD {at.price.usd_per_hour} per hour of {at.runs.name}"
    sentence = f"no {arch} type without a GPU is sold here for less than the {usd}"
    return out(at, OptionKind.OTHER_ARCHITECTURE, Reason(Code.NOT_CHEAPER, sentence))


def _on(at: Situation, hardware: InstanceType, price: Price, held: float) -> Option | Reason:
    quota = at.given.quotas.get(hardware.name)
    if quota is not None and quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {hardware.name} endpoints is {quota}")
    small = host_refusal(at.reference, hardware, at.demand, held)
    if small is not None:
        return small
    count = at.variant.current_count
    bill = bill_of(at, price, at.instances, count, 0.0)
    if bill.saving <= 0:
        return unsaved(at, hardware.name)
    option = alternative_refusals.cpu_option(hardware, count, price, bill, at.demand)
    return replace(option, not_checked=option.not_checked + volumes(at.runs, hardware))


def _serverless(at: Situation, held: float) -> Option | Excluded:
    """A serverless endpoint of the memory that host and model need, where its price is known."""
    known = at.given.prices.serverless
    if known is None:
        return out(at, OptionKind.SERVERLESS, serverless_reason(at.demand, at.usd))
    host = at.demand.host_memory_gib
    need = held + (at.reference.memory_gib if host is None else host)
    reason = serverless_refusal(at.demand, need, tolerates_cold(at.endpoint))
    if reason is not None:
        return out(at, OptionKind.SERVERLESS, reason)
    size, seconds = max(1, math.ceil(need)), busy_seconds(at.demand)
    hour = known.usd_per_gb_second * size * 3600
    price = Price(f"serverless {size} GB", known.region, hour, "snapshot", known.basis, known.as_of)
    bill = bill_of(at, price, seconds / SECONDS_PER_MONTH, 0, 0.0)
    if bill.saving <= 0:
        return out(at, OptionKind.SERVERLESS, unsaved(at, price.instance_type))
    return alternative_refusals.serverless_option(size, seconds, price, bill, at.demand)
