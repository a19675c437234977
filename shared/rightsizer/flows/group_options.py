"""Better capacity for one Spot group, after an interruption and in the daily sweep: measured, priced, asked.

The answer is a capacity change with the exact request, which `apply` carries out after an approval; nothing here writes
to a group. Where no Spot pool of a group has room: On-Demand for what is missing, for an hour, asked or by the owner's
tag. The group is read afresh then, since what is missing changed within minutes; `apply` puts the old policy back.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.capacity_change import CapacityChange
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.option import Excluded
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import (
    AutoScalingGroup,
    CapacityKind,
    CapacityOption,
    GpuNeed,
    MeasuredUse,
    Outlook,
)
from rightsizer.domain.spot import Pool, PoolSight, SpotNeed, SpotPlacement
from rightsizer.errors import RightsizerError, ThrottledError, VanishedError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import PriceBook
from rightsizer.ports.spot import (
    AgentReader,
    CapacityChangeStore,
    LiveGroupReader,
    SpotBook,
    SpotMarket,
    SpotPrice,
    UnreadGroup,
)
from rightsizer.spot.group_options import (
    alternatives,
    fitting_types,
    hosting_over_ec2,
    need_of,
    no_gain_exclusion,
    option_reason,
    outlook,
    policy_change,
    slowdown_of,
    speed_sentences,
    unchecked_sentences,
)
from rightsizer.spot.interruption import interruptions_per_hour, place_instances, useful_usd
from rightsizer.spot.proposal import group_capacity_change, is_proven_hardware, stand_in_capacity_change
from rightsizer.telemetry import logger

RECORD = timedelta(days=30)
NOTABLE = 0.05
"""An option is worth telling when it saves a twentieth of the cost, lost hours included."""
SLOWER = 1.1
"""A GPU that may be so many times slower is named where the speed was not measured."""


@dataclass(frozen=True, slots=True)
class CapacityPorts:
    """Ports of the options for a group."""

    book: SpotBook
    market: SpotMarket
    prices: PriceBook
    agent: AgentReader
    catalogue: Catalogue
    ledger: SavingsLedger
    capacity_changes: CapacityChangeStore
    writes: bool = True
    """Whether the stack may change anything."""
    proposal_days: int = 14


@dataclass(frozen=True, slots=True)
class _CurrentType:
    """The type that a group runs first, what its work needs of a GPU, and hosting prices to compare with."""

    type: InstanceType
    need: GpuNeed
    hosting_usd: Mapping[str, float]
    """US dollars an hour of every GPU type with a hosting price."""


def propose_capacity(ports: CapacityPorts, names: Sequence[str], now: datetime) -> list[CapacityOption | Excluded]:
    """One answer for each Spot group of these names: an option, or why there is none. One that fails stops no other.

    ThrottledError goes up, so that the queue delivers the message again.
    """
    answers: list[CapacityOption | Excluded] = []
    for name in names:
        group = ports.book.group(name)
        if group is None or not group.purchase.may_use_spot:
            continue
        try:
            answer = option_of(ports, group, now)
            if isinstance(answer, CapacityOption):
                _ask(ports, group, answer, now)
        except ThrottledError:
            raise
        except RightsizerError as error:
            logger.error("no capacity option for a group", group=group.name, error=str(error))
            answer = Excluded(group.name, Reason(Code.READ_FAILED, str(error)))
        answers.append(answer)
    return answers


def option_of(ports: CapacityPorts, group: AutoScalingGroup, now: datetime) -> CapacityOption | Excluded:
    """Better capacity for one group, or why there is none.

    In automatic mode types with the GPU model that runs already come first: they need nobody's recommendation.
    """
    types = group.purchase.instance_types
    present = ports.catalogue.find(f"ml.{types[0]}") if types else None
    if present is None or not present.has_gpu:
        sentence = f"the types of {group.name} ({', '.join(types) or 'none named'}) are no GPU types of the catalogue"
        return Excluded(group.name, Reason(Code.NO_SPECIFICATION, sentence))
    hosting = _hosting_prices(ports, group.region)
    if present.name not in hosting:
        return Excluded(group.name, Reason(Code.NO_PRICE, f"no On-Demand price of {present.ec2_name} is known"))
    need = need_of(present, _measured_use(ports, group.name, now))
    fits, _ = fitting_types(need, present, ports.catalogue)
    current = _CurrentType(present, need, hosting)
    if group.mode is Mode.AUTO:
        proven = [kind for kind in fits if is_proven_hardware([present], [kind])]
        found = _option(ports, group, current, proven, now)
        if isinstance(found, CapacityOption) and found.request:
            return found
    return _option(ports, group, current, fits, now)


def _measured_use(ports: CapacityPorts, group: str, now: datetime) -> MeasuredUse | None:
    """Measured use; without permission or agent the type's own size stands in."""
    try:
        return ports.agent.measured_use(group, now - RECORD / 2, now)
    except ThrottledError:
        raise
    except RightsizerError as error:
        logger.warning("the agent's metrics could not be read", group=group, error=str(error))
        return None


