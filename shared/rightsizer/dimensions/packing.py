"""One card for several small endpoints of one owner."""

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.recommender.dimension import Restart


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
