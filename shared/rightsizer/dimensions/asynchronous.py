"""A new asynchronous endpoint, whose queue keeps requests while it sleeps."""

from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind
from rightsizer.recommender.dimension import Restart


class Asynchronous(Dimension):
    """For long requests whose callers can wait; its owner makes the endpoint."""

    kinds = (OptionKind.ASYNC,)
    back = "sends the callers back to this endpoint, as long as it is kept"
    applies_to = frozenset()
    """Its callers have to change."""
    restart = Restart.NEW_ENDPOINT

    def describe(self, option: Option) -> str:
        """The same for every endpoint."""
        return "become an asynchronous endpoint"
