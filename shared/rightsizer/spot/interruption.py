"""Reaction to an interruption of an EC2 instance, and the placement of a group's instances."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import (
    AutoScalingGroup,
    ForeignInstance,
    GroupMember,
    Handler,
    InstanceHome,
    LeaveAlone,
    Note,
    Reaction,
    Replace,
    ReplacementMethod,
    UngroupedInstance,
)
from rightsizer.domain.spot import Mark, Pool, PoolSight, PoolSignal, SpotNeed, SpotPlacement
from rightsizer.domain.trigger import InstanceMoved, LaunchFailed, RebalanceRecommended, SpotInterruption

TOO_OLD = timedelta(seconds=120)
"""EC2 gives two minutes: an older warning speaks of an instance that is gone."""
FACTS_LAST = timedelta(hours=48)
"""The sweep reads groups hourly; facts older than this mean that it does not run."""
NO_CAPACITY = ("InsufficientInstanceCapacity", "no Spot capacity", "UnfulfillableCapacity", "SpotMaxPriceTooLow")
"""What Auto Scaling's StatusMessage says when a pool has nothing to give."""
_GPU = re.compile(r"(g|gr|p)\d")
"""EC2's accelerated families with GPUs: G, GR and P (EC2 User Guide, instance type naming)."""


def stale_note(event: SpotInterruption, now: datetime) -> Note | None:
    """The note of a warning that came too late to act on, or None; asked before anything is read."""
    age = now - event.at
    if age <= TOO_OLD:
        return None
    sentence = (
        f"the warning of {event.instance_id} is {age.total_seconds():.0f} s old, more than "
        f"{TOO_OLD.total_seconds():.0f} s: recorded, nothing changed"
    )
    return Note(Reason(Code.STALE, sentence))


def reaction_to(
    event: SpotInterruption, found: InstanceHome, group: AutoScalingGroup | None, now: datetime, resumed: bool = False
) -> Reaction:
    """Reaction to a warning about one instance.

    Replaces only in groups that opted in and that nobody else looks after.

    `resumed`: an earlier try was cut off, so an instance without a group may be one that it took out.
    """
    if (late := stale_note(event, now)) is not None:
        return late
    if resumed and isinstance(found, UngroupedInstance | ForeignInstance):
        sentence = f"{event.instance_id} left its group after an earlier try that was cut off: the group replaces it"
        return _note(Code.INSTANCE_GONE, sentence)
    match found:
        case ForeignInstance():
            return _note(Code.FOREIGN_INSTANCE, f"{event.instance_id} is no instance of this account, or is gone")
        case UngroupedInstance(handler=Handler.NOBODY):
            sentence = f"{event.instance_id} is in no Auto Scaling group: nothing replaces it; move it into a group"
            return _note(Code.NO_GROUP, sentence)
        case UngroupedInstance():
            return LeaveAlone(_handler_reason(event.instance_id, found.handler))
        case GroupMember():
            return _member_reaction(found, group, now)
        case _:
            assert_never(found)


def _member_reaction(member: GroupMember, group: AutoScalingGroup | None, now: datetime) -> Reaction:
    if group is None or group.mode is not Mode.AUTO:
        sentence = (
            f"the Auto Scaling group {member.group} has not opted in: {member.instance_id} is replaced when the group "
            "notices the loss; the tag rightsizer:mode=auto on the group starts the replacement two minutes earlier"
        )
        return _note(Code.NOT_OPTED_IN, sentence)
    if group.handler is Handler.CAPACITY_REBALANCE:
        sentence = f"{group.name} replaces {member.instance_id} itself: Capacity Rebalancing is on"
        return LeaveAlone(Reason(Code.REPLACES_ITSELF, sentence))
    if group.handler is not Handler.NOBODY:
        return LeaveAlone(_handler_reason(member.instance_id, group.handler))
    if (hindrance := _hindrance(member, group, now)) is not None:
        return LeaveAlone(hindrance)
    way = (
        ReplacementMethod.TERMINATE
        if group.terminating_hook and "Terminate" not in group.suspended
        else ReplacementMethod.DETACH
    )
    sentence = (
        f"{member.instance_id} ({member.instance_type} in {member.zone}) is being taken back: {way} in {group.name}, "
        f"desired capacity stays {group.desired}"
    )
    return Replace(group.name, member.instance_id, way, Reason(Code.INTERRUPTED, sentence))


