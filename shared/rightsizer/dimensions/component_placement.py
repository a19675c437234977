"""Another placement of the copies of inference components; a person orders it."""

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Reason, count
from rightsizer.recommender.dimension import Restart


class ComponentPlacement(Dimension):
    """Copies spread over the instances, or packed on few of them."""

    kinds = (OptionKind.PLACEMENT,)
    back = "gives the components their old placement again"
    applies_to = frozenset({EndpointKind.INFERENCE_COMPONENTS})
    restart = Restart.NEW_COPIES

    def is_watched(self, kind: OptionKind) -> bool:
        """Each component has alarms of its own while its copies start again."""
        return True

    def describe(self, option: Option) -> str:
        """``pack the copies of 2 components on few instances``."""
        placed = dict(option.target.placement)
        what = count(len(placed), "component")
        packs = "BINPACK" in placed.values()
        return f"pack the copies of {what} on few instances" if packs else f"spread the copies of {what}"

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """The specification of each component with another strategy, one component after the other."""
        from rightsizer.changes.plan.components import placement_only

        return placement_only(approved)
