"""A click counts only when Slack signed it just now."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.approvers import SlackKeys
from rightsizer.domain.trigger import (
    ButtonAsk,
    Click,
    DecisionAsked,
    NotClicked,
    NotVerified,
    OptionTaken,
    PageAsked,
    RollbackAsked,
    UnknownButton,
    WakePressed,
)
from rightsizer.intake.slack import parse_interaction as read

EVENTS = Path(__file__).parents[2] / "events" / "slack"
SECRET = "synthetic-signing-secret-of-the-examples"
NOW = datetime.fromtimestamp(1767373500, UTC)


@dataclass
class Keyring:
    """Stands for the secret, and counts what was asked of it."""

    known: SlackKeys
    rotated: SlackKeys | None = None
    asked: list[str] = field(default_factory=list)

    def keys(self) -> SlackKeys:
        self.asked.append("keys")
        return self.known

    def renew(self) -> SlackKeys | None:
        self.asked.append("renewed")
        return self.rotated


def keyring(secret: str = SECRET, **ids: str) -> Keyring:
    return Keyring(SlackKeys(secret, "", **ids))


def interaction(event: object, secret: str, now: datetime) -> Click | NotClicked | NotVerified:
    return read(event, keyring(secret), now)


def event(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return found


def signed(body: bytes, at: datetime = NOW, secret: str = SECRET) -> dict[str, Any]:
    stamp = str(int(at.timestamp()))
    mac = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}
    return {"headers": headers, "body": base64.b64encode(body).decode(), "isBase64Encoded": True}


@pytest.mark.parametrize("verb", ["approve", "reject", "snooze"])
def test_a_signed_click_names_the_decision_the_proposal_and_the_person(
    verb: Literal["approve", "reject", "snooze"],
) -> None:
    found = interaction(event(verb), SECRET, NOW)
    assert isinstance(found, Click)
    assert (found.asked, found.user) == (DecisionAsked(verb, "p-5f2c9a7d1e3b4c60"), "U0APPROVER")
    assert found.team == "T0EXAMPLE"


def test_a_plain_body_and_headers_in_any_case_are_accepted() -> None:
    assert isinstance(interaction(event("approve-plain-body"), SECRET, NOW), Click)


@pytest.mark.parametrize("name", ["forged-signature", "garbage-timestamp"])
def test_a_forged_click_is_refused(name: str) -> None:
    found = interaction(event(name), SECRET, NOW)
    assert isinstance(found, NotVerified)
    assert found.status == 401


def test_another_secret_is_refused() -> None:
    assert isinstance(interaction(event("approve"), "another", NOW), NotVerified)


def test_a_click_after_a_rotation_counts_with_the_keys_read_anew() -> None:
    rotated = Keyring(SlackKeys("old", ""), SlackKeys(SECRET, ""))
    assert isinstance(read(event("approve"), rotated, NOW), Click)
    assert rotated.asked == ["keys", "renewed"]


def test_a_forged_click_is_refused_after_one_more_reading() -> None:
    for rotated in (None, SlackKeys("another", "")):
        ring = Keyring(SlackKeys(SECRET, ""), rotated)
        assert isinstance(read(event("forged-signature"), ring, NOW), NotVerified)
        assert ring.asked == ["keys", "renewed"]


def test_what_is_plainly_no_click_costs_no_reading_of_the_secret() -> None:
    ring = keyring()
    old = signed(b"payload={}", NOW - timedelta(hours=1))
    bare = signed(b"payload={}") | {"headers": {"X-Slack-Request-Timestamp": str(int(NOW.timestamp()))}}
    odd = signed(b"payload={}")
    odd["headers"]["X-Slack-Signature"] = "v0=" + "g" * 64
    for broken in (None, {}, {"body": "!", "isBase64Encoded": True}, old, bare, odd, event("garbage-timestamp")):
        assert isinstance(read(broken, ring, NOW), NotVerified)
    assert ring.asked == []


@pytest.mark.parametrize("ids", [{"team_id": "T0OTHER"}, {"app_id": "A0OTHER"}])
def test_a_signed_click_of_another_workspace_or_app_is_refused(ids: dict[str, str]) -> None:
    found = read(event("approve"), keyring(**ids), NOW)
    assert isinstance(found, NotVerified)
    assert found.status == 403
    assert next(iter(ids)) in found.sentence


def test_a_click_of_the_configured_workspace_and_app_counts() -> None:
    found = read(event("approve"), keyring(team_id="T0EXAMPLE", app_id="A0EXAMPLE"), NOW)
    assert isinstance(found, Click)
    assert found.response_url == "https://hooks.slack.com/actions/T0EXAMPLE/1/synthetic"
    assert found.response_url not in repr(found)
    assert found.sent_at == NOW


@pytest.mark.parametrize("seconds", [-301, 301, 86_400])
def test_a_click_of_another_time_is_a_replay(seconds: int) -> None:
    found = interaction(event("approve"), SECRET, NOW + timedelta(seconds=seconds))
    assert isinstance(found, NotVerified)
    assert "at most 300 s" in found.sentence


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_click_of_the_last_five_minutes_counts(seconds: int) -> None:
    assert isinstance(interaction(event("approve"), SECRET, NOW + timedelta(seconds=seconds)), Click)


def test_one_changed_byte_of_the_body_breaks_the_signature() -> None:
    spoilt = event("approve")
    body = base64.b64decode(spoilt["body"])
    spoilt["body"] = base64.b64encode(body.replace(b"U0APPROVER", b"U0ATTACKER")).decode()
    assert isinstance(interaction(spoilt, SECRET, NOW), NotVerified)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        [1],
        7,
        None,
        {"type": "view_closed"},
        {"type": "block_actions"},
        {"type": "block_actions", "actions": [{"action_id": "x"}]},
        {"type": "block_actions", "actions": [{"action_id": "rightsizer_approve", "value": "p-1"}], "user": {"id": 7}},
    ],
)
def test_a_signed_payload_that_asks_nothing_is_answered_and_not_decided(payload: Any) -> None:
    body = urlencode({"payload": json.dumps(payload)}).encode()
    assert isinstance(interaction(signed(body), SECRET, NOW), NotClicked)


def test_bodies_that_are_not_forms_are_answered() -> None:
    for body in (b"\xff\xfe", b"payload=%7B", b"ssl_check=1", b"payload=" + b"[" * 100_000):
        assert isinstance(interaction(signed(body), SECRET, NOW), NotClicked)


@pytest.mark.parametrize(
    ("broken", "status"),
    [({}, 400), ({"body": 7}, 400), ({"body": "!", "isBase64Encoded": True}, 400), ({"body": "x" * 300_000}, 413)],
)
def test_a_broken_request_is_refused_by_its_own_status(broken: dict[str, Any], status: int) -> None:
    found = interaction(broken, SECRET, NOW)
    assert isinstance(found, NotVerified)
    assert found.status == status


@given(st.dictionaries(st.sampled_from(["body", "headers", "isBase64Encoded"]), st.none() | st.text() | st.integers()))
def test_no_garbage_is_ever_verified(garbage: dict[str, Any]) -> None:
    assert isinstance(interaction(garbage, SECRET, NOW), NotVerified)


@given(st.dictionaries(st.text(), st.text()), st.text())
def test_no_garbage_headers_are_ever_verified(headers: dict[str, str], body: str) -> None:
    assert isinstance(interaction({"headers": headers, "body": body}, SECRET, NOW), NotVerified)


def test_verifying_imports_neither_pydantic_nor_boto3() -> None:
    code = "import sys, rightsizer.intake.slack; print(sorted({'pydantic', 'boto3', 'botocore'} & set(sys.modules)))"
    root = str(Path(__file__).parents[2] / "shared")
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert ran.stdout.strip() == "[]"


def payload(**members: Any) -> dict[str, Any]:
    body = urlencode({"payload": json.dumps({"user": {"id": "U1"}, "team": {"id": "T1"}} | members)})
    return signed(body.encode())


@pytest.mark.parametrize(
    ("value", "read_as"),
    [("p-1", ("p-1", 0, 0)), ("p-1~3", ("p-1", 3, 0)), ("p-1~0~30", ("p-1", 0, 30))],
)
def test_a_button_names_the_proposal_its_revision_and_a_number(value: str, read_as: tuple[str, int, int]) -> None:
    for action in ({"value": value}, {"selected_option": {"value": value}}):
        found = interaction(
            payload(type="block_actions", actions=[{"action_id": "rightsizer_snooze"} | action]), SECRET, NOW
        )
        assert isinstance(found, Click)
        assert found.asked == DecisionAsked("snooze", *read_as)


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("rightsizer_test", DecisionAsked("test", "p-1", 1, 60)),
        ("rightsizer_take_3", OptionTaken("p-1", 1, 60)),
        ("rightsizer_rollback", RollbackAsked("p-1")),
        ("rightsizer_wake", WakePressed("p-1", timedelta(hours=1))),
        ("rightsizer_details", PageAsked("details", "p-1")),
        ("rightsizer_report", PageAsked("report", "p-1")),
        ("rightsizer_pause", UnknownButton("pause")),
        ("rightsizer_take_300", UnknownButton("take_300")),
    ],
)
def test_each_button_asks_for_its_own_thing(action: str, asked: ButtonAsk) -> None:
    pressed = {"action_id": action, "value": "p-1~1~60"}
    found = interaction(payload(type="block_actions", actions=[pressed]), SECRET, NOW)
    assert isinstance(found, Click)
    assert found.asked == asked


@pytest.mark.parametrize("action", ["rightsizer_open", "approve", "other_wake"])
def test_a_button_with_a_link_or_of_somebody_else_asks_nothing(action: str) -> None:
    pressed = {"action_id": action, "value": "p-1"}
    assert isinstance(interaction(payload(type="block_actions", actions=[pressed]), SECRET, NOW), NotClicked)


@pytest.mark.parametrize("value", ["", "~", "p-1~", "p-1~x", "p-1~1~", "p-1~1~2~3", "p-1~99999", "x" * 300, "~1~2"])
def test_a_value_of_another_form_decides_nothing_and_is_answered(value: str) -> None:
    action = {"action_id": "rightsizer_approve", "value": value}
    found = interaction(payload(type="block_actions", actions=[action]), SECRET, NOW)
    assert isinstance(found, Click)
    assert found.asked == UnknownButton("approve")


def test_a_form_names_what_its_modal_carried_along_and_what_the_person_wrote() -> None:
    kept = json.dumps({"value": "p-1~2", "response_url": "https://hooks.slack.com/actions/x"})
    view = {
        "id": "V1",
        "callback_id": "rightsizer_why",
        "private_metadata": kept,
        "state": {"values": {"why": {"why": {"value": "  launch in May "}}}},
    }
    found = interaction(payload(type="view_submission", view=view), SECRET, NOW)
    assert isinstance(found, Click)
    assert found.asked == DecisionAsked("reject", "p-1", 2, comment="launch in May")
    assert (found.is_form, found.view_id) == (True, "V1")
    assert found.response_url == "https://hooks.slack.com/actions/x"
    other = payload(type="view_submission", view=view | {"callback_id": "other"})
    assert isinstance(interaction(other, SECRET, NOW), NotClicked)


@pytest.mark.parametrize("kept", ["", "[]", "{", json.dumps({"value": 7}), json.dumps({"value": "~1"})])
def test_a_form_of_ours_that_names_no_proposal_is_answered_and_does_not_close_as_if_recorded(kept: str) -> None:
    view = {"id": "V1", "callback_id": "rightsizer_why", "private_metadata": kept}
    found = interaction(payload(type="view_submission", view=view), SECRET, NOW)
    assert isinstance(found, Click)
    assert (found.asked, found.is_form, found.view_id) == (UnknownButton("why"), True, "V1")


def test_another_option_is_taken_by_a_button_of_the_modal() -> None:
    view = {"id": "V1", "private_metadata": json.dumps({"response_url": "https://hooks.slack.com/actions/x"})}
    action = {"action_id": "rightsizer_take_2", "value": "p-1~0~2"}
    found = interaction(payload(type="block_actions", view=view, actions=[action]), SECRET, NOW)
    assert isinstance(found, Click)
    assert (found.asked, found.view_id) == (OptionTaken("p-1", 0, 2), "V1")
    assert found.response_url == "https://hooks.slack.com/actions/x"
