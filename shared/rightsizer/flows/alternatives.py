"""Behind what can be done in place: the ways that need the endpoint's owner or its callers."""

import math
from dataclasses import replace

from rightsizer.flows.choose import replayed
from rightsizer.flows.closed import closed_answers
from rightsizer.flows.priced import saving_share
from rightsizer.flows.situation import Situation
from rightsizer.model.hardware import InstanceType
from rightsizer.model.observation import EndpointKind
from rightsizer.model.option import Excluded, Option, OptionKind, Risk
from rightsizer.model.packing import Needs
from rightsizer.model.policy import ADDABLE
from rightsizer.model.price import Price
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding, Gate, Recommendation
from rightsizer.rules import alternatives as rule
from rightsizer.rules import inapplicable as why_not
from rightsizer.rules.cost import cost_of
from rightsizer.rules.fallback import pool_option, pool_refusal
from rightsizer.rules.gate import Case, Verdict, gate
from rightsizer.rules.packing import needs_of
from rightsizer.rules.sleep import nap, tolerates_cold

type Found = Option | Excluded
UNPROVEN_SHARE = 0.5
"""Chance that a migration to another chip takes a second run of both fleets."""


def with_alternatives(found: Recommendation, at: Situation) -> Recommendation:
    """The judgement with the alternatives behind its options. One is chosen only where nothing else is offered.

    An endpoint that is not carried today is left alone, and the gate never lets one of these be applied.
    """
    if found.finding is Finding.UNDER_PROVISIONED:
        return found
    found = replace(found, needs=_needs(at))
    answers = [*closed_answers(found, at), *alternatives_for(found, at)]
    options = sorted((a for a in answers if isinstance(a, Option)), key=_rank)
    found = replace(found, excluded=(*found.excluded, *(a for a in answers if isinstance(a, Excluded))))
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
    if at.endpoint.kind not in (EndpointKind.REAL_TIME, EndpointKind.ASYNC):
        reason = Reason(Code.OTHER_KIND, f"not looked at for the kind {at.endpoint.kind.value}")
        return [_out(at, kind, reason) for kind in (OptionKind.ASYNC, OptionKind.OTHER_ARCHITECTURE)]
    return [*_async(at), *_chips(at), *_without_gpu(at), _pool(at, best)]


def _needs(at: Situation) -> Needs | None:
    """What it would ask of a shared card, for the fleet's report; where it runs on what it was measured on."""
    if not at.endpoint.plain or at.endpoint.scaling or at.runs.name != at.reference.name:
        return None
    return needs_of(at.runs, at.variant.current_count, at.demand, at.endpoint.framework)


