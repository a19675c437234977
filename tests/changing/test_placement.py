"""The placement of inference components: each gets its whole specification back with another strategy."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.reason import Code
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from sandbox.gate import Call
from sandbox.sagemaker.deployment import Ending
from sandbox.seeding import IMAGE
from tests.changing import scenarios
from tests.changing.world import NAME, World
from tests.faults.drive import scenario_world

SCENARIO = scenarios.PLACEMENT
WHOLE: Mapping[str, Any] = {
    "ModelName": "m-1",
    "Container": {
        "Image": IMAGE,
        "ArtifactUrl": "s3://models/m.tar.gz",
        "Environment": {"TP": "1"},
        "ContainerMetricsConfig": {"MetricsEndpoints": [{"MetricsEndpointPath": "/metrics"}]},
    },
    "StartupParameters": {"ModelDataDownloadTimeoutInSeconds": 900, "ContainerStartupHealthCheckTimeoutInSeconds": 600},
    "ComputeResourceRequirements": {
        "NumberOfCpuCoresRequired": 2.0,
        "NumberOfAcceleratorDevicesRequired": 1.0,
        "MinMemoryRequiredInMb": 1024,
        "MaxMemoryRequiredInMb": 4096,
    },
    "DataCacheConfig": {"EnableCaching": True},
    "SchedulingConfig": {
        "PlacementStrategy": "SPREAD",
        "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 1},
    },
}
"""Every field that a component with resources of its own may have."""


def of(w: World, name: str) -> Any:
    return w.box.world.components.known[name]


def updates(w: World) -> list[Mapping[str, Any]]:
    return [c.params for c in w.box.calls.of("sagemaker", "UpdateInferenceComponent")]


def seeded(specification: Mapping[str, Any]) -> scenarios.Scenario:
    """The scenario with one component of this specification."""

    def seed(box: Sandbox) -> None:
        scenarios.components(box)
        box.world.components.known["small"].specification = dict(specification)

    target = Target("ml.g5.4xlarge", 2, placement=(("small", "BINPACK"),))
    return replace(SCENARIO, seed=seed, option=replace(SCENARIO.option, target=target))


def refused(change: Change) -> str:
    assert change.state is ChangeState.REFUSED, change.outcome
    return change.outcome


def test_both_components_are_packed_one_after_the_other_and_the_change_is_proven() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.PROVEN, change.outcome
        found = {n: c.specification["SchedulingConfig"] for n, c in w.box.world.components.known.items()}
        asked = updates(w)
    assert found == {n: {"PlacementStrategy": "BINPACK"} for n in ("small", "large")}
    assert [p["InferenceComponentName"] for p in asked] == ["small", "large"]
    assert [p["RuntimeConfig"] for p in asked] == [{"CopyCount": 3}, {"CopyCount": 1}]
    assert [p["DeploymentConfig"]["RollingUpdatePolicy"]["MaximumBatchSize"]["Value"] for p in asked] == [50, 50]
    assert all(len(p["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]) == 2 for p in asked)


def test_a_whole_specification_differs_in_the_strategy_alone_and_comes_back_as_it_was() -> None:
    with scenario_world(seeded(WHOLE)) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
        packed = of(w, "small").specification
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        back = of(w, "small").specification
    scheduling = {**WHOLE["SchedulingConfig"], "PlacementStrategy": "BINPACK"}
    assert packed == {**WHOLE, "SchedulingConfig": scheduling}
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert back == WHOLE


def test_specifications_for_several_types_are_all_carried() -> None:
    rows = [{**WHOLE, "InstanceType": kind} for kind in ("ml.g5.4xlarge", "ml.g6.4xlarge")]
    with scenario_world(seeded({"Specifications": rows})) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
        found = of(w, "small").specification["Specifications"]
    assert [row["InstanceType"] for row in found] == ["ml.g5.4xlarge", "ml.g6.4xlarge"]
    assert {row["SchedulingConfig"]["PlacementStrategy"] for row in found} == {"BINPACK"}


def test_copies_that_autoscaling_added_meanwhile_stay() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        w.run(0.1)
        of(w, "large").desired = of(w, "large").copies = 4
        assert w.run(12).state is ChangeState.PROVEN
        assert (of(w, "large").copies, of(w, "small").copies) == (4, 3)


@pytest.mark.parametrize(
    ("ending", "state", "words"),
    [(Ending.CAPACITY, "planned", "want of capacity"), (Ending.HEALTH_CHECK, "rolled-back", "ping health check")],
)
def test_a_roll_that_aws_takes_back_is_not_repeated_and_the_first_component_goes_back(
    ending: Ending, state: str, words: str
) -> None:
    with scenario_world(SCENARIO) as w:
        w.box.script_component("large", ending)
        w.start()
        w.run(4)
        asked = [(p["InferenceComponentName"], strategy(p)) for p in updates(w)]
        placed = {n: c.specification.get("SchedulingConfig") for n, c in w.box.world.components.known.items()}
        failed = w.change
    assert asked == [("small", "BINPACK"), ("large", "BINPACK"), ("small", "SPREAD")]
    assert placed == {"small": {"PlacementStrategy": "SPREAD"}, "large": None}
    assert (failed.state.value, words in failed.outcome) == (state, True)


def strategy(params: Mapping[str, Any]) -> str:
    return str(params["Specification"]["SchedulingConfig"]["PlacementStrategy"])


def test_an_alarm_of_the_roll_ends_old() -> None:
    with scenario_world(SCENARIO) as w:
        w.box.script_component("small", Ending.ALARM)
        w.start()
        change = w.run(6)
        left = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
    assert (change.state, change.failure.value) == (ChangeState.ROLLED_BACK, "alarm")
    assert left == []


def test_a_component_that_failed_on_the_way_back_is_handed_over_with_its_line() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        w.box.script_component("small", Ending.FAILED)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        placed = of(w, "large").specification["SchedulingConfig"]["PlacementStrategy"]
    assert change.state is ChangeState.HANDED_OVER
    (line,) = change.remaining
    assert line.startswith("aws sagemaker update-inference-component ")
    assert '"InferenceComponentName": "small"' in line
    assert placed == "SPREAD"


def test_a_component_that_never_ends_its_roll_is_handed_over() -> None:
    with scenario_world(SCENARIO) as w:

        def after(call: Call) -> None:
            if call.operation == "UpdateInferenceComponent":
                of(w, "small").until = w.now + timedelta(days=30)

        w.box.gate.after = after
        w.start()
        change = w.run(30)
    assert change.state is ChangeState.HANDED_OVER
    assert change.failure.value == "timeout"
    assert change.remaining[0].startswith("aws sagemaker describe-inference-component ")
    assert '"PlacementStrategy": "SPREAD"' in change.remaining[1]


ADAPTER = {"BaseInferenceComponentName": "large", "Container": {"ArtifactUrl": "s3://adapters/a.tar.gz"}}
MIXED = {
    "Specifications": [
        {**WHOLE, "InstanceType": "ml.g5.4xlarge"},
        {**WHOLE, "InstanceType": "ml.g6.4xlarge", "SchedulingConfig": {"PlacementStrategy": "BINPACK"}},
    ]
}


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        (ADAPTER, "is an adapter of large"),
        (MIXED, "place its copies differently"),
        ({**WHOLE, "SchedulingConfig": {"PlacementStrategy": "BINPACK"}}, "are placed as asked"),
    ],
)
def test_what_cannot_be_placed_is_refused_before_anything_is_written(
    specification: Mapping[str, Any], words: str
) -> None:
    with scenario_world(seeded(specification)) as w:
        assert words in refused(w.start())
        assert [c for c in w.box.calls.writes() if c.service != "dynamodb"] == []


def test_a_field_that_nobody_here_knows_refuses_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightsizer.aws.components.unknown_paths", lambda shown: ("Specification.Newer",))
    with scenario_world(SCENARIO) as w:
        change = w.start()
        assert [c for c in w.box.calls.writes() if c.service != "dynamodb"] == []
    assert change.reason is not None
    assert change.reason.code is Code.UNKNOWN_FIELD
    assert "Specification.Newer" in refused(change)


def test_a_field_that_appears_between_the_plan_and_the_write_stops_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        monkeypatch.setattr("rightsizer.aws.components.unknown_paths", lambda shown: ("Specification.Newer",))
        change = w.run(6)
        assert updates(w) == []
    assert change.state is ChangeState.ROLLED_BACK
    assert "Specification.Newer" in change.outcome


def test_a_component_without_the_tag_is_refused_with_the_command() -> None:
    def untagged(box: Sandbox) -> None:
        scenarios.components(box)
        box.world.tags.remove(box.world.fleet.arn("inference-component", "large"), ["rightsizer:mode"])

    with scenario_world(replace(SCENARIO, seed=untagged)) as w:
        said = refused(w.start())
    assert "component large is absent" in said
    assert "aws sagemaker add-tags --region eu-west-1 --resource-arn" in said


def test_a_component_of_a_stack_is_left_to_it() -> None:
    def owned(box: Sandbox) -> None:
        scenarios.components(box)
        arn = box.world.fleet.arn("inference-component", "large")
        box.world.tags.put(arn, {"rightsizer:mode": "propose", "aws:cloudformation:stack-name": "models"})

    with scenario_world(replace(SCENARIO, seed=owned)) as w:
        assert "CloudFormation stack models owns component large" in refused(w.start())


def test_a_component_whose_image_tag_moved_would_bring_other_code() -> None:
    image = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat:2.5.1"
    specification = {**WHOLE, "Container": {**WHOLE["Container"], "Image": image}}
    with scenario_world(seeded(specification)) as w:
        w.apply.changer.components(["small"])  # the sandbox resolves it when it is first looked at
        w.box.move_image_tag(image)
        assert "would bring other code" in refused(w.start())


def test_a_component_that_was_deleted_meanwhile_ends_the_change() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        del w.box.world.components.known["large"]
        change = w.run(6)
        placed = of(w, "small").specification["SchedulingConfig"]["PlacementStrategy"]
    assert change.state is ChangeState.ROLLED_BACK
    assert "component large was deleted by somebody" in change.outcome
    assert placed == "SPREAD"


def test_the_endpoint_deploys_nothing() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        w.run(12)
        assert w.box.calls.of("sagemaker", "CreateEndpointConfig") == []
        assert w.box.config_name(NAME) == f"{NAME}-config"
