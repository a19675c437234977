"""Other bounds of the owner's autoscaling."""

from rightsizer.changes.dimension import Approved, Planned
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Reason, count


class AutoscalingBounds(Dimension):
    """The smallest minimum that carries the load, and a maximum for it."""

    kinds = (OptionKind.AUTOSCALING,)
    back = "registers the old bounds again"

    def describe(self, option: Option) -> str:
        """``scale between 1 and 4 instances``."""
        return f"scale between {option.target.minimum} and {count(option.target.maximum or 0, 'instance')}"

    def plan(self, given: Approved) -> Planned | tuple[Reason, ...]:
        """The owner's target with other bounds."""
        from rightsizer.changes.plan.capacity import bounds_only

        return bounds_only(given)
