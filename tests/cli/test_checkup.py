"""`rightsizer doctor --deployed` against a stack that is deployed in the simulated account."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from moto.sns.models import sns_backends

from rightsizer import bootstrap
from rightsizer.aws import deployment
from rightsizer.domain import self_test
from rightsizer.domain.self_test import Outcome
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.slack import CHANNEL, Workspace, listening
from sandbox.spot import add_spot
from sandbox.wiring import Stack
from tests.table import create_table
from tests.template.stack import DOORS

type Checks = list[dict[str, Any]]
_working: list[self_test.Tested] = []


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack with Slack and a confirmed address, as the README deploys it."""
    workspace = Workspace()
    with Sandbox() as box, listening(workspace) as address:
        bootstrap.set_clock(lambda: box.clock.now)
        monkeypatch.setenv("COLUMNS", "300")
        add_spot(box)
        secret = box.client("secretsmanager").create_secret(Name="slack", SecretString=workspace.secret())["ARN"]
        made = Stack(box, parameters={"SlackSecretArn": secret, "SlackChannel": CHANNEL, "Approvers": "U1"})
        for name, function in made.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            made.parts.functions[name] = replace(function, environment=environment)
        topic = made.parts.names["Topic"]
        box.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=box.world.arn("sqs", "inbox"))
        yield made
        bootstrap.reset()


