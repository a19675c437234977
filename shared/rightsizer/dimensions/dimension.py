"""Protocol of every way to change an endpoint: offer, plan, and words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from rightsizer.changes.dimension import Planning
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer, Offering
from rightsizer.recommender.other_endpoint import other_kind

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


class Dimension(Offering, Planning, Protocol):
    """A way to change an endpoint. Each of its two halves stands where it is used."""


class Elsewhere(Dimension, Protocol):
    """A dimension that is looked at for real-time and asynchronous endpoints only."""

    def out_of_scope(self, context: EvaluationContext) -> Reason | None:
        """Reason that the endpoint is of another kind."""
        return other_kind(context)


class Addable(Dimension, Protocol):
    """A dimension of the search for the smallest fleet, which the settings keep closed or open."""

    def saves_nothing(self, context: EvaluationContext) -> Reason | None:
        """Why it can save nothing here, told before any fleet is computed; None where it may."""
        ...

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Closed: what it would save for an approval. Open: why no option of the search moves it."""
        from rightsizer.recommender.alternatives import answers

        (kind,) = self.kinds
        return answers(recommendation, context, kind, self.saves_nothing)
