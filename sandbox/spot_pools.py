"""Spot pools of the simulated account: room, prices and placement scores, and EC2's answers about them.

Sources: EC2 API reference, DescribeSpotPriceHistory, GetSpotPlacementScores, DescribeInstances; EC2 User Guide,
spot-placement-score (limits). Zones have ids that differ from account to account: names cannot be derived from them.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.refusals import AwsRefusal
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.spot_groups import AutoScaling
    from sandbox.world import World

type Params = dict[str, Any]
type Key = tuple[str, str]
"""(instance type, zone)."""

PLENTY = 10**6
ELSEWHERE = "us-west-2"
"""A Region that is scored too where none is named."""
HISTORY = timedelta(days=90)


@dataclass(slots=True)
class Change:
    """A Spot price from a moment on."""

    at: datetime
    usd: float


@dataclass(slots=True)
class Pools:
    """What each pool has to give."""

    room: dict[Key, int] = field(default_factory=dict)
    """Instances that the pool can still start; absent means plenty."""
    prices: dict[Key, list[Change]] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    """Placement score by zone id."""
    score_requests: set[tuple[Any, ...]] = field(default_factory=set)
    score_limit: int = 10
    """New configurations that EC2 accepts in 24 h; identical ones are free."""

    def take(self, key: Key) -> bool:
        """Start one instance; False without capacity."""
        left = self.room.get(key, PLENTY)
        if left <= 0:
            return False
        self.room[key] = left - 1
        return True

    def price(self, instance_type: str, zone: str, at: datetime, usd: float) -> None:
        """Set the price from `at` on."""
        self.prices.setdefault((instance_type, zone), []).append(Change(at, usd))


class Ec2Spot:
    """EC2's operations about Spot and about instances of groups; moto answers the others."""

    def __init__(self, world: "World", pools: Pools, groups: "AutoScaling") -> None:
        self._world, self._pools, self._groups = world, pools, groups
        self.loose: dict[str, Params] = {}
        """Instances outside of every group, as DescribeInstances gives them."""

    def DescribeInstances(self, p: Params) -> Params:
        """Instances by id; an id that EC2 does not know is refused."""
        rows = []
        for instance_id in p.get("InstanceIds", []):
            row = self.loose.get(instance_id) or self._groups.described(instance_id)
            if row is None and on("DescribeInstances", "unknown"):
                text = f"The instance ID '{instance_id}' does not exist"
                raise AwsRefusal("InvalidInstanceID.NotFound", text)
            rows.append(row or {})
        return {"Reservations": [{"ReservationId": "r-0123456789abcdef0", "Instances": rows}]}

    def DescribeSpotPriceHistory(self, p: Params) -> Params:
        """Changes of the window, newest first, and the last one before it."""
        start = max(p.get("StartTime", self._world.clock.now), self._world.clock.now - HISTORY)
        end = p.get("EndTime", self._world.clock.now)
        zone = p.get("AvailabilityZone")
        rows = []
        for (kind, where), changes in sorted(self._pools.prices.items()):
            if kind not in p.get("InstanceTypes", [kind]) or (zone and where != zone):
                continue
            before = [change for change in changes if change.at <= start][-1:]
            for change in before + [change for change in changes if start < change.at <= end]:
                rows.append(
                    {
                        "InstanceType": kind,
                        "AvailabilityZone": where,
                        "ProductDescription": "Linux/UNIX",
                        "SpotPrice": f"{change.usd:.6f}",
                        "Timestamp": change.at,
                    }
                )
        return {"SpotPriceHistory": sorted(rows, key=lambda row: row["Timestamp"], reverse=True), "NextToken": ""}

    def GetSpotPlacementScores(self, p: Params) -> Params:
        """Scores by zone id for a set of types; too few types score low, too many new requests are refused."""
        regions = sorted(p.get("RegionNames") or [self._world.region, ELSEWHERE])
        zones = p.get("SingleAvailabilityZone", False)
        asked = (tuple(sorted(p.get("InstanceTypes", []))), p["TargetCapacity"], zones, tuple(regions))
        if asked not in self._pools.score_requests:
            full = len(self._pools.score_requests) >= self._pools.score_limit
            if full and on("GetSpotPlacementScores", "limit"):
                raise AwsRefusal("MaxConfigLimitExceeded", "You have reached the limit of configurations in 24 hours")
            self._pools.score_requests.add(asked)
        cap = 3 if len(asked[0]) < 3 else 10
        rows = [
            {"Region": self._world.region, "AvailabilityZoneId": zone, "Score": min(score, cap)}
            for zone, score in sorted(self._pools.scores.items())
            if self._world.region in regions
        ]
        if ELSEWHERE in regions:  # another Region always has more room than ours
            rows.append({"Region": ELSEWHERE, "AvailabilityZoneId": "usw2-az1", "Score": cap})
        return {"SpotPlacementScores": rows}
