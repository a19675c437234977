"""Another count for each hour of the day, or of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Addable
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import HOURS, WEEKDAYS, days_text, span_text, week_of

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Schedule(Addable):
    """24 counts in UTC, of all days or of each class of days, carried out as scheduled actions."""

    kinds = (OptionKind.SCHEDULE,)
    replays = True
    back = "removes the schedule and sets the old count"

    def describe(self, option: Option) -> str:
        """``run 1 to 3 instances of ml.g5.xlarge by the hour of the day``, or of the week by classes."""
        week, classes = option.target.week_counts, option.target.day_counts
        noun = "instance" if max(week) == 1 else "instances"
        runs = f"run {span_text(week)} {noun} of {option.target.instance_type} by the hour of the"
        if not classes:
            return f"{runs} day"
        each = (f"{days_text(counts.weekdays)} {span_text(counts.counts)}" for counts in classes)
        return f"{runs} week ({', '.join(each)})"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """Counts by the hour in UTC, of the day or of the week, set without a deployment."""
        from rightsizer.autoscaling import policies
        from rightsizer.changes.plan.capacity import capacity_step, larger_hours
        from rightsizer.domain.plan import Plan, Step, StepKind

        change, before, target = approved.change, approved.before, approved.change.option.target
        name, wanted, counts = change.ref.name, target.instance_type, target.hourly_counts or ()
        if target.day_counts:
            counts = week_of(target.day_counts) or ()
        if len(counts) not in (HOURS, HOURS * len(WEEKDAYS)):
            wants = "24 counts for each day of the week" if target.day_counts else "24 hourly counts"
            return (Reason(Code.NOT_IN_PLACE, f"a schedule needs {wants}, got {len(counts)}"),)
        runs = {v.instance_type for v in before.variants}
        if runs != {wanted}:
            text = f"a schedule changes no type: {name} runs {', '.join(sorted(runs))}, not {wanted}"
            return (Reason(Code.NOT_IN_PLACE, text),)
        scaling = approved.inputs.scaling
        if scaling and change.option.restores and all(map(policies.has_only_hourly_counts, scaling)):
            return larger_hours(approved, counts)
        if scaling:
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
        """Why a schedule saves nothing: autoscaling sets the count, or the hours of the day are alike."""
        from rightsizer.recommender.alternatives import even_hours_reason

        if context.endpoint.scaling:
            return Reason(Code.AUTOSCALED, "counts by the hour would fight with autoscaling")
        return even_hours_reason(context)
