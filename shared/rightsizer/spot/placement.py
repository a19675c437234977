"""Where a group's instances should run: in the best Spot pools that are open, and On-Demand for the rest.

The rule is asked after each warning, refused launch, finished boot and ended mark. It fills gaps and moves nothing:
a Spot instance that runs is left where it is, since moving it would be an interruption of our own making. A pool's
record says how often it interrupts, how long to leave it alone, and what an hour in it really costs.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.spot import Mark, Pool, PoolSight, PoolSignal, SpotNeed, SpotPlacement

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
