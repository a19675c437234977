"""Rows that the first release wrote are read, field by field, and are written again with nothing lost.

The files are the items of a simulated account's table as DynamoDB stores them, and one object of the bucket without its
gzip; they are never edited. A release that changes a document adds a folder beside this one.
"""

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rightsizer import wire
from rightsizer.aws import s3
from rightsizer.aws.capacity_changes import CapacityChangeTable, InterruptionTable
from rightsizer.aws.journal import TableJournal, change_item, revive_change
from rightsizer.aws.ledger import HistoryTable, SavingsTable
from rightsizer.aws.message_book import Messages
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table, from_dynamodb
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.checks import SCHEMA
from rightsizer.domain.history import PastChange
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.scaling_group import AutoScalingGroup, Interruption
from rightsizer.domain.spot import Mark, Pool
from rightsizer.domain.usage import KeptUsage
from sandbox.account import Sandbox
from tests.table import create_table

FIRST = Path(__file__).parent / "first-release"
NOW = datetime(2026, 11, 16, 6, 30, tzinfo=UTC)
NOUNS: dict[str, Any] = {
    "change-applied": Change,
    "change-proven": Change,
    "change-running": Change,
    "control": Switch,
    "entry-estimated": LedgerEntry,
    "entry-realised": LedgerEntry,
    "entry-switch-cost": LedgerEntry,
    "errand-applying": CapacityChange,
    "errand-pending": CapacityChange,
    "errand-rolled-back": CapacityChange,
    "group": AutoScalingGroup,
    "occurrence": Occurrence,
    "past": PastChange,
    "pool": Mark,
    "proposal-approved": Proposal,
    "proposal-pending": Proposal,
    "proposal-proven": Proposal,
    "recommendation": Recommendation,
    "spot-settled": Interruption,
}
"""The documents. The other files hold rows without one, or (score) a document without a noun."""
PLAIN = {"budget", "digests", "last", "lock-endpoint", "lock-model", "message", "once", "open", "score"}


def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIRST / f"{name}.json").read_text())
    return found


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(golden(name)["doc"]["S"])
    return found


def differences(stored: Any, now: Any, path: str = "") -> list[str]:
    """Every value of the stored document that the noun shows otherwise, or not at all."""
    if isinstance(stored, Mapping) and isinstance(now, Mapping):
        return [d for key, one in stored.items() for d in differences(one, now.get(key, "gone"), f"{path}.{key}")]
    if isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        return [d for n, one in enumerate(stored) for d in differences(one, now[n], f"{path}[{n}]")]
    return [] if stored == now or moment(stored) == moment(now) else [f"{path}: {stored!r} is read as {now!r}"]


def moment(value: Any) -> Any:
    """A time as such: a decision is written with microseconds by the door that answers Slack."""
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return repr(value)


def test_each_kept_row_has_its_test() -> None:
    assert {path.stem for path in FIRST.glob("*.json")} == {*NOUNS, *PLAIN}


@pytest.mark.parametrize("name", NOUNS)
def test_each_field_that_the_first_release_wrote_is_read_as_it_was_meant(name: str) -> None:
    read = wire.load_stored(NOUNS[name], golden(name)["doc"]["S"])
    assert differences(document(name), wire.plain(read)) == []
    assert getattr(read, "unknown", {}) == {}


@pytest.mark.parametrize("name", NOUNS)
def test_a_document_that_is_written_again_has_a_schema_number_and_loses_nothing(name: str) -> None:
    again = json.loads(wire.dump_stored(wire.load_stored(NOUNS[name], golden(name)["doc"]["S"])))
    assert again["schema"] == SCHEMA
    assert "unknown" not in again
    assert differences(document(name), again) == []


@pytest.mark.parametrize("name", ["change-applied", "change-proven", "change-running"])
def test_the_hours_of_a_shadow_test_are_read_from_the_facts_of_the_first_release(name: str) -> None:
    option = wire.load_stored(Change, golden(name)["doc"]["S"]).option
    assert (option.test_hours, with_older_facts(option).test_hours) == (None, 2.0)


@pytest.mark.parametrize("name", ["change-applied", "change-proven", "change-running"])
def test_the_item_of_a_change_is_written_again_as_it_was(name: str) -> None:
    item = golden(name)
    again = change_item(revive_change(from_dynamodb(item)))
    assert {**again, "doc": None} == {**item, "doc": None}


