"""A type of another architecture: without a GPU, or with Inferentia or Trainium."""

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind, fleet


class OtherArchitecture(Dimension):
    """The cheapest type of each architecture that may serve; its owner builds the image or compiles the model."""

    kinds = (OptionKind.OTHER_ARCHITECTURE,)
    applies_to = frozenset()
    """The model has to be built for it first."""

    def describe(self, option: Option) -> str:
        """``run on 1 x ml.inf2.xlarge after a migration to another architecture``."""
        return f"run on {fleet(option.target)} after a migration to another architecture"
