"""What the journal of a change proves: whether autoscaling was changed or given back, and what is left at its end.

Left are open steps when everything stops, things that stay, and things that differ.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rightsizer.domain.change import Change, ChangeState, Entry, JournalEvent
from rightsizer.domain.live_state import Gone, LiveState
from rightsizer.domain.plan import Step, StepKind

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
    began = (entry.step.partition("CreateEndpointConfig ") for entry in change.journal)
    return tuple(dict.fromkeys(name for _, found, name in began if found))  # of earlier tries too


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
