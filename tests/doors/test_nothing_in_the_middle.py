"""A stack that is told to change nothing in the middle of a change still gives back what the change took."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.proposal import ProposalState
from tests.doors.scene import BIG, PROPOSE, Scene, scene


def autoscaling(at: Scene) -> Any:
    """The scalable target of the endpoint with its policies, as AWS shows them."""
    scaling = at.box.client("application-autoscaling")
    with at.box.gate.unrecorded():
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        policies = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    return [(t["ResourceId"], t["MinCapacity"], t["MaxCapacity"]) for t in targets], [p["PolicyName"] for p in policies]


def until_asked(at: Scene, operation: str) -> None:
    """Time goes on until this write was made."""
    asked = lambda: any(c.operation == operation for c in at.writes("sagemaker", "application-autoscaling"))  # noqa: E731
    assert at.box.clock.run_until(asked, timedelta(hours=2)), operation


def approved(at: Scene) -> Any:
    """An autoscaled endpoint whose change a person approved; its autoscaling before."""
    at.add(BIG, tags=PROPOSE)
    at.box.autoscale(BIG, 1, 4)
    at.drive(BIG)
    at.sweep()
    before = autoscaling(at)
    at.click(BIG, "Approve")
    return before


@pytest.mark.parametrize("operation", ["DeregisterScalableTarget", "UpdateEndpoint"])
def test_autoscaling_comes_back_when_the_stack_may_change_nothing_any_more(operation: str) -> None:
    with scene() as at:
        before = approved(at)
        until_asked(at, operation)
        assert autoscaling(at) != before
        at.stack.redeploy(MayChange="nothing")
        at.pass_time(hours=4)
        assert len(autoscaling(at)[0]) == len(before[0])
        assert autoscaling(at)[1] == before[1]
        assert at.refused() == []


def test_an_order_to_go_back_is_carried_out_although_the_stack_may_change_nothing_any_more() -> None:
    with scene() as at:
        before = approved(at)
        until_asked(at, "UpdateEndpoint")
        at.pass_time(hours=2)
        at.stack.redeploy(MayChange="nothing")
        at.click(BIG, "Roll back")
        at.pass_time(hours=4)
        (asked,) = at.proposals()
        assert asked.state is ProposalState.ROLLED_BACK, asked.outcome
        assert autoscaling(at) == before
        assert at.refused() == []


def test_a_stack_that_only_reads_hands_the_lines_of_the_way_back_to_a_person() -> None:
    with scene() as at:
        approved(at)
        until_asked(at, "DeregisterScalableTarget")
        at.stack.redeploy(MayChange="read-only")
        at.pass_time(hours=8)
        (asked,) = at.proposals()
        assert asked.state is ProposalState.HANDED_OVER
        assert "aws application-autoscaling register-scalable-target" in asked.outcome
