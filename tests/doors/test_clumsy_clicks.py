"""Clicks that go wrong in ways of their own: forms that lost their state, buttons of old messages, odd names, replays.

Each is answered: what was recorded, or that nothing was and what to do next. Only what no person sent, such as a body
that is no form, has no answer. Beside these `test_every_button` has every button in every state, by two approvers and
a stranger, and `test_hostile_clicks` three hundred clicks of strangers, forgers and other workspaces.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from rightsizer.domain.approvers import SlackKeys
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import MARK
from rightsizer.flows import respond as flow
from rightsizer.intake.slack import LONGEST_REASON, parse_interaction
from sandbox.slack import Reply
from tests.doors.test_every_button import APPROVER, DO, OTHER, Desk, FixedKeys, desk
from tests.samples import NOW

METADATA: tuple[Any, ...] = (
    "",
    "{",
    "[]",
    "7",
    "null",
    json.dumps({"value": ""}),
    json.dumps({"value": "~0"}),
    None,
    7,
)
VIEWS: tuple[dict[str, Any], ...] = (
    {"id": "V1", "callback_id": "rightsizer_why"},
    {"callback_id": "rightsizer_why", "private_metadata": "x" * 3000},
    {"id": "V1", "callback_id": "rightsizer_pause_of_a_later_release", "private_metadata": json.dumps({"value": "p"})},
)
VALUES: tuple[Any, ...] = ("", "~", "~1~2", "p~x", "p~1~", "p~99999", None, 7, {"id": "p"}, "p" * 201)
NAMES = (
    "🦊 Zoë",
    "עדה",
    "علي\u202e",
    "\u200bada",
    "a" * 3000,
    "<!channel>",
    "*bold* `x`",
    "ada|<@U0EVE>",
    "",
    "\x1b[31mred",
)
REASONS = (
    "x" * 3000, "🚀" * 700, "מחר\u202eabc", "\u0000\u0007", "<!channel> <@U0EVE>", "   ", "line\n\nline",
    "'; DROP TABLE", "=HYPERLINK(1)", "{{7*7}}", "\u2066hidden\u2069", "&lt;script&gt;",
    "because " * 1250, "\u200b" * 10_000, "\u202e\u2067" * 300,
)  # fmt: skip


@pytest.fixture(scope="module")
def at() -> Iterator[Desk]:
    with desk() as made:
        yield made


def form(at: Desk, view: dict[str, Any], user: str = APPROVER, **changes: Any) -> flow.Answer:
    """The answer to a form whose modal is `view`."""
    at.slack.answers.append(Reply(user, NOW))
    sent = {"type": "view_submission", "user": {"id": user}, "view": view} | changes
    return at.answer(at.slack.request(sent, NOW))


def kept(at: Desk, name: str) -> str:
    where = f"{at.slack.hooks}/actions/T0SANDBOX/{len(at.slack.answers) + 1}/sandbox"
    return json.dumps({"value": f"{name}~0", "response_url": where})


def why(at: Desk, name: str, text: Any) -> dict[str, Any]:
    values = {"values": {"why": {"why": {"value": text}}}}
    return {"id": "V1", "callback_id": "rightsizer_why", "private_metadata": kept(at, name), "state": values}


def row(at: Desk, name: str) -> dict[str, Any]:
    (found,) = (one for (pk, _), one in at.table.rows.items() if pk.endswith(name))
    document: dict[str, Any] = json.loads(str(found["doc"]))
    return document


def refused(at: Desk, answer: flow.Answer, before: Any) -> str:
    """What the person reads of a click that recorded nothing."""
    said = at.told(answer)
    assert (answer.recorded, answer.status, at.table.rows) == (False, 200, before), said
    assert "othing was recorded" in said or "already" in said or "asks for something else" in said, said
    assert any(hint in said for hint in DO), said
    return said


@pytest.mark.parametrize("metadata", METADATA)
def test_a_form_that_lost_its_proposal_stays_open_and_says_that_nothing_was_recorded(at: Desk, metadata: Any) -> None:
    at.put()
    before = dict(at.table.rows)
    answer = form(at, {"id": "V1", "callback_id": "rightsizer_why", "private_metadata": metadata})
    assert answer.view is not None, "an empty answer closes the form, as if it were recorded"
    refused(at, answer, before)


@pytest.mark.parametrize("view", VIEWS)
def test_a_form_without_state_or_of_another_release_says_what_to_do(at: Desk, view: dict[str, Any]) -> None:
    at.put()
    before = dict(at.table.rows)
    refused(at, form(at, view), before)


@pytest.mark.parametrize("value", VALUES)
def test_a_button_that_carries_nothing_that_can_be_read_is_answered(at: Desk, value: Any) -> None:
    at.put()
    before = dict(at.table.rows)
    answer = at.press("approve", "p", spoilt={"actions": [{"action_id": "rightsizer_approve", "value": value}]})
    assert "newest message" in refused(at, answer, before)


@pytest.mark.parametrize("verb", ["approve", "test", "snooze", "take"])
def test_a_button_of_a_replaced_message_says_that_the_proposal_asks_for_something_else(at: Desk, verb: str) -> None:
    name = at.put(revision=2)
    before = dict(at.table.rows)
    number = {"snooze": "~30", "take": "~1"}.get(verb, "")
    said = refused(at, at.press(verb, f"{name}~1{number}"), before)
    assert "another option of it since this message was drawn" in said


@pytest.mark.parametrize("text", ["not now", "", "x" * 3000])
def test_an_approver_who_was_removed_while_the_form_was_open_is_told_so_in_it(at: Desk, text: str) -> None:
    name = at.put()
    before = dict(at.table.rows)
    answer = form(at, why(at, name, text), user="U0GONE")
    assert answer.view is not None
    assert "adds your Slack user id, U0GONE" in refused(at, answer, before)


def test_a_form_that_is_sent_twice_is_recorded_once_and_the_second_names_who_was_first(at: Desk) -> None:
    name = at.put()
    assert form(at, why(at, name, "later")).recorded
    before = dict(at.table.rows)
    for user in (APPROVER, OTHER):
        said = refused(at, form(at, why(at, name, "later"), user=user), before)
        assert f"rejected already by <@{APPROVER}> on Mon 12 Jan 2026, 09:30 UTC" in said.replace("\\u003c", "<")


@pytest.mark.parametrize("text", REASONS)
def test_any_reason_is_kept_as_it_was_written_up_to_its_limit(at: Desk, text: str) -> None:
    name = at.put()
    answer = form(at, why(at, name, text))
    assert answer.recorded, at.told(answer)
    said = row(at, name)["decision"]["comment"]
    assert said == text[:LONGEST_REASON].strip()
    assert "Recorded: rejected." in at.told(answer)


@pytest.mark.parametrize("text", [None, 7, [], {"value": "x"}])
def test_a_reason_that_is_no_text_is_none_and_the_answer_counts(at: Desk, text: Any) -> None:
    name = at.put()
    assert form(at, why(at, name, text)).recorded
    assert row(at, name)["decision"]["comment"] == ""


@pytest.mark.parametrize("called", NAMES)
def test_what_a_person_is_called_neither_decides_nor_shows(at: Desk, called: str) -> None:
    name = at.put()
    who = {"id": APPROVER, "username": called, "name": called, "team_id": "T0SANDBOX"}
    answer = at.press("approve", f"{name}~0", spoilt={"user": who})
    assert answer.recorded
    assert row(at, name)["decision"]["by"] == f"slack:{APPROVER}"
    before, second = dict(at.table.rows), at.press("approve", f"{name}~0", OTHER, {"user": who | {"id": OTHER}})
    said = refused(at, second, before)
    assert f"<@{APPROVER}>" in said.replace("\\u003c", "<")
    assert not called or len(called) < 4 or called not in said
    assert MARK not in said


@pytest.mark.parametrize("verb", ["approve", "snooze", "wake"])
@pytest.mark.parametrize(("age", "uses"), [(timedelta(minutes=31), 0), (timedelta(0), 5)])
def test_a_response_url_that_is_too_old_or_used_up_undoes_nothing(
    at: Desk, verb: str, age: timedelta, uses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = at.put()
    monkeypatch.setattr(at.slack, "clock", lambda: NOW + age)
    monkeypatch.setattr("sandbox.slack.USES", 5 - uses)
    answer = at.press(verb, f"{name}~0{'~30' if verb == 'snooze' else ''}")
    assert (answer.status, answer.recorded) == (200, verb != "wake")
    assert "the person was not told" in answer.log


@pytest.mark.parametrize("seconds", [0, 120, 300])
def test_a_signed_request_that_is_sent_again_within_five_minutes_decides_nothing_twice(at: Desk, seconds: int) -> None:
    name = at.put()
    event = at.slack.click(replace(at.message, blocks=[approve(name)]), "approve", APPROVER, NOW)
    keys = cast("Any", FixedKeys(slack_keys(at)))
    first = flow.respond(parse_interaction(event, keys, NOW), at.ports(), NOW)
    assert first.recorded
    before, later = dict(at.table.rows), NOW + timedelta(seconds=seconds)
    again = flow.respond(parse_interaction(event, keys, later), at.ports(), later)
    assert "approved already by" in refused(at, again, before)


@pytest.mark.parametrize("seconds", [301, 3600, -301])
def test_a_signed_request_of_another_time_is_refused_and_its_log_says_why(at: Desk, seconds: int) -> None:
    name = at.put()
    before = dict(at.table.rows)
    event = at.slack.click(replace(at.message, blocks=[approve(name)]), "approve", APPROVER, NOW)
    later = NOW + timedelta(seconds=seconds)
    answer = flow.respond(parse_interaction(event, cast("Any", FixedKeys(slack_keys(at))), later), at.ports(), later)
    assert (answer.status, answer.recorded, at.table.rows) == (401, False, before)
    assert f"signed {seconds} s ago; at most 300 s are accepted" in answer.log


def test_a_request_signed_for_another_workspace_is_refused_and_its_log_names_both(at: Desk) -> None:
    name = at.put()
    before = dict(at.table.rows)
    theirs = replace(at.slack, signing_secret="of another workspace", answers=[], triggers={})
    event = theirs.click(replace(at.message, blocks=[approve(name)]), "approve", APPROVER, NOW)
    answer = at.answer(event)
    assert (answer.status, answer.recorded, at.table.rows) == (401, False, before)
    assert "is the signing secret the one of this Slack app?" in answer.log
    event = at.slack.click(replace(at.message, blocks=[approve(name)]), "approve", APPROVER, NOW, team={"id": "T0EVE"})
    ours = replace(slack_keys(at), team_id="T0SANDBOX")
    refusal = flow.respond(parse_interaction(event, cast("Any", FixedKeys(ours)), NOW), at.ports(), NOW)
    assert (refusal.status, at.table.rows) == (403, before)
    assert "'T0EVE'" in refusal.log
    assert "'T0SANDBOX'" in refusal.log


@pytest.mark.parametrize("state", [ProposalState.PROVEN, ProposalState.EXPIRED])
def test_a_form_about_what_ended_meanwhile_says_so_in_it(at: Desk, state: ProposalState) -> None:
    name = at.put(state)
    before = dict(at.table.rows)
    answer = form(at, why(at, name, "too late"))
    assert answer.view is not None
    assert f"is {state} already" in refused(at, answer, before)


HEADERS = (
    {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"},
    {"x-slack-retry-num": "3", "x-slack-retry-reason": "http_error"},
    {"X-Slack-Retry-Num": "-1"},
    {"x-slack-retry-num": "x" * 5000},
)
"""What Slack adds to a request that it sends again, as somebody may spell it."""


@pytest.mark.parametrize("headers", HEADERS)
def test_a_click_that_is_sent_again_with_the_headers_of_a_retry_counts_once(at: Desk, headers: dict[str, str]) -> None:
    name = at.put()
    event = at.slack.click(replace(at.message, blocks=[approve(name)]), "approve", APPROVER, NOW)
    again = event | {"headers": event["headers"] | headers}
    assert [at.answer(one).recorded for one in (again, event, again)] == [True, False, False]
    assert f"approved already by <@{APPROVER}>" in at.slack.answers[-1].plain().replace("\\u003c", "<")


BODIES = (
    b"payload=", b"payload", b"", b"=", b"\xff\xfe\x00", b"payload=null", b"payload=7", b"payload=[]",
    b"payload=%7B", b"payload=NaN", b"payload=" + b"[" * 100_000, b"payload=%7B%7D&" * 50, b"Payload=%7B%7D",
    b"{\"type\":\"block_actions\"}", b"payload=%ff%fe", b"a=1&b=2", b"payload[]=%7B%7D", b"&" * 1000,
)  # fmt: skip
"""Bodies that somebody who knows the signing secret may send."""


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_signed_and_no_click_records_nothing_and_breaks_nothing(at: Desk, body: bytes) -> None:
    at.put()
    before, told = dict(at.table.rows), len(at.slack.answers)
    answer = at.answer(signed(at, body))
    assert (answer.status, answer.recorded) == ((200, False) if body else (400, False))
    assert (at.table.rows, len(at.slack.answers)) == (before, told)
    assert "nothing to do: " in answer.log or "the request has no body" in answer.log


def test_of_two_payloads_in_one_body_the_first_counts_and_no_field_of_the_second(at: Desk) -> None:
    name = at.put()
    before = dict(at.table.rows)
    stranger, approver = (
        at.slack.click(replace(at.message, blocks=[approve(name)]), "approve", user, NOW)["body"]
        for user in ("U0GONE", APPROVER)
    )
    answer = at.answer(signed(at, b"&".join(map(base64.b64decode, (stranger, approver)))))
    assert (answer.recorded, at.table.rows) == (False, before)
    assert "you are not on the list of approvers" in answer.text


@pytest.mark.parametrize(
    "kind", ["view_closed", "block_suggestion", "message_action", "shortcut", "workflow_step_edit"]
)
def test_a_form_that_is_closed_and_other_interactions_ask_nothing(at: Desk, kind: str) -> None:
    name = at.put()
    before = dict(at.table.rows)
    view = why(at, name, "closed before it was sent")
    answer = at.answer(at.slack.request({"type": kind, "user": {"id": APPROVER}, "view": view}, NOW))
    assert (answer.status, answer.recorded, answer.view, at.table.rows) == (200, False, None, before)


def signed(at: Desk, body: bytes) -> dict[str, Any]:
    """A request with this body, signed by the app's secret."""
    base = f"v0:{int(NOW.timestamp())}:".encode() + body
    signature = "v0=" + hmac.new(at.slack.signing_secret.encode(), base, hashlib.sha256).hexdigest()
    headers = {"x-slack-request-timestamp": str(int(NOW.timestamp())), "x-slack-signature": signature}
    return {"headers": headers, "body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def approve(name: str) -> dict[str, Any]:
    button = {"type": "button", "text": {"text": "approve"}, "action_id": "rightsizer_approve", "value": f"{name}~0"}
    return {"elements": [button]}


def slack_keys(at: Desk) -> SlackKeys:
    return SlackKeys(at.slack.signing_secret, at.slack.bot_token)
