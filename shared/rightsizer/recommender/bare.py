"""A recommendation before anything is recommended."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.price import PriceTable
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import DayDigest
from rightsizer.recommender.cost import monthly
from rightsizer.recommender.given import Given


def bare(endpoint: Endpoint, given: Given, reason: Reason) -> Recommendation:
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
        owned_by=endpoint.owned_by,
    )


def of_several(found: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The judgement, said to be of the first variant alone where the endpoint has several."""
    if not endpoint.beside:
        return found
    first = endpoint.variants[0].name
    beside = tuple(f"{v.name} ({v.current_count} x {v.instance_type or 'no type of its own'})" for v in endpoint.beside)
    left = (
        f"the other variants, {', '.join(beside)}: their use and cost were not read; every figure is of {first} alone"
    )
    reason = Reason(found.reason.code, f"variant {first}: {found.reason.sentence}")
    why = reason if found.gate_reason == found.reason else found.gate_reason
    return replace(found, beside=beside, not_checked=(left, *found.not_checked), reason=reason, gate_reason=why)


def with_unknown_plans(found: Recommendation, prices: PriceTable) -> Recommendation:
    """The recommendation, which says that a Savings Plan may keep a part of its saving where none could be seen."""
    if prices.commitment.known or not found.options:
        return found
    left = "Savings Plans of the organisation's payer account: use that they cover would go on being billed"
    return replace(found, not_checked=(*found.not_checked, left))


def with_unread_tags(found: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The recommendation, which says that objective, owner and permission are unknown where the tags were not read."""
    if endpoint.tags_unread is None:
        return found
    left = f"its tags (mode, objective, owner, stack) could not be read: {endpoint.tags_unread.sentence}"
    return replace(found, not_checked=(left, *found.not_checked))


def not_checked(demand: Demand, days: Sequence[DayDigest]) -> tuple[str, ...]:
    """What the evidence left open."""
    found = []
    if not any((seen.day + timedelta(days=1)).month != seen.day.month for seen in days):
        found.append("the load of a month end: none is in the look-back")
    if demand.gpu_s_per_request is None:
        found.append("GPU seconds per request: too few requests or no GPU metrics, taken as wholly GPU-bound")
    if demand.memory.kind is MemoryClass.PREALLOCATED and demand.memory.pool is None:
        found.append("the real GPU memory need: the server pre-allocates, only a start on the candidate tells")
    if demand.cpu_p95 is None:
        found.append("vCPU use: no CPU metrics, so fewer vCPUs count as proportionally slower")
    return tuple(found)
