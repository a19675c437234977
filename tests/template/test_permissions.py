"""What each role may do, read from the translated template at its widest."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.template.stack import DOORS, EVERYTHING, Stack, listed, stack

READS = re.compile(r":(Describe|Get|List|Search|BatchGet|Query|Simulate|ConditionCheck|Receive|Decrypt)")
SERVES = ("sagemaker", "application-autoscaling", "autoscaling", "ec2", "cloudwatch", "iam", "lambda", "ecr", "kms")
"""Services in which a write can touch what serves, or who may."""
MODE, CHANGE = "rightsizer:mode", "rightsizer:change"


@pytest.fixture(scope="module")
def deployed() -> Stack:
    return stack(**EVERYTHING)


def writes(found: Stack, door: str) -> set[str]:
    return {a for a in found.actions(door) if not READS.search(a) and a.split(":")[0] in SERVES}


def granting(found: Stack, door: str, action: str) -> list[dict[str, Any]]:
    return [s for s in found.statements(door) if action in listed(s["Action"])]


def only(found: Stack, door: str, action: str, resource: str) -> dict[str, Any]:
    """The one statement that gives the action on resources of this kind."""
    given = [s for s in granting(found, door, action) if any(resource in r for r in listed(s["Resource"]))]
    assert len(given) == 1, f"{action} on {resource}: {len(given)} statements"
    return given[0]


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"apply", "hours", "interruption", "propose"}))
def test_no_other_door_can_write_to_what_serves(door: str, deployed: Stack) -> None:
    assert writes(deployed, door) == set()


def test_interruption_writes_to_auto_scaling_groups_only(deployed: Stack) -> None:
    assert writes(deployed, "interruption") == {
        "autoscaling:DetachInstances",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
    }


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"hours"}))
def test_no_other_role_can_delete_an_endpoint_or_a_configuration(door: str, deployed: Stack) -> None:
    for action in deployed.actions(door):
        assert not action.startswith("sagemaker:Delete"), action


@pytest.mark.parametrize("door", DOORS)
def test_no_action_is_a_wildcard(door: str, deployed: Stack) -> None:
    assert [action for action in deployed.actions(door) if "*" in action] == []
    assert not [s for s in deployed.statements(door) if "NotAction" in s or "NotResource" in s]


@pytest.mark.parametrize("door", DOORS)
def test_no_write_reaches_every_resource(door: str, deployed: Stack) -> None:
    for statement in deployed.statements(door):
        for action in listed(statement["Action"]):
            assert READS.search(action) or "*" not in listed(statement["Resource"]), action


@pytest.mark.parametrize("door", DOORS)
def test_only_logging_comes_from_a_managed_policy(door: str, deployed: Stack) -> None:
    role = deployed.of("AWS::IAM::Role")[f"{door.capitalize()}Role"]
    assert role["ManagedPolicyArns"] == ["arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"]


@pytest.mark.parametrize("action", ["sagemaker:UpdateEndpoint", "sagemaker:UpdateEndpointWeightsAndCapacities"])
@pytest.mark.parametrize(
    ("may_change", "operator"), [("tagged", "StringEquals"), ("tagged-and-untagged", "StringEqualsIfExists")]
)
def test_an_endpoint_is_written_only_when_its_tag_allows(action: str, may_change: str, operator: str) -> None:
    statement = only(stack(MayChange=may_change), "apply", action, ":endpoint/")
    assert statement["Condition"] == {operator: {f"aws:ResourceTag/{MODE}": ["propose", "auto"]}}


def allowed(condition: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    """IAM's own rule for the two operators that the endpoint statement uses."""
    ((operator, test),) = condition.items()
    ((key, values),) = test.items()
    value = tags.get(key.removeprefix("aws:ResourceTag/"))
    return operator.endswith("IfExists") if value is None else value in values


@pytest.mark.parametrize("may_change", ["tagged", "tagged-and-untagged"])
@pytest.mark.parametrize("mode", ["off", "report", "propose", "auto", "AUTO", "", None])
def test_off_and_report_stay_out_of_reach_whatever_the_parameter(may_change: str, mode: str | None) -> None:
    statement = only(stack(MayChange=may_change), "apply", "sagemaker:UpdateEndpoint", ":endpoint/")
    tags = {} if mode is None else {MODE: mode}
    untagged = mode is None and may_change == "tagged-and-untagged"
    assert allowed(statement["Condition"], tags) == (mode in ("propose", "auto") or untagged)


