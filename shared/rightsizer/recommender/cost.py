"""What an option costs and saves, net of commitments and of the change itself."""

from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import payback_of
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH, Commitment, Price

_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars of one option."""

    usd_per_month: Decimal
    saving: Decimal
    """Net of the commitment; negative when dearer."""
    committed: Decimal
    """Part of the gross saving that a Savings Plan keeps on billing."""
    switch_usd: Decimal
    payback_days: float


VOLUME_GB = 512
"""The largest VolumeSizeInGB of a production variant (SageMaker API, ProductionVariant)."""


def volumes(now: InstanceType, then: InstanceType) -> tuple[str, ...]:
    """That the EBS volumes of these types are in none of the figures; nothing where both store on their own NVMe."""
    stored = sorted({kind.name for kind in (now, then) if not kind.local_nvme})
    if not stored:
        return ()
    names = " and ".join(stored)
    return (f"what the EBS volumes of {names} cost (up to {VOLUME_GB} GB an instance): they are in no figure",)


def monthly(price: Price, instances: float) -> Decimal:
    """US dollars of a month of that many instances on average."""
    return (price.usd_per_hour * Decimal(str(round(instances, 4))) * HOURS_PER_MONTH).quantize(_CENT)


def cost_of(
    now_usd: Decimal,
    price: Price,
    instances: float,
    fleet: int,
    risk_share: float,
    commitment: Commitment,
    policy: Policy,
    new_fleet: bool,
    beside_usd_per_hour: Decimal = Decimal(0),
) -> Cost:
    """Cost of `instances` on average, at most `fleet` of them; `new_fleet` when both fleets run during the change.

    A deployment starts the fleets of all variants anew: `beside_usd_per_hour` is what the others cost.
    """
    after = monthly(price, instances)
    gross = now_usd - after
    committed = kept_by_commitment(gross, commitment)
    saving = (gross - committed).quantize(_CENT)
    overlap = Decimal(0)
    if new_fleet:
        hours = Decimal(str(policy.provision_minutes / 60 * (1 + risk_share)))
        overlap = ((price.usd_per_hour * fleet + beside_usd_per_hour) * hours).quantize(_CENT)
    return Cost(after, saving, committed, overlap, payback_of(overlap, saving))


def kept_by_commitment(gross: Decimal, commitment: Commitment) -> Decimal:
    """The part of a gross monthly saving that a Savings Plan bills anyway.

    A commitment is US dollars per hour. Use that is covered now and goes away leaves the commitment unused, unless
    other use takes its place; only spending above the commitment is really saved (pricing.md 2).
    """
    if gross <= 0 or commitment.usd_per_hour <= 0:
        return Decimal(0)
    if commitment.utilisation < 1.0:
        # The plan is not used up today: whatever shrinks was covered, and goes on being billed.
        return min(gross, commitment.usd_per_hour * HOURS_PER_MONTH)
    return Decimal(0)
