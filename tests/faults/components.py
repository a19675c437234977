"""What the inference components of an account are, and whether they are what they were."""

from collections.abc import Iterator, Mapping
from typing import Any

from rightsizer.domain.change import Change
from tests.changing.world import World


def of_components(w: World, before: Mapping[str, Any]) -> Iterator[str]:
    """Components are made of what they were made of; an edit of their owner's is kept, but for the placement."""
    for name, found in specifications(w).items():
        was = before["specifications"][name]
        if name == w.edited:
            was = was | {"ComputeResourceRequirements": w.edit}
        if found != was:
            yield f"component {name} is {found}, and was {was}"


def specifications(w: World) -> dict[str, Any]:
    """What each component is made of; where nothing was said of its placement, the way back says SPREAD."""
    spread = {"SchedulingConfig": {"PlacementStrategy": "SPREAD"}}
    return {name: spread | c.specification for name, c in w.box.world.components.known.items()}


def copies(w: World) -> dict[str, int]:
    return {name: c.desired for name, c in w.box.world.components.known.items()}


def instances_follow(change: Change) -> bool:
    """Whether the instances come and go with the copies of components: their count is nobody's order."""
    return change.option.target.minimum == 0 and bool(change.plan.new_config)


def lasting(change: Change, seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of a snapshot does not move by itself."""
    return {key: value for key, value in seen.items() if key != "counts" or not instances_follow(change)}
