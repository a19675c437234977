"""Other numbers of copies of inference components."""

from collections.abc import Iterator

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.component import copies_refusal
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.live_state import MOVING
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason, count


class ComponentCopies(Dimension):
    """Copies of components that no autoscaling moves."""

    kinds = (OptionKind.COPIES,)
    back = "sets the old numbers of copies again"
    applies_to = frozenset({EndpointKind.INFERENCE_COMPONENTS})

    def describe(self, option: Option) -> str:
        """``run 2 copies of chat``."""
        return "run " + ", ".join(f"{count(n, 'copy', 'copies')} of {name}" for name, n in option.target.copies)

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The other numbers of copies: no deployment, and the rollback is the same call."""
        from rightsizer.domain.plan import Plan, Step, StepKind

        change, live = approved.change, approved.inputs.copies
        wanted = change.option.target.copies
        if refused := tuple(_refusals(approved)):
            return refused
        held = sorted({name for name, _ in wanted} & {t.component_name for t in approved.inputs.scaling})
        if held:
            text = f"component {held[0]} is autoscaled, which would undo another number of copies; change its bounds"
            return (Reason(Code.AUTOSCALED, text),)
        moved = [(name, number) for name, number in wanted if live.get(name) != number]
        if not moved or any(live.get(name, MOVING) == MOVING for name, _ in moved):
            return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are as asked, or being changed"),)

        def step(name: str, number: int) -> Step:
            copies = {"InferenceComponentName": name, "DesiredRuntimeConfig": {"CopyCount": number}}
            return Step(StepKind.SET_COPIES, name, copies)

        plan = Plan(
            settle=tuple(step(name, number) for name, number in moved),
            restore=tuple(step(name, live[name]) for name, _ in moved),
            after=approved.before.variants,
            guardrail="copies of components only: no deployment, and the rollback is the same call",
        )
        return PlannedChange(approved.before, plan)


def _refusals(approved: Approved) -> Iterator[Reason]:
    """What the tags of each component say, and whether its copies are those of the judgement."""
    live, judged = approved.inputs.copies, approved.inputs.proposal.recommendation.components
    known = {one.name: one.copies for one in judged}
    for _, seen in sorted(approved.inputs.components.items()):
        refused = copies_refusal(seen, may_be_untagged=approved.limits.change_untagged)
        if refused is not None:
            yield refused
    for name, _ in approved.change.option.target.copies:
        if name in known and live.get(name) not in (known[name], MOVING):
            text = f"component {name} has {live.get(name, 0)} copies, and was judged with {known[name]}"
            yield Reason(Code.CHANGED_SINCE, text)
