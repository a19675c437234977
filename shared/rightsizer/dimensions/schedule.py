"""Another count for each hour of the day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Addable
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason, count

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Schedule(Addable):
    """24 counts in UTC, carried out as scheduled actions."""

    kinds = (OptionKind.SCHEDULE,)
    replays = True
    back = "removes the schedule and sets the old count"

    def describe(self, option: Option) -> str:
        """``run 1 to 3 instances of ml.g5.xlarge by the hour of the day``."""
        hours = option.target.hourly_counts or (option.target.instance_count,)
        most = count(max(hours), "instance")
        return f"run {min(hours)} to {most} of {option.target.instance_type} by the hour of the day"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """24 hourly counts in UTC, set without a deployment."""
        from rightsizer.autoscaling import policies
        from rightsizer.changes.plan.capacity import capacity_step
        from rightsizer.domain.plan import Plan, Step, StepKind

        change, before, counts = approved.change, approved.before, approved.change.option.target.hourly_counts or ()
        name, wanted = change.ref.name, change.option.target.instance_type
        if len(counts) != 24:
            return (Reason(Code.NOT_IN_PLACE, f"a schedule needs 24 hourly counts, got {len(counts)}"),)
        runs = {v.instance_type for v in before.variants}
        if runs != {wanted}:
            text = f"a schedule changes no type: {name} runs {', '.join(sorted(runs))}, not {wanted}"
            return (Reason(Code.NOT_IN_PLACE, text),)
        if approved.inputs.scaling:
            return (Reason(Code.AUTOSCALED, f"{name} is autoscaled; a schedule would fight with its policies"),)
        steps = policies.hourly_count_steps(name, change.variant, counts, change.id)
        who = {k: steps[0].params[k] for k in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
        mine = [v for v in before.variants if v.name == change.variant]
        plan = Plan(
            settle=steps,
            restore=(Step(StepKind.DEREGISTER_TARGET, steps[0].subject, who), capacity_step(name, mine)),
            after=before.variants,
            guardrail="scheduled counts: no deployment; the rollback removes the schedule and sets the old count",
        )
        return PlannedChange(before, plan)

    def saves_nothing(self, context: EvaluationContext) -> Reason | None:
        """Only without autoscaling, where the hours of the day differ."""
        from rightsizer.recommender.closed_dimensions import even_hours_reason

        if context.endpoint.scaling:
            return Reason(Code.AUTOSCALED, "counts by the hour would fight with autoscaling")
        return even_hours_reason(context)
