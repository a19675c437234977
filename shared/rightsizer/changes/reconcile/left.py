"""What is left: open steps when everything stops, things that stay and things that differ when a change is over."""

from rightsizer.changes.reconcile.journal import touched_scaling
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.live_state import Gone, Sight
from rightsizer.domain.plan import Step, StepKind

COMPARED = frozenset(
    {
        StepKind.REGISTER_TARGET,
        StepKind.PUT_POLICY,
        StepKind.PUT_SCHEDULED,
        StepKind.PUT_ALARM,
        StepKind.DEREGISTER_TARGET,
    }
)


def left_open(change: Change) -> tuple[str, ...]:
    """Command lines, in their order, that undo what an open change has begun; empty when nothing is to be undone.

    By the journal alone, so the way back may show done already: each line may be run again. The line of an alarm asks
    for the ARN of its policy first, which is only known once the policy was put again.
    """
    if change.closed:
        return change.remaining
    plan, began = change.plan, {entry.step for entry in change.journal}
    steps: list[Step] = []
    if plan.turn is not None and plan.back is not None and plan.turn.key in began and change.returned_at is None:
        steps.append(plan.back)
    if touched_scaling(change):
        steps += plan.restore
    if any(step.key in began for step in plan.prepare if step.kind is StepKind.PUT_ALARM):
        steps += plan.tidy
    return tuple(dict.fromkeys((*change.remaining, *(step.command for step in steps))))


def leftovers(change: Change) -> tuple[str, ...]:
    """Configurations that the change made and that stay: they cost nothing, and no role of ours may delete one."""
    began = (entry.step.partition("CreateEndpointConfig ") for entry in change.journal)
    return tuple(dict.fromkeys(name for _, found, name in began if found))  # of earlier tries too


def differences(change: Change, sight: Sight, ending: ChangeState) -> tuple[str, ...]:
    """What of autoscaling and its alarms is not as this end should have it; empty where it was not looked at.

    Somebody may have changed it during the probation: that is theirs, so it is reported and not undone. Bounds that a
    scheduled action moves are nobody's change.
    """
    if isinstance(sight.endpoint, Gone) or sight.scaling is None:
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
        if step.kind in COMPARED and not _moved_by_schedule(step, sight) and not sight.shows(step)
    )


def _moved_by_schedule(step: Step, sight: Sight) -> bool:
    target = sight.target(step) if step.kind is StepKind.REGISTER_TARGET else None
    return target is not None and bool(target.scheduled)
