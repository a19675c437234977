"""The SavingsLedger on the table: what changes were promised to save, what they did save, and what happened."""

import hashlib
from collections.abc import Iterator
from datetime import datetime

from rightsizer import wire
from rightsizer.aws.nouns import noun_of
from rightsizer.aws.rows import readable
from rightsizer.aws.table import Item, Table, epoch, stamp
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.errors import ConflictError

OCCURRENCES_DAYS = 400
"""Occurrences go after this; ledger entries stay."""
LONGEST_KEY = 512


class SavingsBook:
    """Keeps the promises of `ports_change.SavingsLedger`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def book(self, entry: LedgerEntry) -> None:
        """Record an entry; the same id twice is one entry, the first."""
        row: Item = {
            "pk": f"ENTRY#{_key(entry.id)}",
            "sk": "ENTRY",
            "gsi1pk": f"LEDGER#{_month(entry.at)}",
            "gsi1sk": f"{stamp(entry.at)}#{_key(entry.id)}",
            "endpoint": entry.endpoint,
            "doc": wire.stored(entry),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return  # the same entry is booked already: a repeated step books nothing twice

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None) -> Iterator[LedgerEntry]:
        """Entries of the window, `start` included and `end` not, oldest first."""
        for month in _months(start, end):
            rows = self._table.index(f"LEDGER#{month}", stamp(start), stamp(end))
            yield from readable(rows, lambda row: noun_of(LedgerEntry, row), unread)

    def note(self, occurrence: Occurrence) -> bool:
        """Record an occurrence exactly once; False when its key was known already."""
        row: Item = {
            "pk": f"OCCURRENCE#{_key(occurrence.key)}",
            "sk": "OCCURRENCE",
            "gsi1pk": f"OCCURRENCE#{_month(occurrence.at)}",
            "gsi1sk": f"{stamp(occurrence.at)}#{_key(occurrence.key)}",
            "expires": epoch(occurrence.at, OCCURRENCES_DAYS),
            "doc": wire.stored(occurrence),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return False
        return True

    def occurrences(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[Occurrence]:
        """Occurrences of the window, `start` included and `end` not, oldest first."""
        for month in _months(start, end):
            rows = self._table.index(f"OCCURRENCE#{month}", stamp(start), stamp(end))
            yield from readable(rows, lambda row: noun_of(Occurrence, row), unread)


def _key(text: str) -> str:
    """The text itself, or its digest where it would be too long for a key (DynamoDB: 1 KiB for a sort key)."""
    return text if len(text.encode()) <= LONGEST_KEY else "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _month(at: datetime) -> str:
    return stamp(at)[:7]


def _months(start: datetime, end: datetime) -> Iterator[str]:
    year, month = int(_month(start)[:4]), int(_month(start)[5:])
    while f"{year:04d}-{month:02d}" <= _month(end):
        yield f"{year:04d}-{month:02d}"
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