def test_an_endpoint_is_moved_only_to_a_configuration_of_a_change(deployed: Stack) -> None:
    used = only(deployed, "apply", "sagemaker:UpdateEndpoint", ":endpoint-config/")
    made = only(deployed, "apply", "sagemaker:CreateEndpointConfig", ":endpoint-config/")
    assert used["Condition"] == {"Null": {f"aws:ResourceTag/{CHANGE}": "false"}}
    assert made["Condition"] == {"Null": {f"aws:RequestTag/{CHANGE}": "false"}}


def test_tags_are_put_on_configurations_only_and_only_with_the_change(deployed: Stack) -> None:
    (statement,) = granting(deployed, "apply", "sagemaker:AddTags")
    assert statement["Condition"] == {"Null": {f"aws:RequestTag/{CHANGE}": "false"}}
    assert [r.split(":")[-1] for r in listed(statement["Resource"])] == ["endpoint-config/*"]


def test_autoscaling_is_limited_to_sagemaker_of_this_account_and_region(deployed: Stack) -> None:
    for action in writes(deployed, "apply"):
        if action.startswith("application-autoscaling:"):
            (statement,) = granting(deployed, "apply", action)
            assert ":eu-west-1:111122223333:scalable-target/" in statement["Resource"]
            by_namespace = {"StringEquals": {"application-autoscaling:service-namespace": "sagemaker"}}
            assert statement.get("Condition") == (None if action.endswith(":TagResource") else by_namespace)


def test_alarms_are_deleted_only_by_our_prefix_and_tag_or_as_those_of_target_tracking(deployed: Stack) -> None:
    given = {
        resource.split(":alarm:")[1]: s.get("Condition")
        for s in granting(deployed, "apply", "cloudwatch:DeleteAlarms")
        for resource in listed(s["Resource"])
    }
    assert given == {
        "rightsizer-c-*": {"Null": {f"aws:ResourceTag/{CHANGE}": "false"}},
        "rightsizer-wake-*": {"Null": {f"aws:ResourceTag/{CHANGE}": "false"}},
        "TargetTracking-endpoint/*": None,
        "TargetTracking-inference-component/*": None,
    }


@pytest.mark.parametrize(("edit", "reaches"), [("true", True), ("false", False)])
def test_alarms_of_the_user_are_edited_only_where_the_parameter_says_so(edit: str, reaches: bool) -> None:
    found = granting(stack(EditUserAlarms=edit), "apply", "cloudwatch:PutMetricAlarm")
    assert any(r.endswith(":alarm:*") for s in found for r in listed(s["Resource"])) is reaches


def test_the_alarms_of_this_stack_cannot_be_written_over() -> None:
    found = stack(**EVERYTHING | {"EditUserAlarms": "false"})
    patterns = [r for s in granting(found, "apply", "cloudwatch:PutMetricAlarm") for r in listed(s["Resource"])]
    for name, alarm in found.of("AWS::CloudWatch::Alarm").items():
        arn = f"arn:aws:cloudwatch:eu-west-1:111122223333:alarm:{alarm['AlarmName']}"
        assert not any(fnmatchcase(arn, pattern) for pattern in patterns), name
    for ours in ("rightsizer-c-0123456789abcdef-p95", "rightsizer-wake-chat"):
        arn = f"arn:aws:cloudwatch:eu-west-1:111122223333:alarm:{ours}"
        assert any(fnmatchcase(arn, pattern) for pattern in patterns), ours


def test_iam_is_asked_about_roles_of_this_account_only(deployed: Stack) -> None:
    (statement,) = granting(deployed, "apply", "iam:SimulatePrincipalPolicy")
    assert statement["Resource"] == "arn:aws:iam::111122223333:role/*"


def test_a_key_of_the_customers_decrypts_the_slack_secret_and_nothing_else(deployed: Stack) -> None:
    for door in DOORS:
        reads = "secretsmanager:GetSecretValue" in deployed.actions(door)
        assert ("kms:Decrypt" in deployed.actions(door)) is reads, door
        for statement in granting(deployed, door, "kms:Decrypt"):
            assert statement["Condition"]["StringEquals"] == {
                "kms:ViaService": "secretsmanager.eu-west-1.amazonaws.com",
                "kms:EncryptionContext:SecretARN": EVERYTHING["SlackSecretArn"],
            }


