"""Other bounds of the owner's autoscaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Addable
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason, count

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class AutoscalingBounds(Addable):
    """The smallest minimum that carries the load, and a maximum for it."""

    kinds = (OptionKind.AUTOSCALING,)
    replays = True
    back = "registers the old bounds again"

    def describe(self, option: Option) -> str:
        """``scale between 1 and 4 instances``."""
        return f"scale between {option.target.minimum} and {count(option.target.maximum or 0, 'instance')}"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The owner's target with other bounds."""
        from rightsizer.changes.plan.capacity import plan_bounds

        return plan_bounds(approved)

    def saves_nothing(self, context: EvaluationContext) -> Reason | None:
        """Only where a target-tracking policy has a minimum to lower, and the hours of the day differ."""
        from rightsizer.recommender.closed_dimensions import even_hours_reason

        targets = context.endpoint.scaling
        kinds = {policy.get("PolicyType") for target in targets for policy in target.policies}
        if kinds != {"TargetTrackingScaling"} or not any(target.policies and target.minimum > 1 for target in targets):
            text = "no target-tracking policy has a minimum above one that could be lowered"
            return Reason(Code.NOT_APPLICABLE, text)
        return even_hours_reason(context)
