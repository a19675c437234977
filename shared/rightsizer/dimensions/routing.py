"""Another way to choose the instance for a request, and the fewer instances that it needs."""

from rightsizer.changes.dimension import Approved, Planned
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.domain.reason import Reason


class Routing(Dimension):
    """Requests to the instance with the fewest of them; a part of the configuration."""

    kinds = (OptionKind.ROUTING,)
    deploys = kinds
    """Another routing strategy is another configuration."""

    def describe(self, option: Option) -> str:
        """``run on 2 x ml.g5.xlarge, routed by LEAST_OUTSTANDING_REQUESTS``."""
        return f"run on {fleet(option.target)}, routed by {option.target.routing or LEAST}"

    def plan(self, given: Approved) -> Planned | tuple[Reason, ...]:
        """A clone of the configuration."""
        from rightsizer.changes.plan.config import new_config

        return new_config(given)
