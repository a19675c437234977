"""Training jobs against MaxWait, what is handed over, warm pools, HyperPod clusters."""

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.job import Handover, NoHandover, ReleaseWarmPool, TrainingJob, Transition
from rightsizer.domain.reason import Code
from rightsizer.spot import jobs
from rightsizer.spot.jobs import _SAME, _STATE, further_group_request, more_types_request

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
RAW: dict[str, Any] = {
    "TrainingJobName": "bert",
    "AlgorithmSpecification": {"TrainingImage": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/t:1",
                               "TrainingInputMode": "File"},
    "RoleArn": "arn:aws:iam::111122223333:role/training-role",
    "OutputDataConfig": {"S3OutputPath": "s3://out/"},
    "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50},
    "StoppingCondition": {"MaxRuntimeInSeconds": 36000, "MaxWaitTimeInSeconds": 72000},
    "CheckpointConfig": {"S3Uri": "s3://out/ckpt/"},
    "TrainingJobStatus": "InProgress",
    "SecondaryStatusTransitions": [],
}  # fmt: skip


def job(**over: Any) -> TrainingJob:
    fields: dict[str, Any] = {
        "name": "bert",
        "arn": "arn:aws:sagemaker:eu-west-1:111122223333:training-job/bert",
        "mode": Mode.AUTO,
        "owner": "nlp",
        "status": "InProgress",
        "spot": True,
        "instance_type": "ml.g5.xlarge",
        "instance_count": 2,
        "created_at": NOW - 10 * HOUR,
        "max_runtime_s": 10 * 3600.0,
        "max_wait_s": 20 * 3600.0,
        "transitions": (
            Transition("Training", NOW - 10 * HOUR, NOW - 8 * HOUR),
            Transition("Interrupted", NOW - 8 * HOUR, NOW - 2 * HOUR),
            Transition("Training", NOW - 2 * HOUR, None),
        ),
        "trained_s": None,
        "billable_s": None,
        "checkpoint_uri": "s3://out/ckpt/",
        "raw": RAW,
    }
    return TrainingJob(**fields | over)


def fits_the_model(operation: str, request: Any) -> bool:
    config = Config(parameter_validation=False)
    client = boto3.client("sagemaker", region_name="eu-west-1", config=config)
    shape = client.meta.service_model.operation_model(operation).input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    return True


def test_the_share_of_time_that_trained_decides_whether_maxwait_suffices() -> None:
    seen = jobs.wait_projection(job(), NOW)
    assert seen is not None
    assert (seen.left_s / 3600, seen.needs_s / 3600, seen.share) == pytest.approx((10, 15, 0.4))
    assert seen.is_stopped_early
    sentence = jobs.wait_warning(job(), seen).sentence
    assert "interrupted 1 times" in sentence
    assert "MaxWait leaves 10.0 h" in sentence


def test_earlier_runs_are_believed_before_the_runtime_limit() -> None:
    seen = jobs.wait_projection(job(), NOW, usual_s=5 * 3600)
    assert seen is not None
    assert not seen.is_stopped_early


def test_a_job_that_was_never_interrupted_is_not_projected_to_be() -> None:
    steady = job(transitions=(Transition("Training", NOW - HOUR, None),), created_at=NOW - 2 * HOUR)
    seen = jobs.wait_projection(steady, NOW)
    assert seen is not None
    assert seen.share == 1
    assert not seen.is_stopped_early


@pytest.mark.parametrize("over", [{"spot": False}, {"max_wait_s": None}, {"status": "Completed"}])
def test_jobs_without_a_wait_to_run_out_are_not_projected(over: dict[str, Any]) -> None:
    assert jobs.wait_projection(job(**over), NOW) is None


@given(st.floats(0, 100), st.floats(0, 100), st.floats(1, 100))
def test_a_projection_is_finite_and_never_negative_work(age_h: float, trained_h: float, wait_h: float) -> None:
    created = NOW - timedelta(hours=age_h)
    moves = (
        Transition("Training", created, created + min(timedelta(hours=trained_h), NOW - created)),
        Transition("Interrupted", NOW, None),
    )
    seen = jobs.wait_projection(job(created_at=created, transitions=moves, max_wait_s=wait_h * 3600), NOW)
    assert seen is not None
    assert 0 <= seen.needs_s < float("inf")
    assert 0 < seen.share <= 1


