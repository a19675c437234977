"""The one table keeps its promises: once, atomically, and nobody's answer is lost."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from rightsizer import wire
from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.message_book import Messages
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.proposal import Decision, MessageRef, ProposalState
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import ConflictError, PermissionMissingError, ThrottledError, VanishedError, WriteRefusedError
from rightsizer.ports.changes import EndedChangeBook, SavingsLedger
from rightsizer.ports.evaluation import EvaluationLog, MessageBook, RecommendationStore
from tests.samples import NOW, proposal, recommendation
from tests.table import decide

APPROVAL = Decision(ProposalState.APPROVED, "slack:U1", NOW, "go")
PID = "p-5f2c9a7d1e3b4c60"


def test_the_stores_keep_the_ports(table: Table, store: Recommendations) -> None:
    kept: tuple[RecommendationStore, EvaluationLog, SavingsLedger, MessageBook, EndedChangeBook]
    kept = (store, store, SavingsTable(table), Messages(table), HistoryTable(table))
    assert all(kept)


def test_a_recommendation_and_its_proposal_come_back_equal(store: Recommendations) -> None:
    asked = proposal()
    assert store.save(asked.recommendation, asked)
    assert store.proposal(PID) == asked
    assert list(store.recommendations()) == [asked.recommendation]
    assert store.last_evaluated(["chat-7b", "other"]) == {"chat-7b": NOW}
    assert store.recommendation("chat-7b") == asked.recommendation
    assert store.recommendation("other") is None
    assert store.last_evaluations() == {"chat-7b": NOW}


def test_the_same_proposal_is_asked_once(store: Recommendations) -> None:
    asked = proposal()
    assert store.save(asked.recommendation, asked)
    assert not store.save(replace(asked.recommendation, evaluated_at=NOW + timedelta(hours=1)), asked)
    assert len(list(store.proposals())) == 1
    assert store.last_evaluations() == {"chat-7b": NOW + timedelta(hours=1)}


def test_a_newer_proposal_withdraws_the_pending_one(store: Recommendations) -> None:
    store.save(recommendation(), proposal("p-1"))
    assert store.save(recommendation(), proposal("p-2"))
    first, second = store.proposal("p-1"), store.proposal("p-2")
    assert first is not None
    assert second is not None
    assert (first.state, second.state) == (ProposalState.WITHDRAWN, ProposalState.PENDING)
    assert "p-2" in first.outcome


@pytest.mark.parametrize("state", [ProposalState.APPROVED, ProposalState.APPLYING])
def test_a_proposal_on_its_way_is_not_replaced(store: Recommendations, state: ProposalState) -> None:
    store.save(recommendation(), proposal("p-1"))
    decide(store, "p-1", APPROVAL, NOW)
    store.follow("p-1", state, "c-1", "")
    assert not store.save(recommendation(), proposal("p-2"))
    assert store.proposal("p-2") is None


def test_a_withdrawn_proposal_is_opened_again_when_it_is_right_again(store: Recommendations) -> None:
    store.save(recommendation(), proposal("p-1"))
    store.save(recommendation(), proposal("p-2"))
    assert store.save(recommendation(), proposal("p-1"))
    assert [(p.id, p.state) for p in store.proposals([ProposalState.PENDING])] == [("p-1", ProposalState.PENDING)]


def test_a_rejected_proposal_is_not_asked_again(store: Recommendations) -> None:
    store.save(recommendation(), proposal("p-1"))
    decide(store, "p-1", replace(APPROVAL, state=ProposalState.REJECTED), NOW)
    assert not store.save(recommendation(), proposal("p-1"))
    assert list(store.proposals([ProposalState.PENDING])) == []


def test_a_proposal_is_withdrawn_when_its_endpoint_changed_under_it(store: Recommendations) -> None:
    store.save(recommendation(), proposal("p-1"))
    store.save(recommendation(fingerprint="chat-7b-cfg|2", finding=Finding.NOT_ENOUGH_DATA, options=()), None)
    found = store.proposal("p-1")
    assert found is not None
    assert found.state is ProposalState.WITHDRAWN


def test_missing_data_does_not_withdraw_a_proposal(store: Recommendations) -> None:
    store.save(recommendation(), proposal("p-1"))
    store.save(recommendation(finding=Finding.NOT_ENOUGH_DATA, options=()), None)
    assert [p.id for p in store.proposals([ProposalState.PENDING])] == ["p-1"]


def test_a_decision_is_recorded_once_and_names_who_was_first(store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    decided = decide(store, PID, APPROVAL, NOW)
    assert decided.state is ProposalState.APPROVED
    assert decided.decision == APPROVAL
    with pytest.raises(ConflictError, match=r"approved already by U1 on Mon 12 Jan 2026, 09:30 UTC"):
        decide(store, PID, replace(APPROVAL, by="slack:U2"), NOW)
    assert store.proposal(PID) == decided


def test_two_people_at_the_same_moment_leave_one_decision(store: Recommendations) -> None:
    """The second reads before the first writes: only the condition on the version keeps them apart."""
    store.save(recommendation(), proposal())
    swap = Table.swap
    raced: list[int] = []

    def race(table: Table, item: Any, version: int) -> None:
        if not raced:
            raced.append(1)
            decide(store, PID, replace(APPROVAL, by="slack:U2", state=ProposalState.REJECTED), NOW)
        swap(table, item, version)

    with mock.patch.object(Table, "swap", race), pytest.raises(ConflictError, match="rejected already by U2"):
        decide(store, PID, APPROVAL, NOW)


def test_an_expired_proposal_cannot_be_decided_on(store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    with pytest.raises(ConflictError, match="has expired"):
        decide(store, PID, APPROVAL, NOW + timedelta(days=14))


def test_what_cannot_be_carried_out_cannot_be_approved_but_rejected(store: Recommendations) -> None:
    store.save(recommendation(), proposal(approvable=False, enable="tag it with rightsizer:mode=propose"))
    with pytest.raises(ConflictError, match="tag it with"):
        decide(store, PID, APPROVAL, NOW)
    assert decide(store, PID, replace(APPROVAL, state=ProposalState.REJECTED), NOW).state is ProposalState.REJECTED


def test_an_unknown_proposal_is_said_to_be_unknown(store: Recommendations) -> None:
    with pytest.raises(VanishedError, match="p-none"):
        decide(store, "p-none", APPROVAL, NOW)
    assert store.proposal("p-none") is None


def test_a_proposal_follows_its_change_and_does_not_go_back(store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    decide(store, PID, APPROVAL, NOW)
    store.follow(PID, ProposalState.APPLYING, "c-1", "Baking for 600 s.")
    store.follow(PID, ProposalState.PROVEN, "c-1", "Proven on 812 requests.")
    store.follow(PID, ProposalState.APPLYING, "c-1", "Baking for 600 s.")
    found = store.proposal(PID)
    assert found is not None
    assert (found.state, found.change_id, found.outcome) == (ProposalState.PROVEN, "c-1", "Proven on 812 requests.")
    assert found.decision == APPROVAL


def test_following_the_same_twice_writes_once(table: Table, store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    for _ in range(3):
        store.follow(PID, ProposalState.APPLYING, "c-1", "x")
    row = table.get(f"PROPOSAL#{PID}", "PROPOSAL")
    assert row is not None
    assert row["version"] == 2


def test_only_pending_proposals_expire_and_only_once(store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    store.save(recommendation("other"), proposal("p-other", "other"))
    decide(store, "p-other", APPROVAL, NOW)
    assert store.expire(NOW) == ()
    assert [p.id for p in store.expire(NOW + timedelta(days=15))] == [PID]
    assert store.expire(NOW + timedelta(days=15)) == ()


def test_attributes_index_and_document_agree_after_every_move(table: Table, store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    decide(store, PID, replace(APPROVAL, state=ProposalState.SNOOZED), NOW)
    row = table.get(f"PROPOSAL#{PID}", "PROPOSAL")
    assert row is not None
    assert (row["state"], row["gsi1pk"]) == ("snoozed", "PROPOSAL#snoozed")
    assert '"state":"snoozed"' in str(row["doc"])
    assert row["expires"] == int((NOW + timedelta(days=30)).timestamp())


def test_proposals_are_listed_newest_first(store: Recommendations) -> None:
    for day, name in enumerate(["a", "b", "c"]):
        store.save(recommendation(name), proposal(f"p-{name}", name, created_at=NOW + timedelta(days=day)))
    assert [p.id for p in store.proposals()] == ["p-c", "p-b", "p-a"]


def entry(identity: str, at: datetime) -> LedgerEntry:
    return LedgerEntry(identity, "chat-7b", "c-1", "search", at, "realised", Decimal("12.5"), 24, True, "")


def test_the_ledger_books_an_entry_once_and_reads_windows_across_months(table: Table) -> None:
    book = SavingsTable(table)
    days = [NOW - timedelta(days=40), NOW - timedelta(days=5), NOW]
    for number, at in enumerate(days):
        book.book(entry(f"e{number}", at))
        book.book(replace(entry(f"e{number}", at), usd=Decimal(999)))
    assert [e.id for e in book.entries(NOW - timedelta(days=60), NOW)] == ["e0", "e1"]
    assert {e.usd for e in book.entries(NOW - timedelta(days=60), NOW + timedelta(days=1))} == {Decimal("12.5")}


def test_an_occurrence_is_recorded_exactly_once(table: Table) -> None:
    book = SavingsTable(table)
    seen = Occurrence("i-1:EC2 Spot Instance Interruption Warning", NOW, "spot-interruption", "i-1", "Taken back.")
    assert [book.note(seen), book.note(seen), book.note(replace(seen, at=NOW + timedelta(seconds=9)))] == [
        True,
        False,
        False,
    ]
    assert list(book.occurrences(NOW, NOW + timedelta(days=1))) == [seen]


def test_a_key_longer_than_dynamodb_takes_is_digested(table: Table) -> None:
    book = SavingsTable(table)
    long = Occurrence("k" * 5000, NOW, "x", "i-1", "Taken back.")
    assert book.note(long)
    assert not book.note(long)


def test_history_tells_own_from_account_and_counts_the_tests_of_each_endpoint(
    table: Table, store: Recommendations
) -> None:
    book = HistoryTable(table)
    past = PastChange(NOW - timedelta(hours=2), "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, PastEnd.RUNNING)
    book.record("chat-7b", "c-1", past)
    book.record("chat-7b", "c-1", replace(past, ended=PastEnd.PROVEN))
    book.record("rank", "c-2", replace(past, at=NOW - timedelta(days=3), ended=PastEnd.TESTED))
    found = store.history("chat-7b")
    assert [p.ended for p in found.endpoint] == ["proven"]
    assert [p.ended for p in found.account] == ["tested"]
    assert found.tests_this_month == 0
    assert store.history("rank").tests_this_month == 1


def test_the_changes_that_still_save_are_those_that_the_journal_lists(table: Table) -> None:
    for change, listed in (("c-1", "SAVING"), ("c-2", "DUE")):
        table.put({"pk": f"CHANGE#{change}", "sk": "CHANGE", "gsi1pk": listed, "gsi1sk": "2026-11-20T00:00:00+00:00"})
    assert HistoryTable(table).still_saving() == {"c-1"}


def test_what_ended_in_a_window_is_remembered_by_endpoint_and_change_with_its_last_word(table: Table) -> None:
    book = HistoryTable(table)
    past = PastChange(NOW - timedelta(days=9), "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, PastEnd.PROVEN, stated_risk=1)
    book.record("chat-7b", "c-1", past)
    again = replace(past, at=NOW - timedelta(days=1), ended=PastEnd.ROLLED_BACK, failure="alarm")
    book.record("chat-7b", "c-1", again)
    book.record("rank", "c-2", replace(past, promised_slowdown=1.2, promised_bound=1.5, realised_slowdown=1.4))
    book.record("old", "c-3", replace(past, at=NOW - timedelta(days=181)))
    book.record("new", "c-4", replace(past, at=NOW))
    found = list(book.ended_changes(NOW - timedelta(days=180), NOW))
    assert [(one.endpoint, one.change_id) for one in found] == [("rank", "c-2"), ("chat-7b", "c-1")]
    assert found[1].past == again
    assert (found[0].past.promised_bound, found[0].past.realised_slowdown) == (1.5, 1.4)


def test_history_knows_what_tests_of_the_month_cost_and_what_the_account_spends(
    table: Table, store: Recommendations
) -> None:
    book = HistoryTable(table)
    test = PastChange(
        NOW - timedelta(hours=2), "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, PastEnd.TESTED, usd=Decimal("7.5")
    )
    book.record("rank", "c-1", test)
    book.record("rank", "c-2", replace(test, at=NOW - timedelta(days=40)))
    book.record("chat-7b", "c-3", replace(test, usd=Decimal("2.5")))
    unknown = HistoryTable(table).history("chat-7b", NOW)
    assert (unknown.tests_usd_this_month, unknown.gpu_usd_per_month) == (Decimal(10), None)
    store.save(recommendation(usd_per_month=Decimal("1027.84")), None)
    store.note_spending(NOW)
    assert HistoryTable(table).history("chat-7b", NOW).gpu_usd_per_month == Decimal("1027.84")


def test_a_message_is_remembered_outside_the_keys_of_the_stream(table: Table) -> None:
    book = Messages(table)
    assert book.message(PID) is None
    book.remember(MessageRef(PID, "C1", "1.2", "pending"))
    assert book.message(PID) == MessageRef(PID, "C1", "1.2", "pending")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("AccessDeniedException", PermissionMissingError),
        ("ProvisionedThroughputExceededException", ThrottledError),
        ("ValidationException", WriteRefusedError),
    ],
)
def test_what_dynamodb_refuses_comes_out_as_our_own_error(code: str, error: type[Exception]) -> None:
    client = mock.Mock()
    client.put_item.side_effect = ClientError({"Error": {"Code": code, "Message": "no"}}, "PutItem")
    with pytest.raises(error, match="the table t"):
        Table(client, "t").put({"pk": "a", "sk": "b"})


def test_a_malformed_transaction_is_not_taken_for_a_lost_race() -> None:
    client = mock.Mock()
    client.transact_write_items.side_effect = ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "no"},
            "CancellationReasons": [{"Code": "ValidationError"}],
        },
        "TransactWriteItems",
    )
    with pytest.raises(WriteRefusedError):
        Table(client, "t").transact([], "saving")


def test_times_are_stored_in_utc_whatever_zone_they_come_in(table: Table) -> None:
    from datetime import timezone

    book = SavingsTable(table)
    new_year = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    book.book(entry("e", new_year))
    assert len(list(book.entries(datetime(2025, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)))) == 1


def test_deciding_imports_neither_pydantic_nor_boto3() -> None:
    code = "import sys, rightsizer.aws.decisions; print(sorted({'pydantic', 'boto3'} & set(sys.modules)))"
    root = str(Path(__file__).parents[2] / "shared")
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert ran.stdout.strip() == "[]"


def test_a_field_of_a_newer_program_survives_a_decision(table: Table, store: Recommendations) -> None:
    store.save(recommendation(), proposal())
    row = table.get(f"PROPOSAL#{PID}", "PROPOSAL")
    assert row is not None
    table.put(row | {"doc": str(row["doc"])[:-1] + ',"novel":1}'})
    decide(store, PID, APPROVAL, NOW)
    after = table.get(f"PROPOSAL#{PID}", "PROPOSAL")
    assert after is not None
    assert '"novel":1' in str(after["doc"])
    assert wire.dumps(store.proposal(PID))
