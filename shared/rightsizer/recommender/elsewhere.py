"""Shared parts of options outside of the endpoint: their bill, and why one does not apply."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Money
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason

if TYPE_CHECKING:
    from rightsizer.domain.hardware import InstanceType
    from rightsizer.recommender.context import EvaluationContext

VOLUME_GB = 512
"""The largest VolumeSizeInGB of a production variant (SageMaker API, ProductionVariant)."""


@dataclass(frozen=True, slots=True)
class Bill(Money):
    """US dollars of an alternative against today's."""

    now_usd: Decimal


def bill_of(context: EvaluationContext, price: Price, mean: float, count: int, risk_share: float) -> Bill:
    """US dollars of `mean` instances, at most `count` of them, against today's."""
    from rightsizer.recommender.pricing import cost_of

    cost = cost_of(
        context.usd_per_month, price, mean, count, risk_share, context.inputs.prices.commitment, context.policy, True
    )
    return Bill(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days, context.usd_per_month)


def cheaper_types(context: EvaluationContext, types: list[InstanceType]) -> list[tuple[InstanceType, Price]]:
    """Types sold here below today's price of an instance, cheapest first."""
    priced = ((hardware, context.inputs.prices.find(hardware.name)) for hardware in types)
    found = [(h, p) for h, p in priced if p is not None and p.listed and p.usd_per_hour < context.price.usd_per_hour]
    return sorted(found, key=lambda pair: (pair[1].usd_per_hour, pair[0].name))


def no_saving_reason(context: EvaluationContext, what: str) -> Reason:
    """Reason that the alternative saves nothing, with today's bill and the commitment."""
    from rightsizer.recommender.pricing import committed_text

    plan = context.inputs.prices.commitment.usd_per_hour
    return Reason(
        Code.NOT_CHEAPER,
        f"{what} saves nothing: what runs costs ${context.usd_per_month:,.2f} a month{committed_text(plan)}",
    )


def other_kind(context: EvaluationContext) -> Reason | None:
    """Why the endpoint is not looked at: only real-time and asynchronous ones are."""
    kind = context.endpoint.kind
    if kind in (EndpointKind.REAL_TIME, EndpointKind.ASYNC):
        return None
    return Reason(Code.OTHER_KIND, f"not looked at for the kind {kind.value}")


def break_even(bill: Bill) -> str:
    """Until where it saves."""
    ratio = float(bill.now_usd / bill.usd_per_month) if bill.usd_per_month > 0 else inf
    return f"as dear as today if it carries {ratio:.2f} times less per instance than planned"


def volume_notes(now: InstanceType, then: InstanceType) -> tuple[str, ...]:
    """Note that no figure contains the EBS volumes; nothing where both types have their own NVMe."""
    stored = sorted({kind.name for kind in (now, then) if not kind.has_local_nvme})
    if not stored:
        return ()
    names = " and ".join(stored)
    return (f"what the EBS volumes of {names} cost (up to {VOLUME_GB} GB an instance): they are in no figure",)