def _option(
    ports: CapacityPorts,
    group: AutoScalingGroup,
    current: _CurrentType,
    fits: Sequence[InstanceType],
    now: datetime,
) -> CapacityOption | Excluded:
    """The option with these types beside those that the group has; dearer ones than On-Demand are left out."""
    present, wants, hosting = current.type, current.need, current.hosting_usd
    types, usd = group.purchase.instance_types, hosting[present.name] / hosting_over_ec2(present)
    wanted = tuple(dict.fromkeys([*types, *(kind.ec2_name for kind in fits)]))
    need = SpotNeed(group.desired, usd, min(group.purchase.on_demand_base, group.desired))
    pools = _pool_sights(ports, group, ports.market.prices(wanted, group.zones, now - RECORD, now), now)
    cheap = {sight.pool.instance_type for sight in pools if useful_usd(sight, need) < usd}
    names = tuple(name for name in wanted if name in types or name in cheap)
    sights = [sight for sight in pools if sight.pool.instance_type in names]
    own = [sight for sight in sights if sight.pool in group.pools]
    before, _ = _monthly_outlook(need, own, now)
    after, placement = _monthly_outlook(need, sights, now)
    spot_usd = min((useful_usd(sight, need) for sight in own), default=usd)
    besides = alternatives(group, present, fits, hosting, spot_usd)
    changed = policy_change(group, names, max(need.on_demand_base, placement.on_demand))
    if isinstance(changed, Excluded) or not _is_better(before, after, usd):
        if besides:
            kind, _ = besides[0]
            return CapacityOption(
                group.name,
                kind,
                {},
                {},
                before,
                before,
                None,
                tuple(reason for _, reason in besides),
                unchecked_sentences(wants),
            )
        return changed if isinstance(changed, Excluded) else no_gain_exclusion(group, names, before, after)
    scores = ports.market.score(names, group.desired)
    reasons = (option_reason(group, names, before, after), *placement.reasons, *(reason for _, reason in besides))
    slow = [kind for kind in fits if kind.ec2_name in names and slowdown_of(present, kind) > SLOWER]
    return CapacityOption(
        group.name, CapacityKind.MIXED_POLICY, changed[0], changed[1], before, after,
        max(scores.values(), default=None), reasons,
        (*unchecked_sentences(wants), *speed_sentences(wants, present, slow),
         "whether the image and the launch template run on the further types",
         f"the EC2 On-Demand price: SageMaker's hosting price over {hosting_over_ec2(present):.2f}",
         "whether Auto Scaling replaces running Spot instances to reach a larger On-Demand base"),
    )  # fmt: skip


def _monthly_outlook(need: SpotNeed, sights: Sequence[PoolSight], now: datetime) -> tuple[Outlook, SpotPlacement]:
    placement = place_instances(need, sights, {}, now, interruptions_per_hour, useful_usd)
    return outlook(placement, {}, sights, need, interruptions_per_hour), placement


def _is_better(before: Outlook, after: Outlook, on_demand_usd: float) -> bool:
    """Whether a month gets notably cheaper, an instance hour without service counted at its On-Demand price."""
    was, becomes = (seen.usd_per_month + seen.lost_hours_per_month * on_demand_usd for seen in (before, after))
    return was > 0 and becomes <= was * (1 - NOTABLE)


def _pool_sights(
    ports: CapacityPorts, group: AutoScalingGroup, prices: Sequence[SpotPrice], now: datetime
) -> list[PoolSight]:
    """The pools with their mean price and the account's own record; marks are for minutes, not for a month."""
    moments = {
        (interruption.pool, interruption.at)
        for interruption in ports.book.interruptions(now - RECORD, now)
        if interruption.pool
    }
    counts: Mapping[Pool, int] = Counter(pool for pool, _ in moments)
    hours = RECORD.total_seconds() / 3600
    return [
        PoolSight(
            price.pool,
            price.usd_mean,
            counts.get(price.pool, 0),
            hours if f"{price.pool.instance_type}|{price.pool.zone}" in group.running else 0.0,
        )
        for price in prices
    ]


