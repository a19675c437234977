"""A row that cannot be read stops no other, is logged, and is named."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from tests.samples import NOW, proposal, recommendation

ENTRY = LedgerEntry("e1", "chat-7b", "c-1", "search", NOW, "realised", Decimal("12.5"), 24, True, "")


def spoil(table: Table, pk: str, sk: str, doc: str | None = "{}") -> None:
    row = table.get(pk, sk)
    assert row is not None
    rest = {name: value for name, value in row.items() if name != "doc"}
    table.put(rest if doc is None else rest | {"doc": doc})


@pytest.mark.parametrize(
    ("doc", "cause"), [("{}", "reading a PastChange: at: "), ("no", "reading a PastChange: "), (None, "attribute doc")]
)
def test_a_past_change_that_cannot_be_read_stops_no_other_and_is_named(
    table: Table, store: Recommendations, doc: str | None, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    book = HistoryTable(table)
    past = PastChange(NOW - timedelta(days=9), "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1)
    for name, change_id in (("chat-7b", "c-1"), ("rank", "c-2"), ("tts", "c-3")):
        book.record(name, change_id, past)
    spoil(table, "ENDPOINT#rank", "PAST#c-2", doc)
    unread: list[UnreadRow] = []
    found = list(book.ended_changes(NOW - timedelta(days=180), NOW, unread))
    assert [one.endpoint for one in found] == ["chat-7b", "tts"]
    assert [row.key for row in unread] == ["ENDPOINT#rank PAST#c-2"]
    assert cause in unread[0].cause
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert vars(caplog.records[0])["row"] == "ENDPOINT#rank PAST#c-2"
    assert len(store.history("chat-7b").account) == 1


def test_ledger_rows_and_proposals_that_cannot_be_read_stop_no_other_and_are_named(
    table: Table, store: Recommendations
) -> None:
    book, unread = SavingsTable(table), list[UnreadRow]()
    for number in (1, 2):
        book.book(replace(ENTRY, id=f"e{number}"))
        book.note(Occurrence(f"o{number}", NOW, "spot-interruption", "i-1", "Taken back."))
        store.save(recommendation(f"chat-{number}"), proposal(f"p-{number}", f"chat-{number}"))
    spoil(table, "ENTRY#e1", "ENTRY")
    spoil(table, "OCCURRENCE#o1", "OCCURRENCE")
    spoil(table, "PROPOSAL#p-1", "PROPOSAL")
    end = NOW + timedelta(days=1)
    assert [one.id for one in book.entries(NOW, end, unread)] == ["e2"]
    assert [one.key for one in book.occurrences(NOW, end, unread)] == ["o2"]
    assert [one.id for one in store.proposals(unread=unread)] == ["p-2"]
    assert [row.key for row in unread] == ["ENTRY#e1 ENTRY", "OCCURRENCE#o1 OCCURRENCE", "PROPOSAL#p-1 PROPOSAL"]


def test_a_recommendation_that_cannot_be_read_stops_no_other_and_is_named(table: Table, store: Recommendations) -> None:
    for name in ("chat-1", "chat-2"):
        store.save(recommendation(name), None)
    spoil(table, "ENDPOINT#chat-1", "RECOMMENDATION")
    unread: list[UnreadRow] = []
    assert [one.ref.name for one in store.recommendations(unread)] == ["chat-2"]
    assert [row.key for row in unread] == ["ENDPOINT#chat-1 RECOMMENDATION"]


@pytest.mark.parametrize("place", range(10))
def test_one_judgement_without_its_time_hides_no_other_from_the_sweep(
    table: Table, store: Recommendations, place: int
) -> None:
    for number in range(10):
        store.save(recommendation(f"e{number}"), None)
    row = table.get(f"ENDPOINT#e{place}", "EVALUATED")
    assert row is not None
    table.put(row | {"evaluated_at": "soon", "usd": "much"})
    assert set(store.last_evaluations()) == {f"e{number}" for number in range(10)} - {f"e{place}"}
    assert store.last_evaluated([f"e{place}"]) == {}, "it is judged anew"
    store.note_spending(NOW)
    noted = table.get("ACCOUNT", "SPENDING")
    assert noted is not None
    assert Decimal(str(noted["usd"])) == 9 * (recommendation().usd_per_month or 0)


@pytest.mark.parametrize("place", range(10))
def test_one_proposal_without_its_version_stops_no_other_from_expiring(
    table: Table, store: Recommendations, place: int
) -> None:
    for number in range(10):
        store.save(recommendation(f"e{number}"), proposal(f"p-{number}", f"e{number}"))
    row = table.get(f"PROPOSAL#p-{place}", "PROPOSAL")
    assert row is not None
    table.put({name: value for name, value in row.items() if name != "version"})
    closed = store.expire(NOW + timedelta(days=15))
    assert {one.id for one in closed} == {f"p-{number}" for number in range(10)} - {f"p-{place}"}
