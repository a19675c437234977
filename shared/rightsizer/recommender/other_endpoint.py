"""Options outside of the endpoint: their bill, the limits and prices of serverless, and the phases of a migration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Money, Option, OptionKind
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, Price
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


SERVERLESS_GB = 6
"""The most memory of a serverless endpoint, GB."""
SERVERLESS_REQUEST_S = 60.0
"""The longest request that serverless inference answers, seconds."""
SERVERLESS_AT_ONCE = 200
"""The most requests at once."""
MB_PER_VCPU = 1769


def whole_gigabytes(need: float) -> int | None:
    """The smallest memory of a serverless endpoint that holds `need` GB; None where none does."""
    size = max(1, math.ceil(need))
    return size if size <= SERVERLESS_GB else None


def serverless_usd[Number: (float, Decimal)](usd_per_gb_second: Number, gigabytes: int, seconds: Number) -> Number:
    """US dollars for so many seconds of requests."""
    return usd_per_gb_second * gigabytes * seconds


def break_even_requests(usd_per_month: float, usd_per_request: float) -> float:
    """Requests a month at which serverless costs as much as `usd_per_month`."""
    return usd_per_month / usd_per_request


def vcpus_of(gigabytes: int) -> float:
    """vCPUs that come with the memory; assumed to be Lambda's, since SageMaker publishes none."""
    return gigabytes * 1024 / MB_PER_VCPU


PILOT_DAYS = 7
"""Days of the pilot that are priced; an assumption: a week has every day of the week."""
SERVING_PHASES = (
    "assess: check that Neuron supports every operator and the precision",
    "pilot: compile, deploy on one instance, compare accuracy, latency and requests a second",
    "roll out: move traffic step by step and keep the GPU variant to fall back on",
)
TRAINING_PHASES = (
    "assess: check that Neuron supports every operator of the model",
    "pilot: one small run, same quality, cost of the run compared",
    "roll out: jobs that matter least first, and GPU capacity kept to fall back on",
)


def migration_phases(option: Option) -> dict[str, str]:
    """The phases of an option on Inferentia or Trainium by name; empty for every other option.

    Each with its cost in US dollars and what has to hold before the next. Both fleets run during the roll-out.
    """
    family = option.target.instance_type.removeprefix("ml.")
    if option.kind is not OptionKind.OTHER_ARCHITECTURE or not family.startswith(("inf", "trn")):
        return {}
    pilot = (option.price.usd_per_hour * 24 * PILOT_DAYS).quantize(CENT)
    week = (option.usd_per_month * 24 * 7 / HOURS_PER_MONTH).quantize(CENT)
    leads_on = (
        "costs no instance; go on when all of them are supported",
        f"one {option.price.instance_type} beside today's fleet for {PILOT_DAYS} days costs USD {pilot:,.2f}; go on"
        " when the answers agree and a request costs less",
        f"each week in which both fleets run costs USD {week:,.2f} more; done when a month was stable",
    )
    named = (phase.split(": ", 1) for phase in SERVING_PHASES)
    told = enumerate(zip(named, leads_on, strict=True), start=1)
    return {f"phase {number}, {name}": f"{does}; {then}" for number, ((name, does), then) in told}