def _later(option: Option) -> Reason:
    """Why a migration waits: measuring a type in place is cheaper than compiling a model for another chip."""
    return Reason(
        Code.RISK_TOO_HIGH,
        f"would save USD {option.saving_usd_per_month} per month after a migration; a type that runs the model as it is"
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
    small = (_out(at, option.kind, why) for option, why in reasons if option not in enough)
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
        f"{best.kind.value} ({_fleet(best)}) would save USD {best.saving_usd_per_month} per month, {where}:"
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
        return []
    tag = at.endpoint.tags.get(why_not.ASYNC_TAG, "")
    asleep = nap(at.days, rule.ASYNC_TIMEOUT_MINUTES).asleep_share if tag else 0.0
    days = len({d.day for d in at.days})
    reason = why_not.async_refusal(tag, at.latency.p95_s, asleep, rule.ASYNC_TIMEOUT_MINUTES, days, at.policy)
    if reason is not None:
        return [_out(at, OptionKind.ASYNC, reason)]
    count = at.variant.current_count
    bill = _bill(at, at.price, at.instances * (1 - asleep), count, 0.0)
    if bill.saving <= 0:
        return [_out(at, OptionKind.ASYNC, _kept(at, "sleeping"))]
    return [rule.async_option((at.runs.name, count), at.price, bill, at.demand, asleep)]


def _chips(at: Situation) -> list[Found]:
    """The cheapest type of Inferentia or Trainium that may serve; each cheaper one that may not, and why."""
    out: list[Found] = []
    for hardware, price in _cheaper(at, [h for h in at.given.catalogue if h.accelerator and not h.has_gpu]):
        quota = at.given.quotas.get(hardware.name)
        reason = why_not.chip_refusal(at.reference, hardware, at.demand, at.stretch, at.policy, quota)
        if reason is not None:
            out.append(Excluded(hardware.name, reason, OptionKind.OTHER_ARCHITECTURE))
            continue
        more = _more(at, why_not.latency_ratio(at.demand, why_not.chip_ratio(at.reference, hardware, at.policy)))
        count = math.ceil(at.variant.current_count * more - 0.01)
        mean = count if not at.endpoint.scaling else at.instances * more
        bill = _bill(at, price, mean, count, UNPROVEN_SHARE)
        if bill.saving > 0:
            return [*out, rule.chip_option(hardware, count, price, bill, at.demand)]
        out.append(Excluded(hardware.name, _kept(at, hardware.name), OptionKind.OTHER_ARCHITECTURE))
    if not out:
        sentence = "no type with Inferentia or Trainium is cheaper here than what runs"
        return [_out(at, OptionKind.OTHER_ARCHITECTURE, Reason(Code.NOT_CHEAPER, sentence))]
    return out


def _more(at: Situation, slower: float) -> float:
    """Instances for each of today's, at least one: so many that the planned load keeps below what one server may."""
    fleet = at.variant.current_count * at.workers
    load = at.demand.load.peak_rate * at.latency.mean_s * slower / fleet
    return max(1.0, load / at.policy.rho_one)


def _without_gpu(at: Situation) -> list[Found]:
    """The cheapest type of each CPU architecture, where the GPU is not used."""
    reason = why_not.cpu_refusal(at.demand, at.policy)
    if reason is not None:
        return [_out(at, OptionKind.SERVERLESS, reason)]
    found: dict[str, Option] = {}
    held = why_not.memory_of(at.reference, at.demand)
    count = at.variant.current_count
    plain = [h for h in at.given.catalogue if h.accelerator is None and not h.family.startswith("t")]
    for hardware, price in _cheaper(at, plain):
        if hardware.cpu_arch in found:
            continue
        if at.given.quotas.get(hardware.name) == 0:
            continue
        if why_not.host_refusal(at.reference, hardware, at.demand, held) is not None:
            continue
        bill = _bill(at, price, at.instances, count, 0.0)
        if bill.saving > 0:
            found[hardware.cpu_arch] = rule.cpu_option(hardware, count, price, bill, at.demand)
    return [*found.values(), _serverless(at, held)]


def _serverless(at: Situation, held: float) -> Found:
    """A serverless endpoint of the memory that host and model need, where its price is known."""
    known = at.given.prices.serverless
    if known is None:
        return _out(at, OptionKind.SERVERLESS, why_not.serverless_reason(at.demand, at.usd))
    host = at.demand.host_memory_gib
    need = held + (at.reference.memory_gib if host is None else host)
    reason = why_not.serverless_refusal(at.demand, need, tolerates_cold(at.endpoint))
    if reason is not None:
        return _out(at, OptionKind.SERVERLESS, reason)
    size, seconds = max(1, math.ceil(need)), why_not.busy_seconds(at.demand)
    hour = known.usd_per_gb_second * size * 3600
    price = Price(f"serverless {size} GB", known.region, hour, "snapshot", known.basis, known.as_of)
    bill = _bill(at, price, seconds / why_not.SECONDS_PER_MONTH, 0, 0.0)
    if bill.saving <= 0:
        return _out(at, OptionKind.SERVERLESS, _kept(at, price.instance_type))
    return rule.serverless_option(size, seconds, price, bill, at.demand)


def _pool(at: Situation, best: Option | None) -> Found:
    now = (at.runs.name, at.variant.current_count)
    reason = pool_refusal(best, now, at.endpoint.ref.region, at.endpoint.plain)
    if best is None or reason is not None:
        return _out(at, OptionKind.INSTANCE_POOLS, reason or Reason(Code.NOT_APPLICABLE, "no new type is chosen"))
    return pool_option(best, now, at.usd)


def _cheaper(at: Situation, types: list[InstanceType]) -> list[tuple[InstanceType, Price]]:
    """Those of the types that are sold here below today's price of an instance, cheapest first."""
    priced = ((hardware, at.given.prices.find(hardware.name)) for hardware in types)
    found = [(h, p) for h, p in priced if p is not None and p.listed and p.usd_per_hour < at.price.usd_per_hour]
    return sorted(found, key=lambda pair: (pair[1].usd_per_hour, pair[0].name))


def _bill(at: Situation, price: Price, mean: float, count: int, risk_share: float) -> rule.Bill:
    cost = cost_of(at.usd, price, mean, count, risk_share, at.given.prices.commitment, at.policy, True)
    return rule.Bill(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days, at.usd)


def _kept(at: Situation, what: str) -> Reason:
    plan = at.given.prices.commitment.usd_per_hour
    return Reason(Code.NOT_CHEAPER, f"{what} saves nothing against USD {at.usd} per month (committed: USD {plan}/h)")


def _out(at: Situation, kind: OptionKind, reason: Reason) -> Excluded:
    return Excluded(at.runs.name, reason, kind)
