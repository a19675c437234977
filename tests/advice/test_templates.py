"""Templates of the advised endpoint: by cfn-lint, by the formatter of Terraform, and by what they hold."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.blueprint import Blueprint, blueprint
from rightsizer.advice.cloudformation import cloudformation
from rightsizer.advice.describe import workload_of
from rightsizer.advice.terraform import terraform
from rightsizer.errors import InputError

LLM: dict[str, Any] = {
    "task": "real-time",
    "model": {"kind": "llm", "name": "llama-3-8b"},
    "traffic": {"requests_per_second": 5},
    "objectives": {"p95_ms": 9000},
}
QUEUED: dict[str, Any] = {"task": "asynchronous", "model": {"kind": "vision", "parameters": 1e9}}
RARE: dict[str, Any] = {
    "task": "real-time",
    "model": {"kind": "classical"},
    "traffic": {"requests_per_month": 1000},
    "data": {"seconds_per_request": 0.2},
}
UNKNOWN: dict[str, Any] = {"task": "real-time", "model": {"kind": "vision"}}
STAGING = {**LLM, "constraints": {"environment": "staging"}}
DEV = {**LLM, "constraints": {"environment": "dev"}}
KINDS = {
    "real-time": LLM,
    "asynchronous": QUEUED,
    "serverless": RARE,
    "unknown": UNKNOWN,
    "unknown-dev": {**UNKNOWN, "constraints": {"environment": "dev"}},
    "staging": STAGING,
    "dev": DEV,
}


def lint(text: str) -> list[Any]:
    """What cfn-lint says about a template; it is imported where it is needed, which takes seconds."""
    from cfnlint.api import lint

    return list(lint(text, regions=["us-east-1"]))


def made_of(described: dict[str, Any]) -> Blueprint:
    return blueprint(workload_of(described), advise(described))


def resources(described: dict[str, Any]) -> dict[str, Any]:
    found = yaml.safe_load(cloudformation(made_of(described)))["Resources"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_cloudformation_has_no_finding_of_cfn_lint(kind: str) -> None:
    assert [str(each) for each in lint(cloudformation(made_of(KINDS[kind])))] == []


def test_cfn_lint_finds_a_property_that_does_not_exist() -> None:
    wrong = cloudformation(made_of(LLM)).replace("InitialInstanceCount", "InitialInstances")
    assert lint(wrong) != []


@pytest.mark.parametrize("kind", KINDS)
def test_terraform_is_written_as_its_own_formatter_writes_it(kind: str) -> None:
    program = shutil.which("terraform") or shutil.which("tofu")
    if program is None:
        pytest.skip("neither terraform nor tofu is on PATH: the syntax is not checked")
    text = terraform(made_of(KINDS[kind]))
    done = subprocess.run([program, "fmt", "-check", "-diff", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_braces_of_terraform_close(kind: str) -> None:
    text = terraform(made_of(KINDS[kind]))
    assert text.count("{") == text.count("}")
    assert text.count('"') % 2 == 0


def test_production_has_two_instances_a_canary_alarms_and_its_objective_as_tag() -> None:
    found = resources(LLM)
    (variant,) = found["Configuration"]["Properties"]["ProductionVariants"]
    assert (variant["InitialInstanceCount"], found["ScalingTarget"]["Properties"]["MinCapacity"]) == (2, 2)
    endpoint = found["Endpoint"]["Properties"]
    guard = endpoint["DeploymentConfig"]
    routing = guard["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert (routing["Type"], routing["CanarySize"]) == ("CANARY", {"Type": "INSTANCE_COUNT", "Value": 1})
    alarms = [each["AlarmName"]["Ref"] for each in guard["AutoRollbackConfiguration"]["Alarms"]]
    assert alarms == ["ErrorAlarm", "LatencyAlarm"]
    assert found["LatencyAlarm"]["Properties"]["Threshold"] == 9_000_000
    tags = {each["Key"]: each["Value"] for each in endpoint["Tags"]}
    assert tags == {"rightsizer:mode": "propose", "rightsizer:p95-ms": "9000", "rightsizer:min-instances": "2"}


def test_one_instance_has_no_canary() -> None:
    guard = resources(QUEUED)["Endpoint"]["Properties"]["DeploymentConfig"]
    assert guard["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"] == "ALL_AT_ONCE"


def test_an_asynchronous_endpoint_grows_from_zero_by_two_policies() -> None:
    found = resources(QUEUED)
    assert found["ScalingTarget"]["Properties"]["MinCapacity"] == 0
    kinds = {name: each["Properties"].get("PolicyType") for name, each in found.items() if "Policy" in name}
    assert kinds == {"ScalingPolicy": "TargetTrackingScaling", "WakePolicy": "StepScaling"}
    assert found["WakeAlarm"]["Properties"]["MetricName"] == "HasBacklogWithoutCapacity"
    assert 'resource "aws_appautoscaling_policy" "wake"' in terraform(made_of(QUEUED))


def test_a_serverless_endpoint_has_memory_and_no_scaling() -> None:
    found = resources(RARE)
    (variant,) = found["Configuration"]["Properties"]["ProductionVariants"]
    assert variant["ServerlessConfig"]["MemorySizeInMB"] % 1024 == 0
    assert not [name for name in found if "Scaling" in name]
    assert "aws_appautoscaling" not in terraform(made_of(RARE))


def test_the_load_of_an_instance_is_a_parameter_without_value_where_nobody_knows_it() -> None:
    known = yaml.safe_load(cloudformation(made_of(LLM)))["Parameters"]["RequestsPerInstance"]
    assert known["Default"] > 0
    assert "Default" not in yaml.safe_load(cloudformation(made_of(UNKNOWN)))["Parameters"]["RequestsPerInstance"]


@pytest.mark.parametrize("kind", ["unknown", "unknown-dev"])
def test_a_type_for_a_model_of_unknown_size_is_asked_for_and_never_guessed(kind: str) -> None:
    text = cloudformation(made_of(KINDS[kind]))
    asked = yaml.safe_load(text)["Parameters"]["InstanceType"]
    assert "Default" not in asked
    assert "size of the model is not known" in asked["Description"]
    assert not re.search(r"ml\.[a-z]", text + terraform(made_of(KINDS[kind])))
    assert 'variable "instance_type"' in terraform(made_of(KINDS[kind]))
    assert "InstanceType" not in yaml.safe_load(cloudformation(made_of(LLM)))["Parameters"]


@pytest.mark.parametrize("described", [STAGING, DEV])
def test_an_endpoint_in_working_hours_is_created_and_deleted_by_schedules(described: dict[str, Any]) -> None:
    made = yaml.safe_load(cloudformation(made_of(described)))
    found = {name: each["Properties"] for name, each in made["Resources"].items()}
    assert set(found) == {"Configuration", "ScheduleRole", "StartSchedule", "StopSchedule"}
    assert made["Parameters"]["Starts"]["Default"] == "cron(0 9 ? * MON-FRI *)"
    assert made["Parameters"]["Stops"]["Default"] == "cron(0 17 ? * MON-FRI *)"
    start = json.loads(found["StartSchedule"]["Target"]["Input"]["Fn::Sub"])
    assert start["EndpointName"] == "${EndpointName}"
    assert {"Key": "rightsizer:mode", "Value": made_of(described).tags["rightsizer:mode"]} in start["Tags"]
    assert found["StopSchedule"]["Target"]["Arn"]["Fn::Sub"].endswith(":aws-sdk:sagemaker:deleteEndpoint")
    text = terraform(made_of(described))
    assert text.count('resource "aws_scheduler_schedule"') == 2
    assert 'resource "aws_sagemaker_endpoint" ' not in text


def test_given_hours_are_those_of_the_schedule() -> None:
    long = {"requests_per_second": 5, "hours_per_day": 16, "days_per_month": 30}
    assert made_of({**STAGING, "traffic": long}).hours == ("cron(0 7 ? * * *)", "cron(0 23 ? * * *)")
    assert made_of(LLM).hours is None


@pytest.mark.parametrize(
    "described",
    [
        {"task": "training", "model": {"kind": "llm", "parameters": 1e9}},
        {"task": "batch-inference", "model": {"kind": "classical"}},
        {"task": "real-time", "model": {"kind": "llm", "parameters": 9e12}},
    ],
)
def test_what_is_no_endpoint_has_no_template(described: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="a template describes an endpoint"):
        made_of(described)
