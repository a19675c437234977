"""What the sweep and the week do for Spot groups: remember the facts, propose better capacity.

Facts first: `interruption` acts on them within the two minutes and reads nothing else. The options are proposals with
the exact request, carried out by `apply` after an approval; nothing here writes to a group.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rightsizer.errors import RightsizerError
from rightsizer.model.capacity import CapacityKind, CapacityOption, Outlook
from rightsizer.model.group import Group
from rightsizer.model.hardware import Catalogue, InstanceType
from rightsizer.model.observation import Mode
from rightsizer.model.option import Excluded
from rightsizer.model.outcome import Occurrence
from rightsizer.model.reason import Code, Reason
from rightsizer.model.spot import Need, Placement, Pool, PoolSight
from rightsizer.model.trigger import SweepKind
from rightsizer.ports import PriceBook, SavingsLedger
from rightsizer.ports_spot import ErrandBook, GroupReader, SpotBook, SpotMarket, SpotPrice, Unread
from rightsizer.rules.spot_capacity import fitting, hosting_over_ec2, need_of, outlook, policy_change
from rightsizer.rules.spot_offer import alike, group_errand
from rightsizer.rules.spot_place import place
from rightsizer.rules.spot_pools import interruptions_per_hour, useful_usd
from rightsizer.telemetry import logger

RECORD = timedelta(days=30)
NOTABLE = 0.05
"""An option is worth telling when it saves a twentieth of the cost, lost hours included."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a sweep of the groups did."""

    kept: int
    unread: tuple[Unread, ...]


def remember_groups(reader: GroupReader, book: SpotBook, now: datetime) -> Remembered:
    """Store the facts of every Spot or opted-in group; one that cannot be read stops no other."""
    kept, unread = 0, []
    for found in reader.groups(now):
        if isinstance(found, Unread):
            logger.warning("an Auto Scaling group could not be read", group=found.name, reason=str(found.reason))
            unread.append(found)
        else:
            book.keep(found)
            kept += 1
    return Remembered(kept, tuple(unread))


def look_at_groups(reader: GroupReader, ports: "CapacityPorts", sweep: SweepKind, now: datetime) -> Remembered:
    """Groups after a sweep of the endpoints: the facts each time, the options after a full one.

    An account that cannot be read costs the groups only, never the sweep of the endpoints.
    """
    try:
        done = remember_groups(reader, ports.book, now)
        if sweep is SweepKind.FULL:
            propose_capacity(ports, now)
    except RightsizerError as error:
        logger.error("the Auto Scaling groups could not be read", error=str(error))
        return Remembered(0, ())
    return done


@dataclass(frozen=True, slots=True)
class CapacityPorts:
    """What the options need."""

    book: SpotBook
    market: SpotMarket
    prices: PriceBook
    catalogue: Catalogue
    ledger: SavingsLedger
    errands: ErrandBook
    writes: bool = True
    """Whether the stack may change anything."""
    proposal_days: int = 14


def propose_capacity(ports: CapacityPorts, now: datetime) -> list[CapacityOption | Excluded]:
    """One answer for each Spot group: an option, or why there is none. Each option is asked once for a policy."""
    answers: list[CapacityOption | Excluded] = []
    for group in ports.book.groups():
        if not group.purchase.uses_spot:
            continue
        try:
            answer = option_of(ports, group, now)
        except RightsizerError as error:
            logger.error("no capacity option for a group", group=group.name, error=str(error))
            answer = Excluded(group.name, Reason(Code.READ_FAILED, str(error)))
        answers.append(answer)
        if isinstance(answer, CapacityOption):
            _ask(ports, group, answer, now)
    return answers


def option_of(ports: CapacityPorts, group: Group, now: datetime) -> CapacityOption | Excluded:
    """Better capacity for one group, or why there is none.

    In automatic mode types with the GPU model that runs already come first: they need nobody's judgement.
    """
    types = group.purchase.instance_types
    present = ports.catalogue.find(f"ml.{types[0]}") if types else None
    if present is None or not present.has_gpu:
        sentence = f"the types of {group.name} ({', '.join(types) or 'none named'}) are no GPU types of the catalogue"
        return Excluded(group.name, Reason(Code.NO_SPECIFICATION, sentence))
    usd = _on_demand(ports, group.region, present)
    if usd is None:
        return Excluded(group.name, Reason(Code.NO_PRICE, f"no On-Demand price of {present.ec2_name} is known"))
    fits, _ = fitting(need_of(present, None, None), present, ports.catalogue)
    if group.mode is Mode.AUTO:
        found = _option(ports, group, present, [kind for kind in fits if alike([present], [kind])], usd, now)
        if isinstance(found, CapacityOption):
            return found
    return _option(ports, group, present, fits, usd, now)


