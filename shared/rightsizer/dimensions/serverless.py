"""A new serverless endpoint, billed by the second of requests."""

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind
from rightsizer.recommender.dimension import Restart


class Serverless(Dimension):
    """For a model that does not use its GPU; its owner makes the endpoint."""

    kinds = (OptionKind.SERVERLESS,)
    back = "sends the callers back to this endpoint, as long as it is kept"
    applies_to = frozenset()
    """A real-time endpoint cannot become serverless."""
    restart = Restart.NEW_ENDPOINT

    def describe(self, option: Option) -> str:
        """The same for every endpoint."""
        return "become a serverless endpoint"
