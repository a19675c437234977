"""A simulated Spot market: instances start where a trace has room, are warned, are lost, and are billed."""

import heapq
import itertools
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from bench.spot_traces import Scenario
from rightsizer.domain.spot import Pool

BOOT_S = 300.0
NOTICE_S = 120.0
DAY = 86400.0
ON_DEMAND = 1.0
"""All prices are shares of the On-Demand price of one instance hour."""


class Prices:
    """Spot prices by pool and day: a base share of On-Demand, dearer by zone and drifting by day, drawn by seed."""

    def __init__(self, scenario: Scenario, base: float, seed: int) -> None:
        draw = random.Random(seed)
        self._table: dict[Pool, list[float]] = {}
        for pool in scenario.changes:
            level = base * draw.uniform(1.0, 1.4)
            days = []
            for _ in range(int(scenario.days) + 2):
                level = min(max(level * draw.uniform(0.97, 1.03), base), base * 1.5)
                days.append(min(level, ON_DEMAND))
            self._table[pool] = days

    def at(self, pool: Pool, second: float) -> float:
        """Price of the pool's hour at a second of the trace."""
        return self._table[pool][int(second // DAY)]

    def bill(self, pool: Pool | None, start: float, end: float) -> float:
        """Instance hours times price; `None` is On-Demand. By the second, boots included."""
        if pool is None:
            return ON_DEMAND * (end - start) / 3600
        total = 0.0
        while start < end:
            stop = min(end, (start // DAY + 1) * DAY)
            total += self.at(pool, start) * (stop - start) / 3600
            start = stop
        return total


@dataclass(eq=False, slots=True)
class Instance:
    """A simulated instance; `pool` None is On-Demand."""

    pool: Pool | None
    launched: float
    ready: float
    doomed: bool = False


class Policy(Protocol):
    """Decides what to start and to stop."""

    heeds_warnings: bool
    sees_openings: bool
    """Whether it is told the moment a pool opens (kind to rivals; nobody is in life)."""

    def act(self, market: "Market") -> float | None:
        """Start and stop instances; the second at which to be asked again, or None."""
        ...

    def interrupted(self, pool: Pool, market: "Market") -> None:
        """The pool takes instances back."""
        ...


@dataclass(slots=True)
class Outcome:
    """What a policy kept and paid."""

    kept_hours: float = 0.0
    wanted_hours: float = 0.0
    cost: float = 0.0
    interruptions: int = 0
    on_demand_hours: float = 0.0

    @property
    def kept(self) -> float:
        """Share of the wanted capacity that served."""
        return self.kept_hours / self.wanted_hours

    @property
    def cost_share(self) -> float:
        """Cost against the whole target On-Demand."""
        return self.cost / (self.wanted_hours * ON_DEMAND)

    @property
    def lost_minutes(self) -> float:
        """Instance minutes of capacity that were missing."""
        return (self.wanted_hours - self.kept_hours) * 60


@dataclass(slots=True)
class Market:
    """The state of one run."""

    scenario: Scenario
    prices: Prices
    target: int
    now: float = 0.0
    instances: list[Instance] = field(default_factory=list)
    room: dict[Pool, int] = field(default_factory=lambda: defaultdict(int))
    outcome: Outcome = field(default_factory=Outcome)
    _queue: list[tuple[float, int, str, Pool | None, int]] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)
    used_hours: dict[Pool, float] = field(default_factory=lambda: defaultdict(float))

    def spot(self, pool: Pool | None = None) -> list[Instance]:
        """Spot instances that are not being interrupted, of one pool or of all."""
        return [i for i in self.instances if i.pool is not None and not i.doomed and (pool is None or i.pool == pool)]

    def on_demand(self) -> list[Instance]:
        """On-Demand instances."""
        return [i for i in self.instances if i.pool is None]

    def launch(self, pool: Pool | None) -> bool:
        """Start one instance; False when the pool has no room."""
        if pool is not None:
            used = sum(1 for i in self.instances if i.pool == pool)
            if used >= self.room[pool]:
                return False
        self.instances.append(Instance(pool, self.now, self.now + BOOT_S))
        self._push(self.now + BOOT_S, "ready", pool)
        return True

    def stop(self, instance: Instance) -> None:
        """End an instance and pay for it."""
        self.instances.remove(instance)
        self.outcome.cost += self.prices.bill(instance.pool, instance.launched, self.now)
        if instance.pool is None:
            self.outcome.on_demand_hours += (self.now - instance.launched) / 3600

    def run(self, policy: Policy) -> Outcome:
        """Play the whole trace."""
        for pool, changes in self.scenario.changes.items():
            for at, room in changes:
                self._push(at, "room", pool, room)
                if at >= NOTICE_S:
                    self._push(at - NOTICE_S, "warn", pool, room)
        self._push(0.0, "wake", None)
        while self._queue and self._queue[0][0] < self.scenario.end:
            at = self._queue[0][0]
            self._advance(at)
            asked = False
            while self._queue and self._queue[0][0] == at:
                _, _, kind, where, room = heapq.heappop(self._queue)
                asked = self._happen(policy, kind, where, room) or asked
            if asked and (again := policy.act(self)) is not None:
                self._push(max(again, self.now + 1), "wake", None)
        self._advance(self.scenario.end)
        for instance in list(self.instances):
            self.stop(instance)
        return self.outcome

    def _push(self, at: float, kind: str, pool: Pool | None, room: int = 0) -> None:
        heapq.heappush(self._queue, (at, next(self._order), kind, pool, room))

    def _happen(self, policy: Policy, kind: str, pool: Pool | None, room: int) -> bool:
        """Let an event happen; whether the policy is asked what to do."""
        if pool is None or kind == "ready":
            return True
        if kind == "warn":
            self.room[pool] = min(self.room[pool], room)  # what is being taken back is not handed out again
            return self._doom(policy, pool, room) and policy.heeds_warnings
        opened = room > self.room[pool]
        self.room[pool] = room
        self._doom(policy, pool, room)
        lost = [i for i in self.instances if i.pool == pool and i.doomed]
        for instance in lost:
            self.stop(instance)
        return bool(lost) or (opened and policy.sees_openings)

    def _doom(self, policy: Policy, pool: Pool, room: int) -> bool:
        """Mark the newest instances beyond the room as going; whether there were any."""
        healthy = self.spot(pool)
        going = healthy[room:] if room < len(healthy) else []
        for instance in going:
            instance.doomed = True
        self.outcome.interruptions += len(going)
        if going:
            policy.interrupted(pool, self)
        return bool(going)

    def _advance(self, to: float) -> None:
        hours = (to - self.now) / 3600
        if hours <= 0:
            return
        serving = sum(1 for i in self.instances if i.ready <= self.now)
        self.outcome.kept_hours += min(serving, self.target) * hours
        self.outcome.wanted_hours += self.target * hours
        for pool in {i.pool for i in self.instances if i.pool is not None}:
            self.used_hours[pool] += hours
        self.now = to


def clairvoyant_hours(scenario: Scenario, prices: Prices, target: int, budget: float) -> float:
    """The most capacity hours that `budget` can buy for one who knows the future and boots in no time.

    An upper bound on every policy: at each moment the cheapest instances that can be had, cheapest moments first.
    """
    edges = {0.0, scenario.end, *(day * DAY for day in range(int(scenario.days) + 1))}
    edges |= {at for changes in scenario.changes.values() for at, _ in changes}
    moments = sorted(edge for edge in edges if edge <= scenario.end)
    cursor = dict.fromkeys(scenario.changes, 0)
    offers: dict[float, float] = defaultdict(float)
    for start, end in itertools.pairwise(moments):
        hours, left = (end - start) / 3600, target
        rooms = []
        for pool, changes in scenario.changes.items():
            while cursor[pool] < len(changes) and changes[cursor[pool]][0] <= start:
                cursor[pool] += 1
            room = changes[cursor[pool] - 1][1] if cursor[pool] else 0
            rooms.append((prices.at(pool, start), room))
        for price, room in sorted(rooms):
            taken = min(room, left)
            offers[price] += taken * hours
            left -= taken
        offers[ON_DEMAND] += left * hours
    bought = 0.0
    for price, hours in sorted(offers.items()):
        taken_hours = min(hours, budget / price)
        bought += taken_hours
        budget -= taken_hours * price
        if budget <= 0:
            break
    return bought
