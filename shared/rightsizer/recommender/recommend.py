"""Judge one endpoint: digests, demand, options, finding, gate. Pure composition of the rules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from rightsizer.domain.digest import DayDigest, UsageDigest
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import PriceTable
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import MetricWindow, NoMetrics
from rightsizer.recommender.alternatives import with_alternatives
from rightsizer.recommender.bare import bare, not_checked, of_several, with_unknown_plans, with_unread_tags
from rightsizer.recommender.choose import chosen_or_kept
from rightsizer.recommender.daily_usage import Setup, fold
from rightsizer.recommender.each_gpu import with_each_gpu
from rightsizer.recommender.evidence import evidence_of, hourly_requests, peak_of
from rightsizer.recommender.finding import idle, too_little
from rightsizer.recommender.given import Given
from rightsizer.recommender.idle import idled, unheard
from rightsizer.recommender.kv_cache import with_kv_cache
from rightsizer.recommender.retargeting import with_policies, with_targets_left
from rightsizer.recommender.seen import seen_of
from rightsizer.recommender.usage_cache import complete_until, known_until

PAID_FOR = "it runs on reserved capacity, which is paid for and tied to its type: nothing is saved by leaving it"
POOLED = (
    "its instance pools may run several types at once, and its metrics and its bill mix them, so no type is judged;"
    " deploy a configuration with one type (rightsizer rollback CHANGE, where a change of ours made the pools)"
)


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
        return _told(bare(endpoint, given, unread.reason), endpoint, prices)
    if variant is None or hardware is None:
        return judge_digests(endpoint, None, prices, catalogue, quotas, history, policy, now)
    usage = digested(endpoint, windows, hardware, history, policy)
    return judge_digests(endpoint, usage, prices, catalogue, quotas, history, policy, now)


def digested(
    endpoint: Endpoint,
    windows: Sequence[MetricWindow],
    hardware: InstanceType,
    history: History,
    policy: Policy,
    known: Sequence[DayDigest] = (),
) -> UsageDigest:
    """The windows of the first variant as digests, on top of those already `known`; a day read again counts once."""
    variant = endpoint.variants[0]
    since = _since(endpoint, history, policy)
    setup = Setup(hardware, variant.current_count, since, publish_s=endpoint.publish_s)
    days = {(d.day, d.instance_type): d for d in known}
    own = [w for w in windows if w.variant in ("", variant.name)]
    fresh = (with_kv_cache(with_each_gpu(d, w, setup.since), w, setup.since) for w in own for d in fold(w, setup))
    days |= {(d.day, d.instance_type): d for d in fresh}
    notes = tuple(why for w in own for why in (w.gpus_unread, w.kv_cache_unread) if why is not None)
    return UsageDigest(endpoint.ref.name, variant.name, tuple(days[key] for key in sorted(days)), notes)


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
    """The judgement of one endpoint from digests already folded; of several variants of the first."""
    given = Given(prices, catalogue, quotas, history, policy, now)
    return _told(_of_first(endpoint.first_alone, usage, given), endpoint, prices)


def _told(found: Recommendation, endpoint: Endpoint, prices: PriceTable) -> Recommendation:
    """The judgement with what it leaves alone or does not know whatever it finds.

    Targets of policies, other variants, tags that could not be read, Savings Plans that another account bought.
    """
    found = with_unknown_plans(of_several(with_targets_left(found, endpoint.first_alone), endpoint), prices)
    return with_unread_tags(found, endpoint)


def _of_first(endpoint: Endpoint, usage: UsageDigest | None, given: Given) -> Recommendation:
    variant = endpoint.variants[0] if endpoint.variants else None
    if variant is None or not variant.instance_type:
        sentence = f"it is of the kind {endpoint.kind.value}, which has no instance type of its own to judge"
        if endpoint.kind is EndpointKind.INSTANCE_POOLS:
            sentence = POOLED
        return bare(endpoint, given, Reason(Code.OTHER_KIND, sentence))
    hardware = given.catalogue.find(variant.instance_type)
    if hardware is None:
        sentence = f"{variant.instance_type} is not in the catalogue, so its memory and speed are unknown"
        return bare(endpoint, given, Reason(Code.NO_SPECIFICATION, sentence))
    if hardware.accelerator is None:
        return bare(endpoint, given, Reason(Code.NO_ACCELERATOR, f"{hardware.name} has no accelerator"))
    days = _recent(usage, given.policy, given.now)
    if not days:
        since = _since(endpoint, given.history, given.policy)
        return bare(endpoint, given, _silent(since, given.policy, given.now))
    found = _judged(endpoint, hardware, days, given)
    return _unsaved(found) if EndpointKind.RESERVED in endpoint.kinds and len(endpoint.variants) == 1 else found


def _unsaved(found: Recommendation) -> Recommendation:
    """The judgement of an endpoint on reserved capacity: users who wait are said, savings are none."""
    if found.finding not in (Finding.OVER_PROVISIONED, Finding.IDLE):
        return found
    why = Reason(Code.OTHER_KIND, PAID_FOR)
    kept = replace(found, finding=Finding.OPTIMIZED, reason=why, options=(), excluded=(), replay=None)
    return replace(kept, gate=Gate.SILENT, gate_reason=why)


def _judged(endpoint: Endpoint, hardware: InstanceType, days: Sequence[DayDigest], given: Given) -> Recommendation:
    policy = given.policy
    seen = seen_of(endpoint, hardware, days, given)
    demand = seen.demand
    plain = replace(
        bare(endpoint, given, Reason(Code.ALREADY_RIGHT, "nothing cheaper serves this load")),
        evidence=evidence_of(days, demand, seen.reference, given.history.endpoint, known_until(given.now)),
        hourly_requests=hourly_requests(days, known_until(given.now)),
        peak=peak_of(days),
        finding=Finding.OPTIMIZED,
        not_checked=not_checked(demand, days),
    )
    little = too_little(endpoint, demand, policy)
    if little is not None:
        return replace(plain, finding=Finding.NOT_ENOUGH_DATA, reason=little, gate_reason=little)
    quiet = idle(endpoint, demand, policy)
    if plain.price is None:
        why = Reason(Code.NO_PRICE, f"{hardware.name} has no price in {given.prices.region}: no saving can be stated")
        if quiet is not None:
            return replace(plain, finding=Finding.IDLE, reason=quiet, gate_reason=why)
        return replace(plain, finding=Finding.NOT_ENOUGH_DATA, reason=why, gate_reason=why)
    if quiet is not None:
        return idled(plain, quiet, demand, plain.price, endpoint, given)
    if demand.latency is None:
        return unheard(plain, days, demand, plain.price, endpoint, given)
    at = seen.situation(plain.price, demand.latency)
    found = with_alternatives(chosen_or_kept(replace(plain, usd_per_month=at.usd), at), at)
    return with_policies(found, at.endpoint)


def _since(endpoint: Endpoint, history: History, policy: Policy) -> datetime | None:
    """Datapoints before this belong to another configuration. Scaling actions are not configuration changes."""
    if endpoint.scaling or endpoint.kind is not EndpointKind.REAL_TIME:
        return None
    known = any(abs(p.at - endpoint.modified_at) < timedelta(hours=6) for p in history.endpoint)
    same = [p for p in history.endpoint if p.from_type != p.to_type]
    if known and not same:
        return None
    return endpoint.modified_at + timedelta(minutes=policy.mask_minutes)


def _silent(since: datetime | None, policy: Policy, now: datetime) -> Reason:
    """Why there is nothing to judge from: a new configuration, or no datapoint at all."""
    if since is not None and since > now - timedelta(days=1):
        changed = since - timedelta(minutes=policy.mask_minutes)  # whose datapoints mix both configurations
        sentence = (
            f"it was changed on {changed:%d %b} at {changed:%H:%M} UTC; what it needs since then is not known yet"
        )
    else:
        sentence = f"CloudWatch has no datapoints of the last {policy.lookback_days} days; that is unknown, not idle"
    return Reason(Code.NO_DATAPOINTS, sentence)


def _recent(usage: UsageDigest | None, policy: Policy, now: datetime) -> list[DayDigest]:
    """The days of the look-back: those before the first day that is not known whole."""
    days = usage.days if usage else ()
    after = max((d.day for d in days), default=date.min) + timedelta(days=1)
    first = max(complete_until(now), min(after, now.date())) - timedelta(days=policy.lookback_days)
    return [d for d in days if d.day >= first]
