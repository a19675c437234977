"""Every button against every state of a proposal, and what goes wrong on the way: a table in memory, Slack on loopback.

A click records what its button says, once and where the state allows it; else the row stays as it was, and whoever
clicked reads why and what to do. None waits for longer than Slack does.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from typing import Any, cast
from urllib.parse import parse_qs

import pytest
from urllib3 import Timeout
from urllib3.exceptions import ReadTimeoutError

from rightsizer.aws import decisions
from rightsizer.aws.proposals import item
from rightsizer.aws.table import Row, Table
from rightsizer.channels.response_url import ResponseUrls
from rightsizer.channels.views import Views
from rightsizer.domain.approvers import SlackKeys
from rightsizer.domain.proposal import SNOOZE_DAYS, Decision, ProposalState
from rightsizer.errors import ConflictError, RightsizerError, ThrottledError
from rightsizer.flows import respond as flow
from rightsizer.intake.slack import parse_interaction
from rightsizer.render import blocks
from sandbox.slack import Message, Reply, Workspace, listening
from tests.samples import NOW, option, proposal, recommendation

APPROVER, OTHER = "U0ADA", "U0EVE"
SEED = 28
CHEAPER = replace(option(), target=replace(option().target, instance_type="ml.g6.xlarge"), in_place=True)
VERBS = ("approve", "test", "reject", "snooze", "take", "rollback", "details", "wake", "undo_of_another_release")
RECORDS = {
    ProposalState.PENDING: {"approve", "reject", "snooze", "take"},
    ProposalState.APPROVED: {"reject", "rollback"},
    ProposalState.APPLYING: {"rollback"},
    ProposalState.APPLIED: {"rollback"},
    ProposalState.PROVEN: {"rollback"},
}
"""What may be recorded in a state; in every other one nothing."""
DO = (
    "ress a button", "press ", "run: ", "with: rightsizer", "answer the newest message", "comes back", "asked again",
    "open its details", "try again", "a new message comes", "nothing is left to do", "says what is left to do",
    "approve it, or reject it", "message follows it", "adds your Slack user id",
)  # fmt: skip
"""How a refusal says what to do."""


class Memory(Table):
    """The rows of the table; a write is conditional on the version, as in DynamoDB."""

    def __init__(self) -> None:
        self.name, self.rows = "t", dict[tuple[str, str], Row]()
        self.broken: RightsizerError | None = None

    def get(self, pk: str, sk: str) -> Row | None:
        if self.broken:
            raise self.broken
        return self.rows.get((pk, sk))

    def swap(self, item: Any, version: int) -> None:
        key = str(item["pk"]), str(item["sk"])
        if self.rows[key]["version"] != version:
            raise ConflictError("replacing a row: it was changed in between")
        self.rows[key] = dict(item)


@dataclass
class Desk:
    """A proposal, its message, and whoever presses the buttons."""

    slack: Workspace
    address: str
    table: Memory = field(default_factory=Memory)
    asleep: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slack.clock = lambda: NOW
        self.urls = ResponseUrls(lambda: NOW, self.address)
        self.views = Views(lambda: self.slack.bot_token, lambda: NOW, self.address)

    def put(self, state: ProposalState = ProposalState.PENDING, **changes: Any) -> str:
        """A proposal in a state, as its row would be; its id."""
        decided = (
            Decision(state, f"slack:{OTHER}", NOW - timedelta(hours=1)) if state in flow.DECIDES.values() else None
        )
        found = replace(recommendation("chat"), options=(option(), CHEAPER))
        change = "" if state in (ProposalState.PENDING, ProposalState.APPROVED) else "c-1"
        one = proposal(recommendation=found, state=state, decision=decided, change_id=change, **changes)
        row = dict(item(one))
        self.table.rows = {(str(row["pk"]), str(row["sk"])): row}
        return one.id

    @property
    def message(self) -> Message:
        return Message(self.slack.channel, "1767373400.000100", "chat", [])

    def press(
        self, verb: str, value: str, user: str = APPROVER, spoilt: Mapping[str, Any] | None = None
    ) -> flow.Answer:
        """The answer to a button as the function gives it; `spoilt` goes into the payload."""
        action = {"type": "button", "action_id": f"rightsizer_{'take_1' if verb == 'take' else verb}", "value": value}
        pressed = {"elements": [{"type": "button", "text": {"text": verb}, **action}]}
        message = replace(self.message, blocks=[pressed])
        event = self.slack.click(message, verb, user, NOW)
        if spoilt:
            payload = json.loads(parse_qs(base64.b64decode(event["body"]).decode())["payload"][0])
            event = self.slack.request(payload | spoilt, NOW)
        return self.answer(event)

    def send(self, value: str, user: str = APPROVER) -> flow.Answer:
        """The answer to the form that asks why a proposal is rejected."""
        self.slack.answers.append(Reply(user, NOW))
        kept = {
            "value": value,
            "response_url": f"{self.slack.hooks}/actions/T0SANDBOX/{len(self.slack.answers)}/sandbox",
        }
        said = {"values": {"why": {"why": {"value": "not now"}}}}
        view = {"id": "V1", "callback_id": "rightsizer_why", "private_metadata": json.dumps(kept), "state": said}
        return self.answer(self.slack.request({"type": "view_submission", "user": {"id": user}, "view": view}, NOW))

    def answer(self, event: object) -> flow.Answer:
        keys = SlackKeys(self.slack.signing_secret, self.slack.bot_token)
        return flow.respond(parse_interaction(event, cast("Any", FixedKeys(keys)), NOW), self.ports(), NOW)

    def ports(self) -> flow.RespondPorts:
        """The ports of the door over the table in memory."""
        table = self.table

        def wake(name: str, stay: timedelta, user: str, at: Any) -> str:
            self.asleep.append(name)
            raise ConflictError(f"{name} has no office hours; nothing was recorded: press Wake in its newest message")

        return flow.RespondPorts(
            lambda: frozenset({APPROVER, OTHER}),
            lambda name, decision, at: decisions.decide(table, name, decision, at),
            lambda name, by, at: decisions.request_rollback(table, name, by, at),
            lambda page: f"https://pages.example/{page}",
            lambda click, text, link: self.urls.post(click.response_url, blocks.answer(text, link), click.sent_at),
            lambda *order: decisions.take_option(table, *order),
            self.views.open_reason_form,
            lambda click, proposal, page: self.views.show_details(click, b'{"type":"modal","blocks":[]}', page),
            self.views.say,
            wake,
            freezer=lambda: decisions.freezer(table),
        )

    def told(self, answer: flow.Answer) -> str:
        """What the person reads: in the modal, or by the click's response_url."""
        if answer.view is not None:
            return json.dumps(answer.view)
        return self.slack.answers[-1].plain() if self.slack.answers else ""