def _option(
    ports: CapacityPorts, group: Group, present: InstanceType, fits: Sequence[InstanceType], usd: float, now: datetime
) -> CapacityOption | Excluded:
    """The option with these types beside those that the group has; dearer ones than On-Demand are left out."""
    types = group.purchase.instance_types
    wanted = tuple(dict.fromkeys([*types, *(kind.ec2_name for kind in fits)]))
    need = Need(group.desired, usd, min(group.purchase.on_demand_base, group.desired))
    known = _sights(ports, group, ports.market.prices(wanted, group.zones, now - RECORD, now), now)
    cheap = {sight.pool.instance_type for sight in known if useful_usd(sight, need) < usd}
    names = tuple(name for name in wanted if name in types or name in cheap)
    sights = [sight for sight in known if sight.pool.instance_type in names]
    before, _ = _month(need, [sight for sight in sights if sight.pool in group.pools], now)
    after, placement = _month(need, sights, now)
    changed = policy_change(group, names, max(need.on_demand_base, placement.on_demand))
    if isinstance(changed, Excluded):
        return changed
    if not _better(before, after, usd):
        sentence = (
            f"{group.name} has {len(types)} types in {len(group.zones)} zones; {len(names)} types would cost "
            f"{after.usd_per_month:.0f} USD a month instead of {before.usd_per_month:.0f} and lose "
            f"{after.lost_hours_per_month:.1f} instance hours instead of {before.lost_hours_per_month:.1f}"
        )
        return Excluded(group.name, Reason(Code.ALREADY_RIGHT, sentence))
    scores = ports.market.score(names, group.desired)
    return CapacityOption(
        group.name, CapacityKind.MIXED_POLICY, changed[0], changed[1], before, after,
        max(scores.values(), default=None), (_why(group, names, before, after), *placement.reasons),
        ("whether the image and the launch template run on the further types",
         "the measured need: the present type's own size stands in",
         f"the EC2 On-Demand price: SageMaker's hosting price over {hosting_over_ec2(present):.2f}",
         "whether Auto Scaling replaces running Spot instances to reach a larger On-Demand base"),
    )  # fmt: skip


def _month(need: Need, sights: Sequence[PoolSight], now: datetime) -> tuple[Outlook, Placement]:
    placement = place(need, sights, {}, now, interruptions_per_hour, useful_usd)
    return outlook(placement, {}, sights, need, interruptions_per_hour), placement


def _better(before: Outlook, after: Outlook, on_demand_usd: float) -> bool:
    """Whether a month gets notably cheaper, an instance hour without service counted at its On-Demand price."""
    was, becomes = (seen.usd_per_month + seen.lost_hours_per_month * on_demand_usd for seen in (before, after))
    return was > 0 and becomes <= was * (1 - NOTABLE)


def _why(group: Group, names: Sequence[str], before: Outlook, after: Outlook) -> Reason:
    return Reason(
        Code.MORE_POOLS,
        f"{group.name}: {len(names)} types in {len(group.zones)} zones instead of "
        f"{len(group.purchase.instance_types)} cost {after.usd_per_month:.0f} USD a month instead of "
        f"{before.usd_per_month:.0f}, with {after.interruptions_per_month:.0f} interrupted instances instead of "
        f"{before.interruptions_per_month:.0f} expected",
    )


def _sights(ports: CapacityPorts, group: Group, prices: Sequence[SpotPrice], now: datetime) -> list[PoolSight]:
    """The pools with their mean price and the account's own record; marks are for minutes, not for a month."""
    moments = {(seen.pool, seen.at) for seen in ports.book.interruptions(now - RECORD, now) if seen.pool}
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


def _on_demand(ports: CapacityPorts, region: str, kind: InstanceType) -> float | None:
    price = ports.prices.table(region, [kind.name]).find(kind.name)
    return float(price.usd_per_hour) / hosting_over_ec2(kind) if price else None


def _ask(ports: CapacityPorts, group: Group, option: CapacityOption, now: datetime) -> None:
    """Ask about it, and have it in the week's report."""
    year, week, _ = now.isocalendar()
    text = (
        f"{option.reasons[0]}. Not checked: {'; '.join(option.not_checked)}. Request (UpdateAutoScalingGroup): "
        f"{json.dumps(option.request, default=str)}. Way back: {json.dumps(option.undo, default=str)}"
    )
    key = f"{option.group}|capacity|{year}-{week:02d}"
    ports.ledger.note(Occurrence(key, now, "capacity-option", option.group, text))
    types = {str(row["InstanceType"]) for row in _overrides(option) if "InstanceType" in row}
    known = {kind.ec2_name: kind for kind in ports.catalogue}
    present = [known[name] for name in group.purchase.instance_types if name in known]
    safe = types <= set(known) and alike(present, [known[name] for name in types])
    errand = group_errand(option, group, writes=ports.writes, safe=safe, days=ports.proposal_days, now=now)
    if ports.errands.ask(errand):
        logger.info("asked about a group", extra={"errand": errand.id, "group": group.name, "state": errand.state})


def _overrides(option: CapacityOption) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = option.request["MixedInstancesPolicy"]["LaunchTemplate"].get("Overrides", ())
    return found
