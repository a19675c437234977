"""Actions of others on the endpoint: deletion, another configuration, a failure, an update, copies and their bounds.

What AWS is asked for is the owner's where it is neither the figure of before nor the one that the change asks for. A
figure of the owner's is never written over: the way forward ends, the way back leaves it, and both say so.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rightsizer.changes.reconcile.journal import is_given_back
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import component_resource_id
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import NextAction, Steer, Wait
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import PlanKind, Step, StepKind, region_option
from rightsizer.domain.reason import Code, Reason, count

LOOKS_MIN = (2, 5, 10, 15, 20, 30, 45, 60)
"""Minutes until the next look while a deployment runs; events bring it forward."""
SLACK = timedelta(hours=2)
MAINTENANCE = timedelta(hours=24)
"""How long AWS's own maintenance (SystemUpdating) is waited for."""
LEFT_ALONE = "its autoscaling is left as it is, since it may belong to that deployment"
BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses in which no step can be taken."""
SHOWN = timedelta(minutes=3)
"""After so long an accepted number of copies is shown (inferred)."""
FAILED = "Failed"
"""Status of a component for whose copies nothing had room."""


def lost_action(change: Change, endpoint: EndpointSight | Gone) -> Steer | None:
    """Whether the endpoint is out of our hands."""
    if isinstance(endpoint, Gone) or endpoint.status == "Deleting":
        return hand_over(Code.VANISHED, f"endpoint {change.ref.name} was deleted by somebody", FailureClass.OUTSIDE)
    status = endpoint.status
    if status == "Failed":
        text = (
            f"endpoint {change.ref.name} is Failed ({endpoint.failure_reason or 'no reason given'}); AWS allows only "
        )
        where = region_option(change.ref.region)
        commands = (
            f"aws sagemaker delete-endpoint{where} --endpoint-name {change.ref.name}",
            f"aws sagemaker create-endpoint{where} --endpoint-name {change.ref.name} "
            f"--endpoint-config-name {old_config(change)}",
        )
        return hand_over(Code.UNKNOWN_FAILURE, text + "its deletion and re-creation", FailureClass.UNKNOWN, *commands)
    if status == "UpdateRollbackFailed":
        text = f"the rolling deployment of {change.ref.name} failed, and so did its roll-back; it serves with a mix"
        return hand_over(Code.UNKNOWN_FAILURE, text, FailureClass.UNKNOWN, *_way_back(change))
    if status not in BUSY and status != "InService":
        text = f"endpoint {change.ref.name} is {status}, which this program does not repair"
        return hand_over(Code.NOT_IN_SERVICE, text, FailureClass.UNKNOWN)
    theirs = foreign_configs(change, endpoint)
    if theirs and change.plan.kind is PlanKind.DELETE:
        text = f"somebody deployed configuration {min(theirs)} to {change.ref.name} after it was marked for deletion"
        return close_rolled_back(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    if theirs:
        text = f"somebody deployed configuration {min(theirs)} to {change.ref.name} during the change"
        kept = f"; {LEFT_ALONE}" if is_given_back(change) else ""
        return hand_over(Code.CHANGED_SINCE, text + kept, FailureClass.OUTSIDE)
    return None


def _way_back(change: Change) -> tuple[str, ...]:
    """The command line of the rollback; none where the plan has no way back."""
    back = change.plan.back
    return () if back is None else (back.command(change.ref.region),)


def foreign_configs(change: Change, endpoint: EndpointSight) -> frozenset[str]:
    """Configurations that the endpoint runs or takes on, and that neither ran before nor are of this change."""
    ours = {"", old_config(change), change.plan.new_config, change.plan.back_config}
    return frozenset({endpoint.config_name, endpoint.pending_config} - ours)


def close_rolled_back(code: Code, text: str, failure: FailureClass) -> Steer:
    """Close the change as rolled back, for this reason and with this class of failure."""
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.ROLLED_BACK, failure)


def hand_over(code: Code, text: str, failure: FailureClass, *commands: str) -> Steer:
    """Close the change as handed over to people, with the commands that are left to run."""
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.HANDED_OVER, failure, remaining=commands)


def busy_action(change: Change, endpoint: EndpointSight, now: datetime) -> NextAction:
    """Wait for what goes on, which need not be ours: autoscaling moves the count in the middle of the probation.

    Its age counts from our last write or from LastModifiedTime, whichever is later.
    """
    written = max((e.at for e in change.journal if e.status in ("intended", "done")), default=change.created_at)
    began = max(written, endpoint.modified_at)
    limit = MAINTENANCE if endpoint.status == "SystemUpdating" else _deployment_limit(change)
    if now - began > limit:
        hours = (now - began).total_seconds() / 3600
        text = f"endpoint {change.ref.name} is {endpoint.status} for {hours:.1f} h, longer than any deployment may take"
        return hand_over(Code.TIMEOUT, text, FailureClass.TIMEOUT, *_way_back(change))
    return Wait(next_look(change, now), f"endpoint {change.ref.name} is {endpoint.status}")


def _deployment_limit(change: Change) -> timedelta:
    return timedelta(seconds=change.plan.deployment_limit_s) + SLACK


def next_look(change: Change, now: datetime) -> datetime:
    """When to look at the change again: later the more looks there were."""
    return now + timedelta(minutes=LOOKS_MIN[min(change.looks, len(LOOKS_MIN) - 1)])


def old_config(change: Change) -> str:
    """Name of the configuration before the change; empty where it is not known."""
    return change.before.config_name if change.before else ""


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
        sight = live.components.get(name)
        if sight is None:
            yield name, f"somebody deleted component {name}"
        elif sight.desired not in (asked[name], _number(step)) and not _found_no_room(change, sight, step):
            text = f"somebody set {count(sight.desired, 'copy', 'copies')} of component {name} since"
            yield name, f"{text} ({_number(step)} before, {asked[name]} asked), and that is left"


def _found_no_room(change: Change, sight: ComponentSight, step: Step) -> bool:
    """Whether AWS may show fewer copies than the way back asked for, since nothing had room: nobody's wish."""
    return change.course is not Course.FORWARD and sight.status == FAILED and sight.desired < _number(step)


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
    last, sight = change.last_entry(step, "done"), live.components.get(name)
    if step.kind is not StepKind.SET_COPIES or last is None or now - last.at < SHOWN or sight is None:
        return ""
    if sight.desired == _number(step):
        return ""
    return f"somebody set {count(sight.desired, 'copy', 'copies')} of component {name} again, and that is left"


def without_owners(change: Change, live: LiveState) -> tuple[Step, ...]:
    """The steps of the way back without those of components of which the owner set another figure."""
    theirs = owners_figures(change, live)
    subjects = {*theirs, *(component_resource_id(name) for name in theirs)}
    return tuple(step for step in change.plan.restore if step.subject not in subjects)


def _number(step: Step) -> int:
    return int(step.params["DesiredRuntimeConfig"]["CopyCount"])
