"""The simulated account refuses what AWS refuses, with AWS's code; and each refusal comes from its own check."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.refusals import NotSimulated
from sandbox.slack import Reply, Workspace
from sandbox.spot import add_spot
from sandbox.strict import By, Check, judge, without
from sandbox.strict.tables import CHECKS
from tests.sandbox.strictness.accepted import ACCEPTED
from tests.sandbox.strictness.situations import spots
from tests.sandbox.strictness.states import STATES
from tests.sandbox.strictness.wrong_slack import GONE
from tests.sandbox.strictness.wrong_texts import FINE, MORE, REQUESTS

type Key = tuple[str, str]
type Refused = tuple[str, str] | None

UNCHECKED = Config(parameter_validation=False, retries={"total_max_attempts": 1}, signature_version=None)
KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
ROWS = [(key, check) for key, checks in CHECKS.items() for check in checks]


def ids(rows: list[tuple[Key, Check]]) -> list[str]:
    return [f"{service}:{operation}-{check.id}" for (service, operation), check in rows]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox() as running:
        running.set_quota("ml.g5.xlarge", 1_000)  # each row has endpoints of its own in this one account
        running.add_endpoint("chat")
        spots[running] = add_spot(running)
        with running.gate.unrecorded():
            running.client("s3").create_bucket(
                Bucket="reports", CreateBucketConfiguration={"LocationConstraint": running.region}
            )
            attributes = [{"AttributeName": row["AttributeName"], "AttributeType": "S"} for row in KEYS]
            running.client("dynamodb").create_table(
                TableName="ledger", KeySchema=KEYS, AttributeDefinitions=attributes, BillingMode="PAY_PER_REQUEST"
            )
        yield running
        spots.clear()


@cache
def client(service: str, region: str) -> Any:
    """A client that checks nothing itself."""
    return boto3.Session(region_name=region).client(service, config=UNCHECKED)  # type: ignore[call-overload]


@pytest.fixture(autouse=True, scope="module")
def fresh_clients() -> Iterator[None]:
    yield
    client.cache_clear()


def changed(key: Key, change: dict[str, Any]) -> dict[str, Any]:
    """The accepted request with these members instead."""
    return {name: value for name, value in (ACCEPTED[key] | change).items() if value is not GONE}


def asked(box: Sandbox, key: Key, params: dict[str, Any]) -> Refused:
    """(code, message) of a refusal, or None; what fails inside the sandbox without the check is no refusal of AWS."""
    service, operation = key
    if service == "slack":
        return _slack(operation, dict(params))
    if operation == "QueryMetrics":
        status, _, body = box.world.telemetry.answer(f"https://x/api/v1/query_range?{urlencode(params)}")
        answer = json.loads(body)
        return None if status == 200 else (answer["errorType"], answer["error"])
    try:
        answer = getattr(client(service, box.region), xform_name(operation))(**params)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"]["Message"]
    failed = [row for row in answer.get("Entries", []) if "ErrorCode" in row] if operation == "PutEvents" else []
    return (failed[0]["ErrorCode"], failed[0]["ErrorMessage"]) if failed else None


def _slack(method: str, params: dict[str, Any]) -> Refused:
    workspace = Workspace(scopes=params.pop("scopes", Workspace().scopes))
    if pressed := params.pop("pressed", 0):
        at = datetime(2026, 11, 2, 9, tzinfo=UTC)
        workspace.triggers[params["trigger_id"]] = ("U1", at)
        workspace.clock = lambda: at + timedelta(seconds=pressed)
    workspace.used_triggers |= {params["trigger_id"]} if params.pop("opened", False) else set()
    token = params.pop("token", f"Bearer {workspace.bot_token}")
    answer = _reply(workspace, params) if method == "response_url" else workspace.call(method, token, params)[1]
    return None if answer["ok"] else (answer["error"], answer["error"])


def _reply(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """An answer to a click, so many minutes after it and after so many others."""
    clicked = datetime(2026, 11, 2, 9, tzinfo=UTC)
    after, used = timedelta(minutes=params.pop("minutes", 1)), params.pop("used", 0)
    workspace.clock = lambda: clicked + after
    workspace.answers.append(Reply("U1", clicked, [{"text": "said"}] * used))
    return workspace.answer(f"/actions/T0SANDBOX/{params.pop('number', 1)}/sandbox", params)[1]


@pytest.mark.parametrize("key", ACCEPTED, ids=[f"{s}:{o}" for s, o in ACCEPTED])
def test_the_gate_lets_a_right_request_pass(key: Key) -> None:
    assert judge(*key, ACCEPTED[key]) is None


AT_THE_GATE = [(key, check) for key, check in ROWS if check.by is By.RULE]


@pytest.mark.parametrize(("key", "check"), AT_THE_GATE, ids=ids(AT_THE_GATE))
def test_a_request_that_breaks_a_rule_is_refused_by_that_rule(box: Sandbox, key: Key, check: Check) -> None:
    params = changed(key, REQUESTS[key][check.id])
    refused = asked(box, key, params)
    assert refused is not None
    assert refused[0] == check.code
    assert judge(*key, params) == (check.code, check.message), "moto may refuse it too: the rule has to"
    with without(key[1], check.id):
        assert judge(*key, params) is None


@pytest.mark.parametrize(("key", "check", "change"), MORE)
def test_each_form_of_a_broken_rule_is_refused(key: Key, check: str, change: dict[str, Any]) -> None:
    params = changed(key, change)
    rule = next(one for one in CHECKS[key] if one.id == check)
    assert judge(*key, params) == (rule.code, rule.message)
    with without(key[1], check):
        assert judge(*key, params) is None


@pytest.mark.parametrize(("key", "change"), FINE)
def test_what_is_just_allowed_passes_the_gate(key: Key, change: dict[str, Any]) -> None:
    assert judge(*key, changed(key, change)) is None


BY_SHAPE = [(key, check) for key, check in ROWS if check.by is By.SHAPE]


@pytest.mark.parametrize(("key", "check"), BY_SHAPE, ids=ids(BY_SHAPE))
def test_a_request_of_another_shape_is_refused_by_its_shape(box: Sandbox, key: Key, check: Check) -> None:
    params = changed(key, REQUESTS[key]["shape"])
    refused = asked(box, key, params)
    assert refused is not None
    assert refused[0] == check.code
    assert "validation error" in refused[1]
    with without(key[1], "shape"):
        assert without_check(box, key, params) != refused


BY_STATE = [(key, check) for key, check in ROWS if check.by is By.STATE]


@pytest.mark.parametrize(("key", "check"), BY_STATE, ids=ids(BY_STATE))
def test_what_the_state_of_the_account_forbids_is_refused_by_its_check(box: Sandbox, key: Key, check: Check) -> None:
    given = STATES[key][check.id]
    params = given(box) if callable(given) else changed(key, given)
    refused = asked(box, key, params)
    assert refused is not None
    assert refused[0] == check.code
    with without(key[1], check.id):
        assert without_check(box, key, params) != refused


def without_check(box: Sandbox, key: Key, params: dict[str, Any]) -> Refused:
    """What comes without the check: another answer, or the sandbox stumbles over what should have been refused."""
    try:
        return asked(box, key, params)
    except (ArithmeticError, AssertionError, AttributeError, KeyError, TypeError, ValueError, NotSimulated):
        return None


BY_MOTO = [(key, check) for key, check in ROWS if check.by is By.MOTO]


@pytest.mark.parametrize(("key", "check"), BY_MOTO, ids=ids(BY_MOTO))
def test_moto_refuses_what_is_left_to_it(box: Sandbox, key: Key, check: Check) -> None:
    given = STATES[key][check.id]
    params = given(box) if callable(given) else changed(key, given)
    refused = asked(box, key, params)
    assert refused is not None
    assert refused[0] == check.code
