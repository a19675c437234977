"""What is left open when everything stops: the steps that would bring an endpoint back as it was."""

from rightsizer.model.change import Change
from rightsizer.model.step import Step, StepKind
from rightsizer.rules.advance.courses import touched_scaling


def left_open(change: Change) -> tuple[str, ...]:
    """Command lines, in their order, that undo what an open change has begun; empty when nothing is to be undone.

    By the journal alone, so the way back may show done already: each line may be run again. An alarm names a policy by
    ``policy:<resource>|<dimension>|<name>`` where its ARN is only known once the policy was put again.
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
