"""Plans that deploy nothing: counts, autoscaling bounds and added target tracking of one variant."""

from collections.abc import Sequence
from dataclasses import replace

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.target_tracking import tracking_steps
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan.fleet import fleet_after
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import Plan, Step, StepKind, VariantCount
from rightsizer.domain.reason import Code, Reason


def plan_count(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """Counts move without a new configuration: nothing is deployed, nothing is cloned."""
    change, before, after = approved.change, approved.before, fleet_after(approved)
    changed = [v for v in after if v not in before.variants]
    if not changed:
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = {v.name: v for v in before.variants}
    plan = Plan(
        turn=capacity_step(change.ref.name, changed),
        back=capacity_step(change.ref.name, [old[v.name] for v in changed]),
        after=after,
        guardrail="counts only: no deployment, and the rollback is the same call",
    )
    return PlannedChange(before, plan)


def capacity_step(endpoint: str, variants: list[VariantCount]) -> Step:
    """The step that sets counts. One call changes the capacity of one variant, or the weights of several."""
    rows = [{"VariantName": v.name, "DesiredInstanceCount": v.count} for v in variants]
    counts = ",".join(f"{v.name}={v.count}" for v in variants)
    return Step(
        StepKind.SET_CAPACITY,
        f"{endpoint} to {counts}",
        {"EndpointName": endpoint, "DesiredWeightsAndCapacities": rows},
    )


def scaled(approved: Approved) -> list[ScalableTarget]:
    """The scalable targets of the judged variant."""
    return [t for t in approved.inputs.scaling if t.variant_name == approved.change.variant]


def plan_bounds(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """Bounds and targets of the autoscaling of the judged variant: no deployment, and the rollback is the same call."""
    change, inputs, before, mine = approved.change, approved.inputs, approved.before, scaled(approved)
    if not mine:
        text = f"variant {change.variant} of {change.ref.name} is not autoscaled any more"
        return (Reason(Code.CHANGED_SINCE, text),)
    same_size = policies.CapacityExchange(1, 1)
    new = policies.restore_steps(policies.retarget(mine, change.option.target, same_size), (), inputs.scaling)
    old = policies.restore_steps(mine, (), inputs.scaling)
    moved = tuple(step for step in new if step not in old)
    if not moved:
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} is autoscaled as asked already"),)
    keys = {step.key for step in moved}
    plan = Plan(
        settle=moved,
        restore=tuple(step for step in old if step.key in keys),
        after=before.variants,
        guardrail="autoscaling bounds only: no deployment, reversible at once",
    )
    return PlannedChange(before, plan)


def plan_tracking(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """A scalable target with one target-tracking policy for a variant that has none; the rollback removes both."""
    change, before, target = approved.change, approved.before, approved.change.option.target
    name, mine = change.ref.name, [v for v in before.variants if v.name == change.variant]
    if approved.inputs.scaling:
        text = f"{name} is autoscaled by now; another target cannot be registered, and its policies are its owner's"
        return (Reason(Code.AUTOSCALED, text),)
    if {v.instance_type for v in mine} != {target.instance_type}:
        runs = ", ".join(v.instance_type for v in mine) or "no instance type"
        return (Reason(Code.NOT_IN_PLACE, f"target tracking changes no type: {name} runs {runs}"),)
    most = target.maximum or 0
    if any(v.count > most for v in mine):
        text = f"{name} runs {mine[0].count} instances by now, and at most {most} were decided on"
        return (Reason(Code.CHANGED_SINCE, text),)
    steps, gone = tracking_steps(name, change.variant, target)
    plan = Plan(
        settle=steps,
        restore=(gone, capacity_step(name, mine)),
        after=before.variants,
        guardrail="target tracking: no deployment; the rollback removes it and sets the old count",
    )
    return PlannedChange(before, plan)


def in_place_of_hours(approved: Approved) -> PlannedChange:
    """One count in place of our counts by the hour, which would set theirs again within a day."""
    change, inputs, before, hours = approved.change, approved.inputs, approved.before, scaled(approved)
    count = change.option.target.instance_count
    after = tuple(replace(v, count=count) if v.name == change.variant else v for v in before.variants)
    changed = [v for v in after if v.name == change.variant]
    plan = Plan(
        settle=(*policies.removal_steps(hours), capacity_step(change.ref.name, changed)),
        restore=policies.restore_steps(hours, (), inputs.scaling),
        after=after,
        guardrail="a count in place of our schedule: no deployment; the rollback registers the schedule again",
    )
    return PlannedChange(before, plan)


def larger_hours(approved: Approved, counts: Sequence[int]) -> PlannedChange:
    """Larger counts by the hour in place of ours; the most of them run at once.

    A scheduled action acts at its hour alone, and users wait now. Where as many as the most run already, there is no
    count to move between taking one schedule away and registering another: that many stay, as one count.
    """
    change, inputs, before, hours = approved.change, approved.inputs, approved.before, scaled(approved)
    most = max(counts)
    mine = [v for v in before.variants if v.name == change.variant]
    if all(v.count == most for v in mine):
        return in_place_of_hours(approved)
    after = tuple(replace(v, count=most) if v.name == change.variant else v for v in before.variants)
    plan = Plan(
        clear=policies.removal_steps(hours),
        turn=capacity_step(change.ref.name, [v for v in after if v.name == change.variant]),
        settle=policies.hourly_count_steps(change.ref.name, change.variant, counts, change.id),
        back=capacity_step(change.ref.name, mine),
        restore=policies.restore_steps(hours, (), inputs.scaling),
        after=after,
        guardrail="larger counts in place of our schedule: no deployment; the rollback registers the old one again",
    )
    return PlannedChange(before, plan)
