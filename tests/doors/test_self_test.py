"""Each function, asked for its self-test: what it may do, what it may not, and what to do about it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws.self_test import BILLED, BUCKET, COSTS, DOORS, IN_SLACK, POLICY, SECRET
from rightsizer.aws.write_checks import WRITES, writes_of_door
from rightsizer.bootstrap import self_test
from rightsizer.domain.checks import SCHEMA, SCHEMA_TEST_FIRST
from sandbox.account import Sandbox
from sandbox.functions import InProcess
from sandbox.slack import CHANNEL, Workspace, listening
from sandbox.spot import add_spot
from sandbox.wiring import Stack
from tests.template.stack import EVERYTHING, stack
from tests.template.test_least import IMPLIED

SWITCHES = {"SlackChannel": CHANNEL, "Approvers": "U1", "MayStop": "tagged"}
BEYOND = {"s3:ListBucket": "the models of an endpoint: there is no bucket that could be named"}
"""Read permissions without a request of their own in the self-test."""


@pytest.fixture
def workspace() -> Workspace:
    return Workspace()


@pytest.fixture
def deployed(workspace: Workspace) -> Iterator[Stack]:
    with Sandbox() as box, listening(workspace) as address:
        add_spot(box)
        secret = box.client("secretsmanager").create_secret(Name="slack", SecretString=workspace.secret())["ARN"]
        made = Stack(box, parameters={**SWITCHES, "SlackSecretArn": secret})
        for name, function in made.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            made.parts.functions[name] = type(function)(**{**_fields(function), "environment": environment})
        yield made


def _fields(function: Any) -> dict[str, Any]:
    return {name: getattr(function, name) for name in function.__dataclass_fields__}


def ask(deployed: Stack, door: str) -> dict[str, dict[str, Any]]:
    answer = deployed.invoke(door, self_test.event())
    assert answer["door"] == door
    assert set(answer["versions"]) == {"rightsizer", "python", "botocore"}
    return {check["action"]: check for check in answer["checks"]}


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_function_that_was_deployed_as_it_should_be_finds_nothing_wrong(door: str, deployed: Stack) -> None:
    found = ask(deployed, door)
    assert {action: check for action, check in found.items() if check["outcome"] != "ok"} == {}
    assert {"build", "clock", *DOORS[door]} - found.keys() == set()
    assert (SECRET in found) is (door in IN_SLACK)
    assert ("s3:PutObject and s3:GetObject" in found) is (door in BUCKET)
    assert ("Slack auth.test" in found) is (door == "propose")


def test_the_self_test_writes_nothing_but_its_marker(deployed: Stack) -> None:
    deployed.box.calls.clear()
    for door in DOORS:
        ask(deployed, door)
    assert [call.operation for call in deployed.box.calls.writes()] == ["PutObject"] * len(BUCKET)


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_permission_that_lacks_is_named_with_its_remedy_and_stops_no_other_check(door: str, deployed: Stack) -> None:
    action = DOORS[door][0]
    deployed.box.deny(action)
    found = ask(deployed, door)
    assert (found[action]["outcome"], "deploy the template" in found[action]["remedy"]) == ("failed", True)
    assert len(found) >= len(DOORS[door])
    assert sum(check["outcome"] == "failed" for check in found.values()) <= 2, "the build may need it too"


def test_a_request_that_breaks_inside_the_client_is_a_finding_and_no_crash(
    deployed: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("documentation")

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", broken)
    answer = deployed.invoke("report", self_test.event())
    assert all(check["outcome"] != "ok" for check in answer["checks"])
    assert "KeyError: 'documentation'" in str(answer["checks"])


def test_an_app_that_was_not_invited_is_told_to_be(deployed: Stack, workspace: Workspace) -> None:
    workspace.members = False
    found = ask(deployed, "propose")
    assert found["Slack auth.test"]["outcome"] == "ok"
    assert found["Slack conversations.info"]["outcome"] == "failed"
    assert "/invite" in found["Slack conversations.info"]["remedy"]


def test_without_the_scope_the_channel_is_not_checked_and_the_scope_is_named(
    deployed: Stack, workspace: Workspace
) -> None:
    workspace.scopes = frozenset({"chat:write"})
    found = ask(deployed, "propose")
    assert found["Slack conversations.info"]["outcome"] == "not-checked"
    assert "channels:read" in found["Slack conversations.info"]["remedy"]


def test_a_token_that_slack_refuses_is_named(deployed: Stack, workspace: Workspace) -> None:
    workspace.bot_token = "xoxb-rotated"
    found = ask(deployed, "propose")
    assert found["Slack auth.test"]["outcome"] == "failed"
    assert found["Slack conversations.info"]["outcome"] == "not-checked"


def test_a_table_without_its_index_is_named_by_who_asks_it(deployed: Stack) -> None:
    table = deployed.parts.names["Table"]
    without = [{"Delete": {"IndexName": "GSI1"}}]
    deployed.box.client("dynamodb").update_table(TableName=table, GlobalSecondaryIndexUpdates=without)
    found = ask(deployed, "report")["dynamodb:Query"]
    assert (found["outcome"], "GSI1" in found["detail"], found["remedy"] != "") == ("failed", True, True)


def test_a_table_and_a_secret_that_are_gone_are_no_proof_of_permissions(deployed: Stack) -> None:
    deployed.box.client("dynamodb").delete_table(TableName=deployed.parts.names["Table"])
    secret = deployed.template.parameters["SlackSecretArn"]
    deployed.box.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    found = ask(deployed, "respond")
    assert (found["dynamodb:GetItem"]["outcome"], "restore it" in found["dynamodb:GetItem"]["remedy"]) == (
        "failed",
        True,
    )
    assert (found[SECRET]["outcome"], "SlackSecretArn" in found[SECRET]["remedy"]) == ("failed", True)


def test_a_bucket_that_is_gone_is_named_with_what_to_do(deployed: Stack) -> None:
    deployed.box.client("s3").delete_bucket(Bucket=deployed.parts.names["Bucket"])
    found = ask(deployed, "report")["s3:PutObject and s3:GetObject"]
    assert (found["outcome"], "no longer exists" in found["detail"]) == ("failed", True)
    assert "restore it" in found["remedy"]


def test_a_function_whose_clock_is_off_says_by_how_much(deployed: Stack) -> None:
    box = deployed.box
    late = InProcess(lambda: box.clock.now + timedelta(minutes=3), box.region)
    deployed.invoke_with = late
    found = ask(deployed, "report")["clock"]
    assert (found["outcome"], found["detail"]) == ("failed", "180 s from AWS's clock")
    assert "AWS Support" in found["remedy"]


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "RequestExpired", "InvalidSignatureException"])
def test_a_request_that_aws_takes_for_old_is_told_as_a_wrong_clock(code: str, deployed: Stack) -> None:
    text = "Signature expired: 20261102T083000Z is now earlier than 20261102T084500Z"
    deployed.box.gate.fail("s3", "PutObject", code, text)
    found = ask(deployed, "report")["s3:PutObject and s3:GetObject"]
    assert found["outcome"] == "failed"
    assert "the clock of this machine differs from AWS's" in found["detail"]
    assert "the message names the cause" in found["remedy"]


@pytest.mark.parametrize("kind", ["PROPOSAL#pending", "HISTORY"])
def test_a_document_of_a_later_release_is_named_by_the_function_that_would_act_on_it(
    kind: str, deployed: Stack
) -> None:
    def store(number: int, at: str) -> None:
        texts = {"pk": at, "sk": at, "gsi1pk": kind, "gsi1sk": at, "doc": json.dumps({"schema": number})}
        item = {name: {"S": text} for name, text in texts.items()}
        deployed.box.client("dynamodb").put_item(TableName=deployed.parts.names["Table"], Item=item)

    store(SCHEMA, "2026-10-01")
    assert ask(deployed, "apply")["schema"]["outcome"] == "ok"
    store(SCHEMA_TEST_FIRST + 1, "2026-10-02")
    found = ask(deployed, "apply")["schema"]
    assert (found["outcome"], f"its schema number is {SCHEMA_TEST_FIRST + 1}" in found["detail"]) == ("failed", True)
    assert "deploy the release that wrote it, or a later one" in found["remedy"]


def test_a_document_that_is_no_json_has_no_number_and_is_told_elsewhere(deployed: Stack) -> None:
    row = {name: {"S": "x"} for name in ("pk", "sk", "gsi1sk", "doc")} | {"gsi1pk": {"S": "HISTORY"}}
    deployed.box.client("dynamodb").put_item(TableName=deployed.parts.names["Table"], Item=row)
    assert ask(deployed, "apply")["schema"]["outcome"] == "ok"


@pytest.mark.parametrize(
    ("bill", "action", "outcome"),
    [("", COSTS, ""), ("cost-explorer", COSTS, "ok"), ("s3://bills/exports/cur", "s3:GetObject", "failed")],
)
def test_the_bill_that_the_stack_names_is_tried(bill: str, action: str, outcome: str) -> None:
    with Sandbox() as box:
        found = ask(Stack(box, parameters={"Bill": bill}), "report")
    assert found.get(action, {"outcome": ""})["outcome"] == outcome
    assert outcome != "failed" or "docs/bill.md" in found[action]["remedy"], "no such export: which parameter names it"


@pytest.mark.parametrize("wrapped", [{"Records": [self_test.event()]}, {"body": self_test.event()}, [], None, "x"])
def test_what_comes_through_a_queue_or_the_url_starts_no_self_test(wrapped: Any) -> None:
    assert self_test.answer("respond", wrapped) is None


@pytest.mark.parametrize("door", sorted(DOORS))
def test_every_permission_of_a_role_is_tried_or_asked_of_iam(door: str) -> None:
    held = stack(**EVERYTHING).actions(door) - IMPLIED.keys()
    of_bucket = {"s3:GetObject", "s3:PutObject"} if door in BUCKET else set()
    known = {*DOORS[door], *WRITES[door], *of_bucket, *BEYOND} | ({SECRET} if door in IN_SLACK else set()) | {POLICY}
    known |= {COSTS} if door == BILLED else set()
    assert held - known == set()
    assert (SECRET in held) is (door in IN_SLACK)
    tried = {*DOORS[door], *WRITES[door]} - IMPLIED.keys()
    assert tried - held == set(), "nothing is tried that the role may not do"


@pytest.mark.parametrize("may_change", ["read-only", "nothing", "tagged", "tagged-and-untagged"])
@pytest.mark.parametrize("door", sorted(DOORS))
def test_the_writes_that_are_asked_of_iam_follow_may_change(door: str, may_change: str) -> None:
    held = stack(**EVERYTHING | {"MayChange": may_change, "EditUserAlarms": "false"}).actions(door)
    assert writes_of_door(door, may_change).keys() == WRITES[door].keys() & held
