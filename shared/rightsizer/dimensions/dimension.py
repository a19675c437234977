"""What every way to change an endpoint says: how it is offered, how it is carried out, and the words for it."""

from typing import Protocol

from rightsizer.changes.dimension import Planning
from rightsizer.recommender.dimension import Offering


class Dimension(Offering, Planning, Protocol):
    """A way to change an endpoint. Each of its two halves stands where it is used."""