def test_the_restart_goes_on_from_the_checkpoint_on_demand_and_is_a_valid_request() -> None:
    found = jobs.restart_request(job(), "ml.g6.2xlarge")
    assert isinstance(found, Handover)
    assert fits_the_model("CreateTrainingJob", found.request)
    assert found.request["CheckpointConfig"] == RAW["CheckpointConfig"]
    assert found.request["ResourceConfig"]["InstanceType"] == "ml.g6.2xlarge"
    assert "MaxWaitTimeInSeconds" not in found.request["StoppingCondition"]
    assert "EnableManagedSpotTraining" not in found.request
    assert found.request["TrainingJobName"] != "bert"


def members(operation: str, *path: str, output: bool = False) -> set[str]:
    model = botocore.session.get_session().get_service_model("sagemaker").operation_model(operation)
    shape: Any = model.output_shape if output else model.input_shape
    for name in path:
        shape = shape.members[name].member
    return set(shape.members)


def test_every_member_of_a_training_job_is_carried_set_or_a_reason_not_to_hand_it_over() -> None:
    known = {*jobs._CARRIED, *jobs._NOT_CARRIED}
    assert members("CreateTrainingJob") - known == {"TrainingJobName", "Tags", "EnableManagedSpotTraining"}
    assert known - members("DescribeTrainingJob", output=True) == {"SessionChainingConfig"}, "named as not checked"
    assert known <= members("CreateTrainingJob")


def test_the_tags_go_along_and_what_is_empty_does_not() -> None:
    tags = {"cost-center": "7", "aws:cloudformation:stack-name": "s", "rightsizer:mode": "auto"}
    found = jobs.restart_request(job(tags=tags, raw=RAW | {"VpcConfig": {}, "InputDataConfig": []}), spot=True)
    assert isinstance(found, Handover)
    assert fits_the_model("CreateTrainingJob", found.request)
    assert found.request["Tags"] == [
        {"Key": "cost-center", "Value": "7"},
        {"Key": "rightsizer:mode", "Value": "auto"},
    ]
    assert not {"VpcConfig", "InputDataConfig"} & set(found.request)


def test_a_job_on_a_training_plan_is_not_proposed_for_spot() -> None:
    planned = RAW | {"ResourceConfig": RAW["ResourceConfig"] | {"TrainingPlanArn": "arn:aws:sagemaker:plan"}}
    found = jobs.spot_request(job(spot=False, status="Completed", raw=planned))
    assert isinstance(found, NoHandover)
    assert "paid for" in found.reason.sentence


def test_without_checkpoints_nothing_is_handed_over() -> None:
    found = jobs.restart_request(job(checkpoint_uri=""))
    assert isinstance(found, NoHandover)
    assert found.reason.code is Code.NO_CHECKPOINT


def test_a_job_with_what_we_do_not_understand_is_not_repeated() -> None:
    found = jobs.restart_request(job(raw={**RAW, "ServerlessJobConfig": {"JobType": "FineTuning"}}))
    assert isinstance(found, NoHandover)
    assert "ServerlessJobConfig" in found.reason.sentence


def test_a_finished_on_demand_job_with_checkpoints_is_proposed_for_spot() -> None:
    found = jobs.spot_request(job(spot=False, status="Completed", trained_s=7200.0, max_wait_s=None))
    assert isinstance(found, Handover)
    assert fits_the_model("CreateTrainingJob", found.request)
    assert found.request["EnableManagedSpotTraining"] is True
    assert found.request["StoppingCondition"]["MaxWaitTimeInSeconds"] == 72000


@pytest.mark.parametrize(
    "over", [{"spot": True}, {"status": "Failed"}, {"checkpoint_uri": ""}, {"keep_alive_s": 600.0}]
)
def test_other_jobs_are_not_proposed_for_spot(over: dict[str, Any]) -> None:
    finished: dict[str, Any] = {"spot": False, "status": "Completed", "trained_s": 7200.0}
    assert isinstance(jobs.spot_request(job(**finished | over)), NoHandover)


IDLE: dict[str, Any] = {"status": "Completed", "warm_pool": "Available", "keep_alive_s": 7200.0, "ended_at": NOW - HOUR}


def test_an_idle_warm_pool_of_an_opted_in_owner_is_released() -> None:
    assert isinstance(jobs.warm_pool_release(job(**IDLE), NOW), ReleaseWarmPool)


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"mode": Mode.PROPOSE}, Code.NOT_OPTED_IN),
        ({"warm_pool": "InUse"}, Code.NOT_FOR_US),
        ({"ended_at": NOW - timedelta(minutes=5)}, Code.EVALUATED_RECENTLY),
        ({"keep_alive_s": 3600.0}, Code.EVALUATED_RECENTLY),
    ],
)
def test_other_warm_pools_are_left(over: dict[str, Any], code: Code) -> None:
    found = jobs.warm_pool_release(job(**IDLE | over), NOW)
    assert isinstance(found, NoHandover)
    assert found.reason.code is code


