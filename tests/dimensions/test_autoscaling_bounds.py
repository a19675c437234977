"""Other bounds of the owner's autoscaling, and target tracking for a fleet without one: nothing is deployed."""

import pytest

from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.autoscaling_bounds import AutoscalingBounds
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from tests.changes.test_preflight import TARGET
from tests.dimensions.kit import TYPE, planned, said

BOUNDS = Target(TYPE, 2, minimum=2, maximum=4)
ADDED = Target(TYPE, 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0)


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


def test_a_policy_that_is_added_is_said_with_its_metric_and_target() -> None:
    does, back = said(AutoscalingBounds(), ADDED)
    assert does == "scale between 1 and 4 instances by target tracking on SageMakerVariantInvocationsPerInstance at 84"
    assert back == "removes the autoscaling and sets the old count"


def test_target_and_policy_come_one_after_the_other_and_go_at_once_with_the_old_count_behind_them() -> None:
    found = planned(AutoscalingBounds(), ADDED, count=3)
    assert isinstance(found, PlannedChange)
    assert [step.kind for step in found.plan.settle] == [StepKind.REGISTER_TARGET, StepKind.PUT_POLICY]
    assert [step.kind for step in found.plan.restore] == [StepKind.DEREGISTER_TARGET, StepKind.SET_CAPACITY]
    assert found.plan.restore[1].params["DesiredWeightsAndCapacities"][0]["DesiredInstanceCount"] == 3
    assert found.plan.turn is None


@pytest.mark.parametrize(
    ("target", "count", "scaling", "code"),
    [
        (ADDED, 3, (TARGET,), Code.AUTOSCALED),
        (ADDED, 5, (), Code.CHANGED_SINCE),
        (Target("ml.g6.xlarge", 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0), 3, (), Code.NOT_IN_PLACE),
    ],
    ids=["somebody registered it", "somebody grew it", "another type"],
)
def test_no_policy_is_added_beside_another_one_below_what_runs_or_for_another_type(
    target: Target, count: int, scaling: tuple[ScalableTarget, ...], code: Code
) -> None:
    assert planned(AutoscalingBounds(), target, count=count, scaling=scaling) is code
