"""Other bounds of the owner's autoscaling: nothing is deployed."""

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.autoscaling_bounds import AutoscalingBounds
from rightsizer.domain.option import Target
from rightsizer.domain.reason import Code
from tests.changes.test_preflight import TARGET
from tests.dimensions.kit import TYPE, planned, said

BOUNDS = Target(TYPE, 2, minimum=2, maximum=4)


def test_it_says_the_bounds() -> None:
    assert said(AutoscalingBounds(), BOUNDS) == ("scale between 2 and 4 instances", "registers the old bounds again")


def test_the_bounds_are_registered_there_and_back() -> None:
    found = planned(AutoscalingBounds(), BOUNDS, scaling=(TARGET,))
    assert isinstance(found, PlannedChange)
    bounds = [step.params["MinCapacity"] for step in (*found.plan.settle, *found.plan.restore)]
    assert bounds == [2, 1]


def test_there_is_no_plan_where_nothing_is_autoscaled_or_the_bounds_are_there_already() -> None:
    assert planned(AutoscalingBounds(), BOUNDS) is Code.CHANGED_SINCE
    same = Target(TYPE, 1, minimum=TARGET.minimum, maximum=TARGET.maximum)
    assert planned(AutoscalingBounds(), same, scaling=(TARGET,)) is Code.CHANGED_SINCE
