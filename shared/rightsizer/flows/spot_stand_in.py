"""No Spot pool of a group has room: On-Demand for what is missing, for an hour, asked or by the owner's tag.

Looked at by `evaluate` after a launch that every pool refused. The group is read afresh, since what is missing changed
within minutes; `apply` writes the policy and puts the old one back.
"""

from dataclasses import dataclass
from datetime import datetime

from rightsizer.domain.capacity_change import Errand
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.option import Excluded
from rightsizer.domain.scaling_group import Group
from rightsizer.errors import VanishedError
from rightsizer.ports.evaluation import PriceBook
from rightsizer.ports.spot import ErrandBook, GroupNow, SpotBook, Unread
from rightsizer.spot.group_options import hosting_over_ec2, policy_change
from rightsizer.spot.proposal import stand_in_errand
from rightsizer.telemetry import logger


@dataclass(frozen=True, slots=True)
class StandInPorts:
    """What it needs."""

    groups: GroupNow
    book: SpotBook
    prices: PriceBook
    catalogue: Catalogue
    errands: ErrandBook
    writes: bool = True


def stand_in(ports: StandInPorts, name: str, now: datetime) -> Errand | None:
    """The errand that was asked, or None when nothing is missing or the policy is not ours to write.

    ReadError goes up, so that the queue delivers the message again.
    """
    try:
        group = ports.groups.now(name, now)
    except VanishedError:
        return None
    if isinstance(group, Unread):
        logger.warning("no stand-in for a group that cannot be read", group=name, reason=str(group.reason))
        return None
    if not group.missing or not group.purchase.uses_spot or _any_open(ports, group, now):
        return None
    base = min(group.desired, group.purchase.on_demand_base + group.missing)
    no = policy_change(group, group.purchase.instance_types, base)
    if isinstance(no, Excluded):
        logger.info("no stand-in for a group", group=name, reason=str(no.reason))
        return None
    mixed = group.purchase.mixed
    policy = {**mixed, "InstancesDistribution": {**mixed["InstancesDistribution"], "OnDemandBaseCapacity": base}}
    usd = _usd_per_hour(ports, group) * group.missing
    errand = stand_in_errand(group, policy, usd, writes=ports.writes, now=now)
    return errand if ports.errands.ask(errand) else None


def _any_open(ports: StandInPorts, group: Group, now: datetime) -> bool:
    marks = [ports.book.mark(pool) for pool in group.pools]
    return any(found is None or found.until <= now for found in marks)


def _usd_per_hour(ports: StandInPorts, group: Group) -> float:
    """On-Demand of the dearest type that the group names: Auto Scaling may start any of them."""
    known = [found for kind in group.purchase.instance_types if (found := ports.catalogue.find(f"ml.{kind}"))]
    table = ports.prices.table(group.region, [kind.name for kind in known])
    usd = [float(price.usd_per_hour) / hosting_over_ec2(kind) for kind in known if (price := table.find(kind.name))]
    return max(usd, default=0.0)