def _hindrance(member: GroupMember, group: AutoScalingGroup, now: datetime) -> Reason | None:
    if now - group.read_at > FACTS_LAST:
        hours = (now - group.read_at).total_seconds() / 3600
        sentence = f"what is known of {group.name} is {hours:.0f} h old: is the sweep running? Nothing changed"
        return Reason(Code.STALE, sentence)
    if member.lifecycle.startswith(("Terminating", "Terminated", "Detaching", "Detached")):
        return Reason(Code.INSTANCE_GONE, f"{member.instance_id} is leaving {group.name} already ({member.lifecycle})")
    if member.lifecycle != "InService":
        sentence = f"{member.instance_id} is {member.lifecycle} in {group.name} and serves nothing: left to the group"
        return Reason(Code.NOT_SERVING, sentence)
    if "Launch" in group.suspended:
        sentence = (
            f"{group.name} has Launch suspended: taking {member.instance_id} out would lose capacity two minutes "
            "early and bring nothing; resume Launch"
        )
        return Reason(Code.LAUNCH_SUSPENDED, sentence)
    return None


def note_of(event: RebalanceRecommended | InstanceMoved | LaunchFailed) -> Note:
    """The note of an event that is recorded and counted, never acted on."""
    match event:
        case RebalanceRecommended():
            sentence = f"{event.instance_id} has a raised risk of interruption: recorded, not acted on"
        case InstanceMoved():
            sentence = f"{event.instance_id} is {event.state}"
        case LaunchFailed():
            where = f" in {event.zone}" if event.zone else ""
            sentence = f"{event.group} could not launch an instance{where}: {event.message or 'no cause given'}"
            if is_capacity_failure(event):
                return Note(Reason(Code.NO_OPEN_POOL, sentence))
        case _:
            assert_never(event)
    return Note(Reason(Code.RECORDED_ONLY, sentence))


def has_gpu_name(instance_type: str) -> bool:
    """Whether EC2's name of a type is one of the GPU families; other capacity is recorded, not told."""
    return _GPU.match(instance_type) is not None


def is_capacity_failure(event: LaunchFailed) -> bool:
    """Whether the launch failed because the pools have nothing to give, and not for a fault of the group."""
    return any(words in event.message for words in NO_CAPACITY)


def _handler_reason(instance_id: str, handler: Handler) -> Reason:
    return Reason(Code.SOMEONE_ELSE_HANDLES, f"{instance_id} is looked after by {handler}: left alone")


def _note(code: Code, sentence: str) -> Note:
    return Note(Reason(code, sentence))


PRIOR_HOURS_PER_INTERRUPTION = 6.0
"""Four losses a day and zone: what public traces of GPU pools show in the median (decision model, section Spot)."""
PRIOR_INTERRUPTIONS = 2.0
"""Weight of that prior, in interruptions: two of our own weigh as much as it."""
FIRST_MARK = timedelta(minutes=3)
"""Karpenter's time for an unavailable offering."""
LONGEST_MARK = timedelta(minutes=24)
FORGIVEN_AFTER = timedelta(hours=1)
"""A pool that held for an hour after its mark begins again with the first one."""

type Rate = Callable[[PoolSight], float]
"""Interruptions per hour of a pool."""
type Worth = Callable[[PoolSight, SpotNeed], float]
"""Cost of a useful hour in a pool, US dollars."""


def place_instances(
    need: SpotNeed, sights: Sequence[PoolSight], running: Mapping[Pool, int], now: datetime, rate: Rate, worth: Worth
) -> SpotPlacement:
    """Launches with which `need.target` instances serve at the least cost; never for fewer than that.

    `running` counts Spot instances that serve or boot and are not being interrupted. On-Demand takes what Spot
    cannot or should not hold: the base, the share that keeps expected losses within `need.most_lost`, and
    everything when no pool is open or cheaper.
    """
    best = _best_pools(need, sights, now, worth)
    have = sum(running.values())
    wanted = max(0, need.target - need.on_demand_base)
    share = _spot_share(need, best, rate) if best and need.fallback else 1.0
    missing = max(0, int(wanted * share + 1e-9) - have) if best else 0
    launch = _spread_instances(missing, best, running)
    base = min(need.on_demand_base, need.target)
    on_demand = max(base, need.target - have - missing) if need.fallback else base
    return SpotPlacement(launch, on_demand, _reasons(need, best, missing, on_demand, share))