@dataclass(frozen=True)
class FixedKeys:
    known: SlackKeys

    def keys(self) -> SlackKeys:
        return self.known

    def renew(self) -> SlackKeys | None:
        return None


@contextmanager
def desk() -> Iterator[Desk]:
    slack = Workspace()
    with listening(slack) as address:
        at = Desk(slack, address)
        try:
            yield at
        finally:
            at.urls.close()
            at.views.close()


@pytest.fixture(scope="module")
def at() -> Iterator[Desk]:
    with desk() as made:
        yield made


def value_of(verb: str, name: str, chance: random.Random) -> str:
    return (
        f"{name}~0~{chance.choice(SNOOZE_DAYS)}"
        if verb == "snooze"
        else f"{name}~0~1"
        if verb == "take"
        else f"{name}~0"
    )


@pytest.mark.parametrize(("state", "verb"), list(product(ProposalState, VERBS)))
def test_a_button_records_where_the_state_allows_it_and_else_says_what_to_do(
    at: Desk, state: ProposalState, verb: str
) -> None:
    chance = random.Random(SEED)
    for user in (APPROVER, OTHER, "U0BOB"):
        name = at.put(state)
        before = dict(at.table.rows)
        form = verb == "reject"
        answer = at.send(f"{name}~0", user) if form else at.press(verb, value_of(verb, name, chance), user)
        said, may = at.told(answer), user != "U0BOB" and verb in RECORDS.get(state, set())
        assert answer.status == 200, answer.log
        assert answer.recorded == may, said
        assert (at.table.rows != before) == may, said
        assert verb == "details" or (("Recorded" in said) if may else any(hint in said for hint in DO)), said
        assert not any(raw in said for raw in ("slack:", "arn:", "T0", "Traceback")), said


def test_a_second_press_of_anything_after_anything_records_nothing_that_the_first_closed(at: Desk) -> None:
    for first, second in product(("approve", "reject", "snooze"), ("approve", "test", "reject", "snooze", "take")):
        name = at.put()
        for number, verb in enumerate((first, second)):
            user = (APPROVER, OTHER)[number]
            is_form, value = verb == "reject", value_of(verb, name, random.Random(SEED))
            answer = at.send(f"{name}~0", user) if is_form else at.press(verb, value, user)
            if number:
                stops = (first, second) == ("approve", "reject")
                assert answer.recorded == stops, (first, second)
                assert stops or f"<@{APPROVER}>" in at.told(answer).replace("\\u003c", "<"), "who was first"