def test_the_alarms_of_this_stack_cannot_be_deleted_for_want_of_the_tag() -> None:
    for name, alarm in stack(**EVERYTHING).of("AWS::CloudWatch::Alarm").items():
        assert CHANGE not in {tag["Key"] for tag in alarm.get("Tags", [])}, name


@pytest.mark.parametrize("door", ["apply", "interruption"])
def test_a_stack_that_only_reads_has_no_write_permission(door: str) -> None:
    found = stack(**EVERYTHING | {"MayChange": "read-only"})
    assert writes(found, door) == set()
    assert found.function(door)["Environment"]["Variables"]["RIGHTSIZER_DRY_RUN"] == "true"


GOING_BACK = {
    "sagemaker:UpdateEndpoint",
    "sagemaker:UpdateEndpointWeightsAndCapacities",
    "sagemaker:UpdateInferenceComponent",
    "sagemaker:UpdateInferenceComponentRuntimeConfig",
    "application-autoscaling:RegisterScalableTarget",
    "application-autoscaling:DeregisterScalableTarget",
    "application-autoscaling:PutScalingPolicy",
    "application-autoscaling:DeleteScalingPolicy",
    "application-autoscaling:PutScheduledAction",
    "application-autoscaling:TagResource",
    "cloudwatch:PutMetricAlarm",
    "cloudwatch:DeleteAlarms",
    "kms:CreateGrant",
    "autoscaling:UpdateAutoScalingGroup",
    "ec2:RunInstances",
}


def test_with_nothing_to_change_only_what_goes_back_is_allowed() -> None:
    found = stack(**EVERYTHING | {"MayChange": "nothing"})
    assert writes(found, "apply") == GOING_BACK
    assert writes(found, "interruption") == set()
    assert found.function("apply")["Environment"]["Variables"]["RIGHTSIZER_DRY_RUN"] == "true"


def test_going_back_reaches_opted_in_endpoints_and_configurations_of_a_change_only() -> None:
    """A stack that never changed anything has tagged no configuration, so that it can deploy none."""
    found = stack(**EVERYTHING | {"MayChange": "nothing"})
    opted_in = {"StringEquals": {f"aws:ResourceTag/{MODE}": ["propose", "auto"]}}
    assert only(found, "apply", "sagemaker:UpdateEndpoint", ":endpoint/")["Condition"] == opted_in
    assert only(found, "apply", "sagemaker:UpdateInferenceComponent", ":inference-component/")["Condition"] == opted_in
    used = only(found, "apply", "sagemaker:UpdateEndpoint", ":endpoint-config/")
    assert used["Condition"] == {"Null": {f"aws:ResourceTag/{CHANGE}": "false"}}
    assert found.actions("apply").isdisjoint({"sagemaker:CreateEndpointConfig", "sagemaker:AddTags"})


def test_with_nothing_to_change_no_alarm_but_those_of_target_tracking_is_put() -> None:
    found = stack(**EVERYTHING | {"MayChange": "nothing", "EditUserAlarms": "false"})
    (put,) = granting(found, "apply", "cloudwatch:PutMetricAlarm")
    kinds = [resource.partition(":alarm:")[2] for resource in listed(put["Resource"])]
    assert kinds == ["TargetTracking-endpoint/*", "TargetTracking-inference-component/*"]


def test_groups_are_replaced_in_automatic_mode_only(deployed: Stack) -> None:
    (replace,) = granting(deployed, "interruption", "autoscaling:DetachInstances")
    assert replace["Condition"] == {"StringEquals": {f"aws:ResourceTag/{MODE}": ["auto"]}}


@pytest.mark.parametrize("may_change", ["nothing", "tagged", "tagged-and-untagged"])
def test_a_group_is_changed_and_given_its_policy_back_only_where_its_owner_opted_in(may_change: str) -> None:
    (update,) = granting(stack(MayChange=may_change), "apply", "autoscaling:UpdateAutoScalingGroup")
    assert update["Condition"] == {"StringEquals": {f"aws:ResourceTag/{MODE}": ["propose", "auto"]}}


