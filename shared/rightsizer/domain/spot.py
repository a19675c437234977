"""Spot pools: their facts, the needs of a group, and the placement of its instances."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rightsizer.domain.checks import aware, finite, not_empty, not_negative
from rightsizer.domain.reason import Reason
from rightsizer.errors import InputError


@dataclass(frozen=True, slots=True, order=True)
class Pool:
    """One Spot capacity pool: the spare instances of one type in one zone share a price and a fate."""

    instance_type: str
    """EC2's name, such as ``g5.xlarge``."""
    zone: str

    def __post_init__(self) -> None:
        not_empty("Pool.instance_type", self.instance_type)
        not_empty("Pool.zone", self.zone)

    def __str__(self) -> str:
        return f"{self.instance_type} in {self.zone}"


class PoolSignal(StrEnum):
    """Sign that a Spot pool is short of capacity."""

    INTERRUPTED = "interrupted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Mark:
    """A pool is taken to be without capacity until a time; failures in a row make it longer."""

    pool: Pool
    signal: PoolSignal
    at: datetime
    until: datetime
    strikes: int
    """Failures in a row without a successful stay in between; at least 1."""

    def __post_init__(self) -> None:
        aware("Mark.at", self.at)
        aware("Mark.until", self.until)
        if self.until < self.at or self.strikes < 1:
            raise InputError(f"the mark of {self.pool} ends before it begins, or has {self.strikes} failures")


@dataclass(frozen=True, slots=True)
class PoolSight:
    """Everything known of one pool at a moment."""

    pool: Pool
    usd_per_hour: float
    """Spot price of one instance, or of one unit of capacity where types differ in size."""
    interruptions: int = 0
    """Events of the pool in the record: all instances lost at one moment count once."""
    hours: float = 0.0
    """Hours in the record with at least one of our instances in the pool."""
    refused_until: datetime | None = None
    """End of the pool's mark; None without one."""

    def __post_init__(self) -> None:
        not_negative(f"the price of {self.pool}", self.usd_per_hour)
        not_negative(f"the hours of {self.pool}", self.hours)
        if self.interruptions < 0:
            raise InputError(f"the interruptions of {self.pool} must not be negative, got {self.interruptions}")

    def is_open(self, now: datetime) -> bool:
        """Whether nothing speaks against a launch in the pool at `now`."""
        return self.refused_until is None or self.refused_until <= now


@dataclass(frozen=True, slots=True)
class SpotNeed:
    """Capacity that a group has to keep, and the limits of its cost."""

    target: int
    """Instances that should serve."""
    on_demand_usd: float
    """On-Demand price of one instance hour, in the unit of the pools' prices."""
    on_demand_base: int = 0
    """Instances for the load that must not fail; always On-Demand."""
    boot_s: float = 300.0
    """From launch to serving, seconds."""
    notice_s: float = 120.0
    """Seconds between the warning and the loss (EC2 gives two minutes, best effort)."""
    most_lost: float = 0.03
    """0..1: share of the Spot instances' time that may be lost to interruptions; beyond it, On-Demand fills in."""
    pools_wanted: int = 3
    """Spread over so many pools where there are enough (decision model, section Spot)."""
    fallback: bool = True
    """Whether On-Demand may fill in above the base; without it, marked pools are tried too, last."""

    def __post_init__(self) -> None:
        if self.target < 0 or self.on_demand_base < 0 or self.pools_wanted < 1:
            raise InputError(
                f"a need must not be negative and spreads over one pool at least: target {self.target}, "
                f"On-Demand base {self.on_demand_base}, pools {self.pools_wanted}"
            )
        not_negative("Need.boot_s", self.boot_s)
        not_negative("Need.notice_s", self.notice_s)
        if finite("Need.on_demand_usd", self.on_demand_usd) <= 0 or not 0 < self.most_lost <= 1:
            raise InputError(
                f"an On-Demand price is above zero and the share that may be lost in (0, 1]: "
                f"{self.on_demand_usd}, {self.most_lost}"
            )

    @property
    def gap_hours(self) -> float:
        """Hours without the instance after each interruption, when the replacement starts at the warning."""
        return max(0.0, self.boot_s - self.notice_s) / 3600


@dataclass(frozen=True, slots=True)
class SpotPlacement:
    """Where the group's instances should run now. Running Spot instances stay where they are."""

    launch: Mapping[Pool, int]
    """Spot instances to start, by pool, best pool first; every count is above zero."""
    on_demand: int
    """On-Demand instances to have, the base included."""
    reasons: tuple[Reason, ...]
