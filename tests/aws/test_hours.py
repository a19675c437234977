"""Records of office hours in the table: one lock with changes, all or nothing, and nobody's else given back."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rightsizer.aws.hours import HoursTable
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.table import Table
from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.outcome import UnreadRow
from rightsizer.errors import ConflictError, UnreadableError
from sandbox.account import Sandbox
from tests.changes.hours.kit import NAME, record
from tests.table import create_table

KEY = {"pk": {"S": f"LOCK#ENDPOINT#{NAME}"}, "sk": {"S": "LOCK"}}


@pytest.fixture
def client() -> Iterator[Any]:
    with Sandbox() as box:
        made = box.client("dynamodb")
        create_table(made)
        yield made


def test_a_record_comes_back_whole_with_the_lock_of_its_endpoint(client: Any) -> None:
    book, journal = HoursTable(Table(client, "t")), TableJournal(client, "t")
    saved = book.save(record())
    assert book.load(NAME) == saved == replace(record(), version=1)
    assert journal.holder_of(NAME) == saved.id
    book.save(replace(saved, state=HoursState.RUNNING))
    assert journal.holder_of(NAME) == ""
    assert [one.ref.name for one in book.records()] == [NAME]


def test_an_endpoint_that_a_change_holds_is_not_stopped_and_its_lock_stays(client: Any) -> None:
    book, journal = HoursTable(Table(client, "t")), TableJournal(client, "t")
    client.put_item(TableName="t", Item=KEY | {"change": {"S": "c-1"}})
    with pytest.raises(ConflictError, match="a change holds the endpoint"):
        book.save(record())
    assert book.load(NAME) is None
    book.save(record(HoursState.RUNNING))
    assert journal.holder_of(NAME) == "c-1"


def test_who_saves_second_is_told_so(client: Any) -> None:
    book = HoursTable(Table(client, "t"))
    saved = book.save(record())
    book.save(saved)
    with pytest.raises(ConflictError):
        book.save(saved)
    with pytest.raises(ConflictError):
        book.save(record())


def test_a_row_that_cannot_be_read_stops_no_other(client: Any) -> None:
    book, unread = HoursTable(Table(client, "t")), list[UnreadRow]()
    book.save(record())
    row = {"pk": "HOURS#odd", "sk": "HOURS", "gsi1pk": "HOURS", "gsi1sk": "odd", "doc": "{"}
    client.put_item(TableName="t", Item={key: {"S": value} for key, value in row.items()})
    assert [one.ref.name for one in book.records(unread)] == [NAME]
    assert [one.key for one in unread] == ["HOURS#odd HOURS"]
    with pytest.raises(UnreadableError):
        book.load("odd")
