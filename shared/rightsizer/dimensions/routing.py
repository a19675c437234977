"""Another way to choose the instance for a request, and the fewer instances that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Addable
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.domain.reason import Code, Reason

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Routing(Addable):
    """Requests to the instance with the fewest of them; a part of the configuration."""

    kinds = (OptionKind.ROUTING,)
    replays = True
    deploys = kinds
    """Another routing strategy is another configuration."""

    def describe(self, option: Option) -> str:
        """``run on 2 x ml.g5.xlarge, routed by LEAST_OUTSTANDING_REQUESTS``."""
        return f"run on {fleet(option.target)}, routed by {option.target.routing or LEAST}"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """A clone of the configuration."""
        from rightsizer.changes.plan import plan_new_config

        return plan_new_config(approved)

    def saves_nothing(self, context: EvaluationContext) -> Reason | None:
        """Why other routing saves nothing: autoscaling sets the count, or requests are not routed at random."""
        if context.endpoint.scaling:
            return Reason(Code.AUTOSCALED, "fewer instances behind another routing, but autoscaling sets the count")
        if context.is_random_routing:
            return None
        routing = context.variant.routing
        done = "requests go to the least busy instance already"
        return Reason(
            Code.NOT_APPLICABLE, done if routing == LEAST else f"its owner chose the routing strategy {routing}"
        )