@pytest.mark.parametrize("may_change", ["nothing", "tagged"])
def test_instances_run_only_as_a_tagged_launch_template_says(may_change: str) -> None:
    deployed = stack(MayChange=may_change)
    template, rest = granting(deployed, "apply", "ec2:RunInstances")
    assert template["Condition"] == {"StringEquals": {f"aws:ResourceTag/{MODE}": ["propose", "auto"]}}
    assert [r.split(":")[-1] for r in listed(template["Resource"])] == ["launch-template/*"]
    assert list(rest["Condition"]) == ["ArnLike"]
    assert list(rest["Condition"]["ArnLike"]) == ["ec2:LaunchTemplate"]
    kinds = {r.split(":")[-1] for r in listed(rest["Resource"])}
    assert kinds >= {"placement-group/*", "instance/*", "volume/*"}
    assert "launch-template/*" not in kinds
    assert "iam:PassRole" not in deployed.actions("apply")


def test_respond_can_record_a_decision_on_a_proposal_read_its_secret_and_link_pages_and_nothing_else(
    deployed: Stack,
) -> None:
    assert deployed.actions("respond") - {"sqs:SendMessage"} == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "kms:Decrypt",
        "s3:GetObject",
        "secretsmanager:GetSecretValue",
        "ssm:GetParameter",
    }
    record, wake = granting(deployed, "respond", "dynamodb:PutItem")
    assert record["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["PROPOSAL#*"]}}
    assert wake["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["WAKE#*"]}}
    frozen, seen = [s for s in granting(deployed, "respond", "dynamodb:GetItem") if s not in (record, wake)]
    assert frozen["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["CONTROL"]}}
    assert seen["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["HOURS#*"]}}


def test_respond_sees_and_asks_nothing_of_office_hours_in_a_stack_that_stops_nothing() -> None:
    found = stack(**EVERYTHING | {"MayStop": "nothing"})
    (record,) = granting(found, "respond", "dynamodb:PutItem")
    assert record["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["PROPOSAL#*"]}}
    assert [s["Sid"] for s in granting(found, "respond", "dynamodb:GetItem")] == [
        record["Sid"],
        "SeeWhetherAllIsFrozen",
    ]


def test_the_picture_reads_one_proposal_and_its_metrics_and_writes_where_the_picture_is(deployed: Stack) -> None:
    assert deployed.actions("picture") - {"sqs:SendMessage"} == {
        "cloudwatch:GetMetricData",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "kms:Decrypt",
        "secretsmanager:GetSecretValue",
        "ssm:GetParameter",
    }
    (kept,) = granting(deployed, "picture", "dynamodb:PutItem")
    assert kept["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["MESSAGE#picture#*"]}}
    (read,) = granting(deployed, "picture", "dynamodb:GetItem")
    assert read["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["PROPOSAL#*", "MESSAGE#*"]}}


def test_propose_may_start_the_picture_and_no_other_function(deployed: Stack) -> None:
    assert writes(deployed, "propose") == {"lambda:InvokeFunction"}
    (start,) = granting(deployed, "propose", "lambda:InvokeFunction")
    assert start["Resource"] == "Picture.Arn"


def test_without_slack_there_is_no_public_door_and_no_secret_is_readable() -> None:
    found = stack()
    assert found.of("AWS::Lambda::Url") == {}
    assert "Respond" not in found.of("AWS::Lambda::Function")
    for door in set(DOORS) - {"respond", "picture", "hours"}:
        assert "secretsmanager:GetSecretValue" not in found.actions(door)


def test_only_alarms_of_this_account_may_invoke_evaluate(deployed: Stack) -> None:
    permissions = [p for p in deployed.of("AWS::Lambda::Permission").values() if p["FunctionName"] == "Evaluate"]
    assert [(p["Principal"], p["SourceAccount"]) for p in permissions] == [
        ("lambda.alarms.cloudwatch.amazonaws.com", "111122223333")
    ]
    assert permissions[0]["SourceArn"] == "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:*"


def test_every_door_reads_the_one_policy_document_and_none_writes_it(deployed: Stack) -> None:
    for door in DOORS:
        (statement,) = granting(deployed, door, "ssm:GetParameter")
        assert statement["Resource"] == "arn:aws:ssm:eu-west-1:111122223333:parameter/rightsizer/policy"
        assert {action for action in deployed.actions(door) if action.startswith("ssm:")} == {"ssm:GetParameter"}


def test_a_stack_without_a_policy_document_may_read_no_parameter() -> None:
    for door in set(DOORS) - {"respond", "hours", "picture"}:
        assert not [action for action in stack().actions(door) if action.startswith("ssm:")]