def test_the_digests_of_the_first_release_are_read() -> None:
    outer = golden("digests")
    records = json.loads(outer["records"])["kept"]
    kept = s3.unpack_usage(gzip.compress((FIRST / "digests.json").read_bytes()), "1/0000")
    assert outer["format"] == 1
    assert [one.endpoint for one in kept] == ["search-embeddings"]
    assert all(isinstance(one, KeptUsage) for one in kept)
    assert [d for one, stored in zip(kept, records, strict=True) for d in differences(stored, wire.plain(one))] == []


@pytest.fixture(scope="module")
def table() -> Any:
    """A table with every row of the first release."""
    with Sandbox(now=NOW) as box:
        client = box.client("dynamodb")
        create_table(client)
        for path in sorted(FIRST.glob("*.json")):
            if path.stem not in (
                "digests",
                "change-applied",
                "change-running",
                "proposal-approved",
                "proposal-pending",
            ):
                client.put_item(TableName="t", Item=golden(path.stem))
        for name in ("proposal-pending", "errand-applying"):  # of the same key as a later one
            key = golden(name)["pk"]["S"] + "0"
            client.put_item(TableName="t", Item=golden(name) | {"pk": {"S": key}})
        yield Table(client, "t")


def test_the_stores_find_what_the_first_release_kept(table: Table) -> None:
    store = Recommendations(table, lambda: NOW)
    (proven,) = store.proposals([ProposalState.PROVEN])
    judged = store.recommendation("search-embeddings")
    (past,) = store.history("search-embeddings").endpoint
    assert (proven.ref.name, proven.change_id) == ("search-embeddings", "c-5db143886004d0d1")
    assert proven.decision is not None
    assert proven.decision.by == "slack:U0ADA"
    assert judged is not None
    assert judged.usd_per_month == Decimal(document("recommendation")["usd_per_month"])
    assert (past.ended, past.stated_risk, past.memory_gib) == ("proven", 2, 7.503832856503876)
    assert store.last_evaluated(["search-embeddings"]) == {}, "its small row comes with the next evaluation"


def test_the_journal_and_the_books_find_what_the_first_release_kept(table: Table) -> None:
    journal, book = TableJournal(table.client, "t"), SavingsTable(table)
    change = journal.load("c-5db143886004d0d1")
    start, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    assert change is not None
    assert (change.state, change.version) == (ChangeState.PROVEN, int(golden("change-proven")["version"]["N"]))
    assert change.booked_until == datetime(2026, 11, 16, 6, 5, tzinfo=UTC)
    assert journal.changes_to_book(datetime(2026, 11, 18, tzinfo=UTC)) == (change.id,)
    assert journal.last_change("search-embeddings") == change.id
    assert journal.holder_of("search-embeddings") == change.id
    assert journal.switch().by == "cli:arn:aws:iam::111122223333:user/ada"
    assert {entry.kind for entry in book.entries(start, end)} == {"estimated", "realised", "switch-cost"}
    assert [one.kind for one in book.occurrences(start, end)] == ["capacity-option"]
    assert [one.ended for one in HistoryTable(table).history("search-embeddings", NOW).endpoint] == ["proven"]


def test_the_spot_books_find_what_the_first_release_kept(table: Table) -> None:
    spot, capacity_changes = InterruptionTable(table), CapacityChangeTable(table)
    start, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    (interruption,) = spot.interruptions(start, end)
    (group,) = spot.groups()
    mark = spot.mark(Pool("g5.xlarge", "us-east-1a"))
    capacity_change = capacity_changes.load(golden("errand-rolled-back")["pk"]["S"].removeprefix("PROPOSAL#"))
    assert (interruption.group, interruption.reason.code) == ("gpu", "not-opted-in")
    assert (group.name, group.desired, group.zones) == ("gpu", 4, ("us-east-1a", "us-east-1b", "us-east-1c"))
    assert mark is not None
    assert (mark.signal, mark.strikes) == ("interrupted", 1)
    assert capacity_change is not None
    assert isinstance(capacity_change.work, GroupPolicy)
    assert (capacity_change.state, capacity_change.work.group) == (ProposalState.ROLLED_BACK, "gpu")
    assert spot.is_first(golden("once")["pk"]["S"].removeprefix("ONCE#"), NOW) is False


def test_a_message_of_the_first_release_is_found(table: Table) -> None:
    row = golden("message")
    found = Messages(table).message(row["pk"]["S"].removeprefix("MESSAGE#"))
    assert found is not None
    assert (found.channel, found.ts, found.shown) == (row["channel"]["S"], row["ts"]["S"], row["shown"]["S"])
