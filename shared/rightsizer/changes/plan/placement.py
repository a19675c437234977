"""Plan that places inference components anew: each gets its whole specification back with another strategy.

One component after the other, a part of its copies at a time, with alarms of its own. Autoscaling of the copies stays
registered.
"""

from rightsizer.changes import guardrail
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.domain.component import OR_NONE, SPREAD, ComponentSight, rolling_update
from rightsizer.domain.plan import Plan, Step, StepKind
from rightsizer.domain.reason import Code, Reason


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
