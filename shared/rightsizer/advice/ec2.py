"""EC2 On-Demand prices as a market, for nodes of a cluster. Other Regions are derived from us-east-1."""

from decimal import Decimal
from functools import cache

from rightsizer import catalog
from rightsizer.advice.market import Market, known_types, snapshot
from rightsizer.domain.price import Price

HOME = "us-east-1"
"""The Region whose EC2 prices are in the catalogue."""


@cache
def ec2_market(region: str) -> Market:
    """Types with their EC2 price, by SageMaker's name of the same hardware.

    Elsewhere than in us-east-1 the price is derived: it differs as the SageMaker price of the type does. InputError for
    a Region that the snapshot does not cover.
    """
    here, home = snapshot(region), snapshot(HOME)
    prices: dict[str, Price] = {}
    for row in catalog.ec2_prices():
        there, base = here.prices.get(row.instance_type), home.prices.get(row.instance_type)
        if there is None or base is None:
            continue
        usd = (row.usd_per_hour * there.usd_per_hour / base.usd_per_hour).quantize(Decimal("0.0001"))
        basis = "ec2" if region == HOME else f"ec2, derived from {HOME}"
        prices[row.instance_type] = Price(row.instance_type, region, usd, "snapshot", basis, row.as_of, there.listed)
    return Market(region, known_types(), prices)
