"""Plans that deploy nothing: counts, autoscaling bounds, counts by the hour, placement of components.

For another placement each inference component gets its whole specification back with another strategy: one after the
other, a part of the copies at a time, with alarms of its own. Autoscaling of the copies stays registered.
"""

from dataclasses import replace

from rightsizer.autoscaling import policies
from rightsizer.changes import guardrail
from rightsizer.changes.plan.fleet import Planned
from rightsizer.domain import component
from rightsizer.domain.change import Change
from rightsizer.domain.component import OR_NONE, SPREAD, ComponentSight
from rightsizer.domain.endpoint import EndpointKind, ScalableTarget
from rightsizer.domain.live_state import MOVING
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import Before, Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def count_only(change: Change, before: Before, after: tuple[VariantCount, ...]) -> Planned | tuple[Reason, ...]:
    """Counts move without a new configuration: nothing is deployed, nothing is cloned."""
    changed = [v for v in after if v not in before.variants]
    if not changed:
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = {v.name: v for v in before.variants}
    plan = Plan(
        turn=capacity_step(change.ref.name, changed),
        back=capacity_step(change.ref.name, [old[v.name] for v in changed]),
        after=after,
        guardrail="counts only: no deployment, and the way back is the same call",
    )
    return Planned(before, plan)


def capacity_step(endpoint: str, variants: list[VariantCount]) -> Step:
    """The step that sets counts. One call changes the capacity of one variant, or the weights of several."""
    rows = [{"VariantName": v.name, "DesiredInstanceCount": v.count} for v in variants]
    counts = ",".join(f"{v.name}={v.count}" for v in variants)
    return Step(
        StepKind.SET_CAPACITY,
        f"{endpoint} to {counts}",
        {"EndpointName": endpoint, "DesiredWeightsAndCapacities": rows},
    )


def copies_only(change: Change, ground: Ground, before: Before) -> Planned | tuple[Reason, ...]:
    """Copies of inference components: no deployment, and the way back is the same call."""
    wanted = change.option.target.copies
    autoscaled = {t.component_name for t in ground.scaling}
    held = sorted({name for name, _ in wanted} & autoscaled)
    if held:
        text = f"component {held[0]} is autoscaled, which would undo another number of copies; change its bounds"
        return (Reason(Code.AUTOSCALED, text),)
    moved = [(name, count) for name, count in wanted if ground.copies.get(name) != count]
    if not moved or any(ground.copies.get(name, MOVING) == MOVING for name, _ in moved):
        return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are as asked, or being changed"),)
    plan = Plan(
        settle=tuple(_copies(name, count) for name, count in moved),
        restore=tuple(_copies(name, ground.copies[name]) for name, _ in moved),
        after=before.variants,
        guardrail="copies of components only: no deployment, and the way back is the same call",
    )
    return Planned(before, plan)


def _copies(component: str, count: int) -> Step:
    params = {"InferenceComponentName": component, "DesiredRuntimeConfig": {"CopyCount": count}}
    return Step(StepKind.SET_COPIES, component, params)


def bounds_only(change: Change, ground: Ground, before: Before) -> Planned | tuple[Reason, ...]:
    """Bounds and targets of the autoscaling of the judged variant: no deployment, and the way back is the same call."""
    mine = [t for t in ground.scaling if t.variant_name == change.variant]
    if not mine:
        text = f"variant {change.variant} of {change.ref.name} is not autoscaled any more"
        return (Reason(Code.CHANGED_SINCE, text),)
    if change.option.kind is OptionKind.INSTANCE_COUNT and all(policies.hourly_alone(t) for t in mine):
        return _in_place_of_hours(change, ground, before, mine)
    same_size = policies.Capacity(1, 1)
    new = policies.rebuild(policies.retarget(mine, change.option.target, same_size), (), ground.scaling)
    old = policies.rebuild(mine, (), ground.scaling)
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
    return Planned(before, plan)


def _in_place_of_hours(
    change: Change, ground: Ground, before: Before, hours: list[ScalableTarget]
) -> Planned | tuple[Reason, ...]:
    """One count in place of our counts by the hour, which would set theirs again within a day."""
    count = change.option.target.instance_count
    after = tuple(replace(v, count=count) if v.name == change.variant else v for v in before.variants)
    changed = [v for v in after if v.name == change.variant]
    plan = Plan(
        settle=(*policies.clear(hours), capacity_step(change.ref.name, changed)),
        restore=policies.rebuild(hours, (), ground.scaling),
        after=after,
        guardrail="a count in place of our schedule: no deployment; the way back registers the schedule again",
    )
    return Planned(before, plan)


