"""The fleet is read in few calls, and one endpoint's trouble is its own."""

from datetime import timedelta

import pytest

from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.session import Session
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Observation, Unobserved, has_digest
from rightsizer.domain.reason import Code
from rightsizer.errors import PermissionMissingError
from sandbox.account import Sandbox


def observe(fleet: SageMakerFleet) -> dict[str, Observation]:
    return {seen.ref.name: seen for seen in fleet.observe(list(fleet.list_endpoints()))}


def endpoint(seen: Observation) -> Endpoint:
    assert isinstance(seen, Endpoint), seen
    return seen


def test_a_plain_endpoint_is_observed_as_it_is(box: Sandbox, account: Session) -> None:
    tags = {"rightsizer:mode": "auto", "rightsizer:p95-ms": "300", "team": "search"}
    box.add_endpoint("Chat-Prod", "ml.g5.12xlarge", 2, tags=tags)
    box.autoscale("Chat-Prod", 1, 4)
    seen = endpoint(observe(SageMakerFleet(account))["Chat-Prod"])
    assert (seen.kind, seen.is_plain, seen.status) == (EndpointKind.REAL_TIME, True, "InService")
    assert seen.ref.arn == f"arn:aws:sagemaker:{box.region}:{box.account}:endpoint/chat-prod"
    (variant,) = seen.variants
    assert (variant.instance_type, variant.current_count, variant.desired_count) == ("ml.g5.12xlarge", 2, 2)
    assert variant.images
    assert has_digest(variant.images[0].specified)
    assert (seen.mode, seen.mode_declared, seen.objective.p95_s, seen.owner) == (Mode.AUTO, True, 0.3, "search")
    (target,) = seen.scaling
    assert (target.minimum, target.maximum, len(target.policies)) == (1, 4, 1)
    assert seen.unknown_fields == ()
    assert not seen.configuration_replaced
    assert seen.framework == "lmi"


def test_a_field_that_a_copy_of_the_configuration_would_lose_is_known_before_a_change_is_decided(
    box: Sandbox, account: Session
) -> None:
    cap = {"MaxInvocationsPerSecondPerInstance": 40, "MaxCrossRegionPercentPerEndpoint": 50}
    box.add_endpoint("shared", config_extra={"CrossRegionTrafficConfig": cap})
    assert endpoint(observe(SageMakerFleet(account))["shared"]).unknown_fields == ("CrossRegionTrafficConfig",)


def test_the_least_instances_of_managed_scaling_are_known_where_it_is_enabled(box: Sandbox, account: Session) -> None:
    managed = {"Status": "ENABLED", "MinInstanceCount": 2, "MaxInstanceCount": 4}
    zero = {**managed, "MinInstanceCount": 0}
    box.add_endpoint("parts", inference_components=True, variant_extra={"ManagedInstanceScaling": managed})
    box.add_endpoint("asleep", inference_components=True, variant_extra={"ManagedInstanceScaling": zero})
    box.add_endpoint("fixed", inference_components=True)
    seen = observe(SageMakerFleet(account))
    least = {name: endpoint(seen[name]).variants[0].least_instances for name in ("parts", "asleep", "fixed")}
    assert least == {"parts": 2, "asleep": 0, "fixed": None}


def test_every_kind_in_the_account_is_told_apart(box: Sandbox, account: Session) -> None:
    box.add_endpoint("async", asynchronous=True)
    box.add_endpoint("serverless", serverless={"MemorySizeInMB": 2048, "MaxConcurrency": 5})
    box.add_endpoint("pools", pools=("ml.g6.xlarge", "ml.g5.xlarge"))
    box.add_endpoint("components", inference_components=True)
    more = [{"VariantName": "B", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}]
    box.add_endpoint("two", more_variants=more)
    box.add_endpoint("many-models", model={"PrimaryContainer": {"Mode": "MultiModel"}})
    kinds = {name: endpoint(seen).kind for name, seen in observe(SageMakerFleet(account)).items()}
    assert kinds == {
        "async": EndpointKind.ASYNC,
        "serverless": EndpointKind.SERVERLESS,
        "pools": EndpointKind.INSTANCE_POOLS,
        "components": EndpointKind.INFERENCE_COMPONENTS,
        "two": EndpointKind.MULTI_VARIANT,
        "many-models": EndpointKind.MULTI_MODEL,
    }


