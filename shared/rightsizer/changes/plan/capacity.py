"""Fleet before and after a change, and plans that deploy nothing: counts, bounds and added target tracking."""

import math
from collections.abc import Sequence
from dataclasses import replace

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.target_tracking import tracking_steps
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import ConfigSight, EndpointSight
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import Plan, Step, StepKind, VariantCount
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason


def live_counts(endpoint: EndpointSight, config: ConfigSight) -> tuple[VariantCount, ...]:
    """Types from the configuration, counts and weights from what is live: autoscaling and people move them."""
    types = {v["VariantName"]: v.get("InstanceType", "") for v in config.body.get("ProductionVariants", [])}
    return tuple(
        VariantCount(v.name, types.get(v.name, ""), v.desired_count, v.desired_weight) for v in endpoint.variants
    )


def fleet_after(approved: Approved) -> tuple[VariantCount, ...]:
    """Fleet of each variant after the change."""
    return tuple(wanted_count(variant, approved.change, approved.inputs) for variant in approved.before.variants)


def wanted_count(variant: VariantCount, change: Change, inputs: PreflightInput) -> VariantCount:
    """Type and count that a variant shall run.

    An autoscaled fleet keeps the share of its size that is needed at this hour. Where nobody approved the change it has
    its maximum: the deployment takes autoscaling away, and no request may meet fewer than might have run. What restores
    an earlier fleet keeps the share.
    """
    other = next((one for one in change.option.target.others if one.name == variant.name), None)
    if other is not None:
        return VariantCount(variant.name, other.instance_type, other.instance_count, variant.weight)
    if variant.name != change.variant:
        return variant
    target, count = change.option.target, change.option.target.instance_count
    own = target_of_variant(inputs, variant.name)
    if own is not None:
        capacity = capacity_exchange(change, inputs)
        bounds = policies.retarget((own,), target, capacity)[0]
        needed = math.ceil(variant.count * capacity.new / capacity.old - 1e-9)
        decision = inputs.proposal.decision
        if decision is not None and decision.is_automatic and not change.option.restores:
            needed = bounds.maximum
        count = min(max(needed, bounds.minimum, 1), max(bounds.maximum, 1))
    return VariantCount(variant.name, target.instance_type, count, variant.weight)


def missing_autoscaling_reasons(change: Change, inputs: PreflightInput) -> tuple[Reason, ...]:
    """Why an option that grows with its load would not: it counts on autoscaling that the variant does not have.

    It was judged with instances that autoscaling adds, and no policy here is made up for it. The owner's schedule moves
    the bounds of another type as it moved those of today's. Sleeping and added target tracking bring their own
    policies; a restore of what served the load before waits for nothing.
    """
    target, own = change.option.target, target_of_variant(inputs, change.variant)
    scaled = [one.name for one in (*target.others,) if target_of_variant(inputs, one.name) is not None]
    if scaled or (target.others and own is not None):
        names = ", ".join(scaled or [change.variant])
        text = f"{names} of {change.ref.name} is autoscaled since this was decided, and such a variant is changed alone"
        return (Reason(Code.CHANGED_SINCE, text),)
    fixed = max(target.instance_count, *(target.hourly_counts or (0,)))
    moved = target.instance_type != inputs.proposal.recommendation.instance_type
    if own is not None and (own.policies or (moved and own.scheduled)):
        return ()
    if change.option.restores or change.option.kind is OptionKind.SCALE_TO_ZERO:
        return ()
    if (target.maximum or 0) <= fixed or target.metric:
        return ()
    text = f"this counts on autoscaling up to {target.maximum} instances, and variant {change.variant} of "
    text += f"{change.ref.name} is not autoscaled: it would stay at {fixed}"
    return (Reason(Code.CHANGED_SINCE, text),)


def target_of_variant(inputs: PreflightInput, variant: str) -> ScalableTarget | None:
    """The scalable target of the variant; None where it is not autoscaled."""
    return next((t for t in inputs.scaling if t.variant_name == variant), None)


def largest_new_count(change: Change, inputs: PreflightInput) -> int:
    """Instances of another type that autoscaling could ask for after the change; 0 where nothing new is asked for."""
    own, target = target_of_variant(inputs, change.variant), change.option.target
    if own is None or target.instance_type == inputs.proposal.recommendation.instance_type:
        return 0
    exchange = capacity_exchange(change, inputs)
    return policies.retarget((own,), target, exchange)[0].maximum


def capacity_exchange(change: Change, inputs: PreflightInput) -> policies.CapacityExchange:
    """The option serves with its count what the decision's fleet served with its own."""
    old = max(1, inputs.proposal.recommendation.instance_count)
    return policies.CapacityExchange(old, max(1, change.option.target.instance_count))


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
