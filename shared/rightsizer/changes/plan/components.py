"""Plans for inference components: another placement, or zero copies while nobody calls."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rightsizer.autoscaling import policies
from rightsizer.changes import clone, guardrail
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan import alarm_steps, choose_plan_guardrail, plan_keeping_counts
from rightsizer.domain.component import OR_NONE, SPREAD, ComponentSight, copies_refusal, rolling_update
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import Plan, Step, StepKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.tags import is_yes
from rightsizer.recommender.queued_sleep import COLD_TAG


def placement_only(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """The plan, or why there is none."""
    change, inputs, before, limits = approved.change, approved.inputs, approved.before, approved.limits
    found = ((inputs.components[name], strategy) for name, strategy in change.option.target.placement)
    moved = [(live, strategy) for live, strategy in found if live.strategies != {strategy}]
    if not moved:
        return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are placed as asked"),)
    watched = {
        live.name: guardrail.component_alarms(change.id, live.name, limits.alarm_prefix, change.baseline)
        for live, _ in moved
    }
    names = tuple(step.subject for steps in watched.values() for step in steps)
    settle = tuple(
        _placement_step(live, strategy, limits.bake_s, tuple(s.subject for s in watched[live.name]))
        for live, strategy in moved
    )
    plan = Plan(
        prepare=tuple(step for steps in watched.values() for step in steps),
        settle=settle,
        restore=tuple(_placement_rollback_step(live, limits.bake_s) for live, _ in moved),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        after=before.variants,
        alarms=names,
        guardrail="each component in turn, a part of its copies at a time; the rollback is the stored specification",
    )
    unsaid = [live.name for live, _ in moved if live.strategies == {""}]
    note = f"{', '.join(unsaid)} showed no placement; the rollback names {SPREAD}" if unsaid else ""
    return PlannedChange(before, plan, (note,) if note else ())


def _placement_rollback_step(live: ComponentSight, bake_s: int) -> Step:
    """The step that brings the placement back; preflight saw to it that there is one for all specifications."""
    (old,) = live.strategies
    return _placement_step(live, old or SPREAD, bake_s, (), "" if old else OR_NONE)


def _placement_step(
    live: ComponentSight, strategy: str, bake_s: int, watched: tuple[str, ...], called: str = ""
) -> Step:
    params = {
        "InferenceComponentName": live.name,
        **live.placement_request(strategy),
        "DeploymentConfig": rolling_update(live.desired, bake_s, watched).config,
    }
    return Step(StepKind.UPDATE_COMPONENT, f"{live.name} to {called or strategy}", params)


MOST_COMPONENTS = 10
"""Components that one change lets sleep: each has an alarm and a policy of its own."""
SAID = "no instance while nobody calls: alarms on requests without capacity start the first copy of each component"


def plan_component_sleep(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """A deployment of the minimum of 0 instances and then the wake-up of each component; or why there is none."""
    change, inputs, config, before = approved.change, approved.inputs, approved.config, approved.before
    own = {t.component_name: t for t in inputs.scaling if t.component_name is not None}
    refused = tuple(_refusals(approved, own))
    if refused:
        return refused
    settle, restore = _autoscaling(approved, own)
    tags, stopped = {clone.CHANGE_TAG: change.id}, inputs.endpoint.capture_stopped
    wanted = clone.Wanted(clone.written_counts(config))
    made = clone.clone_config(config, wanted, approved.catalogue, tags, stopped)
    if not isinstance(made, clone.ClonedConfig):
        return made
    if all(_least(v) == 0 for v in config.body["ProductionVariants"]):
        plan = Plan(settle=settle, restore=restore, after=before.variants, guardrail=f"{SAID}; nothing is deployed")
        return PlannedChange(before, plan)
    new = clone.rename_clone(made, config.name, _from_zero(made.body))
    watched = alarm_steps(change, new.name, before.variants, approved.limits)
    names = tuple(step.subject for step in watched)
    guard = choose_plan_guardrail(change, inputs, before, before.variants, names, approved.limits)
    plan = plan_keeping_counts(approved, new, watched, guard)
    plan = replace(plan, settle=settle, restore=restore, guardrail=f"{plan.guardrail}; {SAID}")
    return PlannedChange(before, plan, new.notes)


def _refusals(approved: Approved, own: Mapping[str, ScalableTarget]) -> Iterator[Reason]:
    name, components = approved.change.ref.name, approved.inputs.components
    if not is_yes(approved.inputs.tags.get(COLD_TAG, "")):
        text = f"the tag {COLD_TAG}=true is gone, and calls fail while the first instance starts"
        yield Reason(Code.NOT_OPTED_IN, text)
    if len(approved.before.variants) != 1:
        yield Reason(Code.OTHER_KIND, f"{name} has several variants, and each would have to be woken by its own calls")
    if not components:
        yield Reason(Code.NOT_APPLICABLE, f"{name} has no inference component that could sleep")
    if len(components) > MOST_COMPONENTS:
        yield Reason(
            Code.NOT_APPLICABLE, f"{name} has {len(components)} components, and one change covers {MOST_COMPONENTS}"
        )
    if any((v.get("ManagedInstanceScaling") or {}).get("Status") != "ENABLED" for v in _variants(approved)):
        text = "has no managed instance scaling that is enabled, without which no instance leaves with the copies"
        yield Reason(Code.NOT_APPLICABLE, f"the configuration of {name} {text}")
    for component, sight in sorted(components.items()):
        if (found := _component_refusal(approved, sight, own.get(component))) is not None:
            yield found
    zero = [component for component in components if component in own and own[component].minimum == 0]
    if components and len(zero) == len(components) and all(_least(v) == 0 for v in _variants(approved)):
        yield Reason(Code.CHANGED_SINCE, f"{name} scales to zero already")


def _component_refusal(approved: Approved, sight: ComponentSight, own: ScalableTarget | None) -> Reason | None:
    if sight.base_component:
        text = "and whether its calls wake that one is not known"
        return Reason(Code.NOT_APPLICABLE, f"component {sight.name} is an adapter of {sight.base_component}, {text}")
    if sight.is_moving:
        return Reason(Code.CHANGED_SINCE, f"component {sight.name} is being changed ({sight.status})")
    if own is not None and any(own.suspended.values()):
        return Reason(
            Code.AUTOSCALED, f"autoscaling of component {sight.name} is suspended, so that nothing would wake it"
        )
    return copies_refusal(sight, may_be_untagged=own is not None or approved.limits.change_untagged)


def _autoscaling(approved: Approved, own: Mapping[str, ScalableTarget]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    settle: list[Step] = []
    restore: list[Step] = []
    for name, sight in sorted(approved.inputs.components.items()):
        alarm, target = f"{approved.limits.alarm_prefix}wake-{name}", own.get(name)
        forward, back = policies.component_sleep_steps(name, target, sight.desired, alarm, approved.change.id)
        settle += forward
        restore += back
        if target is None:
            copies = {"InferenceComponentName": name, "DesiredRuntimeConfig": {"CopyCount": sight.desired}}
            restore.append(Step(StepKind.SET_COPIES, name, copies))
    return tuple(settle), tuple(restore)


def _variants(approved: Approved) -> list[Mapping[str, Any]]:
    return list(approved.config.body.get("ProductionVariants") or [])


def _least(variant: Mapping[str, Any]) -> int | None:
    found: int | None = (variant.get("ManagedInstanceScaling") or {}).get("MinInstanceCount")
    return found


def _from_zero(body: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with a minimum of 0 instances, and nothing else changed."""
    rows = [
        {**v, "ManagedInstanceScaling": {**v["ManagedInstanceScaling"], "MinInstanceCount": 0}}
        for v in body["ProductionVariants"]
    ]
    return {**body, "ProductionVariants": rows}