def _hosting_prices(ports: CapacityPorts, region: str) -> Mapping[str, float]:
    """SageMaker's hosting price an hour of every GPU type that has one here."""
    names = [kind.name for kind in ports.catalogue if kind.has_gpu]
    table = ports.prices.table(region, names)
    return {name: float(price.usd_per_hour) for name in names if (price := table.find(name)) is not None}


def _ask(ports: CapacityPorts, group: AutoScalingGroup, option: CapacityOption, now: datetime) -> None:
    """Ask about it, and have it in the week's report."""
    year, week, _ = now.isocalendar()
    text = "; ".join((*map(str, option.reasons), *(f"not checked: {what}" for what in option.not_checked)))
    if option.request:
        text += f"; request: {json.dumps(option.request, default=str)}"
    key = f"{option.group}|capacity|{year}-{week:02d}"
    ports.ledger.note(Occurrence(key, now, "capacity-option", option.group, text))
    if not option.request:
        return  # an alternative that a person has to build: the report tells it
    types = {str(row["InstanceType"]) for row in _overrides(option) if "InstanceType" in row}
    known = {kind.ec2_name: kind for kind in ports.catalogue}
    present = [known[name] for name in group.purchase.instance_types if name in known]
    safe = types <= set(known) and is_proven_hardware(present, [known[name] for name in types])
    capacity_change = group_capacity_change(
        option, group, writes=ports.writes, safe=safe, days=ports.proposal_days, now=now
    )
    if ports.capacity_changes.add(capacity_change):
        logger.info(
            "asked about a group",
            extra={"capacity_change": capacity_change.id, "group": group.name, "state": capacity_change.state},
        )


def _overrides(option: CapacityOption) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = option.request["MixedInstancesPolicy"]["LaunchTemplate"].get("Overrides", ())
    return found


@dataclass(frozen=True, slots=True)
class StandInPorts:
    """Ports of a stand-in."""

    groups: LiveGroupReader
    book: SpotBook
    prices: PriceBook
    catalogue: Catalogue
    capacity_changes: CapacityChangeStore
    writes: bool = True


def propose_stand_in(ports: StandInPorts, name: str, now: datetime) -> CapacityChange | None:
    """The capacity change that was asked, or None when nothing is missing or the policy is not ours to write.

    ReadError goes up, so that the queue delivers the message again.
    """
    try:
        group = ports.groups.live_group(name, now)
    except VanishedError:
        return None
    if isinstance(group, UnreadGroup):
        logger.warning("no stand-in for a group that cannot be read", group=name, reason=str(group.reason))
        return None
    if not group.missing_instances or not group.purchase.may_use_spot or _has_open_pool(ports, group, now):
        return None
    base = min(group.desired, group.purchase.on_demand_base + group.missing_instances)
    no = policy_change(group, group.purchase.instance_types, base)
    if isinstance(no, Excluded):
        logger.info("no stand-in for a group", group=name, reason=str(no.reason))
        return None
    mixed = group.purchase.mixed
    policy = {**mixed, "InstancesDistribution": {**mixed["InstancesDistribution"], "OnDemandBaseCapacity": base}}
    usd = _usd_per_hour(ports, group) * group.missing_instances
    capacity_change = stand_in_capacity_change(group, policy, usd, writes=ports.writes, now=now)
    return capacity_change if ports.capacity_changes.add(capacity_change) else None


def _has_open_pool(ports: StandInPorts, group: AutoScalingGroup, now: datetime) -> bool:
    marks = [ports.book.mark(pool) for pool in group.pools]
    return any(mark is None or mark.until <= now for mark in marks)


def _usd_per_hour(ports: StandInPorts, group: AutoScalingGroup) -> float:
    """On-Demand of the dearest type that the group names: Auto Scaling may start any of them."""
    known = [hardware for kind in group.purchase.instance_types if (hardware := ports.catalogue.find(f"ml.{kind}"))]
    table = ports.prices.table(group.region, [kind.name for kind in known])
    usd = [float(price.usd_per_hour) / hosting_over_ec2(kind) for kind in known if (price := table.find(kind.name))]
    return max(usd, default=0.0)