def to_zero(change: Change, ground: Ground, before: Before, limits: ChangeLimits) -> Planned | tuple[Reason, ...]:
    """No instance while nobody asks: an asynchronous endpoint alone, whose queue keeps what comes meanwhile."""
    kind = ground.proposal.recommendation.kind
    if kind is not EndpointKind.ASYNC:
        text = f"an endpoint of kind {kind.value} has no queue: requests fail while it has no instance"
        return (Reason(Code.OTHER_KIND, text),)
    name, mine = change.ref.name, [v for v in before.variants if v.name == change.variant]
    own = next((t for t in ground.scaling if t.variant_name == change.variant), None)
    if not mine or (own is not None and own.minimum == 0):
        return (Reason(Code.CHANGED_SINCE, f"{name} scales to zero already"),)
    alarm = f"{limits.alarm_prefix}wake-{name}"
    most = change.option.target.maximum or mine[0].count
    settle, restore = policies.to_zero(name, change.variant, own, most, alarm, change.id)
    plan = Plan(
        settle=settle,
        restore=restore if own is not None else (*restore, capacity_step(name, mine)),
        after=before.variants,
        guardrail="no instance while the queue is empty: no deployment; an alarm on the queue starts the first one",
    )
    return Planned(before, plan)


def by_the_hour(change: Change, ground: Ground, before: Before) -> Planned | tuple[Reason, ...]:
    """The plan of a schedule: 24 hourly counts in UTC, set without a deployment; or why there is none."""
    counts = change.option.target.hourly_counts or ()
    if len(counts) != 24:
        return (Reason(Code.NOT_IN_PLACE, f"a schedule needs 24 hourly counts, got {len(counts)}"),)
    wanted, runs = change.option.target.instance_type, {v.instance_type for v in before.variants}
    if runs != {wanted}:
        text = f"a schedule changes no type: {change.ref.name} runs {', '.join(sorted(runs))}, not {wanted}"
        return (Reason(Code.NOT_IN_PLACE, text),)
    if ground.scaling:
        return (Reason(Code.AUTOSCALED, f"{change.ref.name} is autoscaled; a schedule would fight with its policies"),)
    steps = policies.by_the_hour(change.ref.name, change.variant, counts, change.id)
    who = {k: steps[0].params[k] for k in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
    mine = [v for v in before.variants if v.name == change.variant]
    plan = Plan(
        settle=steps,
        restore=(Step(StepKind.DEREGISTER_TARGET, steps[0].subject, who), capacity_step(change.ref.name, mine)),
        after=before.variants,
        guardrail="scheduled counts: no deployment; the way back removes the schedule and sets the old count",
    )
    return Planned(before, plan)


def placement_only(
    change: Change, ground: Ground, before: Before, limits: ChangeLimits
) -> Planned | tuple[Reason, ...]:
    """The plan, or why there is none. The ground has passed preflight."""
    found = ((ground.components[name], strategy) for name, strategy in change.option.target.placement)
    moved = [(live, strategy) for live, strategy in found if live.strategies != {strategy}]
    if not moved:
        return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are placed as asked"),)
    watched = {
        live.name: guardrail.component_alarms(change.id, live.name, limits.alarm_prefix, change.baseline)
        for live, _ in moved
    }
    names = tuple(step.subject for steps in watched.values() for step in steps)
    settle = tuple(
        _step(live, strategy, limits.bake_s, tuple(s.subject for s in watched[live.name])) for live, strategy in moved
    )
    plan = Plan(
        prepare=tuple(step for steps in watched.values() for step in steps),
        settle=settle,
        restore=tuple(_back(live, limits.bake_s) for live, _ in moved),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        after=before.variants,
        alarms=names,
        guardrail="each component in turn, a part of its copies at a time; the way back is the stored specification",
    )
    unsaid = [live.name for live, _ in moved if live.strategies == {""}]
    note = f"{', '.join(unsaid)} showed no placement; the way back names {SPREAD}" if unsaid else ""
    return Planned(before, plan, (note,) if note else ())


def _back(live: ComponentSight, bake_s: int) -> Step:
    """The step that brings the placement back; preflight saw to it that there is one for all specifications."""
    (old,) = live.strategies
    return _step(live, old or SPREAD, bake_s, (), "" if old else OR_NONE)


def _step(live: ComponentSight, strategy: str, bake_s: int, watched: tuple[str, ...], called: str = "") -> Step:
    params = {
        "InferenceComponentName": live.name,
        **live.placed(strategy),
        "DeploymentConfig": component.rolled(live.desired, bake_s, watched).config,
    }
    return Step(StepKind.UPDATE_COMPONENT, f"{live.name} to {called or strategy}", params)
