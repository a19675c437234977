"""Judge one endpoint: digests, demand, options, finding, gate. Pure composition of the rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.flows.options import Situation, options_for, situation
from rightsizer.model.demand import Demand, MemoryClass
from rightsizer.model.digest import DayDigest, UsageDigest
from rightsizer.model.hardware import Catalogue, InstanceType
from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint, EndpointKind
from rightsizer.model.option import Excluded, Option
from rightsizer.model.policy import Policy
from rightsizer.model.price import Price, PriceTable
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding, Gate, Recommendation
from rightsizer.model.usage import MetricWindow, NoMetrics
from rightsizer.rules.cost import monthly
from rightsizer.rules.demand import demand_of
from rightsizer.rules.digest import Setup, fold
from rightsizer.rules.evidence import evidence_of, hourly_requests
from rightsizer.rules.finding import idle, starving, too_little
from rightsizer.rules.gate import Case, gate
from rightsizer.rules.memory import memory_need
from rightsizer.rules.offer import delete_option


@dataclass(frozen=True, slots=True)
class Given:
    """What the account and the past say, beside the endpoint's own metrics."""

    prices: PriceTable
    catalogue: Catalogue
    quotas: Mapping[str, int]
    history: History
    policy: Policy
    now: datetime


def judge(
    endpoint: Endpoint,
    metrics: Sequence[MetricWindow | NoMetrics],
    prices: PriceTable,
    catalogue: Catalogue,
    quotas: Mapping[str, int],
    history: History,
    policy: Policy,
    now: datetime,
) -> Recommendation:
    """The judgement of one endpoint from its metric windows. Every answer has a reason; nothing is written."""
    given = Given(prices, catalogue, quotas, history, policy, now)
    unread = next((m for m in metrics if isinstance(m, NoMetrics)), None)
    windows = [m for m in metrics if isinstance(m, MetricWindow)]
    variant = endpoint.variants[0] if endpoint.variants else None
    hardware = catalogue.find(variant.instance_type) if variant else None
    if unread is not None and not windows:
        return _bare(endpoint, given, unread.reason)
    if variant is None or hardware is None:
        return judge_digests(endpoint, None, prices, catalogue, quotas, history, policy, now)
    setup = Setup(hardware, variant.current_count, _since(endpoint, history, policy))
    days = [d for w in windows if w.variant in ("", variant.name) for d in fold(w, setup)]
    usage = UsageDigest(endpoint.ref.name, variant.name, tuple(days))
    return judge_digests(endpoint, usage, prices, catalogue, quotas, history, policy, now)


def judge_digests(
    endpoint: Endpoint,
    usage: UsageDigest | None,
    prices: PriceTable,
    catalogue: Catalogue,
    quotas: Mapping[str, int],
    history: History,
    policy: Policy,
    now: datetime,
) -> Recommendation:
    """The judgement of one endpoint from digests already folded."""
    given = Given(prices, catalogue, quotas, history, policy, now)
    variant = endpoint.variants[0] if endpoint.variants else None
    if variant is None or not variant.instance_type:
        sentence = f"it is of the kind {endpoint.kind.value}, which has no instance type of its own to judge"
        return _bare(endpoint, given, Reason(Code.OTHER_KIND, sentence))
    hardware = catalogue.find(variant.instance_type)
    if hardware is None:
        sentence = f"{variant.instance_type} is not in the catalogue, so its memory and speed are unknown"
        return _bare(endpoint, given, Reason(Code.NO_SPECIFICATION, sentence))
    if hardware.accelerator is None:
        return _bare(endpoint, given, Reason(Code.NO_ACCELERATOR, f"{hardware.name} has no accelerator"))
    days = _recent(usage, policy, now)
    if not days:
        sentence = f"CloudWatch has no datapoints of the last {policy.lookback_days} days; missing is not idle"
        return _bare(endpoint, given, Reason(Code.NO_DATAPOINTS, sentence))
    return _judged(endpoint, hardware, days, given)


def _judged(endpoint: Endpoint, hardware: InstanceType, days: Sequence[DayDigest], given: Given) -> Recommendation:
    policy = given.policy
    memory = memory_need(days, given.catalogue, policy, endpoint.framework, endpoint.model_data_bytes)
    demand = demand_of(days, hardware, memory, policy)
    base = replace(
        _bare(endpoint, given, Reason(Code.ALREADY_RIGHT, "nothing cheaper serves this load")),
        evidence=evidence_of(days, demand, hardware),
        hourly_requests=hourly_requests(days),
        finding=Finding.OPTIMIZED,
    )
    little = too_little(endpoint, demand, policy)
    if little is not None:
        return replace(base, finding=Finding.NOT_ENOUGH_DATA, reason=little, gate_reason=little)
    if base.price is None:
        reason = Reason(
            Code.NO_PRICE, f"{hardware.name} has no price in {given.prices.region}: no saving can be stated"
        )
        return replace(base, reason=reason, gate_reason=reason)
    quiet = idle(endpoint, demand, policy)
    if quiet is not None:
        return _idle(base, quiet, demand, base.price, endpoint, given)
    if demand.latency is None:
        reason = Reason(Code.TOO_FEW_REQUESTS, f"no latency was published for {demand.requests:.0f} requests")
        return replace(base, finding=Finding.NOT_ENOUGH_DATA, reason=reason, gate_reason=reason)
    at = situation(endpoint, hardware, base.price, demand, demand.latency, given.prices, given.quotas, policy)
    return _weighed(base, at, given)


