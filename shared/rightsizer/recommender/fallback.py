"""Instance pools: the fallback of a downsize whose new type has no capacity.

Source: the SageMaker guide on heterogeneous endpoints (instance pools), with its list of Regions.
"""

from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.option import Effort, Option, OptionKind
from rightsizer.domain.reason import Code, Reason

POOL_READERS = "change nothing; programs that read the variant's InstanceType must read its InstancePools"
POOL_REGIONS = frozenset(
    {
        "us-east-1",
        "us-east-2",
        "us-west-2",
        "ca-central-1",
        "sa-east-1",
        "eu-west-1",
        "eu-west-2",
        "eu-central-1",
        "eu-central-2",
        "eu-north-1",
        "ap-south-1",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
    }
)


def pool_refusal(best: Option | None, now: tuple[str, int], region: str, plain: bool) -> Reason | None:
    """Why no instance pool is offered as the fallback of a downsize, or None."""
    if not plain:
        return Reason(Code.OTHER_KIND, "instance pools are offered for plain real-time endpoints only")
    if best is None or best.target.instance_type == now[0] or not best.in_place:
        return Reason(Code.NOT_APPLICABLE, "a pool secures a new type against missing capacity, and none is chosen")
    if best.target.instance_count != now[1] or best.target.hourly_counts is not None:
        return Reason(Code.NOT_APPLICABLE, f"{now[1]} instances of {now[0]} are no fallback for another count")
    if region not in POOL_REGIONS:
        return Reason(Code.NOT_APPLICABLE, f"instance pools are not offered in {region}")
    return None


def pool_option(best: Option, now: tuple[str, int], now_usd: Decimal) -> Option:
    """The chosen type first, today's type where the first has no capacity: the same saving while the first serves.

    The program takes this way by itself after the change to the first type ended for want of capacity.
    """
    pools = (best.target.instance_type, now[0])
    return replace(
        best,
        kind=OptionKind.INSTANCE_POOLS,
        target=replace(best.target, pools=pools),
        effort=Effort.LOW,
        client_change=POOL_READERS,
        notes=(f"{pools[0]} first; {pools[1]} only where that has no capacity",),
        facts={"while the fallback serves": f"USD {now_usd} per month, as today", "break-even": "from the first hour"},
        not_checked=(
            *best.not_checked,
            "whether AWS changes this endpoint to pools in place; routing to least outstanding requests may be needed",
        ),
    )
