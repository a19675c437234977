"""What is written over a row keeps the attributes that this program does not know, and no row of a newer release."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.aws.journal import UNREAD_LOCK, TableJournal
from rightsizer.aws.ledger import HistoryTable
from rightsizer.aws.message_book import Messages
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.checks import SCHEMA_TEST_FIRST
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import Decision, MessageRef, Proposal, ProposalState
from rightsizer.errors import ReadError, UnreadableError
from sandbox.account import Sandbox
from tests.doors.test_spoilt_rows import UNKNOWN
from tests.render.test_hostile import errand_of
from tests.samples import NOW, proposal, recommendation
from tests.table import create_table, decide

PAST = PastChange(NOW, "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1)
APPROVE = Decision(ProposalState.APPROVED, "slack:U1", NOW)
REJECT = Decision(ProposalState.REJECTED, "slack:U1", NOW)
LATER = NOW + timedelta(days=30)
type Step = Callable[["Shelf"], object]


class Shelf:
    """The table and the stores on it."""

    def __init__(self, client: Any) -> None:
        self.client, self.table = client, Table(client, "t")
        self.store = Recommendations(self.table, lambda: NOW)
        self.errands, self.messages = CapacityChangeTable(self.table), Messages(self.table)
        self.history, self.journal = HistoryTable(self.table), TableJournal(client, "t")

    def row(self, pk: str, sk: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_item(TableName="t", Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
        return found

    def add(self, pk: str, sk: str, **attributes: Any) -> dict[str, Any]:
        """The row with these attributes more."""
        item = self.row(pk, sk) | attributes
        self.client.put_item(TableName="t", Item=item)
        return item

    def age(self, pk: str, sk: str) -> dict[str, Any]:
        """The row as a later release of another schema would have written it."""
        doc = json.loads(self.row(pk, sk)["doc"]["S"]) | {"schema": SCHEMA_TEST_FIRST + 1, "novel": 1}
        return self.add(pk, sk, doc={"S": json.dumps(doc)}, **UNKNOWN)


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Sandbox(now=NOW) as box:
        create_table(box.client("dynamodb"))
        yield Shelf(box.client("dynamodb"))


def asked() -> Proposal:
    return proposal("p-1", "chat", created_at=NOW, expires_at=NOW + timedelta(days=9))


def ask(shelf: Shelf) -> None:
    assert shelf.store.save(asked().recommendation, asked())


def ask_errand(shelf: Shelf) -> None:
    assert shelf.errands.add(errand_of("x"))


def save_errand(shelf: Shelf) -> None:
    found = shelf.errands.load("e-1")
    assert found is not None
    shelf.errands.save(found)


def approve(shelf: Shelf) -> None:
    decide(shelf.store, "p-1", APPROVE, NOW)


def begin(shelf: Shelf) -> None:
    shelf.store.follow("p-1", ProposalState.APPLYING, "c-1", "It begins.", NOW)


def take_back(shelf: Shelf) -> None:
    decisions.request_rollback(shelf.table, "p-1", "slack:U1", NOW)


def withdraw(shelf: Shelf) -> None:
    shelf.store.save(replace(asked().recommendation, fingerprint="another"), None)


def tell_again(shelf: Shelf) -> None:
    shelf.store.tell_again(NOW + timedelta(hours=2), everything=False)


def record(shelf: Shelf) -> None:
    shelf.history.record("chat", "c-1", PAST)


def remember(shelf: Shelf) -> None:
    shelf.messages.message("p-1")
    shelf.messages.remember(MessageRef("p-1", "C1", "1.0", "pending|"))


def freeze(shelf: Shelf) -> None:
    shelf.journal.set_switch(Switch(frozen=True, by="ada"))


PROPOSAL, PAST_ROW = ("PROPOSAL#p-1", "PROPOSAL"), ("ENDPOINT#chat", "PAST#c-1")
ERRAND = ("PROPOSAL#e-1", "PROPOSAL")
REWRITES: dict[str, tuple[tuple[str, str], list[Step], Step]] = {
    "decide": (PROPOSAL, [ask], approve),
    "follow": (PROPOSAL, [ask, approve], begin),
    "ask back": (PROPOSAL, [ask, approve, begin], take_back),
    "settle": (PROPOSAL, [ask, approve, begin, take_back], lambda s: s.store.settle_rollback_request("p-1")),
    "expire": (PROPOSAL, [ask], lambda s: s.store.expire(LATER)),
    "withdraw": (PROPOSAL, [ask], withdraw),
    "ask anew": (PROPOSAL, [ask, withdraw], ask),
    "tell again": (PROPOSAL, [ask], tell_again),
    "open": (("ENDPOINT#chat", "OPEN"), [ask, withdraw], ask),
    "errand saved": (ERRAND, [ask_errand], save_errand),
    "errand decided": (ERRAND, [ask_errand], lambda s: decisions.decide(s.table, "e-1", REJECT, NOW)),
    "past": (PAST_ROW, [record], record),
    "message": (("MESSAGE#p-1", "MESSAGE"), [remember], remember),
    "freeze": (("CONTROL", "FREEZE"), [freeze], freeze),
}


@pytest.mark.parametrize("name", REWRITES)
def test_unknown_attributes_of_every_type_survive(shelf: Shelf, name: str) -> None:
    key, before, rewrite = REWRITES[name]
    for step in before:
        step(shelf)
    shelf.add(*key, **UNKNOWN)
    rewrite(shelf)
    after = shelf.row(*key)
    assert {one: after.get(one) for one in UNKNOWN} == UNKNOWN


@pytest.mark.parametrize("name", [one for one in REWRITES if one not in ("open", "message", "freeze")])
def test_a_row_of_a_newer_schema_is_never_written_over(shelf: Shelf, name: str) -> None:
    key, before, rewrite = REWRITES[name]
    for step in before:
        step(shelf)
    item = shelf.age(*key)
    with suppress(UnreadableError, AssertionError):  # who decides is told why; what is not asked anew is no error
        rewrite(shelf)
    assert shelf.row(*key) == item


def test_a_person_is_told_which_proposal_cannot_be_read(shelf: Shelf) -> None:
    ask(shelf)
    shelf.age(*PROPOSAL)
    with pytest.raises(UnreadableError, match="reading the proposal p-1: its schema number is 3"):
        approve(shelf)
    shelf.add(*PROPOSAL, version={"S": "1"}, doc={"S": json.dumps({"approvable": True})})
    with pytest.raises(UnreadableError, match="p-1: its attribute version is no whole number"):
        approve(shelf)


def test_a_message_that_cannot_be_read_is_posted_anew(shelf: Shelf) -> None:
    ask(shelf)
    shelf.table.put({"pk": "MESSAGE#p-1", "sk": "MESSAGE", "channel": "C1", "ts": "1.0"})
    assert shelf.messages.message("p-1") is None
    assert shelf.store.tell_again(NOW + timedelta(hours=3), everything=True) == 1


def test_a_message_keeps_what_a_later_release_added_when_another_is_read_in_between(shelf: Shelf) -> None:
    remember(shelf)
    later = {"pinned": {"S": "1.5"}}
    before = shelf.add("MESSAGE#p-1", "MESSAGE", **later)
    shelf.messages.message("p-1")
    assert shelf.messages.message("slack-refused") is None
    shelf.messages.remember(MessageRef("slack-refused", "", "", "not_in_channel"))
    shelf.messages.remember(MessageRef("p-1", "C1", "1.0", "approved|"))
    assert shelf.row("MESSAGE#p-1", "MESSAGE") == before | {"shown": {"S": "approved|"}}
    assert "pinned" not in shelf.row("MESSAGE#slack-refused", "MESSAGE")


def test_nothing_is_asked_where_the_open_proposal_cannot_be_known(shelf: Shelf) -> None:
    ask(shelf)
    lock = shelf.add("ENDPOINT#chat", "OPEN", proposal={"N": "1.5"})
    newer = replace(asked(), id="p-2")
    judged = replace(recommendation("chat"), evaluated_at=NOW + timedelta(hours=1))
    assert shelf.store.save(judged, newer) is False
    assert shelf.row("ENDPOINT#chat", "OPEN") == lock
    assert shelf.store.last_evaluated(["chat"]) == {"chat": NOW + timedelta(hours=1)}
    assert shelf.store.proposal("p-2") is None


def test_spending_that_cannot_be_read_is_unknown(shelf: Shelf) -> None:
    for usd in ("many", "NaN", "1E999999"):
        shelf.table.put({"pk": "ACCOUNT", "sk": "SPENDING", "usd": usd})
        assert HistoryTable(shelf.table).history("chat", NOW).gpu_usd_per_month is None


def test_a_lock_that_cannot_be_read_holds_its_endpoint(shelf: Shelf) -> None:
    shelf.table.put({"pk": "LOCK#ENDPOINT#chat", "sk": "LOCK"})
    assert shelf.journal.holder_of("chat") == UNREAD_LOCK
    assert shelf.journal.load(UNREAD_LOCK) is None


def test_a_last_change_that_cannot_be_read_is_not_taken_for_none(shelf: Shelf) -> None:
    shelf.table.put({"pk": "LAST#chat", "sk": "LAST", "at": "x"})
    for ask_for in (shelf.journal.last_change, shelf.journal.last_change_at):
        with pytest.raises(ReadError, match="LAST#chat LAST"):
            ask_for("chat")