def _best_pools(need: SpotNeed, sights: Sequence[PoolSight], now: datetime, worth: Worth) -> list[PoolSight]:
    """Open pools whose useful hour is cheaper than On-Demand, cheapest first, as many as are wanted.

    Without a fallback an idle target is worse than a refused launch: with no open pool, the marked ones are tried.
    """
    priced = [(worth(sight, need), sight.pool, sight) for sight in sights]
    cheaper = sorted((item for item in priced if item[0] < need.on_demand_usd or not need.fallback), key=_first_two)
    opened = [sight for _, _, sight in cheaper if sight.is_open(now)]
    if not opened and not need.fallback:
        return [sight for _, _, sight in cheaper]
    return opened[: need.pools_wanted]


def _first_two(item: tuple[float, Pool, PoolSight]) -> tuple[float, Pool]:
    return item[:2]


def _spot_share(need: SpotNeed, best: Sequence[PoolSight], rate: Rate) -> float:
    """Share of the instances that Spot may hold so that the time lost stays within `need.most_lost`."""
    lost = need.gap_hours * sum(rate(sight) for sight in best) / len(best)
    return 1.0 if lost <= need.most_lost else need.most_lost / lost


def _spread_instances(missing: int, best: Sequence[PoolSight], running: Mapping[Pool, int]) -> dict[Pool, int]:
    """One instance at a time to the pool that holds the fewest; the better pool on a tie."""
    counts = {sight.pool: running.get(sight.pool, 0) for sight in best}
    launch: dict[Pool, int] = {}
    for _ in range(missing):
        pool = min(counts, key=counts.__getitem__)
        counts[pool] += 1
        launch[pool] = launch.get(pool, 0) + 1
    return launch


def _reasons(
    need: SpotNeed, best: Sequence[PoolSight], missing: int, on_demand: int, share: float
) -> tuple[Reason, ...]:
    reasons = []
    if missing:
        pools = ", ".join(str(sight.pool) for sight in best)
        reasons.append(Reason(Code.SPOT_POOL_OPEN, f"{missing} of {need.target} instances go to Spot: {pools}"))
    extra = on_demand - min(need.on_demand_base, need.target)
    if extra > 0 and not best:
        sentence = f"no Spot pool is open and cheaper than On-Demand: {extra} of {need.target} instances On-Demand"
        reasons.append(Reason(Code.NO_OPEN_POOL, sentence))
    elif extra > 0:
        sentence = (
            f"Spot holds at most {share:.0%} of the instances, so that interruptions lose no more than "
            f"{need.most_lost:.0%} of their time: {extra} On-Demand"
        )
        reasons.append(Reason(Code.SPOT_TOO_UNSTEADY, sentence))
    return tuple(reasons)


def interruptions_per_hour(sight: PoolSight) -> float:
    """Expected interruptions of the pool per hour of use: our record, drawn to the prior while it is short.

    The posterior mean of a Poisson rate under a gamma prior: (count + a) / (hours + a x prior hours).
    """
    return (sight.interruptions + PRIOR_INTERRUPTIONS) / (
        sight.hours + PRIOR_INTERRUPTIONS * PRIOR_HOURS_PER_INTERRUPTION
    )


def useful_usd(sight: PoolSight, need: SpotNeed) -> float:
    """US dollars of an hour of service from the pool: price, paid boots, and lost minutes.

    Each interruption pays a boot at the Spot price and loses `need.gap_hours`, valued at On-Demand.
    """
    rate = interruptions_per_hour(sight)
    return sight.usd_per_hour * (1 + rate * need.boot_s / 3600) + rate * need.gap_hours * need.on_demand_usd


def next_mark(pool: Pool, signal: PoolSignal, now: datetime, before: Mark | None) -> Mark:
    """The mark after a warning or a refusal: 3 minutes, doubled for each in a row, 24 at most.

    A second signal while the pool is marked already (many instances warned at once) neither adds a strike nor
    shortens the mark.
    """
    if before is not None and now < before.until:
        return before
    fresh = before is None or now - before.until > FORGIVEN_AFTER
    strikes = 1 if before is None or fresh else before.strikes + 1
    length = min(LONGEST_MARK, FIRST_MARK * 2 ** min(strikes - 1, 10))
    return Mark(pool, signal, now, now + length, strikes)
