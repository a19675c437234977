"""The policies that the replay compares. Ours is the product's own rule; the others are what people run."""

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

from bench.spot_market import BOOT_S, NOTICE_S, ON_DEMAND, Market
from rightsizer.domain.spot import Mark, Pool, PoolSight, PoolSignal, SpotNeed, SpotPlacement
from rightsizer.spot.interruption import interruptions_per_hour, next_mark, place_instances, useful_usd

CLOCK = datetime(2000, 1, 1, tzinfo=UTC)
"""Second zero of every trace."""
RETRY_S = 60.0
"""How often an Auto Scaling group that may not use On-Demand tries again."""


class Plain:
    """Keep the target on Spot in the pools that `_next` names; replace what is lost, when it is lost."""

    heeds_warnings = False
    sees_openings = True
    spare = 0

    def act(self, market: Market) -> float | None:
        """Launch what is missing, pool after pool."""
        missing = market.target + self.spare - len(market.spot())
        refused: set[Pool] = set()
        while missing > 0 and (pool := self._next(market, refused)) is not None:
            if market.launch(pool):
                missing -= 1
            else:
                refused.add(pool)
        return None

    def interrupted(self, pool: Pool, market: Market) -> None:
        """Nothing is learnt."""

    def _next(self, market: Market, refused: set[Pool]) -> Pool | None:
        raise NotImplementedError


class SinglePool(Plain):
    """One type in one zone."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def _next(self, market: Market, refused: set[Pool]) -> Pool | None:
        del market
        return None if refused else self._pool


class LowestPrice(Plain):
    """The cheapest pool now; the next cheapest when it refuses."""

    def _next(self, market: Market, refused: set[Pool]) -> Pool | None:
        pools = [pool for pool in market.scenario.changes if pool not in refused]
        return min(pools, key=lambda pool: market.prices.at(pool, market.now), default=None)


class Spread(Plain):
    """Even over the zones; what a zone refuses goes to the others."""

    def __init__(self, spare: int = 0) -> None:
        self.spare = spare

    def _next(self, market: Market, refused: set[Pool]) -> Pool | None:
        held = Counter(instance.pool for instance in market.spot())
        pools = [pool for pool in market.scenario.changes if pool not in refused]
        return min(pools, key=lambda pool: held[pool], default=None)


class Ours:
    """The product's rule: `place_instances` over the sights of the pools, marks after warnings and refusals."""

    heeds_warnings = True
    sees_openings = False

    def __init__(self, target: int, fallback: bool = True, most_lost: float = 0.03) -> None:
        self._need = SpotNeed(target, ON_DEMAND, 0, BOOT_S, NOTICE_S, most_lost, fallback=fallback)
        self._marks: dict[Pool, Mark] = {}
        self._count: dict[Pool, int] = defaultdict(int)

    def interrupted(self, pool: Pool, market: Market) -> None:
        """Count the interruption once for the pool and mark it."""
        self._count[pool] += 1
        self._mark(pool, PoolSignal.INTERRUPTED, market)

    def act(self, market: Market) -> float | None:
        """Ask the rule until nothing is refused any more, then carry out the On-Demand side."""
        refused: set[Pool] = set()
        placement = self._placement(market, refused)
        while self._refused(placement, market, refused):
            placement = self._placement(market, refused)
        self._on_demand(placement.on_demand, market)
        if len(market.spot()) >= market.target:
            return None
        if not self._need.fallback:
            return market.now + RETRY_S
        ends = [(held.until - CLOCK).total_seconds() for held in self._marks.values()]
        return min((end for end in ends if end > market.now), default=None)

    def _refused(self, placement: SpotPlacement, market: Market, refused: set[Pool]) -> bool:
        for pool, count in placement.launch.items():
            for _ in range(count):
                if not market.launch(pool):
                    self._mark(pool, PoolSignal.REFUSED, market)
                    refused.add(pool)
                    return True
        return False

    def _placement(self, market: Market, refused: set[Pool]) -> SpotPlacement:
        sights = [
            PoolSight(
                pool,
                market.prices.at(pool, market.now),
                self._count[pool],
                market.used_hours[pool],
                self._marks[pool].until if pool in self._marks else None,
            )
            for pool in market.scenario.changes
            if pool not in refused
        ]
        running = Counter(instance.pool for instance in market.spot() if instance.pool is not None)
        now = CLOCK + timedelta(seconds=market.now)
        return place_instances(self._need, sights, running, now, interruptions_per_hour, useful_usd)

    def _on_demand(self, wanted: int, market: Market) -> None:
        """Auto Scaling starts new instances before it ends old ones, when the On-Demand base changes."""
        for _ in range(wanted - len(market.on_demand())):
            market.launch(None)
        ready = sum(1 for i in market.instances if i.ready <= market.now and not i.doomed)
        excess = len(market.on_demand()) - wanted
        for instance in sorted(market.on_demand(), key=lambda i: -i.ready)[: max(0, excess)]:
            serving = instance.ready <= market.now
            if not serving or ready > market.target:
                ready -= serving
                market.stop(instance)

    def _mark(self, pool: Pool, signal: PoolSignal, market: Market) -> None:
        now = CLOCK + timedelta(seconds=market.now)
        self._marks[pool] = next_mark(pool, signal, now, self._marks.get(pool))


def spare_for(target: int) -> int:
    """Spare instances of `spread + spare`: a quarter of the target."""
    return math.ceil(target / 4)
