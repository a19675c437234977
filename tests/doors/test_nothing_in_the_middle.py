"""A stack that is told to change nothing in the middle of a change still gives back what the change took."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.flows.change_capacity import request_rollback
from sandbox.spot import add_spot
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


@pytest.mark.parametrize("template_tag", ["auto", "off"])
def test_the_old_policy_of_a_group_comes_back_by_the_role_that_may_change_nothing(template_tag: str) -> None:
    """Its launch template has to be opted in, as for the way out: without that AWS refuses, and a person is told."""
    with scene() as at:
        group = add_spot(at.box).group("gpu")
        template = group.mixed["LaunchTemplate"] | {"Overrides": [{"InstanceType": "g6.xlarge"}]}
        old, new = group.mixed, group.mixed | {"LaunchTemplate": template}
        now = at.box.clock.now
        with at.box.gate.unrecorded():
            book = CapacityChangeTable(bootstrap.table())
            reason = Reason(Code.MORE_POOLS, "two types are steadier than one")
            approved = Decision(ProposalState.APPROVED, "policy", now)
            assert book.add(
                CapacityChange("e-1", "gpu", "ml", GroupPolicy("gpu", old, new), "gpu can use more pools", reason, now,
                       now + timedelta(days=14), ProposalState.APPROVED, approvable=True, decision=approved)
            )  # fmt: skip
        at.pass_time(minutes=10)
        assert group.mixed == new
        at.stack.redeploy(MayChange="nothing")
        group.template_tags = {"rightsizer:mode": template_tag}
        with at.box.gate.unrecorded():
            request_rollback(book, "e-1", "cli:me", at.box.clock.now)
        at.pass_time(minutes=40)
        with at.box.gate.unrecorded():
            found = book.load("e-1")
        assert found is not None
        opted_in = template_tag == "auto"
        assert group.mixed == (old if opted_in else new)
        assert found.state is (ProposalState.ROLLED_BACK if opted_in else ProposalState.HANDED_OVER)
        assert (found.outcome.count("ec2:RunInstances") == 0) is opted_in
        assert (at.refused() == []) is opted_in