def test_reading_many_endpoints_needs_little_more_than_three_calls_each(box: Sandbox, account: Session) -> None:
    box.set_quota("ml.g5.xlarge", 200)
    for number in range(110):
        box.add_endpoint(f"e{number:03}")
        if number % 5 == 0:
            box.autoscale(f"e{number:03}", 1, 2)
    box.calls.clear()
    fleet = SageMakerFleet(account)
    assert len(observe(fleet)) == 110
    assert len(box.calls) <= 3.2 * 110, box.calls.counts()
    box.calls.clear()
    observe(fleet)
    assert box.calls.counts()["sagemaker:DescribeEndpointConfig"] == 0


def test_looking_at_named_endpoints_describes_each_once_and_leaves_out_unknown_names(
    box: Sandbox, account: Session
) -> None:
    box.add_endpoint("chat")
    fleet = SageMakerFleet(account)
    summaries = fleet.find(["chat", "gone", "chat"])
    assert [seen.ref.name for seen in fleet.observe(summaries)] == ["chat"]
    described = [call.params["EndpointName"] for call in box.calls.of("sagemaker", "DescribeEndpoint")]
    assert described == ["chat", "gone"]


def test_the_configuration_is_read_again_when_the_endpoint_was_modified(box: Sandbox, account: Session) -> None:
    box.add_endpoint("chat")
    fleet = SageMakerFleet(account)
    observe(fleet)
    sagemaker = box.client("sagemaker")
    variant = {"VariantName": "AllTraffic", "ModelName": "chat-model", "InstanceType": "ml.g6.xlarge"}
    box.clock.advance(timedelta(minutes=1))
    sagemaker.create_endpoint_config(
        EndpointConfigName="new", ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )
    sagemaker.update_endpoint(EndpointName="chat", EndpointConfigName="new")
    box.clock.advance(timedelta(hours=2))
    seen = endpoint(observe(fleet)["chat"])
    assert (seen.config_name, seen.variants[0].instance_type) == ("new", "ml.g6.xlarge")


def test_an_endpoint_deleted_between_list_and_describe_is_vanished_and_the_rest_goes_on(
    box: Sandbox, account: Session
) -> None:
    box.add_endpoint("a")
    box.add_endpoint("b")
    fleet = SageMakerFleet(account)
    summaries = list(fleet.list_endpoints())
    box.remove_endpoint("a")
    seen = {each.ref.name: each for each in fleet.observe(summaries)}
    gone = seen["a"]
    assert isinstance(gone, Unobserved)
    assert gone.reason.code is Code.VANISHED
    assert endpoint(seen["b"]).is_plain


def test_throttling_of_one_endpoint_is_its_own(box: Sandbox, account: Session) -> None:
    box.add_endpoint("a")
    box.add_endpoint("b")
    box.gate.fail(
        "sagemaker", "DescribeEndpoint", "ThrottlingException", "Rate exceeded",
        times=99, where=lambda params: params["EndpointName"] == "a",
    )  # fmt: skip
    seen = observe(SageMakerFleet(account))
    slow = seen["a"]
    assert isinstance(slow, Unobserved)
    assert slow.reason.code is Code.THROTTLED
    assert endpoint(seen["b"]).is_plain


def test_where_tags_cannot_be_read_in_bulk_they_are_read_one_by_one(box: Sandbox, account: Session) -> None:
    box.add_endpoint("chat", tags={"rightsizer:mode": "auto"})
    box.add_endpoint("plain")
    box.deny("tag:GetResources")
    seen = {name: endpoint(each) for name, each in observe(SageMakerFleet(account)).items()}
    assert [(seen[n].mode, seen[n].mode_declared) for n in ("chat", "plain")] == [
        (Mode.AUTO, True),
        (Mode.PROPOSE, False),
    ]
    assert all(each.tags_unread is None and each.notes == () for each in seen.values())


