"""Compare image tags once more right before a deployment, and a component's before its roll: hours may have passed.

Forward it stops: nobody asked for other code. On the way back it tells and goes on: users suffer from what runs now, or
somebody asked, and there is no other way back; who deploys the old code by its digest can do so after it.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from rightsizer.changes import preflight
from rightsizer.changes.reconcile import touched_scaling
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, Steer
from rightsizer.domain.live_state import EndpointSight, Gone, Sight
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.flows.notify import Told
from rightsizer.ports.changes import Changer
from rightsizer.ports.evaluation import RecommendationStore

IMAGES = "images"
"""The journal line that says that the way back brings other code."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """Asks the registry only for images by tag, and only before UpdateEndpoint and UpdateInferenceComponent."""

    changer: Changer
    store: RecommendationStore
    tell: Told

    def before(self, change: Change, step: Step, sight: Sight, now: datetime) -> Change | Steer:
        """The change to go on with, or the move in place of the step where it would bring other code."""
        endpoint = sight.endpoint
        if isinstance(endpoint, Gone):
            return change
        parts, names = _resolved_again(step, sight, endpoint)
        back, about = change.course is not Course.FORWARD, f"component {step.component}: " if step.component else ""
        if not names or (back and any(entry.step == IMAGES and about in entry.detail for entry in change.journal)):
            return change
        by_itself = not back and self._by_policy(change)
        found = preflight.moved(endpoint, self.changer.images(change.ref, names), by_itself, parts)
        if found is None:
            return change
        if not back:
            return _stopped(change, found)
        return self._told(change, replace(found, sentence=about + found.sentence), now)

    def _by_policy(self, change: Change) -> bool:
        proposal = self.store.proposal(change.proposal_id)
        return proposal is not None and proposal.decision is not None and proposal.decision.by == "policy"

    def _told(self, change: Change, found: Reason, now: datetime) -> Change:
        text = f"the way back is deployed all the same, since what runs now has to go: {found.sentence}"
        self.tell(f"{change.ref.name}: its way back does not bring the image that ran before", text)
        return replace(change, journal=(*change.journal, Entry(now, IMAGES, "noted", text[:500])))


def _resolved_again(
    step: Step, sight: Sight, endpoint: EndpointSight
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The images of the component that the step rolls, and the names by tag of all images that it resolves again."""
    if step.kind is StepKind.UPDATE_ENDPOINT:
        return (), preflight.tagged(endpoint)
    live = sight.components.get(step.component)
    if step.kind is not StepKind.UPDATE_COMPONENT or live is None:
        return (), ()
    parts = tuple(pair for pair in live.images if "@sha256:" not in pair[0])
    return parts, tuple(dict.fromkeys(name for name, _ in parts))


def _stopped(change: Change, found: Reason) -> Steer:
    """Nothing was deployed: refused, or rolled back where something was taken away or rolled, and goes back."""
    touched = touched_scaling(change)
    text = f"{found.sentence}; seen right before the deployment, after the preflight, and it was not made"
    if touched:
        what = "what was changed before goes back" if change.plan.turn is None else "autoscaling goes back as it was"
        text += f"; {what}"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return Steer(Reason(Code.MOVING_TAG, text), Course.CLOSE, ending, FailureClass.OUTSIDE)
