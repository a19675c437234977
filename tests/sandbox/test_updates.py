"""UpdateEndpoint: what is refused at once, what fails later, and how each ending looks from outside."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.sagemaker.load import Served

BAKE = {
    "BlueGreenUpdatePolicy": {
        "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
        "TerminationWaitInSeconds": 600,
        "MaximumExecutionTimeoutInSeconds": 3600,
    },
    "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
}


def resize(box: Sandbox, to: str = "ml.g5.xlarge", count: int = 1, name: str = "new", **more: Any) -> str:
    spec = {"VariantName": "AllTraffic", "ModelName": "chat-model", "InstanceType": to, "InitialInstanceCount": count}
    box.client("sagemaker").create_endpoint_config(EndpointConfigName=name, ProductionVariants=[spec | more])
    return name


def update(box: Sandbox, config: str = "new", **more: Any) -> None:
    box.client("sagemaker").update_endpoint(EndpointName="chat", EndpointConfigName=config, **more)


def describe(box: Sandbox) -> Any:
    return box.client("sagemaker").describe_endpoint(EndpointName="chat")


def refusal(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


def test_an_update_shows_the_old_configuration_until_it_is_done(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", 2)
    update(box, resize(box))
    during = describe(box)
    assert (during["EndpointStatus"], during["EndpointConfigName"]) == ("Updating", "chat-config")
    pending = during["PendingDeploymentSummary"]
    assert pending["EndpointConfigName"] == "new"
    assert pending["ProductionVariants"][0]["InstanceType"] == "ml.g5.xlarge"
    assert pending["ProductionVariants"][0]["VariantStatus"][0]["Status"] == "Creating"
    box.clock.advance(timedelta(minutes=10))
    after = describe(box)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", "new")
    assert "PendingDeploymentSummary" not in after
    assert after["LastModifiedTime"] > during["LastModifiedTime"]


@pytest.mark.parametrize(
    ("ending", "says"),
    [("capacity", "InsufficientInstanceCapacity"), ("health_check", "ping health check"), ("timeout", "Maximum")],
)
def test_a_failed_update_is_in_service_with_the_old_configuration_and_a_reason(
    box: Sandbox, ending: str, says: str
) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.script_deployment("chat", ending)
    update(box, resize(box), DeploymentConfig=BAKE)
    box.clock.advance(timedelta(hours=2))
    after = describe(box)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", "chat-config")
    assert says in after["FailureReason"]
    assert after["ProductionVariants"][0]["CurrentInstanceCount"] == 1


@pytest.mark.parametrize(
    ("ending", "status"),
    [("failed", "Failed"), ("update_rollback_failed", "UpdateRollbackFailed"), ("system_updating", "SystemUpdating")],
)
def test_the_rare_endings_can_be_told(box: Sandbox, ending: str, status: str) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.script_deployment("chat", ending)
    update(box, resize(box))
    assert box.clock.run_until(lambda: box.status("chat") == status, timedelta(hours=1))


def test_a_good_update_after_a_bad_one_clears_the_reason(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.script_deployment("chat", "capacity")
    update(box, resize(box))
    box.clock.advance(timedelta(hours=1))
    assert "FailureReason" in describe(box)
    update(box)
    box.clock.advance(timedelta(hours=1))
    assert "FailureReason" not in describe(box)
    assert box.config_name("chat") == "new"


def test_the_load_on_the_new_fleet_fires_the_alarm_and_the_update_rolls_back(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.load("chat", lambda now, kind, count: Served(600, errors_5xx=0 if kind == "ml.g5.12xlarge" else 300))
    dimensions = {"EndpointName": "chat", "VariantName": "AllTraffic", "EndpointConfigName": "new"}
    box.client("cloudwatch").put_metric_alarm(
        AlarmName="errors", Namespace="AWS/SageMaker", MetricName="Invocation5XXErrors", Statistic="Sum", Period=60,
        Dimensions=[{"Name": k, "Value": v} for k, v in dimensions.items()], EvaluationPeriods=2, Threshold=5,
        ComparisonOperator="GreaterThanThreshold", TreatMissingData="notBreaching",
    )  # fmt: skip
    box.clock.advance(timedelta(minutes=2))
    update(box, resize(box), DeploymentConfig=BAKE)
    assert box.clock.run_until(lambda: box.status("chat") == "InService", timedelta(hours=1))
    after = describe(box)
    assert after["EndpointConfigName"] == "chat-config"
    assert "errors" in after["FailureReason"]


def test_a_healthy_load_lets_the_update_through(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.load("chat", lambda now, kind, count: Served(600))
    update(box, resize(box), DeploymentConfig=BAKE | {"AutoRollbackConfiguration": {}})
    box.clock.advance(timedelta(minutes=30))
    assert box.config_name("chat") == "new"
    names = box.client("cloudwatch").list_metrics(
        Namespace="AWS/SageMaker", MetricName="ModelLatency",
        Dimensions=[{"Name": "EndpointConfigName", "Value": "new"}],
    )["Metrics"]  # fmt: skip
    assert len(names) == 1


def test_what_sagemaker_refuses_at_once(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    with pytest.raises(ClientError) as same:
        update(box, "chat-config")
    assert "currently in use endpoint configuration" in refusal(same)[1]
    with pytest.raises(ClientError) as unknown:
        update(box, "nowhere")
    assert refusal(unknown)[0] == "ValidationException"
    assert "Could not find endpoint configuration" in refusal(unknown)[1]
    update(box, resize(box))
    with pytest.raises(ClientError) as busy:
        update(box, resize(box, name="newer"))
    assert "Cannot update in-progress endpoint" in refusal(busy)[1]


def test_a_registered_variant_refuses_another_type_but_not_another_model(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge")
    box.autoscale("chat", 1, 4)
    with pytest.raises(ClientError) as refused:
        update(box, resize(box))
    assert "deregister" in refusal(refused)[1]
    update(box, resize(box, "ml.g5.12xlarge", name="same-type"))


def test_a_green_fleet_above_the_quota_is_refused(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", 2)
    box.set_quota("ml.g5.xlarge", 1)
    with pytest.raises(ClientError) as refused:
        update(box, resize(box, count=2))
    code, text = refusal(refused)
    assert code == "ResourceLimitExceeded"
    assert "'ml.g5.xlarge for endpoint usage' is 1 Instances, with current utilization of 0" in text


@pytest.mark.parametrize("count", [1, 4])
def test_a_canary_needs_two_instances(box: Sandbox, count: int) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", count)
    routing = {"Type": "CANARY", "WaitIntervalInSeconds": 300, "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}
    deployment = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}}
    config = resize(box, count=count)
    if count == 1:
        with pytest.raises(ClientError):
            update(box, config, DeploymentConfig=deployment)
    else:
        update(box, config, DeploymentConfig=deployment)


def test_an_update_resets_the_counts_unless_they_are_retained(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", 1)
    box.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="chat", DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 5}]
    )
    box.clock.advance(timedelta(minutes=10))
    update(box, resize(box), RetainAllVariantProperties=True)
    box.clock.advance(timedelta(minutes=10))
    assert box.counts("chat") == {"AllTraffic": 5}
    update(box, resize(box, name="newer"))
    box.clock.advance(timedelta(minutes=10))
    assert box.counts("chat") == {"AllTraffic": 1}


def test_async_and_serverless_are_not_converted_in_place(box: Sandbox) -> None:
    box.add_endpoint("chat", asynchronous=True)
    with pytest.raises(ClientError) as removed:
        update(box, resize(box))
    assert "AsyncInferenceConfig parameter cannot be removed" in refusal(removed)[1]


def test_configurations_are_immutable_and_their_types_are_current(box: Sandbox) -> None:
    box.add_endpoint("chat")
    resize(box, "ml.g6e.xlarge")
    with pytest.raises(ClientError) as twice:
        resize(box, "ml.p5.48xlarge")
    assert "Cannot create already existing endpoint configuration" in refusal(twice)[1]
    with pytest.raises(ClientError) as unknown:
        resize(box, "ml.g9.xlarge", name="g9")
    assert "enum value set" in refusal(unknown)[1]
    with pytest.raises(ClientError):
        resize(box, "ml.g5.xlarge", name="volume", VolumeSizeInGB=100)


def test_events_are_in_the_documented_shape(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", tags={"team": "nlp"})
    update(box, resize(box))
    box.clock.advance(timedelta(minutes=10))
    states = [event["detail"]["EndpointStatus"] for event in box.events_of("SageMaker Endpoint State Change")]
    assert states == ["UPDATING", "IN_SERVICE"]
    last = box.events_of("SageMaker Endpoint State Change")[-1]
    assert last["detail"]["EndpointConfigName"] == "new"
    assert last["detail"]["Tags"] == {"team": "nlp"}
    assert isinstance(last["detail"]["LastModifiedTime"], int)
    deployments = box.events_of("SageMaker Endpoint Deployment State Change")
    assert deployments[0]["detail"]["PendingDeploymentSummary"]["EndpointConfigName"] == "new"


def routed(box: Sandbox, count: int = 8, **rolling: Any) -> None:
    """A rolling deployment of the same type, two instances at a time."""
    config = resize(box, "ml.g5.12xlarge", count, RoutingConfig={"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"})
    policy = {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2}, "WaitIntervalInSeconds": 60, **rolling}
    update(box, config, DeploymentConfig={"RollingUpdatePolicy": policy, **ERRORS})


ERRORS = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]}}
IN_BATCHES: dict[str, Any] = {"RollbackMaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2}}


def test_a_rolling_deployment_that_rolls_back_at_once_needs_quota_for_the_whole_fleet(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", 8)
    box.world.quotas.set("ml.g5.12xlarge", 10)
    with pytest.raises(ClientError) as error:
        routed(box)
    assert refusal(error)[0] == "ResourceLimitExceeded"
    box.world.quotas.set("ml.g5.12xlarge", 16)
    update(box, DeploymentConfig={"RollingUpdatePolicy": ROLL, **ERRORS})
    assert describe(box)["EndpointStatus"] == "Updating"


ROLL = {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2}, "WaitIntervalInSeconds": 60}


def test_a_rolling_deployment_that_rolls_back_in_batches_needs_room_for_one(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", 8)
    box.world.quotas.set("ml.g5.12xlarge", 10)
    box.script_deployment("chat", "alarm")
    routed(box, **IN_BATCHES)
    box.clock.advance(timedelta(hours=2))
    assert (describe(box)["EndpointStatus"], box.config_name("chat")) == ("InService", "chat-config")


def test_a_roll_back_at_once_fails_where_the_quota_went_to_others_meanwhile(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.12xlarge", 8)
    box.script_deployment("chat", "alarm")
    routed(box)
    box.clock.advance(timedelta(minutes=1))
    box.world.quotas.set("ml.g5.12xlarge", 8)
    box.clock.advance(timedelta(hours=2))
    assert describe(box)["EndpointStatus"] == "UpdateRollbackFailed"
