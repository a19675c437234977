"""Other bounds of the owner's autoscaling, or target tracking for a fleet that has none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Addable
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class AutoscalingBounds(Addable):
    """The smallest minimum that carries the load, and a maximum for it."""

    kinds = (OptionKind.AUTOSCALING,)
    replays = True
    back = "registers the old bounds again"

    def describe(self, option: Option) -> str:
        """``scale between 1 and 4 instances``, with metric and target where a policy is added."""
        from rightsizer.autoscaling.target_tracking import target_text

        target = option.target
        bounds = f"scale between {target.minimum} and {count(target.maximum or 0, 'instance')}"
        if target.metric:
            return f"{bounds} by {target_text(target)}"
        return (
            bounds if target.target_value is None else f"{bounds}, with {target.target_value:g} as its policy's target"
        )

    def undo(self, option: Option) -> str:
        """Old bounds, or the end of autoscaling that was added."""
        if option.target.metric:
            return "removes the autoscaling and sets the old count"
        return self.back if option.target.target_value is None else "puts the old target into the policy again"

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Bounds or the target of the owner's policy; with a reason of its own for bursts that are too short."""
        from rightsizer.recommender.alternatives import policy_target_option
        from rightsizer.recommender.scaling_options import too_late_reason

        answers = list(super().offer(context, recommendation))
        bounds = any(isinstance(each, Option) for each in answers) or any(
            o.kind in self.kinds for o in recommendation.options
        )
        target = None if bounds else policy_target_option(context, recommendation)
        if target is not None:
            yield target
            return
        for answer in answers:
            dear = isinstance(answer, Reason) and answer.code is Code.NOT_CHEAPER
            yield (dear and not self.saves_nothing(context) and too_late_reason(context)) or answer

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The owner's target with other bounds, or a target with one policy for a variant that has none."""
        from rightsizer.changes.plan.capacity import plan_bounds, plan_tracking

        return plan_tracking(approved) if approved.change.option.target.metric else plan_bounds(approved)

    def saves_nothing(self, context: EvaluationContext) -> Reason | None:
        """Why autoscaling saves nothing: no minimum to lower, no policy to add, or a load that never changes."""
        from rightsizer.recommender.alternatives import even_hours_reason
        from rightsizer.recommender.scaling_options import no_tracking_reason

        targets = context.endpoint.scaling
        if not targets:
            return no_tracking_reason(context)
        kinds = {policy.get("PolicyType") for target in targets for policy in target.policies}
        if kinds != {"TargetTrackingScaling"} or not any(target.policies and target.minimum > 1 for target in targets):
            text = "no target-tracking policy has a minimum above one that could be lowered"
            return Reason(Code.NOT_APPLICABLE, text)
        return context.endpoint.scheduled_minimum or even_hours_reason(context)
