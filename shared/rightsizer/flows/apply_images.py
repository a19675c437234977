"""Compare image tags once more right before a deployment: hours may have passed since the preflight.

Forward it stops: nobody asked for other code. On the way back it tells and goes on: users suffer from what runs now, or
somebody asked, and there is no other way back; who deploys the old code by its digest can do so after it.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from rightsizer.flows.telling import Told
from rightsizer.model.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.model.move import Steer
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import Gone, Sight
from rightsizer.model.step import Step, StepKind
from rightsizer.ports import RecommendationStore
from rightsizer.ports_change import Changer
from rightsizer.rules import preflight
from rightsizer.rules.advance import touched_scaling

IMAGES = "images"
"""The journal line that says that the way back brings other code."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """Asks the registry only for images by tag, and only before UpdateEndpoint."""

    changer: Changer
    store: RecommendationStore
    tell: Told

    def before(self, change: Change, step: Step, sight: Sight, now: datetime) -> Change | Steer:
        """The change to go on with, or the move in place of the step where it would deploy other code."""
        endpoint = sight.endpoint
        if step.kind is not StepKind.UPDATE_ENDPOINT or isinstance(endpoint, Gone):
            return change
        names = preflight.tagged(endpoint)
        back = change.course is Course.BACK
        if not names or (back and any(entry.step == IMAGES for entry in change.journal)):
            return change
        found = preflight.moved(endpoint, self.changer.images(change.ref, names), not back and self._by_policy(change))
        if found is None:
            return change
        return self._told(change, found, now) if back else _stopped(change, found)

    def _by_policy(self, change: Change) -> bool:
        proposal = self.store.proposal(change.proposal_id)
        return proposal is not None and proposal.decision is not None and proposal.decision.by == "policy"

    def _told(self, change: Change, found: Reason, now: datetime) -> Change:
        text = f"the way back is deployed all the same, since what runs now has to go: {found.sentence}"
        self.tell(f"{change.ref.name}: its way back does not bring the image that ran before", text)
        return replace(change, journal=(*change.journal, Entry(now, IMAGES, "noted", text[:500])))


def _stopped(change: Change, found: Reason) -> Steer:
    """Nothing was deployed: refused, or rolled back where autoscaling was taken away and goes back."""
    touched = touched_scaling(change)
    text = f"{found.sentence}; it moved after the preflight, and nothing was deployed"
    if touched:
        text += "; autoscaling goes back as it was"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return Steer(Reason(Code.MOVING_TAG, text), Course.CLOSE, ending, FailureClass.OUTSIDE)
