"""Other numbers of copies of inference components, or another minimum of those that autoscaling moves."""

from collections.abc import Iterator
from itertools import chain

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.component import copies_refusal
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.live_state import MOVING
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason, count


class ComponentCopies(Dimension):
    """Copies of components, and below how many their autoscaling does not go."""

    kinds = (OptionKind.COPIES,)
    back = "sets the old numbers of copies again"
    applies_to = frozenset({EndpointKind.INFERENCE_COMPONENTS})

    def describe(self, option: Option) -> str:
        """``run 2 copies of chat and let autoscaling go down to 1 copy of tags``."""
        fixed, least = (
            ", ".join(f"{count(n, 'copy', 'copies')} of {name}" for name, n in rows)
            for rows in (option.target.copies, option.target.least_copies)
        )
        parts = (f"run {fixed}" if fixed or not least else "", f"let autoscaling go down to {least}" if least else "")
        return " and ".join(part for part in parts if part)

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The other numbers of copies, or minimums of them: no deployment, and the rollback sets the old ones again."""
        from rightsizer.autoscaling.policies import component_minimum_steps
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
        own = {t.component_name: t for t in approved.inputs.scaling}
        lower = [component_minimum_steps(name, own[name], least) for name, least in change.option.target.least_copies]
        if not (moved or lower) or any(live.get(name, MOVING) == MOVING for name, _ in moved):
            return (Reason(Code.CHANGED_SINCE, f"the components of {change.ref.name} are as asked, or being changed"),)

        def step(name: str, number: int) -> Step:
            copies = {"InferenceComponentName": name, "DesiredRuntimeConfig": {"CopyCount": number}}
            return Step(StepKind.SET_COPIES, name, copies)

        plan = Plan(
            settle=(*(step(name, number) for name, number in moved), *(forward for forward, _ in lower)),
            restore=(*(step(name, live[name]) for name, _ in moved), *chain.from_iterable(back for _, back in lower)),
            after=approved.before.variants,
            guardrail="copies of components only: no deployment, and the rollback sets the old numbers again",
        )
        return PlannedChange(approved.before, plan)


def _refusals(approved: Approved) -> Iterator[Reason]:
    """What the tags of each component say, and whether its copies are those of the judgement."""
    live, judged = approved.inputs.copies, approved.inputs.proposal.recommendation.components
    known = {finding.name: finding.copies for finding in judged}
    for _, sight in sorted(approved.inputs.components.items()):
        refused = copies_refusal(sight, may_be_untagged=approved.limits.change_untagged)
        if refused is not None:
            yield refused
    for name, _ in approved.change.option.target.copies:
        if name in known and live.get(name) not in (known[name], MOVING):
            text = f"component {name} has {live.get(name, 0)} copies, and was judged with {known[name]}"
            yield Reason(Code.CHANGED_SINCE, text)
    own, least = (
        {t.component_name: t for t in approved.inputs.scaling},
        {finding.name: finding.minimum for finding in judged},
    )
    for name, _ in approved.change.option.target.least_copies:
        target = own.get(name)
        if target is None or target.minimum != least.get(name) or target.scheduled or any(target.suspended.values()):
            now = f"has a minimum of {target.minimum}" if target is not None else "is not autoscaled any more"
            text = f"component {name} {now}, and was judged with a minimum of {least.get(name)}"
            more = ", no schedule and nothing suspended" if target is not None else ""
            yield Reason(Code.CHANGED_SINCE, text + more)
