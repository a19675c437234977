"""Other copies of a component, or bounds of its autoscaling, that its owner set while a change of them is open.

What AWS is asked for is the owner's where it is neither the figure of before nor the one that the change asks for. A
figure of the owner's is never written over: the way forward ends, the way back leaves it, and both say so.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rightsizer.domain.change import Change, Course
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import component_resource_id
from rightsizer.domain.live_state import LiveState
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.reason import count

SHOWN = timedelta(minutes=3)
"""After so long an accepted number of copies is shown (inferred)."""
FAILED = "Failed"
"""Status of a component for whose copies nothing had room."""


def owners_figures(change: Change, live: LiveState) -> dict[str, str]:
    """Figures that the owner set, as sentences, by the component. Empty for changes that set no copies."""
    if change.option.kind is not OptionKind.COPIES:
        return {}
    return dict((*_copies(change, live), *_bounds(change, live)))


def _copies(change: Change, live: LiveState) -> Iterator[tuple[str, str]]:
    asked = {s.subject: _number(s) for s in change.plan.settle if s.kind is StepKind.SET_COPIES}
    for step in change.plan.restore:
        name = step.subject
        if step.kind is not StepKind.SET_COPIES or name not in asked:
            continue
        seen = live.components.get(name)
        if seen is None:
            yield name, f"somebody deleted component {name}"
        elif seen.desired not in (asked[name], _number(step)) and not _found_no_room(change, seen, step):
            text = f"somebody set {count(seen.desired, 'copy', 'copies')} of component {name} since"
            yield name, f"{text} ({_number(step)} before, {asked[name]} asked), and that is left"


def _found_no_room(change: Change, seen: ComponentSight, step: Step) -> bool:
    """Whether AWS may show fewer copies than the way back asked for, since nothing had room: nobody's wish."""
    return change.course is not Course.FORWARD and seen.status == FAILED and seen.desired < _number(step)


def _bounds(change: Change, live: LiveState) -> Iterator[tuple[str, str]]:
    asked = {s.subject: s for s in change.plan.settle if s.kind is StepKind.REGISTER_TARGET}
    for name, _ in change.option.target.least_copies:
        resource = component_resource_id(name)
        steps = [s for s in change.plan.restore if s.subject == resource and s.kind is StepKind.REGISTER_TARGET]
        for step in steps:
            if (target := live.target(step)) is None:
                yield name, f"somebody ended the autoscaling of component {name}"
            elif not any(live.has_effect_of(one) for one in (step, asked[resource])):
                text = f"somebody changed the autoscaling of component {name} to {target.minimum} to {target.maximum}"
                yield name, f"{text} copies since, and that is left"


def forward_obstacle(change: Change, live: LiveState, step: Step, now: datetime) -> str:
    """Why the step would write over what the owner set; empty where it would not."""
    name = step.subject.removeprefix(component_resource_id(""))
    if (theirs := owners_figures(change, live).get(name)) is not None:
        return theirs
    last, seen = change.last_entry(step, "done"), live.components.get(name)
    if step.kind is not StepKind.SET_COPIES or last is None or now - last.at < SHOWN or seen is None:
        return ""
    if seen.desired == _number(step):
        return ""
    return f"somebody set {count(seen.desired, 'copy', 'copies')} of component {name} again, and that is left"


def without_owners(change: Change, live: LiveState) -> tuple[Step, ...]:
    """The steps of the way back without those of components of which the owner set another figure."""
    theirs = owners_figures(change, live)
    subjects = {*theirs, *(component_resource_id(name) for name in theirs)}
    return tuple(step for step in change.plan.restore if step.subject not in subjects)


def _number(step: Step) -> int:
    return int(step.params["DesiredRuntimeConfig"]["CopyCount"])