def row(name: str, **over: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "CurrentCount": 1,
        "TargetCount": 4,
        "MinCount": 2,
        "InstanceType": "ml.g5.8xlarge",
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x/", "OnCreate": "on_create.sh"},
        "ExecutionRole": "arn:aws:iam::111122223333:role/hyperpod-role",
        "ThreadsPerCore": 1,
        "Status": "InService",
        "KubernetesConfig": {"DesiredLabels": {"team": "nlp"}, "CurrentLabels": {}},
        **over,
    }


MANY = {"DesiredInstanceTypes": ["ml.g5.8xlarge"], "CurrentInstanceTypes": []}
CLUSTER: dict[str, Any] = {
    "ClusterName": "big",
    "ClusterArn": "arn:aws:sagemaker:eu-west-1:111122223333:cluster/abcdefghijkl",
    "ClusterStatus": "InService",
    "NodeRecovery": "Automatic",
    "NodeProvisioningMode": "Continuous",
    "Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:eu-west-1:111122223333:cluster/e"}},
    "InstanceGroups": [row("a"), {**row("b", InstanceRequirements=MANY, CapacityRequirements={"Spot": {}})}],
}


def test_every_group_is_sent_in_full_with_its_target_count() -> None:
    found = more_types_request(CLUSTER, "b", ["ml.g6.8xlarge"])
    assert isinstance(found, Handover)
    assert fits_the_model("UpdateCluster", found.request)
    first, second = found.request["InstanceGroups"]
    assert (first["InstanceGroupName"], first["InstanceCount"], first["MinInstanceCount"]) == ("a", 4, 2)
    assert first["KubernetesConfig"] == {"Labels": {"team": "nlp"}}
    assert second["InstanceRequirements"] == {"InstanceTypes": ["ml.g5.8xlarge", "ml.g6.8xlarge"]}
    assert second["CapacityRequirements"] == {"Spot": {}}
    assert not {"Status", "CurrentCount", "TargetCount", "MinCount"} & (set(first) | set(second))


def test_every_member_of_an_instance_group_is_sent_translated_or_a_reason_not_to_hand_it_over() -> None:
    sent = {*_SAME, "InstanceCount", "MinInstanceCount", "InstanceRequirements", "KubernetesConfig"}
    left = members("UpdateCluster", "InstanceGroups") - sent
    assert left == {"ImageId", "ImageReleaseVersion", "AutoPatchConfig"}
    described = members("DescribeCluster", "InstanceGroups", output=True)
    assert "AutoPatchConfig" in described - set(_SAME) - _STATE, "not understood: refused"
    found = more_types_request(CLUSTER, "b", ["ml.g6.8xlarge"])
    assert isinstance(found, Handover)
    assert any("image ids, NodeProvisioningMode" in what for what in found.not_checked)


def test_a_further_spot_group_is_set_up_like_the_old_one() -> None:
    found = further_group_request(CLUSTER, "a", "ml.g6.8xlarge", 2, spot=True)
    assert isinstance(found, Handover)
    assert fits_the_model("UpdateCluster", found.request)
    assert [group["InstanceGroupName"] for group in found.request["InstanceGroups"]] == ["a", "b", "a-spot"]
    assert found.request["InstanceGroups"][2]["CapacityRequirements"] == {"Spot": {}}


def test_a_group_with_a_fixed_type_gets_no_further_types() -> None:
    assert isinstance(more_types_request(CLUSTER, "a", ["ml.g6.8xlarge"]), NoHandover)


@pytest.mark.parametrize(
    "over",
    [
        {"AutoScaling": {"Mode": "Enable"}},
        {"RestrictedInstanceGroups": [{}]},
        {"InstanceGroups": [row("a", NovelField=1)]},
        {"NodeProvisioningMode": "Scheduled"},
        {"Orchestrator": {}},
    ],
)
def test_clusters_that_are_not_understood_get_no_proposal(over: dict[str, Any]) -> None:
    found = further_group_request({**CLUSTER, **over}, "a", "ml.g6.8xlarge", 2, spot=True)
    assert isinstance(found, NoHandover)