def test_where_no_call_reads_the_tags_nothing_is_allowed_and_the_permission_is_named(
    box: Sandbox, account: Session
) -> None:
    box.add_endpoint("chat", tags={"rightsizer:mode": "auto"})
    box.deny("tag:GetResources")
    box.deny("sagemaker:ListTags")
    seen = endpoint(observe(SageMakerFleet(account))["chat"])
    assert (seen.mode, seen.mode_declared) == (Mode.REPORT, False)
    assert seen.tags_unread is not None
    assert "sagemaker:ListTags" in seen.tags_unread.sentence
    assert seen.tags_unread in seen.notes


def test_tags_are_read_with_one_request_for_a_hundred_endpoints_and_without_a_token(
    box: Sandbox, account: Session
) -> None:
    for number in range(3):
        box.add_endpoint(f"e{number}", tags={"rightsizer:mode": "auto"})
    box.calls.clear()
    assert all(endpoint(each).mode is Mode.AUTO for each in observe(SageMakerFleet(account)).values())
    (call,) = box.calls.of("resourcegroupstaggingapi", "GetResources")
    assert "PaginationToken" not in call.params
    assert box.calls.of("sagemaker", "ListTags") == []


def test_without_the_permission_for_models_the_kind_is_unknown(box: Sandbox, account: Session) -> None:
    box.add_endpoint("chat")
    box.deny("sagemaker:DescribeModel")
    seen = endpoint(observe(SageMakerFleet(account))["chat"])
    assert (seen.kind, seen.is_plain) == (EndpointKind.UNKNOWN, False)
    assert "sagemaker:DescribeModel" in seen.notes[0].sentence


def test_a_model_that_was_deleted_makes_the_kind_unknown(box: Sandbox, account: Session) -> None:
    box.add_endpoint("chat")
    box.client("sagemaker").delete_model(ModelName="chat-model")
    seen = endpoint(observe(SageMakerFleet(account))["chat"])
    assert seen.kind is EndpointKind.UNKNOWN
    assert seen.notes[0].code is Code.VANISHED


@pytest.mark.parametrize("action", ["DescribeScalableTargets", "DescribeScalingPolicies", "DescribeScheduledActions"])
def test_autoscaling_that_cannot_be_read_forbids_acting(box: Sandbox, account: Session, action: str) -> None:
    box.add_endpoint("chat")
    box.autoscale("chat", 1, 2)
    box.deny(f"application-autoscaling:{action}")
    seen = endpoint(observe(SageMakerFleet(account))["chat"])
    assert action in seen.notes[0].sentence
    assert not seen.is_plain


def test_a_list_that_is_denied_or_breaks_on_a_later_page_raises(box: Sandbox, account: Session) -> None:
    box.set_quota("ml.g5.xlarge", 200)
    for number in range(101):
        box.add_endpoint(f"e{number}")
    box.gate.fail("sagemaker", "ListEndpoints", "InternalFailure", "try again", nth=2, times=9)
    rows = SageMakerFleet(account).list_endpoints()
    with pytest.raises(Exception, match="listing the endpoints"):
        list(rows)
    box.deny("sagemaker:ListEndpoints")
    with pytest.raises(PermissionMissingError, match="sagemaker:ListEndpoints"):
        list(SageMakerFleet(account).list_endpoints())


def test_an_endpoint_on_its_way_shows_its_pending_deployment(box: Sandbox, account: Session) -> None:
    box.add_endpoint("chat")
    variant = {"VariantName": "AllTraffic", "ModelName": "chat-model", "InstanceType": "ml.g6.xlarge"}
    box.client("sagemaker").create_endpoint_config(
        EndpointConfigName="new", ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )
    box.client("sagemaker").update_endpoint(EndpointName="chat", EndpointConfigName="new")
    box.clock.advance(timedelta(seconds=30))
    seen = endpoint(observe(SageMakerFleet(account))["chat"])
    assert (seen.status, seen.deploying, seen.config_name) == ("Updating", True, "chat-config")