@pytest.fixture
def around(deployed: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """The stack for tests of what is around its functions: these work, and their self-tests are run once for all."""
    ask = deployment.test_functions

    def once(*given: Any) -> list[self_test.Tested]:
        if not _working:
            _working.extend(ask(*given))
            assert {check.outcome for one in _working for check in one.checks} == {Outcome.OK}
        return _working

    monkeypatch.setattr(deployment, "test_functions", once)
    return deployed


def checked(capsys: pytest.CaptureFixture[str]) -> tuple[int, Checks]:
    code = run(["doctor", "--deployed", "--json"])
    return code, json.loads(capsys.readouterr().out)["checks"]


def lacking(checks: Checks) -> Checks:
    return [check for check in checks if check["outcome"] != "ok"]


def test_a_stack_that_works_has_nothing_to_mend(deployed: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = checked(capsys)
    assert lacking(checks) == []
    assert code == Exit.NOTHING_TO_DO
    assert {check["part"] for check in checks} == {*DOORS, "stack"} - {"hours"}, "no office hours are switched on"
    assert all(set(c) == {"part", "action", "purpose", "outcome", "ok", "detail", "remedy"} and c["ok"] for c in checks)


def test_a_person_reads_what_failed_and_what_to_do_about_it(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    around.planes.disabled.add("SweepDaily")
    assert run(["doctor", "--deployed"]) == Exit.INCOMPLETE
    said = capsys.readouterr().out
    assert "its state is DISABLED" in said
    assert "Remedy: enable the schedule rightsizer-SweepDaily" in said
    assert "1 failed, 0 not checked" in said


def test_a_write_that_one_role_lacks_is_named_with_its_function(
    deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = deployed.box.world.iam.roles
    name = next(name for name in roles if "Apply" in name)
    roles[name] = [one for one in roles[name] if one.get("Sid") != "UpdateTheEndpoint"]
    code, checks = checked(capsys)
    assert code == Exit.INCOMPLETE
    assert [(c["part"], c["action"]) for c in lacking(checks)] == [
        ("apply", "sagemaker:UpdateEndpoint"),
        ("apply", "sagemaker:UpdateEndpointWeightsAndCapacities"),
    ]
    assert all("deploy the template" in c["remedy"] for c in lacking(checks))


@pytest.mark.parametrize(
    ("sid", "lost"),
    [
        ("UpdateToAConfigurationOfAChange", [("sagemaker:UpdateEndpoint", "endpoint-config/any")]),
        (
            "PutRollbackAlarms",
            [("cloudwatch:PutMetricAlarm", "rightsizer-c-any"), ("cloudwatch:PutMetricAlarm", "rightsizer-wake-any")],
        ),
        (
            "RemoveRollbackAlarms",
            [("cloudwatch:DeleteAlarms", "rightsizer-c-any"), ("cloudwatch:DeleteAlarms", "rightsizer-wake-any")],
        ),
    ],
)
def test_each_resource_that_a_change_writes_to_is_asked_for(
    sid: str, lost: list[tuple[str, str]], deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = deployed.box.world.iam.roles
    name = next(name for name in roles if "Apply" in name)
    roles[name] = [one for one in roles[name] if one.get("Sid") != sid]
    _, checks = checked(capsys)
    found = sorted((c["action"], c["purpose"].removeprefix("acting on ")) for c in lacking(checks))
    assert found == lost


def test_iam_is_asked_once_for_all_that_a_role_does_to_a_resource(
    deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.box.calls.clear()
    checked(capsys)
    asked = [call.params for call in deployed.box.calls.of("iam", "SimulatePrincipalPolicy")]
    writes = [(p["PolicySourceArn"], p["ResourceArns"], p["ContextEntries"]) for p in asked if p.get("ResourceArns")]
    assert [one for one in writes if writes.count(one) > 1] == []
    assert any(len(p["ActionNames"]) == 5 for p in asked), "autoscaling has five writes to a target"


def test_a_read_that_the_functions_lack_is_named_for_each(deployed: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.box.deny("ec2:DescribeSpotPriceHistory")
    code, checks = checked(capsys)
    assert code == Exit.INCOMPLETE
    assert [(c["part"], c["action"]) for c in lacking(checks)] == [("evaluate", "ec2:DescribeSpotPriceHistory")]


def test_stacks_that_may_change_nothing_need_no_writes(deployed: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    for may_change in ("nothing", "read-only"):
        deployed.redeploy(MayChange=may_change)
        code, checks = checked(capsys)
        assert (code, lacking(checks)) == (Exit.NOTHING_TO_DO, [])


def test_dead_letters_that_wait_are_counted(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    queue = next(url for name, url in around.parts.queues.items() if "Dead" in name)
    around.box.client("sqs").send_message(QueueUrl=queue, MessageBody="{}")
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert (code, found["detail"]) == (Exit.INCOMPLETE, "1 dead letters wait")
    assert "redrive" in found["remedy"]


def test_a_topic_that_nobody_hears_is_told(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    sns = around.box.client("sns")
    for row in sns.list_subscriptions_by_topic(TopicArn=around.parts.names["Topic"])["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=row["SubscriptionArn"])
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert (code, found["detail"]) == (Exit.INCOMPLETE, "0 confirmed, 0 not confirmed")
    assert "confirm it" in found["remedy"]


def test_an_event_source_that_was_switched_off_is_told(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = next(iter(around.template.resources("AWS::Lambda::EventSourceMapping")))
    around.planes.disabled.add(mapping)
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert (code, found["purpose"]) == (Exit.INCOMPLETE, f"{mapping} delivers")
    assert "enable the event source mapping" in found["remedy"]


def test_a_table_without_its_stream_is_told(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    table = around.parts.names["Table"]
    around.box.client("dynamodb").update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert code == Exit.INCOMPLETE
    assert "it has no stream" in found["detail"]


def test_a_table_without_backups_is_told_with_the_command_that_mends_it(
    around: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    table, client = around.parts.names["Table"], around.box.client("dynamodb")
    client.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}
    )
    code, checks = checked(capsys)
    assert code == Exit.INCOMPLETE
    (found,) = lacking(checks)
    assert found["action"] == "dynamodb:DescribeContinuousBackups"
    assert f"update-continuous-backups --region eu-west-1 --table-name {table}" in found["remedy"]


def test_an_adopted_table_is_looked_at_though_the_stack_does_not_list_it(
    around: Stack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = around.box.client("dynamodb")
    create_table(client)  # with the index; without stream, expiry and backups, as a restored table is
    own = around.planes.DescribeStacks

    def adopted(p: Mapping[str, Any]) -> dict[str, Any]:
        answer = own(p)
        answer["Stacks"][0]["Outputs"] = [{"OutputKey": "TableName", "OutputValue": "t"}]
        return answer

    monkeypatch.setattr(around.planes, "DescribeStacks", adopted)
    _, checks = checked(capsys)
    failed = {check["action"]: check["remedy"] for check in lacking(checks) if "dynamodb" in check["action"]}
    assert list(failed) == [f"dynamodb:Describe{what}" for what in ("Table", "TimeToLive", "ContinuousBackups")]
    assert "docs/ledger.md" in failed["dynamodb:DescribeTable"]


def test_an_address_that_was_never_confirmed_hears_nothing(around: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    topic = around.parts.names["Topic"]
    for held in sns_backends[around.box.account][around.box.region].subscriptions.values():
        held.arn = "PendingConfirmation"  # as SNS lists it until the link in the e-mail was opened
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert (code, found["detail"]) == (Exit.INCOMPLETE, "0 confirmed, 1 not confirmed")
    assert f"subscribe an address to {topic} and confirm it" in found["remedy"]


def test_a_table_without_its_index_is_told_with_where_it_is_described(
    around: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    without: Any = [{"Delete": {"IndexName": "GSI1"}}]
    table = around.parts.names["Table"]
    around.box.client("dynamodb").update_table(TableName=table, GlobalSecondaryIndexUpdates=without)
    _, checks = checked(capsys)
    (found,) = [check for check in lacking(checks) if check["part"] == "stack"]
    assert found["detail"] == "it has no index GSI1"
    assert "docs/ledger.md" in found["remedy"]


@pytest.mark.parametrize("live", [{"Enabled": False, "AttributeName": "expires"}, None])
def test_an_adopted_table_whose_rows_never_end_is_told_with_the_command(
    live: Any, around: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    """A restored table has no TTL until somebody sets it; an adopted one is no resource of the stack."""
    dynamodb, table = around.box.client("dynamodb"), around.parts.names["Table"]
    off = {"Enabled": False, "AttributeName": "expires"}
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=live or off)
    if live is None:
        other = {"Enabled": True, "AttributeName": "ttl"}
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=other)
    code, checks = checked(capsys)
    (found,) = lacking(checks)
    assert (code, found["action"]) == (Exit.INCOMPLETE, "dynamodb:DescribeTimeToLive")
    assert f"update-time-to-live --region eu-west-1 --table-name {table}" in found["remedy"]


def test_what_was_deleted_outside_cloudformation_is_a_failure_and_no_question_of_permissions(
    deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    box, names = deployed.box, deployed.parts.names
    box.client("sns").delete_topic(TopicArn=names["Topic"])
    box.client("dynamodb").delete_table(TableName=names["Table"])
    box.client("sqs").delete_queue(QueueUrl=deployed.parts.queues["EvaluationQueue"])
    code, checks = checked(capsys)
    gone = {c["action"]: c for c in lacking(checks) if c["part"] == "stack"}
    assert {action: c["outcome"] for action, c in gone.items()} == {
        "sqs:GetQueueAttributes": "failed",
        "sns:ListSubscriptionsByTopic": "failed",
        "dynamodb:DescribeTable": "failed",
        "dynamodb:DescribeTimeToLive": "failed",
        "dynamodb:DescribeContinuousBackups": "failed",
    }
    assert all("no deployment makes it again" in c["remedy"] for c in gone.values())
    assert code == Exit.INCOMPLETE


@pytest.mark.parametrize("action", ["lambda:InvokeFunction", "iam:SimulatePrincipalPolicy"])
def test_what_the_caller_may_not_ask_of_functions_and_roles_is_not_checked(
    action: str, deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    if action == "iam:SimulatePrincipalPolicy":  # the function apply asks IAM too, with a role of its own
        deny_at_the_terminal(deployed, action)
    else:
        deployed.box.deny(action, "lambda:Invoke")
    only_lacks(action, *checked(capsys))


@pytest.mark.parametrize("action", ["scheduler:GetSchedule", "sqs:GetQueueAttributes"])
def test_what_the_caller_may_not_look_at_is_not_checked(
    action: str, around: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    around.box.deny(action)
    only_lacks(action, *checked(capsys))


def only_lacks(action: str, code: int, checks: Checks) -> None:
    assert {check["outcome"] for check in lacking(checks)} == {"not-checked"}
    assert all(f"allow {action}" in check["remedy"] for check in lacking(checks))
    assert code == Exit.NOTHING_TO_DO


def deny_at_the_terminal(deployed: Stack, action: str) -> None:
    """Refuse a request of the terminal's own credentials; functions act with their roles."""
    from sandbox.gate import Call, Fault

    def judge(call: Call) -> Fault | None:
        text = f"User: arn:aws:iam::111122223333:user/x is not authorized to perform: {action}"
        return Fault("AccessDenied", text) if call.operation == "SimulatePrincipalPolicy" else None

    deployed.box.gate.judge = judge


def test_without_a_stack_one_sentence_says_how_to_name_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    with Sandbox() as box:
        bootstrap.set_clock(lambda: box.clock.now)
        assert run(["doctor", "--deployed"]) not in (Exit.NOTHING_TO_DO, Exit.INCOMPLETE)
        bootstrap.reset()
    said = capsys.readouterr().err
    assert "nothing of that name is deployed; name the stack with --stack" in said
    assert "Traceback" not in said


def test_the_doctor_says_whom_the_list_lets_decide(deployed: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    said = {
        "": "nobody in Slack; at a terminal whoever IAM lets write to the table",
        "U1": "in Slack: 1 user; at a terminal: nobody, as long as the list has no role/NAME",
        "role/ml-*, user/ada": "in Slack: nobody; at a terminal: role/ml-*, user/ada",
        "U1, *": "it names nobody by *",
    }
    for approvers, detail in said.items():
        deployed.template.change({"Approvers": approvers})
        run(["doctor", "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        (found,) = [check for check in checks if check["action"] == "parameter Approvers"]
        assert found["detail"] == detail
        assert found["outcome"] == ("failed" if "*" in approvers.split(", ") else "ok")
        assert bool(found["remedy"]) is (found["outcome"] == "failed")
