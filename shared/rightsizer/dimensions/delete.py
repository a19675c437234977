"""Deletion of an idle endpoint, in two steps: it is marked and watched, then its owner gets the command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Delete(Dimension):
    """No role of the program may delete an endpoint."""

    kinds = (OptionKind.DELETE,)
    does = "be deleted by its owner"
    back = "creates it anew from its kept configuration"
    keeps = False
    applies_to = frozenset({EndpointKind.REAL_TIME, EndpointKind.MULTI_VARIANT})

    def kind_refusal(self, kind: EndpointKind) -> Reason | None:
        """Why no wait proves that it is idle: an asynchronous endpoint publishes no Invocations."""
        if kind in self.applies_to:
            return None
        text = f"whether an endpoint of kind {kind.value} is used cannot be told by its invocations; its owner decides"
        return Reason(Code.OTHER_KIND, text)

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The mark, the wait and the watch; then the command and the file that brings it all back.

        Nothing is written to AWS. The mark is the journal and the message: a tag on the endpoint would need AddTags on
        endpoints, and who holds that can opt endpoints in.
        """
        from rightsizer.changes.deletion import restore_script
        from rightsizer.domain.plan import Plan, PlanKind

        queued, kind = approved.inputs.endpoint.asynchronous, approved.inputs.proposal.recommendation.kind
        other = self.kind_refusal(EndpointKind.ASYNC if queued else kind)
        if other is not None:
            return (other,)
        grace = approved.limits.grace.total_seconds()
        plan = Plan(
            after=approved.before.variants,
            kind=PlanKind.DELETE,
            guardrail=f"marked for deletion and watched for {grace / 86_400:g} days; rightsizer deletes nothing itself",
            test_s=int(grace),
            restore_file=restore_script(approved.change.ref, approved.config, approved.before),
        )
        return PlannedChange(approved.before, plan)

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Why it is not deleted: only an idle endpoint is, and `recommender/idle.py` recommends for that one."""
        from rightsizer.recommender.idle import delete_refusal

        return [delete_refusal(context.endpoint, context.demand, context.policy)]
