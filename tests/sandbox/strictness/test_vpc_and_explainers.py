"""What a configuration and a model may say of a VPC and of an explainer: botocore's shapes have the limits."""

from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from tests.sandbox.strictness.accepted import VARIANT
from tests.sandbox.strictness.situations import name
from tests.sandbox.strictness.test_refusals import client
from tests.sandbox.strictness.wrong import Change
from tests.sandbox.strictness.wrong_texts import VPC, explainer

OPERATIONS: dict[str, Change] = {
    "CreateEndpointConfig": {"ProductionVariants": [VARIANT]},
    "CreateModel": {"PrimaryContainer": {"Image": "i", "ModelDataUrl": "s3://m/m.tar.gz"}},
}


def sent(box: Sandbox, operation: str, change: Change) -> None:
    """Create the configuration or the model with these members."""
    if not box.world.fleet.endpoints:
        box.add_endpoint("chat")
    key = "ModelName" if operation == "CreateModel" else "EndpointConfigName"
    request: dict[str, Any] = OPERATIONS[operation] | {key: name("vpc")} | change
    getattr(client("sagemaker", box.region), xform_name(operation))(**request)


@pytest.mark.parametrize(
    ("groups", "subnets"),
    [
        ([], ["subnet-1"]),
        (["sg-1"], []),
        ([f"sg-{n}" for n in range(6)], ["subnet-1"]),
        (["sg-1"], [f"subnet-{n}" for n in range(17)]),
        (["sg_1"], ["subnet-1"]),
        (["sg-1"], ["s" * 33]),
    ],
    ids=["no group", "no subnet", "6 groups", "17 subnets", "an odd group", "a long subnet"],
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_vpc_outside_its_limits_is_refused(
    box: Sandbox, operation: str, groups: list[str], subnets: list[str]
) -> None:
    sent(box, operation, {"VpcConfig": VPC, "EnableNetworkIsolation": True})
    with pytest.raises(ClientError, match=r"ValidationException.*validation error"):
        sent(box, operation, {"VpcConfig": {"SecurityGroupIds": groups, "Subnets": subnets}})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_vpc_without_its_subnets_is_refused(box: Sandbox, operation: str) -> None:
    with pytest.raises(ClientError, match=r"ValidationException.*validation error"):
        sent(box, operation, {"VpcConfig": {"SecurityGroupIds": ["sg-1"]}})


@pytest.mark.parametrize(
    "change",
    [
        explainer({"ShapBaseline": "x" * 4097}),
        explainer({"ShapBaselineUri": "/baselines/b.csv"}),
        explainer({"ShapBaseline": "0"}, MaxPayloadInMB=26),
        explainer({"ShapBaseline": "0"}, MaxRecordCount=0),
        explainer({"ShapBaseline": "0"}, LabelHeaders=[f"h{n}" for n in range(17)]),
        explainer({"ShapBaseline": "0"}, text=True, FeatureTypes=["text", "image"]),
        {"ExplainerConfig": {"ClarifyExplainerConfig": {"EnableExplanations": "`true`"}}},
    ],
    ids=["a long baseline", "no address", "payload", "no record", "headers", "a type", "no ShapConfig"],
)
def test_an_explainer_outside_its_limits_is_refused(box: Sandbox, change: Change) -> None:
    sent(box, "CreateEndpointConfig", explainer({"ShapBaseline": "0"}, MaxPayloadInMB=25))
    with pytest.raises(ClientError, match=r"ValidationException.*validation error"):
        sent(box, "CreateEndpointConfig", change)
