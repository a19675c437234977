"""Another placement of the copies of inference components; a person orders it."""

from rightsizer.changes.dimension import Approved, Planned
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.component import OR_NONE, SPREAD, ComponentSight, rolled
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.plan import Plan, Step, StepKind
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.recommender.dimension import Restart


class ComponentPlacement(Dimension):
    """Copies spread over the instances, or packed on few of them."""

    kinds = (OptionKind.PLACEMENT,)
    back = "gives the components their old placement again"
    applies_to = frozenset({EndpointKind.INFERENCE_COMPONENTS})
    """Only such endpoints have components."""
    restart = Restart.NEW_COPIES

    def is_watched(self, kind: OptionKind) -> bool:
        """Each component has alarms of its own while its copies start again."""
        return True

    def describe(self, option: Option) -> str:
        """``pack the copies of 2 components on few instances``."""
        placed = dict(option.target.placement)
        what = count(len(placed), "component")
        packs = "BINPACK" in placed.values()
        return f"pack the copies of {what} on few instances" if packs else f"spread the copies of {what}"

    def plan(self, given: Approved) -> Planned | tuple[Reason, ...]:
        """Each component gets its whole specification back with another strategy, one after the other.

        A part of the copies at a time, with alarms of its own. Autoscaling of the copies stays registered.
        """
        from rightsizer.changes.guardrail import component_alarms

        change, limits = given.change, given.limits
        found = ((given.ground.components[name], strategy) for name, strategy in change.option.target.placement)
        moved = [(live, strategy) for live, strategy in found if live.strategies != {strategy}]
        if not moved:
            return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are placed as asked"),)
        watched = {
            live.name: component_alarms(change.id, live.name, limits.alarm_prefix, change.baseline) for live, _ in moved
        }
        names = tuple(step.subject for steps in watched.values() for step in steps)
        settle = tuple(
            _step(live, strategy, limits.bake_s, tuple(s.subject for s in watched[live.name]))
            for live, strategy in moved
        )
        plan = Plan(
            prepare=tuple(step for steps in watched.values() for step in steps),
            settle=settle,
            restore=tuple(_back(live, limits.bake_s) for live, _ in moved),
            tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
            after=given.before.variants,
            alarms=names,
            guardrail="each component in turn, a part of its copies at a time; "
            "the way back is the stored specification",
        )
        unsaid = [live.name for live, _ in moved if live.strategies == {""}]
        note = f"{', '.join(unsaid)} showed no placement; the way back names {SPREAD}" if unsaid else ""
        return Planned(given.before, plan, (note,) if note else ())


def _back(live: ComponentSight, bake_s: int) -> Step:
    """The step that brings the placement back; preflight saw to it that there is one for all specifications."""
    (old,) = live.strategies
    return _step(live, old or SPREAD, bake_s, (), "" if old else OR_NONE)


def _step(live: ComponentSight, strategy: str, bake_s: int, watched: tuple[str, ...], called: str = "") -> Step:
    params = {
        "InferenceComponentName": live.name,
        **live.placed(strategy),
        "DeploymentConfig": rolled(live.desired, bake_s, watched).config,
    }
    return Step(StepKind.UPDATE_COMPONENT, f"{live.name} to {called or strategy}", params)
