"""Every kind of endpoint is recognised; the plain kind for certain."""

from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import pytest

from rightsizer.aws import configuration
from rightsizer.aws.models import ModelFacts, facts_of, framework_of
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import CHANGEABLE

PLAIN: dict[str, Any] = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge"}
ACCOUNT = "111122223333"


def config(*variants: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "EndpointConfigName": "c",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
        "ProductionVariants": variants,
        **more,
    }


CASES = {
    EndpointKind.REAL_TIME: config(PLAIN),
    EndpointKind.ASYNC: config(PLAIN, AsyncInferenceConfig={"OutputConfig": {}}),
    EndpointKind.SERVERLESS: config(
        {"VariantName": "v", "ModelName": "m", "ServerlessConfig": {"MemorySizeInMB": 2048}}
    ),
    EndpointKind.INFERENCE_COMPONENTS: config({"VariantName": "v", "InstanceType": "ml.g5.xlarge"}),
    EndpointKind.MULTI_VARIANT: config(PLAIN, {**PLAIN, "VariantName": "w"}),
    EndpointKind.SHADOW: config(PLAIN, ShadowProductionVariants=[PLAIN]),
    EndpointKind.INSTANCE_POOLS: config(
        {"VariantName": "v", "ModelName": "m", "InstancePools": [{"InstanceType": "ml.g5.xlarge", "Priority": 1}]}
    ),
    EndpointKind.MIG: config({**PLAIN, "AcceleratorPartitionLayouts": [{"AcceleratorPartitionTypes": ["mig-1g.5gb"]}]}),
    EndpointKind.RESERVED: config({**PLAIN, "CapacityReservationConfig": {"MlReservationArn": "arn:x"}}),
    EndpointKind.UNKNOWN: config(),
}


@pytest.mark.parametrize(("kind", "answer"), CASES.items())
def test_the_configuration_tells_the_kind(kind: EndpointKind, answer: dict[str, Any]) -> None:
    assert configuration.order_kinds(configuration.parse(answer).kinds)[0] is kind


def test_what_keeps_us_furthest_from_acting_comes_first_and_nothing_is_lost() -> None:
    answer = config(
        {"VariantName": "v", "ServerlessConfig": {}, "InstanceType": "ml.g5.xlarge"}, AsyncInferenceConfig={"a": 1}
    )
    assert configuration.order_kinds(configuration.parse(answer).kinds) == (
        EndpointKind.INFERENCE_COMPONENTS,
        EndpointKind.ASYNC,
    )


def test_every_kind_has_its_place_in_the_order() -> None:
    assert set(configuration.PRECEDENCE) == set(EndpointKind)


def test_an_endpoint_of_two_kinds_is_changed_only_where_both_are() -> None:
    """Two variants of a multi-model container are no more understood than one."""
    for pair in combinations(EndpointKind, 2):
        first = configuration.order_kinds(frozenset(pair))[0]
        assert (first in CHANGEABLE) == all(kind in CHANGEABLE for kind in pair), pair


def test_an_endpoint_of_two_kinds_is_changed_in_no_dimension_that_one_of_them_is_not() -> None:
    changed = [EndpointKind.MULTI_VARIANT, EndpointKind.ASYNC]
    first = configuration.order_kinds(frozenset(changed))[0]
    found = [one for one in DIMENSIONS if first in one.applies_to]
    assert found
    partly = [one for one in found if not one.applies_to.issuperset(changed)]
    assert [one.kind_refusal(kind) is None for one in partly for kind in changed if kind not in one.applies_to] == [
        False for _ in partly
    ], "what one of both kinds rules out has no button, and its plan refuses it"


def model(*containers: dict[str, Any], **more: Any) -> ModelFacts:
    return facts_of({"Containers": containers, **more}, ACCOUNT)


def test_a_multi_model_container_makes_a_multi_model_endpoint() -> None:
    assert configuration.kinds_of_model(model({"Image": "i", "Mode": "MultiModel"})) == {EndpointKind.MULTI_MODEL}


def test_two_containers_make_a_pipeline() -> None:
    assert configuration.kinds_of_model(model({"Image": "a"}, {"Image": "b"})) == {EndpointKind.PIPELINE}


def test_a_package_of_another_account_is_a_marketplace_product_and_our_own_is_not() -> None:
    foreign = model({"ModelPackageName": "arn:aws:sagemaker:us-east-1:865070037744:model-package/llm"})
    own = model({"ModelPackageName": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:model-package/group/3"})
    assert configuration.kinds_of_model(foreign) == {EndpointKind.MARKETPLACE}
    assert configuration.kinds_of_model(own) == frozenset()


def test_a_plain_model_adds_no_kind() -> None:
    assert (
        configuration.kinds_of_model(facts_of({"PrimaryContainer": {"Image": "x", "Mode": "SingleModel"}}, ACCOUNT))
        == frozenset()
    )


@pytest.mark.parametrize(
    ("image", "framework"),
    [
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128", "lmi"),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7-tgi3.3-gpu", "tgi"),
        ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/vllm-openai:v0.9", "vllm"),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:24.09-py3", "triton"),
        ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-inference:2.5-gpu-py311", "pytorch"),
        ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/my-model@sha256:abc", ""),
    ],
)
def test_the_image_tells_the_framework(image: str, framework: str) -> None:
    assert framework_of((image,)) == framework


def test_an_elastic_inference_accelerator_that_is_still_named_is_read() -> None:
    answer = config(
        {**PLAIN, "AcceleratorType": "ml.eia2.medium"}, {**PLAIN, "AcceleratorType": "ml.eia2.medium"}, PLAIN
    )
    assert configuration.parse(answer).elastic_inference == ("ml.eia2.medium",)
    assert configuration.parse(config(PLAIN)).elastic_inference == ()
