"""Facts of EC2: Spot price history, placement scores (SpotMarket), and offerings by subnet.

Sources: EC2 API reference, DescribeSpotPriceHistory (90 days, and the last change before StartTime),
GetSpotPlacementScores (a limited number of new configurations in 24 hours; identical requests are free).
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.table import Row, Table, document, epoch, read_if_readable, whole_number
from rightsizer.domain.spot import Pool
from rightsizer.errors import RightsizerError
from rightsizer.ports.spot import SpotPrice
from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_ec2 import EC2Client

PRODUCT = "Linux/UNIX"
LEAST_TYPES = 3
"""With fewer types the score is always low (EC2 User Guide, Spot placement score)."""
SCORE_DAYS = 1


class Ec2SpotMarket:
    """Keeps the promises of `ports.spot.SpotMarket`; scores are kept in the table for a day."""

    def __init__(self, ec2: "EC2Client", region: str, table: Table, clock: Callable[[], datetime]) -> None:
        self._ec2, self._region, self._table, self._clock = ec2, region, table, clock

    def prices(self, types: Sequence[str], zones: Sequence[str], start: datetime, end: datetime) -> list[SpotPrice]:
        """Price of each pool of these types and zones that EC2 has a history for."""
        found: dict[Pool, list[tuple[datetime, float]]] = defaultdict(list)
        pages: Any = self._ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=list(types),  # type: ignore[arg-type]
            ProductDescriptions=[PRODUCT],
            StartTime=start,
            EndTime=end,
        )
        with translate_read_errors("ec2:DescribeSpotPriceHistory", "reading Spot prices"):
            for page in pages:
                for row in page["SpotPriceHistory"]:
                    if row["AvailabilityZone"] in zones:
                        pool = Pool(row["InstanceType"], row["AvailabilityZone"])
                        found[pool].append((row["Timestamp"], float(row["SpotPrice"])))
        return [_price(pool, sorted(changes), start, end) for pool, changes in sorted(found.items())]

    def score(self, types: Sequence[str], target: int) -> Mapping[str, int]:
        """Placement score 1 to 10 by zone id of this Region; empty when EC2 gives none.

        Without RegionNames EC2 scores every Region (API GetSpotPlacementScores).
        """
        if len(set(types)) < LEAST_TYPES:
            return {}
        request = {
            "InstanceTypes": sorted(set(types)),
            "TargetCapacity": target,
            "SingleAvailabilityZone": True,
            "RegionNames": [self._region],
        }
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:32]
        now = self._clock()
        held = read_if_readable(self._table.get(f"SCORE#{key}", "SCORE"), _kept_scores)
        if held is not None and held[0] > epoch(now):
            return held[1]
        try:
            with translate_read_errors("ec2:GetSpotPlacementScores", "asking for Spot placement scores"):
                rows: Any = self._ec2.get_spot_placement_scores(**request)  # type: ignore[arg-type]
        except RightsizerError as error:
            logger.warning("no placement score; options go without", error=str(error))
            return {}
        scores = {row["AvailabilityZoneId"]: int(row["Score"]) for row in rows["SpotPlacementScores"]}
        doc = json.dumps(scores)
        self._table.put({"pk": f"SCORE#{key}", "sk": "SCORE", "expires": epoch(now, SCORE_DAYS), "doc": doc})
        return scores


def _kept_scores(row: Row) -> tuple[int, Mapping[str, int]]:
    """When kept scores end, and the scores."""
    return whole_number(row, "expires"), {zone: int(score) for zone, score in document(row).items()}


def _price(pool: Pool, changes: Sequence[tuple[datetime, float]], start: datetime, end: datetime) -> SpotPrice:
    """The mean over the window, weighted by how long each price held."""
    total = seconds = 0.0
    ends = [at for at, _ in changes[1:]] + [end]
    for (at, usd), until in zip(changes, ends, strict=True):
        held = (until - max(at, start)).total_seconds()
        if held > 0:
            total, seconds = total + usd * held, seconds + held
    last_at, last = changes[-1]
    return SpotPrice(pool, total / seconds if seconds else last, last_at)


def is_sold(ec2: "EC2Client", instance_type: str, subnets: Sequence[str]) -> bool | None:
    """EC2's offerings are a hint, not SageMaker's word; None when the role may not ask."""
    try:
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [instance_type.removeprefix("ml.")]}],
        )
        zones = {o.get("Location") for page in pages for o in page["InstanceTypeOfferings"]}
        if not subnets:
            return bool(zones)
        wanted = {s.get("AvailabilityZone") for s in ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]}
    except (ClientError, BotoCoreError):
        return None  # not knowing is an answer here: UpdateEndpoint itself refuses what is not sold
    return bool(zones & wanted)
