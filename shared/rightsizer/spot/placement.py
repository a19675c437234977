"""Where a group's instances should run: in the best Spot pools that are open, and On-Demand for the rest.

The rule is asked after each warning, refused launch, finished boot and ended mark. It fills gaps and moves nothing:
a Spot instance that runs is left where it is, since moving it would be an interruption of our own making.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.spot import Need, Placement, Pool, PoolSight

type Rate = Callable[[PoolSight], float]
"""Interruptions per hour of a pool."""
type Worth = Callable[[PoolSight, Need], float]
"""Cost of a useful hour in a pool, US dollars."""


def place(
    need: Need, sights: Sequence[PoolSight], running: Mapping[Pool, int], now: datetime, rate: Rate, worth: Worth
) -> Placement:
    """What to launch so that `need.target` instances serve at the least cost; never asks for fewer than that.

    `running` counts Spot instances that serve or boot and are not being interrupted. On-Demand takes what Spot
    cannot or should not hold: the base, the share that keeps expected losses within `need.most_lost`, and
    everything when no pool is open or cheaper.
    """
    best = _best(need, sights, now, worth)
    have = sum(running.values())
    wanted = max(0, need.target - need.on_demand_base)
    share = _spot_share(need, best, rate) if best and need.fallback else 1.0
    missing = max(0, int(wanted * share + 1e-9) - have) if best else 0
    launch = _spread(missing, best, running)
    base = min(need.on_demand_base, need.target)
    on_demand = max(base, need.target - have - missing) if need.fallback else base
    return Placement(launch, on_demand, _reasons(need, best, missing, on_demand, share))


def _best(need: Need, sights: Sequence[PoolSight], now: datetime, worth: Worth) -> list[PoolSight]:
    """Open pools whose useful hour is cheaper than On-Demand, cheapest first, as many as are wanted.

    Without a fallback an idle target is worse than a refused launch: with no open pool, the marked ones are tried.
    """
    priced = [(worth(sight, need), sight.pool, sight) for sight in sights]
    cheaper = sorted((item for item in priced if item[0] < need.on_demand_usd or not need.fallback), key=_first_two)
    opened = [sight for _, _, sight in cheaper if sight.open_at(now)]
    if not opened and not need.fallback:
        return [sight for _, _, sight in cheaper]
    return opened[: need.pools_wanted]


def _first_two(item: tuple[float, Pool, PoolSight]) -> tuple[float, Pool]:
    return item[:2]


def _spot_share(need: Need, best: Sequence[PoolSight], rate: Rate) -> float:
    """Share of the instances that Spot may hold so that the time lost stays within `need.most_lost`."""
    lost = need.gap_hours * sum(rate(sight) for sight in best) / len(best)
    return 1.0 if lost <= need.most_lost else need.most_lost / lost


def _spread(missing: int, best: Sequence[PoolSight], running: Mapping[Pool, int]) -> dict[Pool, int]:
    """One instance at a time to the pool that holds the fewest; the better pool on a tie."""
    counts = {sight.pool: running.get(sight.pool, 0) for sight in best}
    launch: dict[Pool, int] = {}
    for _ in range(missing):
        pool = min(counts, key=counts.__getitem__)
        counts[pool] += 1
        launch[pool] = launch.get(pool, 0) + 1
    return launch


def _reasons(need: Need, best: Sequence[PoolSight], missing: int, on_demand: int, share: float) -> tuple[Reason, ...]:
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
