"""Scale to zero while no request comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer, Restart

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class ScaleToZero(Dimension):
    """Carried out where a queue keeps the requests, and on inference components whose callers try again."""

    kinds = (OptionKind.SCALE_TO_ZERO,)
    does = "scale to zero when nobody calls"
    applies_to = frozenset({EndpointKind.ASYNC, EndpointKind.INFERENCE_COMPONENTS})
    """No other kind may have no instance (developer guide, endpoint-auto-scaling-zero-instances)."""
    restart = Restart.NEW_ENDPOINT
    competes = True

    def undo(self, option: Option) -> str:
        """In place the bounds, of components their copies, elsewhere the endpoint that was kept."""
        if self.is_deployed(option):
            return "deploys the old configuration again and puts back the old copies of its components"
        if option.in_place:
            return "puts back the old bounds and count"
        if not option.restart_needed:
            return "puts back the old least copies of its components"
        return "sends the callers back to this endpoint, as long as it is kept"

    def is_deployed(self, option: Option) -> bool:
        """Of components the minimum of instances stands in the configuration; a queue needs none."""
        return option.in_place and option.restart_needed

    def restart_of(self, option: Option) -> Restart:
        """Instances in place of instances where the configuration is another one."""
        return Restart.NEW_INSTANCES if self.is_deployed(option) else self.restart

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """No instance while nobody asks: the queue keeps what comes, or callers of components try again."""
        from rightsizer.autoscaling import policies
        from rightsizer.changes.plan.capacity import capacity_step
        from rightsizer.changes.plan.components import plan_component_sleep
        from rightsizer.domain.plan import Plan

        change, before = approved.change, approved.before
        kind = approved.inputs.proposal.recommendation.kind
        if kind is EndpointKind.INFERENCE_COMPONENTS:
            return plan_component_sleep(approved)
        if kind not in self.applies_to:
            text = f"an endpoint of kind {kind.value} has no queue: requests fail while it has no instance"
            return (Reason(Code.OTHER_KIND, text),)
        name, mine = change.ref.name, [v for v in before.variants if v.name == change.variant]
        own = next((t for t in approved.inputs.scaling if t.variant_name == change.variant), None)
        if not mine or (own is not None and own.minimum == 0):
            return (Reason(Code.CHANGED_SINCE, f"{name} scales to zero already"),)
        alarm = f"{approved.limits.alarm_prefix}wake-{name}"
        most = change.option.target.maximum or mine[0].count
        settle, restore = policies.scale_to_zero_steps(name, change.variant, own, most, alarm, change.id)
        plan = Plan(
            settle=settle,
            restore=restore if own is not None else (*restore, capacity_step(name, mine)),
            after=before.variants,
            guardrail="no instance while the queue is empty: no deployment; an alarm on the queue starts the first one",
        )
        return PlannedChange(before, plan)

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """One option, where the owner tolerates cold starts or nobody would have met one; or why not."""
        from rightsizer.recommender.scale_to_zero import scale_to_zero

        return [scale_to_zero(context)]
