"""Several small endpoints on one card: what each needs, and which could share."""

from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.price import Price


@dataclass(frozen=True, slots=True)
class Needs:
    """What one endpoint on one GPU asks of a card that it would share."""

    accelerator: str
    """Model of the card that it runs on."""
    usable_gib: float
    """GiB that this card offers."""
    gpu_memory_gib: float
    """With margin."""
    busy: tuple[float, ...]
    """Planned share of the card at work, 24 values by hour of the day UTC."""
    host_memory_gib: float
    vcpu: float
    type_memory_gib: float
    """GiB of the host that it runs on."""
    type_vcpu: int
    framework: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Endpoints of one owner that would fit on one instance, as a proposal for that owner."""

    owner: str
    endpoints: tuple[str, ...]
    instance_type: str
    price: Price
    now_usd: Decimal
    """US dollars per month of all of them today."""
    usd_per_month: Decimal
    saving_usd_per_month: Decimal
    """Against today."""
    beyond_usd_per_month: Decimal
    """More than the options of each endpoint would save by themselves."""
    gpu_memory_gib: float
    usable_gib: float
    peak_load: float
    """Share of the card at work in the busiest planned hour, 0..1."""
    headroom: float
    """Times that all loads may grow before the card is too busy."""
    way: str
    client_change: str
    not_checked: tuple[str, ...]
