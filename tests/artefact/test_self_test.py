"""The self-test of the built functions, asked for as a person at a terminal does, in a stack that lacks one thing."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.self_test import BUCKET, IN_SLACK, SECRET
from rightsizer.aws.self_test import DOORS as READS
from rightsizer.aws.write_checks import WRITES
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.artefact import Artefact
from sandbox.server import serve
from sandbox.slack import CHANNEL, Workspace, listening
from sandbox.spot import add_spot
from sandbox.wiring import Stack
from tests.template.stack import BY_DEFAULT as DOORS

pytestmark = [pytest.mark.artefact, pytest.mark.slow]
type Checks = list[dict[str, Any]]
type Asked = Callable[[], tuple[int, Checks]]
MARKER = "s3:PutObject and s3:GetObject"
FEW = ("apply", "report")
"""Doors whose built function loses a read in `make test`; `make artefact` and `make faults` take each of them. The
handler of each door loses its first read in tests/doors/test_self_test.py."""


@dataclass
class Deployed:
    """The stack of built functions, the processes that they run in, and the workspace of its app."""

    stack: Stack
    functions: Artefact
    slack: Workspace

    @property
    def box(self) -> Sandbox:
        """The account."""
        return self.stack.box


@pytest.fixture(scope="module")
def deployed(build: Path, runtime_python: Path) -> Iterator[Deployed]:
    """A stack with Slack and an address that hears the topic, as the README deploys it."""
    with ExitStack() as held, listening(workspace := Workspace()) as address:
        box = held.enter_context(Sandbox())
        add_spot(box)
        secret = box.client("secretsmanager").create_secret(Name="slack", SecretString=workspace.secret())["ARN"]
        parameters = {"SlackSecretArn": secret, "SlackChannel": CHANNEL, "Approvers": "U1"}
        functions = held.enter_context(Artefact(build, runtime_python, held.enter_context(serve(box)), parameters))
        made = Stack(box, parameters=parameters, invoker=functions)
        for name, function in made.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            made.parts.functions[name] = replace(function, environment=environment)
        subscribe(made)
        bootstrap.set_clock(lambda: box.clock.now)
        try:
            yield Deployed(made, functions, workspace)
        finally:
            bootstrap.reset()


def subscribe(stack: Stack) -> str:
    """Let a queue hear the topic; the ARN of its subscription."""
    topic, inbox = stack.parts.names["Topic"], stack.box.world.arn("sqs", "inbox")
    made = stack.box.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=inbox)
    return str(made["SubscriptionArn"])


@pytest.fixture
def asked(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> Asked:
    """The exit code and the checks of `rightsizer doctor --deployed`."""

    def ask() -> tuple[int, Checks]:
        code = run(["doctor", "--deployed", "--json"])
        return code, json.loads(capsys.readouterr().out)["checks"]

    return ask


def lacking(checks: Checks) -> list[tuple[str, str, str]]:
    """Part, action and outcome of each check that is not fulfilled."""
    return [(check["part"], check["action"], check["outcome"]) for check in checks if check["outcome"] != "ok"]


def remedies(checks: Checks) -> str:
    """What the person is told to do."""
    return " ".join(check["remedy"] for check in checks if check["outcome"] != "ok")


def test_a_stack_of_built_functions_that_works_lists_every_check_and_nothing_to_mend(
    deployed: Deployed, asked: Asked
) -> None:
    code, checks = asked()
    assert lacking(checks) == []
    assert code == Exit.NOTHING_TO_DO
    assert {check["part"] for check in checks} == {*DOORS, "stack"}
    for door in DOORS:
        found = {check["action"] for check in checks if check["part"] == door}
        marker = {MARKER} if door in BUCKET else set()
        assert {"build", "clock", *READS[door], *WRITES[door], *marker} - found == set()
        (run_,) = deployed.stack.runs(door)
        assert run_.answer["versions"]["python"].startswith("3.13")


@pytest.mark.parametrize("door", [pytest.param(one, marks=[] if one in FEW else [pytest.mark.grid]) for one in DOORS])
def test_a_role_that_lost_a_read_is_named_with_its_action_and_remedy(
    door: str, deployed: Deployed, asked: Asked
) -> None:
    action = READS[door][-1]
    with deployed.stack.roles.revoked(door, action):
        code, checks = asked()
    assert [one for one in lacking(checks) if one[1] != "schema"] == [(door, action, "failed")]
    assert {part for part, _, _ in lacking(checks)} == {door}, "who may not query knows no schema either"
    assert "the function's role lacks it" in remedies(checks)
    assert code == Exit.INCOMPLETE


def test_a_role_that_lost_a_write_is_named_by_iams_simulation(deployed: Deployed, asked: Asked) -> None:
    with deployed.stack.roles.revoked("report", "sns:Publish"):
        code, checks = asked()
    assert lacking(checks) == [("report", "sns:Publish", "failed")]
    assert "deploy the template of this release again" in remedies(checks)
    assert code == Exit.INCOMPLETE


def test_a_bucket_that_is_gone_is_named_by_each_function_that_writes_to_it(deployed: Deployed, asked: Asked) -> None:
    s3, bucket = deployed.box.client("s3"), deployed.stack.parts.names["Bucket"]
    for row in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
        s3.delete_object(Bucket=bucket, Key=row["Key"])
    s3.delete_bucket(Bucket=bucket)
    code, checks = asked()
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": deployed.box.region})
    assert lacking(checks) == [(door, MARKER, "failed") for door in DOORS if door in BUCKET]
    assert f"the bucket {bucket} no longer exists" in str(checks)
    assert "restore it" in remedies(checks)
    assert code == Exit.INCOMPLETE


def test_a_topic_that_nobody_hears_is_named(deployed: Deployed, asked: Asked) -> None:
    sns, topic = deployed.box.client("sns"), deployed.stack.parts.names["Topic"]
    for row in sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=row["SubscriptionArn"])
    _, checks = asked()
    subscribe(deployed.stack)
    assert lacking(checks) == [("stack", "sns:ListSubscriptionsByTopic", "failed")]
    assert f"subscribe an address to {topic} and confirm it" in remedies(checks)


def test_a_schedule_that_was_switched_off_is_named(deployed: Deployed, asked: Asked) -> None:
    deployed.stack.planes.disabled.add("SweepDaily")
    _, checks = asked()
    deployed.stack.planes.disabled.clear()
    assert lacking(checks) == [("stack", "scheduler:GetSchedule", "failed")]
    assert "enable the schedule rightsizer-SweepDaily" in remedies(checks)


def test_a_table_without_its_index_is_named_by_the_functions_that_ask_it_and_by_the_terminal(
    deployed: Deployed, asked: Asked
) -> None:
    dynamodb, table = deployed.box.client("dynamodb"), deployed.stack.parts.names["Table"]
    gsi = dynamodb.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"][0]
    dynamodb.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "GSI1"}}])
    _, checks = asked()
    made = {key: gsi[key] for key in ("IndexName", "KeySchema", "Projection")}
    names = [key["AttributeName"] for key in gsi["KeySchema"]]
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        GlobalSecondaryIndexUpdates=[{"Create": made}],
    )
    asking = [(door, "dynamodb:Query", "failed") for door in DOORS if "dynamodb:Query" in READS[door]]
    assert {*asking, ("stack", "dynamodb:DescribeTable", "failed")} <= set(lacking(checks))
    assert {action for _, action, _ in lacking(checks)} <= {"dynamodb:Query", "dynamodb:DescribeTable", "schema"}
    assert "it has no index GSI1" in str(checks)
    assert "docs/ledger.md" in remedies(checks)


def test_a_table_whose_rows_never_end_is_named_with_the_command(deployed: Deployed, asked: Asked) -> None:
    dynamodb, table = deployed.box.client("dynamodb"), deployed.stack.parts.names["Table"]
    live = {"Enabled": True, "AttributeName": "expires"}
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=live | {"Enabled": False})
    _, checks = asked()
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=live)
    assert lacking(checks) == [("stack", "dynamodb:DescribeTimeToLive", "failed")]
    assert f"--table-name {table} --time-to-live-specification" in remedies(checks)


def test_a_token_that_slack_refuses_is_named(deployed: Deployed, asked: Asked) -> None:
    before, deployed.slack.bot_token = deployed.slack.bot_token, "xoxb-rotated"
    _, checks = asked()
    deployed.slack.bot_token = before
    assert lacking(checks) == [
        ("propose", "Slack auth.test", "failed"),
        ("propose", "Slack conversations.info", "not-checked"),
    ]
    assert "store the current bot token" in remedies(checks)


def test_an_app_that_was_not_invited_to_the_channel_is_told_to_be(deployed: Deployed, asked: Asked) -> None:
    deployed.slack.members = False
    _, checks = asked()
    deployed.slack.members = True
    assert lacking(checks) == [("propose", "Slack conversations.info", "failed")]
    assert "/invite" in remedies(checks)


def test_a_secret_that_is_gone_is_named_by_each_function_that_reads_it(deployed: Deployed, asked: Asked) -> None:
    secrets, name = deployed.box.client("secretsmanager"), deployed.stack.template.parameters["SlackSecretArn"]
    secrets.delete_secret(SecretId=name, RecoveryWindowInDays=7)
    _, checks = asked()
    secrets.restore_secret(SecretId=name)
    wrong = [(part, outcome) for part, action, outcome in lacking(checks) if action == SECRET]
    assert sorted(wrong) == sorted((door, "failed") for door in DOORS if door in IN_SLACK)
