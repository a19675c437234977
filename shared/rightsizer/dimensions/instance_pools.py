"""Today's type behind the new one, for the case that the new one has no capacity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Elsewhere
from rightsizer.domain.option import Effort, Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext

POOL_READERS = "change nothing; programs that read the variant's InstanceType must read its InstancePools"
POOL_REGIONS = frozenset(
    [
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
    ]
)


class InstancePools(Elsewhere):
    """Types in order of priority, in one variant."""

    kinds = (OptionKind.INSTANCE_POOLS,)
    deploys = kinds
    """Pools are a part of the configuration."""

    def describe(self, option: Option) -> str:
        """``use the instance pools ml.g6.xlarge then ml.g5.xlarge``."""
        return f"use the instance pools {' then '.join(option.target.pools) or option.target.instance_type}"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """A clone of the configuration."""
        from rightsizer.changes.plan import plan_new_config

        return plan_new_config(approved)

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Behind a chosen type; a test chooses none yet."""
        best = recommendation.chosen_option if not recommendation.offers_test else None
        now = (context.runs.name, context.variant.current_count)
        reason = pool_refusal(best, now, context.endpoint.ref.region, context.endpoint.is_plain)
        if best is None or reason is not None:
            why = reason or Reason(Code.NOT_APPLICABLE, "no new type is chosen")
            return [why]
        return [pool_option(best, now, context.usd_per_month)]


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
        test_hours=None,
        policy_changes=(),
        facts={
            "while the fallback serves": f"USD {now_usd:,.2f} per month, as today",
            "break-even": "from the first hour",
        },
        not_checked=(
            *best.not_checked,
            "whether AWS changes this endpoint to pools in place; routing to least outstanding requests may be needed",
        ),
    )
