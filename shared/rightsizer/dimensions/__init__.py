"""The ways to change an endpoint, one file for each: what is offered, how it is planned, and the words for it.

A file imports what offers and plans inside its methods, so that who needs only the words loads neither.
"""

from rightsizer.dimensions.asynchronous import Asynchronous
from rightsizer.dimensions.autoscaling_bounds import AutoscalingBounds
from rightsizer.dimensions.component_copies import ComponentCopies
from rightsizer.dimensions.component_placement import ComponentPlacement
from rightsizer.dimensions.delete import Delete
from rightsizer.dimensions.dimension import Dimension
from rightsizer.dimensions.instance_fleet import InstanceFleet
from rightsizer.dimensions.instance_pools import InstancePools
from rightsizer.dimensions.other_architecture import OtherArchitecture, OtherChips
from rightsizer.dimensions.packing import Packing
from rightsizer.dimensions.remove_variant import RemoveVariant
from rightsizer.dimensions.routing import Routing
from rightsizer.dimensions.scale_in_policy import ScaleInPolicy
from rightsizer.dimensions.scale_to_zero import ScaleToZero
from rightsizer.dimensions.schedule import Schedule
from rightsizer.dimensions.serverless import Serverless
from rightsizer.domain.option import OptionKind
from rightsizer.recommender.dimension import find

DIMENSIONS: tuple[Dimension, ...] = (
    InstanceFleet(),
    ScaleToZero(),
    AutoscalingBounds(),
    Routing(),
    Schedule(),
    Asynchronous(),
    OtherArchitecture(),
    Serverless(),
    OtherChips(),
    InstancePools(),
    Delete(),
    RemoveVariant(),
    Packing(),
    ComponentCopies(),
    ScaleInPolicy(),
    ComponentPlacement(),
)
"""In the order in which they are offered."""


def dimension_of(kind: OptionKind) -> Dimension:
    """The registered dimension that makes options of that kind. InputError where there is none."""
    return find(DIMENSIONS, kind)
