"""A function's role is judged by each resource that AWS checks a request with."""

from collections.abc import Iterator

import pytest

from sandbox.account import Sandbox
from sandbox.doors import LAUNCHED
from sandbox.gate import Call
from sandbox.spot import add_spot
from sandbox.stack import listed
from sandbox.wiring import Stack

RUN = "ec2:RunInstances"


@pytest.fixture
def deployed() -> Iterator[Stack]:
    with Sandbox() as box:
        add_spot(box).group("gpu")
        yield Stack(box)


def update(name: str) -> Call:
    """An update of a group with a launch template, as `apply` makes it."""
    template = {"LaunchTemplateSpecification": {"LaunchTemplateName": "gpu"}}
    params = {"AutoScalingGroupName": name, "MixedInstancesPolicy": {"LaunchTemplate": template}}
    return Call(1, "autoscaling", "UpdateAutoScalingGroup", params)


def test_the_role_of_the_template_may_update_a_group_with_a_launch_template(deployed: Stack) -> None:
    role = deployed.roles.role("apply")
    assert role.refusal(update("gpu")) is None
    asked = {ask.resource.split(":")[5].partition("/")[0] for ask in role.asks(update("gpu")) if ask.action == RUN}
    assert asked == {"launch-template", *LAUNCHED}


@pytest.mark.parametrize("kind", ["launch-template", *LAUNCHED])
def test_a_role_without_one_resource_of_a_launch_is_refused(kind: str, deployed: Stack) -> None:
    for statement in deployed.roles.statements("apply"):
        if RUN in listed(statement["Action"]):
            kept = [one for one in listed(statement["Resource"]) if f":{kind}/" not in one]
            statement["Resource"] = kept or ["arn:aws:ec2:::none"]  # type: ignore[index]
    fault = deployed.roles.role("apply").refusal(update("gpu"))
    assert fault is not None
    assert (RUN in fault.message, f":{kind}/" in fault.message) == (True, True)
