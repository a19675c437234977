"""One card for several small endpoints of one owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer, Restart

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Packing(Dimension):
    """Partners are named by the report, which knows the other endpoints."""

    kinds = (OptionKind.PACKING,)
    back = "sends the callers back to the endpoints of before, as long as they are kept"
    applies_to = frozenset()
    """Every partner needs another endpoint, or an inference component of its own."""
    restart = Restart.NEW_ENDPOINT

    def describe(self, option: Option) -> str:
        """``share 1 x ml.g5.xlarge with other models``."""
        return f"share {fleet(option.target)} with other models"

    def out_of_scope(self, context: EvaluationContext) -> Reason | None:
        """Why it shares no card."""
        from rightsizer.recommender.packing import needs_at

        needs = needs_at(context)
        return needs if isinstance(needs, Reason) else None

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Why no partners are named: they are known only beside the other endpoints."""
        from rightsizer.recommender.packing import packing_reason

        needs = recommendation.needs
        return [packing_reason(needs, context.endpoint.owner)] if needs is not None else []