@pytest.mark.parametrize("verb", ["approve", "snooze"])
def test_whoever_approves_while_changes_are_frozen_reads_who_froze_them_and_how_that_ends(at: Desk, verb: str) -> None:
    name = at.put()
    doc = json.dumps({"frozen": True, "by": "cli:arn:aws:sts::111122223333:assumed-role/sre/eve"})
    at.table.rows["CONTROL", "FREEZE"] = {"pk": "CONTROL", "sk": "FREEZE", "doc": doc}
    answer = at.press(verb, value_of(verb, name, random.Random(SEED)))
    said = at.told(answer)
    assert answer.recorded
    assert ("frozen by eve (role sre): it begins once" in said and "rightsizer freeze --off" in said) == (
        verb == "approve"
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest/meta-data/iam/security-credentials/", "https://hooks.slack.com.evil.example/a",
        "https://hooks.slack.com@evil.example/a", "https://evil.example/hooks.slack.com/", "file:///etc/passwd",
        "https://hooks.slack.com:8443/a", "http://hooks.slack.com/a", "https://hooks.slack.com/../../a?b=c",
        "https://HOOKS.SLACK.COM.evil.example/", "//hooks.slack.com/a", "https://hooks.slack.com/a\r\nHost: b",
        "https://[::1]/a", "gopher://127.0.0.1:6379/_FLUSHALL", "x" * 5000, " https://hooks.slack.com/a",
    ],
)  # fmt: skip
def test_an_answer_is_posted_to_slack_and_nowhere_else(at: Desk, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(at.urls._pool, "request", lambda method, url, **_: asked.append(url))
    name = at.put()
    answer = at.press("approve", f"{name}~0", "U0BOB", {"response_url": address})
    assert (asked, answer.status, answer.recorded) == ([], 403, False)


@pytest.mark.parametrize("verb", ["approve", "snooze", "reject", "details"])
@pytest.mark.parametrize(
    "refusal",
    [(429, {"ok": False, "error": "ratelimited"}), (503, {}), (200, {"ok": False, "error": "expired_trigger_id"})],
)
def test_where_slack_refuses_the_answer_the_decision_stands_and_nobody_sees_a_triangle(
    at: Desk, verb: str, refusal: tuple[int, dict[str, Any]]
) -> None:
    name = at.put()
    at.slack.refusals = [refusal]
    answer = at.press(verb, value_of(verb, name, random.Random(SEED)))
    at.slack.refusals.clear()
    assert (answer.status, answer.recorded) == (200, verb in ("approve", "snooze"))


def test_a_table_that_does_not_answer_is_said_and_a_lost_answer_is_a_triangle_for_what_was_not_recorded(
    at: Desk,
) -> None:
    name = at.put()
    at.table.broken = ThrottledError("reading from the table: too many requests")
    answer = at.press("approve", f"{name}~0")
    assert (answer.status, answer.recorded) == (200, False)
    assert "try again in a minute" in at.told(answer)
    at.table.broken = None


@pytest.mark.parametrize("age", [0.0, 1.0, 2.0, 2.5])
def test_slack_that_does_not_answer_is_given_up_before_three_seconds_after_the_click(
    at: Desk, age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is ahead of the click, as after a cold start."""
    waits: list[float] = []

    def hang(method: str, url: str, *, timeout: Timeout, **_: object) -> None:
        waits.append(float(str(timeout.total)))
        raise ReadTimeoutError(cast("Any", None), url, "no answer")

    for part in (at.urls, at.views):
        monkeypatch.setattr(part, "_clock", lambda: NOW + timedelta(seconds=age))
        monkeypatch.setattr(part._pool, "request", hang)
    for verb in ("approve", "details"):
        waits.clear()
        answer = at.press(verb, f"{at.put()}~0")
        assert (answer.status, answer.recorded) == (200, verb == "approve")
        assert age + waits[0] <= 3.0


def random_payload(chance: random.Random, depth: int = 0) -> Any:
    """Whatever somebody may put into a field: a wrong type, too much, too deep, or nothing."""
    if depth > 3 or chance.random() < 0.5:
        return chance.choice(
            [None, True, 0, -1, 1e308, "", "x" * chance.choice([1, 300, 40_000]), "\u0000", "<!here>", "p-1~0"]
        )
    if chance.random() < 0.5:
        return [random_payload(chance, depth + 1) for _ in range(chance.randrange(3))]
    names = ("id", "type", "value", "action_id", "values", "why", "private_metadata", "selected_option")
    return {chance.choice(names): random_payload(chance, depth + 1) for _ in range(chance.randrange(4))}


def test_three_hundred_payloads_with_wrong_types_in_each_field_are_answered_and_change_nothing(at: Desk) -> None:
    chance = random.Random(SEED)
    name = at.put()
    before = dict(at.table.rows)
    fields = ("type", "user", "team", "channel", "actions", "view", "trigger_id", "response_url", "api_app_id")
    for number in range(300):
        spoilt = {one: random_payload(chance) for one in chance.sample(fields, chance.randrange(1, 4))}
        spoilt |= {} if {"actions", "user"} & spoilt.keys() else {fields[number % 2 * 3 + 1]: random_payload(chance)}
        answer = at.press("approve", f"{name}~0", spoilt=spoilt)
        assert answer.status in (200, 401, 403, 404), (spoilt, answer)
        assert at.table.rows == before, spoilt