def _weighed(base: Recommendation, at: Situation, given: Given) -> Recommendation:
    options, excluded = options_for(at, given.catalogue)
    base = replace(base, excluded=excluded, not_checked=_not_checked(at.demand))
    hungry = starving(at.demand, at.latency, at.goal, given.policy)
    if hungry is not None:
        return replace(base, finding=Finding.UNDER_PROVISIONED, reason=hungry, gate=Gate.PROPOSE, gate_reason=hungry)
    worth = [o for o in options if o.risk <= given.policy.risk_propose]
    kept = tuple(worth + [o for o in options if o not in worth])
    if not worth:
        reason = _why_kept(options, excluded, at)
        return replace(base, options=(), reason=reason, gate_reason=reason)
    chosen = worth[0]
    share = float(chosen.saving_usd_per_month / at.usd) if at.usd else 0.0
    longer = (chosen.p95_s or 0.0) / at.latency.p95_s - 1
    case = Case(
        at.endpoint,
        chosen,
        at.demand,
        at.now.name,
        share,
        at.goal.declared,
        longer if chosen.target.instance_type != at.now.name else 0.0,
    )
    verdict, why = gate(case, given.history, given.policy, given.now)
    small = why.code is Code.SAVING_TOO_SMALL
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{chosen.target.instance_count} x {chosen.target.instance_type} serves the same load for"
        f" USD {chosen.usd_per_month} per month, today USD {at.usd}",
    )
    return replace(
        base,
        finding=Finding.OPTIMIZED if small else Finding.OVER_PROVISIONED,
        reason=why if small else reason,
        options=kept,
        gate=verdict,
        gate_reason=why,
    )


def _why_kept(options: Sequence[Option], excluded: Sequence[Excluded], at: Situation) -> Reason:
    if options:
        best = options[0]
        sentence = f"the only cheaper option, {best.target.instance_type}, has performance risk {int(best.risk)}"
        return Reason(Code.RISK_TOO_HIGH, sentence)
    cheaper = [e for e in excluded if (p := at.prices.find(e.instance_type)) and p.usd_per_hour < at.price.usd_per_hour]
    tail = f"; closest: {cheaper[0].reason.sentence}" if cheaper else ""
    return Reason(Code.ALREADY_RIGHT, f"none of {len(excluded)} other types is cheaper and serves this load{tail}")


def _idle(
    base: Recommendation, quiet: Reason, demand: Demand, price: Price, endpoint: Endpoint, given: Given
) -> Recommendation:
    variant = endpoint.variants[0]
    usd = monthly(price, variant.current_count)
    option = delete_option((price.instance_type, variant.current_count), price, usd, demand.days, demand.silent_days)
    case = Case(endpoint, option, replace(demand, confidence=demand.days), price.instance_type, 1.0, False, 0.0)
    verdict, why = gate(case, given.history, given.policy, given.now)
    return replace(base, finding=Finding.IDLE, reason=quiet, options=(option,), gate=verdict, gate_reason=why)


def _bare(endpoint: Endpoint, given: Given, reason: Reason) -> Recommendation:
    """A recommendation that recommends nothing, for `reason`."""
    variant = endpoint.variants[0] if endpoint.variants else None
    instance_type = variant.instance_type if variant else ""
    price = given.prices.find(instance_type) if instance_type else None
    return Recommendation(
        ref=endpoint.ref,
        variant=variant.name if variant else "",
        kind=endpoint.kind,
        mode=endpoint.mode,
        owner=endpoint.owner,
        fingerprint=endpoint.fingerprint,
        evaluated_at=given.now,
        instance_type=instance_type,
        instance_count=variant.current_count if variant else 0,
        price=price,
        usd_per_month=monthly(price, variant.current_count) if price and variant else None,
        finding=Finding.NOT_ENOUGH_DATA,
        reason=reason,
        gate=Gate.SILENT,
        gate_reason=reason,
        options=(),
        evidence=None,
        notes=endpoint.bad_tags,
    )


def _not_checked(demand: Demand) -> tuple[str, ...]:
    found = []
    if demand.gpu_s_per_request is None:
        found.append("GPU seconds per request: too few requests or no GPU metrics, taken as wholly GPU-bound")
    if demand.memory.kind is MemoryClass.PREALLOCATED:
        found.append("the real GPU memory need: the server pre-allocates, only a start on the candidate tells")
    return tuple(found)


def _since(endpoint: Endpoint, history: History, policy: Policy) -> datetime | None:
    """Datapoints before this belong to another configuration. Scaling actions are not configuration changes."""
    if endpoint.scaling or endpoint.kind is not EndpointKind.REAL_TIME:
        return None
    known = any(abs(p.at - endpoint.modified_at) < timedelta(hours=6) for p in history.endpoint)
    same = [p for p in history.endpoint if p.from_type != p.to_type]
    if known and not same:
        return None
    return endpoint.modified_at + timedelta(minutes=policy.mask_minutes)


def _recent(usage: UsageDigest | None, policy: Policy, now: datetime) -> list[DayDigest]:
    first = (now - timedelta(days=policy.lookback_days)).date()
    return [d for d in usage.days if d.day >= first] if usage else []
