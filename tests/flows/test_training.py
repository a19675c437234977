"""Training jobs against MaxWait, Spot for the next run, idle warm pools; HyperPod clusters that lack capacity."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer import catalog
from rightsizer.aws.capacity_changes import CapacityChangeCalls, CapacityChangeTable
from rightsizer.aws.table import Table
from rightsizer.aws.training import TrainingJobs
from rightsizer.catalog import catalogue
from rightsizer.domain.capacity_change import CapacityChange, ManualStep
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.trigger import JobMoved
from rightsizer.errors import InputError, ThrottledError
from rightsizer.flows.change_capacity import CapacityChanges as Flow
from rightsizer.flows.jobs import HyperPodPorts, TrainingPorts, look_at_cluster, look_at_job
from rightsizer.intake import parse
from rightsizer.render import capacity_change
from tests.flows.spot_scene import Scene, scene
from tests.spot.test_jobs import CLUSTER, MANY, fits_the_model, row

__all__ = ["scene"]
KNOWN = catalogue(catalog.instances(), catalog.accelerators())
HOUR = timedelta(hours=1)


def book(scene: Scene) -> CapacityChangeTable:
    return CapacityChangeTable(Table(scene.box.client("dynamodb"), "t"))


def training(scene: Scene) -> TrainingPorts:
    return TrainingPorts(TrainingJobs(scene.box.client("sagemaker")), book(scene), scene.ports.ledger, KNOWN)


def look(scene: Scene, name: str = "bert") -> tuple[CapacityChange, ...]:
    return look_at_job(training(scene), name, scene.box.clock.now)


def interrupted(scene: Scene, *, trained_h: float, waited_h: float) -> list[dict[str, Any]]:
    now = scene.box.clock.now
    begun, taken = now - (trained_h + waited_h) * HOUR, now - waited_h * HOUR
    return [
        {"Status": "Training", "StartTime": begun, "EndTime": taken},
        {"Status": "Interrupted", "StartTime": taken},
    ]


def finished(scene: Scene, name: str, hours: float = 5.0, **over: Any) -> None:
    now = scene.box.clock.now
    on_demand: dict[str, Any] = {"EnableManagedSpotTraining": False}
    on_demand["StoppingCondition"] = {"MaxRuntimeInSeconds": 36_000}
    scene.spot.jobs.train(
        name, TrainingJobStatus="Completed", SecondaryStatus="Completed", TrainingEndTime=now - HOUR,
        TrainingTimeInSeconds=int(hours * 3600), **(on_demand | over),
    )  # fmt: skip


def test_open_jobs_are_read_page_by_page(scene: Scene) -> None:
    for number in range(23):
        scene.spot.jobs.train(f"job-{number:02}", hours_ago=number)
    assert len(TrainingJobs(scene.box.client("sagemaker")).open_jobs()) == 23
    pages = [
        call.params for call in scene.box.calls.of("sagemaker", "ListTrainingJobs") if "StatusEquals" in call.params
    ]
    assert ["NextToken" in asked for asked in pages] == [False, True, True]


def test_the_owner_is_told_before_maxwait_runs_out_with_both_ways_to_go_on(scene: Scene) -> None:
    past = interrupted(scene, trained_h=2, waited_h=8)
    scene.spot.jobs.train("bert", tags={"rightsizer:owner": "nlp"}, SecondaryStatusTransitions=past)
    (capacity_change,) = look(scene)
    assert (capacity_change.owner, capacity_change.approvable, capacity_change.state) == (
        "nlp",
        False,
        ProposalState.PENDING,
    )
    assert isinstance(capacity_change.work, ManualStep)
    assert capacity_change.work.operation == "CreateTrainingJob"
    assert "EnableManagedSpotTraining" not in capacity_change.work.request
    assert "MaxWaitTimeInSeconds" not in capacity_change.work.request["StoppingCondition"]
    assert fits_the_model("CreateTrainingJob", capacity_change.work.request)
    other = dict(capacity_change.facts)
    assert "EnableManagedSpotTraining" in other["Or on Spot of ml.g5.2xlarge"]
    assert look(scene) == (), "told once"


def test_an_undisturbed_job_asks_nothing(scene: Scene) -> None:
    scene.spot.jobs.train("bert", hours_ago=2)
    assert look(scene) == ()


def test_earlier_runs_say_how_much_is_left(scene: Scene) -> None:
    finished(scene, "bert-2026-01-01-10-00-00-123", hours=3)
    past = interrupted(scene, trained_h=2, waited_h=2)
    scene.spot.jobs.train("bert-2026-01-02-10-00-00-123", hours_ago=4, SecondaryStatusTransitions=past)
    assert look(scene, "bert-2026-01-02-10-00-00-123") == (), "one hour is left, MaxWait has sixteen"


def test_each_interruption_is_counted_once(scene: Scene) -> None:
    scene.spot.jobs.train("bert", SecondaryStatusTransitions=interrupted(scene, trained_h=8, waited_h=1))
    look(scene)
    look(scene)
    assert [found.kind for found in scene.occurrences() if found.kind == "training-interrupted"] == [
        "training-interrupted"
    ]


def test_a_job_that_waits_for_capacity_is_told_of_though_no_event_comes(scene: Scene) -> None:
    past = interrupted(scene, trained_h=2, waited_h=1)
    scene.spot.jobs.train("bert", hours_ago=3, SecondaryStatusTransitions=past)
    assert look(scene) == ()
    scene.box.clock.advance(4 * HOUR)
    (capacity_change,) = look(scene)
    assert capacity_change.headline == "bert will not be done before MaxWait ends it"


def test_without_checkpoints_the_owner_is_told_and_nothing_is_handed_over(scene: Scene) -> None:
    past = interrupted(scene, trained_h=2, waited_h=8)
    scene.spot.jobs.train("bert", SecondaryStatusTransitions=past, CheckpointConfig={"S3Uri": ""})
    (capacity_change,) = look(scene)
    assert capacity_change.command == ""
    assert "begins from nothing" in capacity_change.enable


def test_a_job_whose_owner_said_off_is_counted_only(scene: Scene) -> None:
    past = interrupted(scene, trained_h=2, waited_h=8)
    scene.spot.jobs.train("bert", tags={"rightsizer:mode": "off"}, SecondaryStatusTransitions=past)
    assert look(scene) == ()


def test_a_finished_on_demand_job_with_checkpoints_is_proposed_for_spot_once_for_all_its_runs(scene: Scene) -> None:
    finished(scene, "bert-2026-01-01-10-00-00-123")
    (capacity_change,) = look(scene, "bert-2026-01-01-10-00-00-123")
    assert "EnableManagedSpotTraining" in capacity_change.command
    finished(scene, "bert-2026-01-02-10-00-00-456")
    assert look(scene, "bert-2026-01-02-10-00-00-456") == ()


def test_a_job_that_is_gone_is_nothing_to_do(scene: Scene) -> None:
    assert look(scene, "never-was") == ()


def test_throttling_goes_up(scene: Scene) -> None:
    scene.spot.jobs.train("bert")
    scene.box.gate.fail("sagemaker", "DescribeTrainingJob", "ThrottlingException", times=100)
    with pytest.raises(ThrottledError):
        look(scene)


def test_a_mode_that_is_none_is_named(scene: Scene) -> None:
    scene.spot.jobs.train("bert", tags={"rightsizer:mode": "sometimes"})
    with pytest.raises(InputError, match="sometimes"):
        look(scene)


def pooled(scene: Scene, mode: str = "auto") -> None:
    resources = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "KeepAlivePeriodInSeconds": 14_400}
    finished(
        scene, "bert", ResourceConfig=resources | {"VolumeSizeInGB": 50},
        WarmPoolStatus={"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 3600},
    )  # fmt: skip
    if mode:
        scene.box.world.tags.put(scene.spot.jobs.jobs["bert"]["TrainingJobArn"], {"rightsizer:mode": mode})


def flow(scene: Scene) -> Flow:
    calls = CapacityChangeCalls(scene.box.client("autoscaling"), scene.box.client("sagemaker"))
    return Flow(book(scene), calls, calls, Switch, scene.ports.ledger, scene.told)


def pool(scene: Scene) -> str:
    return str(scene.spot.jobs.jobs["bert"]["WarmPoolStatus"]["Status"])


def test_an_idle_warm_pool_of_an_opted_in_owner_is_released_by_apply(scene: Scene) -> None:
    pooled(scene)
    (capacity_change,) = look(scene)
    assert capacity_change.state is ProposalState.APPROVED
    done = flow(scene).start(capacity_change.id, scene.box.clock.now)
    assert (pool(scene), done.state) == ("Terminated", ProposalState.PROVEN)


@pytest.mark.parametrize("mode", ["", "report", "propose"])
def test_the_warm_pool_of_another_owner_is_left(scene: Scene, mode: str) -> None:
    pooled(scene, mode)
    assert look(scene) == ()


def test_a_warm_pool_that_a_job_took_meanwhile_is_not_touched(scene: Scene) -> None:
    pooled(scene)
    (capacity_change,) = look(scene)
    scene.spot.jobs.jobs["bert"]["WarmPoolStatus"]["Status"] = "InUse"
    assert flow(scene).start(capacity_change.id, scene.box.clock.now).state is ProposalState.WITHDRAWN
    assert scene.box.calls.of("sagemaker", "UpdateTrainingJob") == []


def test_a_release_that_aws_refuses_is_handed_over(scene: Scene) -> None:
    pooled(scene)
    (capacity_change,) = look(scene)
    scene.box.deny("sagemaker:UpdateTrainingJob")
    done = flow(scene).start(capacity_change.id, scene.box.clock.now)
    assert done.state is ProposalState.HANDED_OVER
    assert "aws sagemaker update-training-job" in done.outcome


def test_a_handed_over_request_is_told_with_its_command_and_no_approve_button(scene: Scene) -> None:
    scene.spot.jobs.train("bert", SecondaryStatusTransitions=interrupted(scene, trained_h=2, waited_h=8))
    (errand,) = look(scene)
    blocks = str(capacity_change.blocks(errand))
    assert "rightsizer_approve" not in blocks
    assert "rightsizer_snooze" in blocks
    assert "create-training-job" in blocks
    assert "create-training-job" in capacity_change.plain(errand)[1]
    assert "create-training-job" in capacity_change.html(errand)


# HyperPod


SHORT = "We currently do not have sufficient capacity to launch new ml.g5.8xlarge instances."


def hyperpod(scene: Scene, moved: JobMoved) -> tuple[CapacityChange, ...]:
    ports = HyperPodPorts(TrainingJobs(scene.box.client("sagemaker")), book(scene), scene.ports.ledger, KNOWN)
    return look_at_cluster(ports, moved, scene.box.clock.now)


def said(scene: Scene, detail: str, status: str = "Error") -> JobMoved:
    return JobMoved("hyperpod-cluster", "big", status, detail, scene.box.clock.now, "k1")


def clustered(scene: Scene, *groups: dict[str, Any], **over: Any) -> None:
    scene.spot.jobs.clusters["big"] = CLUSTER | {"InstanceGroups": list(groups)} | over


def test_a_short_group_with_several_types_is_offered_more_with_all_groups_in_the_request(scene: Scene) -> None:
    clustered(scene, row("a", CurrentCount=4), row("b", InstanceRequirements=MANY, CapacityRequirements={"Spot": {}}))
    (capacity_change,) = hyperpod(scene, said(scene, SHORT))
    assert isinstance(capacity_change.work, ManualStep)
    assert capacity_change.work.operation == "UpdateCluster"
    assert [group["InstanceGroupName"] for group in capacity_change.work.request["InstanceGroups"]] == ["a", "b"]
    assert len(capacity_change.work.request["InstanceGroups"][1]["InstanceRequirements"]["InstanceTypes"]) > 1
    assert fits_the_model("UpdateCluster", capacity_change.work.request)
    assert hyperpod(scene, said(scene, SHORT)) == (), "asked once"


def test_a_short_spot_group_of_one_type_gets_a_group_of_on_demand_beside_it(scene: Scene) -> None:
    clustered(scene, row("b", CapacityRequirements={"Spot": {}}))
    (capacity_change,) = hyperpod(scene, said(scene, SHORT))
    assert isinstance(capacity_change.work, ManualStep)
    added = capacity_change.work.request["InstanceGroups"][-1]
    assert (added["InstanceType"], added["InstanceCount"]) == ("ml.g5.8xlarge", 3)
    assert added["CapacityRequirements"] == {"OnDemand": {}}


def test_a_short_on_demand_group_gets_a_group_of_another_type_beside_it(scene: Scene) -> None:
    clustered(scene, row("a"))
    (capacity_change,) = hyperpod(scene, said(scene, SHORT))
    assert isinstance(capacity_change.work, ManualStep)
    assert capacity_change.work.request["InstanceGroups"][-1]["InstanceType"] != "ml.g5.8xlarge"


def test_an_event_that_speaks_of_no_capacity_reads_and_asks_nothing(scene: Scene) -> None:
    clustered(scene, row("a"))
    assert hyperpod(scene, said(scene, "Lifecycle script started", "Info")) == ()
    assert scene.box.calls.of("sagemaker", "DescribeCluster") == []


def test_a_cluster_that_is_not_understood_is_recorded_with_the_reason(scene: Scene) -> None:
    clustered(scene, row("a", SomethingNew=1))
    # moto's front drops members that the model does not know, so the refusal is asked for by another one
    clustered(scene, row("a"), RestrictedInstanceGroups=[{"InstanceGroupName": "r"}])
    assert hyperpod(scene, said(scene, SHORT)) == ()
    assert any("restricted instance groups" in found.text for found in scene.occurrences())


@pytest.mark.parametrize(("recovery", "words"), [("Automatic", "HyperPod replaces it"), ("None", "replace it (Batch")])
def test_a_sick_node_is_recorded_with_who_replaces_it(scene: Scene, recovery: str, words: str) -> None:
    clustered(scene, row("a"), NodeRecovery=recovery)
    moved = JobMoved("hyperpod-node", "big/i-1", "Unhealthy", "NvidiaErrorTerminate", scene.box.clock.now, "k2")
    assert hyperpod(scene, moved) == ()
    assert words in scene.occurrences()[-1].text


def test_a_cluster_that_is_gone_is_nothing_to_do(scene: Scene) -> None:
    assert hyperpod(scene, said(scene, SHORT)) == ()


def test_the_event_of_the_sandbox_is_the_one_that_intake_reads(scene: Scene) -> None:
    scene.spot.jobs.train("bert")
    scene.spot.jobs.emit("bert")
    moved = parse(scene.box.events_of("SageMaker Training Job State Change")[-1])
    assert isinstance(moved, JobMoved)
    assert (moved.resource, moved.name, moved.status) == ("training-job", "bert", "InProgress")
