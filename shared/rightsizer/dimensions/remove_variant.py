"""A variant that nobody calls, beside others that serve: its owner deploys a configuration without it."""

from typing import ClassVar

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind


class RemoveVariant(Dimension):
    """`recommender/variants.py` recommends it. A clone never drops a variant, so the program does not carry it out."""

    kinds = (OptionKind.REMOVE_VARIANT,)
    applies_to: ClassVar[frozenset[EndpointKind]] = frozenset()
    does = "be taken out of the endpoint by its owner"
