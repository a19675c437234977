"""Three hundred hostile or clumsy clicks: none decides what it may not, and whoever may be told is told what to do.

Each is a request to the Function URL of the deployed stack; after all of them the table is as it was.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.proposal import ProposalState
from sandbox.slack import Message, Workspace
from tests.doors.scene import APPROVER, BIG, PROPOSE, Scene, scene

SEED = 21
VERBS = ("approve", "test", "reject", "snooze", "take_1", "details", "rollback", "report", "wake", "", "../approve")
VALUES: tuple[Any, ...] = (
    "", "p-none", "p-none~0~7", "~", "p-1~~", "p-1~-1", "p-1~99999", "p-1~1~1~1", "x" * 3000, "../../etc/passwd",
    "<!channel>", "p-\u0000", "PROPOSAL#p", "'; DROP TABLE", None, 7, [], {}, {"value": "p"}, True,
)  # fmt: skip
JUNK: tuple[Any, ...] = (
    None,
    [],
    "",
    7,
    {},
    {"type": "block_actions"},
    [[]],
    {"type": {"type": "block_actions"}},
    "null",
)


def sent(at: Scene, event: dict[str, Any]) -> int:
    answer = at.stack.invoke("respond", event, "url")
    at.slack.acknowledge(answer)
    return int(answer["statusCode"])


def rows(at: Scene) -> list[tuple[str, str, int, str]]:
    return sorted((p.id, str(p.state), p.revision, p.asked_back_by) for p in at.proposals())


def told(at: Scene) -> str:
    return at.slack.answers[-1].plain()


type Click = Callable[[Scene, Message, random.Random], int]


def by_a_stranger(at: Scene, message: Message, chance: random.Random) -> int:
    button = chance.choice([name for name in message.buttons() if name != "Details"])
    status = sent(at, at.slack.click(message, button, f"U{chance.randrange(10**9)}", at.box.clock.now))
    assert "Nothing was recorded: you are not on the list" in told(at)
    assert "Approvers" in told(at), "it says what to do"
    return status


def of_another_workspace(at: Scene, message: Message, chance: random.Random) -> int:
    other = Workspace(signing_secret="another workspace's")
    event = other.click(message, chance.choice(list(message.buttons())), APPROVER, at.box.clock.now)
    return sent(at, event)


def forged(at: Scene, message: Message, chance: random.Random) -> int:
    event = at.slack.click(message, "Approve", APPROVER, at.box.clock.now)
    headers = event["headers"]
    match chance.randrange(5):
        case 0:
            headers["x-slack-signature"] = "v0=" + "0" * 64
        case 1:
            del headers["x-slack-signature"]
        case 2:
            headers["x-slack-request-timestamp"] = chance.choice(["", "now", "-1", "1e9", "9" * 30])
        case 3:
            event["body"] = event["body"][:-4] + "AAAA"
        case _:
            event["isBase64Encoded"] = False
    return sent(at, event)


def late(at: Scene, message: Message, chance: random.Random) -> int:
    age = timedelta(seconds=chance.randrange(301, 10**6)) * chance.choice([1, -1])
    return sent(at, at.slack.click(message, "Approve", APPROVER, at.box.clock.now - age))


def of_a_proposal_that_is_gone(at: Scene, message: Message, chance: random.Random) -> int:
    verb = chance.choice(["approve", "snooze", "rollback", "test", "take_1"])
    value = f"p-{chance.randrange(10**9):020d}" + chance.choice(["", "~0", "~0~7"])
    action = {"type": "button", "action_id": f"rightsizer_{verb}", "value": value}
    status = sent(at, at.slack.click(message, "Approve", APPROVER, at.box.clock.now, actions=[action]))
    assert "there is no such proposal" in told(at)
    assert f"rightsizer proposals --region {at.box.region} lists what waits" in told(at)
    return status


def of_an_older_revision(at: Scene, message: Message, chance: random.Random) -> int:
    value = f"{at.proposals()[0].id}~{chance.randrange(1, 99)}"
    action = {"type": "button", "action_id": "rightsizer_approve", "value": value}
    status = sent(at, at.slack.click(message, "Approve", APPROVER, at.box.clock.now, actions=[action]))
    assert "asks for something else now" in told(at)
    assert "press again" in told(at)
    return status


def malformed(at: Scene, message: Message, chance: random.Random) -> int:
    changes: dict[str, Any] = {}
    for name in chance.sample(["actions", "team", "type", "view", "trigger_id", "response_url", "channel"], 3):
        changes[name] = chance.choice(JUNK)
    changes["actions"] = chance.choice([*JUNK, [{"action_id": 7}], [None], [{"action_id": "rightsizer_approve"}]])
    return sent(at, at.slack.click(message, "Approve", APPROVER, at.box.clock.now, **changes))


def of_a_strange_value(at: Scene, message: Message, chance: random.Random) -> int:
    action = {"action_id": f"rightsizer_{chance.choice(VERBS)}", "value": chance.choice(VALUES)}
    if chance.random() < 0.3:
        action = {"action_id": action["action_id"], "selected_option": {"value": chance.choice(VALUES)}}
    return sent(at, at.slack.click(message, "Approve", APPROVER, at.box.clock.now, actions=[action]))


def with_a_strange_form(at: Scene, message: Message, chance: random.Random) -> int:
    kept = chance.choice(["", "{", "[]", "7", json.dumps({"value": "p-none~0"}), json.dumps({"value": 7}), "x" * 3000])
    callback = chance.choice(["rightsizer_why", "rightsizer_why", "other", ""])
    why: Any = chance.choice([None, "", "x" * 5000, {"value": []}, "<!channel>", "\u202e"])
    view = {"callback_id": callback, "private_metadata": kept, "state": {"values": {"why": {"why": {"value": why}}}}}
    user = chance.choice([{"id": APPROVER}, {"id": "U0STRANGER"}, {}, None])
    return sent(at, at.slack.request({"type": "view_submission", "user": user, "view": view}, at.box.clock.now))


def no_click_at_all(at: Scene, message: Message, chance: random.Random) -> int:
    if chance.random() < 0.5:
        return sent(at, at.slack.request({"type": chance.choice(["shortcut", "event", ""])}, at.box.clock.now))
    event: Any = chance.choice(
        [{}, {"body": "x"}, {"body": "", "headers": {}}, {"headers": []}, {"body": "A" * 300_000}]
    )
    return sent(at, event)


KINDS: tuple[Click, ...] = (
    by_a_stranger,
    of_another_workspace,
    forged,
    late,
    of_a_proposal_that_is_gone,
    of_an_older_revision,
    malformed,
    of_a_strange_value,
    with_a_strange_form,
    no_click_at_all,
)


def test_three_hundred_hostile_or_clumsy_clicks_change_nothing_and_break_nothing() -> None:
    chance, statuses = random.Random(SEED), Counter[tuple[str, int]]()
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        before, message = rows(at), at.message(BIG)
        for number in range(300):
            kind = KINDS[number % len(KINDS)]
            statuses[kind.__name__, kind(at, message, chance)] += 1
            assert rows(at) == before, (number, kind.__name__)
        assert at.stack.failures == []
        assert at.stack.dead_letters() == []
    assert {status for _, status in statuses} <= {200, 400, 401, 403, 404, 413}
    for name in ("of_another_workspace", "forged", "late"):
        assert not statuses[name, 200], "what Slack did not sign just now is not believed"
    assert statuses["by_a_stranger", 200] == 30


def test_a_doubled_click_is_recorded_once_and_the_second_says_who_was_first() -> None:
    with scene() as own:
        own.add(BIG, tags=PROPOSE)
        own.sweep()
        message = own.message(BIG)
        clicks = [own.slack.click(message, "Snooze 7 days", APPROVER, own.box.clock.now) for _ in range(5)]
        for event in clicks:
            assert sent(own, event) == 200
        recorded = [one.plain() for one in own.slack.answers if "Recorded" in one.plain()]
        refused = [one.plain() for one in own.slack.answers if "snoozed already by <@U0ADA>" in one.plain()]
        assert (len(recorded), len(refused)) == (1, 4)


def test_of_two_people_who_decide_at_once_one_counts_and_the_other_reads_who() -> None:
    with scene(Approvers=f"{APPROVER},U0EVE") as own:
        own.add(BIG, tags=PROPOSE)
        own.sweep()
        message = own.message(BIG)
        first = own.slack.click(message, "Reject", APPROVER, own.box.clock.now)
        assert sent(own, first) == 200
        modal = own.slack.modals[-1]
        assert sent(own, own.slack.click(message, "Snooze 30 days", "U0EVE", own.box.clock.now)) == 200
        answer = own.stack.invoke("respond", own.slack.submit(modal, own.box.clock.now, {"why": "no"}), "url")
        assert "snoozed already by <@U0EVE>" in answer["body"]
        assert own.proposals()[0].state is ProposalState.SNOOZED


def test_a_click_of_another_app_of_the_workspace_is_refused_where_the_secret_names_ours() -> None:
    with scene() as own:
        own.add(BIG, tags=PROPOSE)
        own.sweep()
        keys = json.loads(own.slack.secret()) | {"team_id": "T0SANDBOX", "app_id": "A0SANDBOX"}
        own.box.client("secretsmanager").put_secret_value(SecretId="slack", SecretString=json.dumps(keys))
        own.pass_time(minutes=6)
        for changes in ({"api_app_id": "A0OTHER"}, {"team": {"id": "T0OTHER"}}, {"team": None}):
            event = own.slack.click(own.message(BIG), "Approve", APPROVER, own.box.clock.now, **changes)
            assert sent(own, event) == 403
        assert own.proposals()[0].state is ProposalState.PENDING


@pytest.mark.parametrize(
    ("button", "state"),
    [
        ("Approve", ProposalState.WITHDRAWN),
        ("Snooze 30 days", ProposalState.SNOOZED),
        ("Reject", ProposalState.REJECTED),
    ],
)
def test_a_click_about_an_endpoint_that_is_gone_changes_nothing_and_an_approval_ends_with_the_reason(
    button: str, state: ProposalState
) -> None:
    with scene() as own:
        own.add(BIG, tags=PROPOSE)
        own.sweep()
        own.box.client("sagemaker").delete_endpoint(EndpointName=BIG)
        own.pass_time(minutes=10)
        own.click(BIG, button)
        own.pass_time(minutes=30)
        assert own.proposals()[0].state is state
        assert [call.operation for call in own.writes("sagemaker")] == ["DeleteEndpoint"]
        gone = f"*Withdrawn: endpoint {BIG} does not exist any more*"
        assert (gone in own.message(BIG).plain()) == (state is ProposalState.WITHDRAWN)
        assert not {"Approve", "Reject", "Roll back"} & set(own.message(BIG).buttons())
        assert own.stack.failures == []
