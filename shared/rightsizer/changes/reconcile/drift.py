"""Actions of others on the endpoint, and what the journal of a change proves."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import component_resource_id
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import NextAction, Steer, Wait
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import PlanKind, Step, StepKind, created_config, region_option
from rightsizer.domain.reason import Code, Reason, count

GONE_AFTER = timedelta(minutes=3)
"""A deregistered target may be listed this long (inferred): Application Auto Scaling is eventually consistent."""
COMPARED = frozenset(
    {
        StepKind.REGISTER_TARGET,
        StepKind.PUT_POLICY,
        StepKind.PUT_SCHEDULED,
        StepKind.PUT_ALARM,
        StepKind.DEREGISTER_TARGET,
    }
)


def may_have_changed_autoscaling(change: Change) -> bool:
    """Whether we may have taken anything from the customer's autoscaling."""
    ours = {s.key for s in (*change.plan.clear, *change.plan.settle)}
    return any(e.step in ours for e in change.journal)


def may_have_written(change: Change) -> bool:
    """Whether a step on the owner's autoscaling was or may have been carried out.

    Every step that was started counts, unless AWS refused it.
    """
    return _may_have_done(change, (*change.plan.clear, *change.plan.settle))


def may_have_turned(change: Change) -> bool:
    """Whether AWS accepted the update of the endpoint, of an earlier try too, or may have."""
    turn = change.plan.turn
    return turn is None or change.tries > 0 or _may_have_done(change, (turn,))


def _may_have_done(change: Change, steps: Iterable[Step]) -> bool:
    """Whether AWS did one of the steps, or may have done it: an intent alone, or a lost answer."""
    ours = {s.key for s in steps}
    open_steps: set[str] = set()
    for entry in change.journal:
        if entry.step not in ours:
            continue
        if entry.status != "intended" and not entry.was_rejected:
            return True
        (open_steps.discard if entry.was_rejected else open_steps.add)(entry.step)
    return bool(open_steps)


def is_given_back(change: Change) -> bool:
    """Whether autoscaling was given back whole, and not taken away since: what it is now is the owner's."""
    return change.state is ChangeState.APPLIED or _last_step(change) in (JournalEvent.APPLIED, JournalEvent.FINISH)


def is_reopened(change: Change) -> bool:
    """Whether it was over before, and is walked again without having taken anything away yet."""
    return _last_step(change) == JournalEvent.FINISH


def _last_step(change: Change) -> str:
    marks = {JournalEvent.APPLIED, JournalEvent.FINISH, *(s.key for s in change.plan.clear)}
    return next((e.step for e in reversed(change.journal) if e.step in marks), "")


def targets_registered_again(change: Change, live: LiveState) -> dict[str, datetime]:
    """Resources that we deregistered, registered nowhere since, and that are registered now, with when we did it."""
    found = {}
    for step in change.plan.clear:
        done = _removal_entry(change, step) if step.kind is StepKind.DEREGISTER_TARGET else None
        if done is not None and live.target(step) is not None:
            found[step.subject] = done.at
    return found


def targets_of_owner(change: Change, live: LiveState, now: datetime) -> frozenset[str]:
    """Targets that the owner surely registered again; AWS lists no deregistered target for so long."""
    return frozenset(name for name, at in targets_registered_again(change, live).items() if now - at >= GONE_AFTER)


def _removal_entry(change: Change, clear: Step) -> Entry | None:
    """The line of a deregistering that was done, and after which we began to give nothing back."""
    steps = (s for s in (*change.plan.settle, *change.plan.restore) if s.kind is StepKind.REGISTER_TARGET)
    ours = {s.key for s in steps if s.subject == clear.subject}
    last = next((e for e in reversed(change.journal) if e.step == clear.key or e.step in ours), None)
    return last if last is not None and last.step == clear.key and last.status == "done" else None


def added_targets(change: Change) -> frozenset[str]:
    """Resources that a change without a deployment registers and that were no scalable targets before."""
    if change.plan.turn is not None:
        return frozenset()
    known = {target.resource_id for target in (change.before.scaling if change.before else ())}
    return frozenset(s.subject for s in change.plan.settle if s.kind is StepKind.REGISTER_TARGET) - known


def additions_of_owner(change: Change, live: LiveState) -> tuple[str, ...]:
    """Policies and scheduled actions of others on a target that the change added: a return would delete them."""
    added, ours = added_targets(change), {step.key for step in change.plan.settle}
    rows = (
        (target.resource_id, *row)
        for target in live.scaling or ()
        if target.resource_id in added
        for row in (
            *(("PutScalingPolicy", str(policy.get("PolicyName"))) for policy in target.policies),
            *(("PutScheduledAction", str(action.get("ScheduledActionName"))) for action in target.scheduled),
        )
    )
    return tuple(name for resource, kind, name in rows if f"{kind} {resource} {name}" not in ours)


def undo_commands(change: Change) -> tuple[str, ...]:
    """Command lines, in their order, that undo what an open change has begun; empty when nothing is to be undone.

    By the journal alone, so the rollback may show done already: each line may be run again. The line of an alarm asks
    for the ARN of its policy first, which is only known once the policy was put again.
    """
    if change.is_closed:
        return change.remaining
    plan, began = change.plan, {entry.step for entry in change.journal}
    steps: list[Step] = []
    if plan.turn is not None and plan.back is not None and plan.turn.key in began and change.returned_at is None:
        steps.append(plan.back)
    if may_have_changed_autoscaling(change):
        steps += plan.restore
    if any(step.key in began for step in plan.prepare if step.kind is StepKind.PUT_ALARM):
        steps += plan.tidy
    return tuple(dict.fromkeys((*change.remaining, *(step.command(change.ref.region) for step in steps))))


def leftover_configs(change: Change) -> tuple[str, ...]:
    """Configurations that the change made and that stay: they cost nothing, and no role of ours may delete one."""
    names = (created_config(entry.step) for entry in change.journal)
    return tuple(dict.fromkeys(name for name in names if name))  # of earlier tries too


def differences(change: Change, live: LiveState, ending: ChangeState) -> tuple[str, ...]:
    """Differences of live autoscaling and alarms from the wanted end; empty where neither was read.

    Somebody may have changed it during the probation: that is theirs, so it is reported and not undone. Bounds that a
    scheduled action moves are nobody's change.
    """
    if isinstance(live.endpoint, Gone) or live.scaling is None:
        return ()
    match ending:
        case ChangeState.PROVEN | ChangeState.APPLIED:
            goals = change.plan.settle
        case ChangeState.ROLLED_BACK:
            goals = change.plan.restore
        case _:
            return ()
    return tuple(
        step.key
        for step in goals
        if step.kind in COMPARED and not _was_moved_by_schedule(step, live) and not live.has_effect_of(step)
    )


def _was_moved_by_schedule(step: Step, live: LiveState) -> bool:
    target = live.target(step) if step.kind is StepKind.REGISTER_TARGET else None
    return target is not None and bool(target.scheduled)


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
    """Configurations that the endpoint runs or moves to, and that are neither the old one nor the change's own."""
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
