"""The role of the office hours: the owner's tag is its lock, and it cannot tag what it may then delete."""

import re

from sandbox.account import Sandbox
from sandbox.policies import Ask
from sandbox.role import Role
from tests.template.stack import EVERYTHING, Stack, source, stack
from tests.template.test_permissions import granting

ENDPOINT = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/chat"
CONFIG = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint-config/chat"
OWN_ALARM = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:rightsizer-errors"
TAGGED = {"aws:ResourceTag/rightsizer:hours": "mon-fri 08:00-19:00 UTC"}
GIVEN = {"aws:RequestTag/rightsizer:hours": "mon-fri 08:00-19:00 UTC"}
CREATES = {"sagemaker:TaggingAction": "CreateEndpoint"}


def allows(found: Stack, ask: Ask) -> bool:
    with Sandbox() as box:
        return Role(box.world, list(found.statements("hours"))).allows(ask)


def test_by_default_neither_the_function_nor_a_permission_to_delete_exists() -> None:
    found = stack()
    assert "Hours" not in found.of("AWS::Lambda::Function")
    assert not any("sagemaker:DeleteEndpoint" in str(role) for role in found.of("AWS::IAM::Role").values())
    assert not any("Hours" in name for name in found.of("AWS::Scheduler::Schedule"))


def test_an_endpoint_without_the_tag_is_neither_deleted_nor_created() -> None:
    found = stack(MayStop="tagged")
    assert allows(found, Ask("sagemaker:DeleteEndpoint", ENDPOINT, TAGGED))
    assert not allows(found, Ask("sagemaker:DeleteEndpoint", ENDPOINT, {"aws:ResourceTag/rightsizer:mode": "auto"}))
    assert allows(found, Ask("sagemaker:CreateEndpoint", ENDPOINT, GIVEN))
    assert allows(found, Ask("sagemaker:CreateEndpoint", CONFIG, GIVEN))
    assert not allows(found, Ask("sagemaker:CreateEndpoint", ENDPOINT, {}))


def test_it_tags_only_what_it_creates() -> None:
    found = stack(MayStop="tagged")
    assert allows(found, Ask("sagemaker:AddTags", ENDPOINT, GIVEN | CREATES))
    assert not allows(found, Ask("sagemaker:AddTags", ENDPOINT, GIVEN))
    assert not allows(found, Ask("sagemaker:AddTags", ENDPOINT, GIVEN | {"sagemaker:TaggingAction": "CreateModel"}))
    assert not allows(found, Ask("sagemaker:AddTags", CONFIG, GIVEN))


def test_it_deletes_no_configuration_and_no_model_and_changes_no_endpoint_otherwise() -> None:
    actions = stack(**EVERYTHING).actions("hours")
    assert {a for a in actions if a.startswith("sagemaker:Delete")} == {"sagemaker:DeleteEndpoint"}
    assert "sagemaker:UpdateEndpoint" not in actions
    assert "sagemaker:CreateEndpointConfig" not in actions


def test_it_leaves_the_alarms_of_the_stack_alone_and_those_of_users_unless_they_may_be_edited() -> None:
    found = stack(MayStop="tagged", EditUserAlarms="true")
    theirs = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:chat-errors"
    assert not allows(found, Ask("cloudwatch:DisableAlarmActions", OWN_ALARM))
    assert not allows(found, Ask("cloudwatch:PutMetricAlarm", OWN_ALARM))
    assert allows(found, Ask("cloudwatch:DisableAlarmActions", theirs))
    assert allows(found, Ask("cloudwatch:PutMetricAlarm", theirs))
    assert not allows(stack(MayStop="tagged"), Ask("cloudwatch:PutMetricAlarm", theirs))


def test_it_writes_its_own_rows_and_the_locks_of_endpoints_only() -> None:
    written, deleted = (
        [
            key
            for statement in granting(stack(MayStop="tagged"), "hours", action)
            for key in statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
        ]
        for action in ("dynamodb:PutItem", "dynamodb:DeleteItem")
    )
    assert written == ["HOURS#*", "LOCK#ENDPOINT#*", "OCCURRENCE#*", "PARKED#*", "ASLEEP#*"]
    assert deleted == [*written, "WAKE#*"], "orders to wake are taken up, and never made"


def test_a_stack_that_may_change_nothing_stops_nothing_and_still_brings_back_what_is_asleep() -> None:
    alarm = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:chat-errors"
    for may_change in ("nothing", "read-only"):
        found = stack(MayStop="tagged", MayChange=may_change)
        assert not allows(found, Ask("sagemaker:DeleteEndpoint", ENDPOINT, TAGGED))
        assert not allows(found, Ask("cloudwatch:DisableAlarmActions", alarm))
        assert allows(found, Ask("sagemaker:CreateEndpoint", ENDPOINT, GIVEN))
        assert allows(found, Ask("cloudwatch:EnableAlarmActions", alarm))


def test_a_function_that_does_not_run_raises_an_alarm_and_without_office_hours_there_is_none() -> None:
    alarm = stack(MayStop="tagged").of("AWS::CloudWatch::Alarm")["HoursLateAlarm"]
    assert (alarm["TreatMissingData"], alarm["ComparisonOperator"], alarm["Threshold"]) == (
        "breaching",
        "LessThanThreshold",
        1,
    )
    assert alarm["EvaluationPeriods"] * 300 <= 15 * 60, "whoever waits is told within 15 minutes"
    assert alarm["AlarmActions"]
    metrics = {row["Id"]: row for row in alarm["Metrics"]}
    assert {metrics[name]["MetricStat"]["Metric"]["MetricName"] for name in ("invocations", "errors")} == {
        "Invocations",
        "Errors",
    }
    assert "FILL(invocations" not in metrics["ran"]["Expression"], "missing invocations must stay missing, and breach"
    assert "HoursLateAlarm" not in stack().of("AWS::CloudWatch::Alarm")


def test_only_named_principals_may_put_events_on_the_bus_of_wakes_and_by_default_there_is_none() -> None:
    names = ("arn:aws:iam::111122223333:role/nightly-job", "arn:aws:iam::111122223333:user/ana")
    found = stack(MayStop="tagged", WakePrincipals=",".join(names))
    policies = {name: row["Statement"] for name, row in found.of("AWS::Events::EventBusPolicy").items()}
    allow, deny = policies["WakeBusAllow"], policies["WakeBusDeny"]
    assert allow["Principal"]["AWS"] == list(names)
    assert (deny["Effect"], deny["Principal"]) == ("Deny", "*")
    assert deny["Condition"] == {"ArnNotEquals": {"aws:PrincipalArn": list(names)}}
    assert {str(s["Resource"]) for s in policies.values()} == {str(allow["Resource"])}
    rule = found.of("AWS::Events::Rule")["WakeRule"]
    assert rule["EventBusName"], "never the default bus, on which everybody in the account may put events"
    pattern = source()["Parameters"]["WakePrincipals"]["AllowedPattern"]
    for given, fits in (("", True), (",".join(names), True), ("*", False), (f"{names[0]}, {names[1]}", False)):
        assert bool(re.fullmatch(pattern, given)) is fits, given
    assert not re.fullmatch(pattern, "arn:aws:iam::111122223333:root"), "the key names no account's root for its roles"
    for other in (stack(MayStop="tagged"), stack(WakePrincipals=names[0])):
        assert not other.of("AWS::Events::EventBus")
        assert "WakeRule" not in other.of("AWS::Events::Rule")
