"""The SavingsLedger on the table: promised savings, real savings, and occurrences.

The HistoryBook beside it keeps what past changes taught: one row for each change that ended or runs.
"""

import hashlib
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer import wire
from rightsizer.aws.documents import noun_of
from rightsizer.aws.table import Item, Row, Table, epoch, money, read_if_readable, readable_rows, stamp, text
from rightsizer.domain.history import TEACHES_DAYS, EndedChange, History, PastChange, PastEnd
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.errors import ConflictError

OCCURRENCES_DAYS = 400
"""Occurrences go after this; ledger entries stay."""
LONGEST_KEY = 512
KEPT_DAYS = 800
FRESH = timedelta(minutes=5)
"""How long the account's rows are reused while many endpoints are evaluated."""
LATELY = timedelta(hours=1)
"""An endpoint not modified for so long has no change that the reused rows or the index do not show yet: they lag by
minutes, and a change that deploys modifies its endpoint."""
SPENDING = ("ACCOUNT", "SPENDING")
SPENDING_DAYS = 30
"""How long the sum is kept without a full sweep that renews it."""


class SavingsTable:
    """Keeps the promises of `ports.changes.SavingsLedger`."""

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
            "doc": wire.dump_stored(entry),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return  # the same entry is booked already: a repeated step books nothing twice

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None) -> Iterator[LedgerEntry]:
        """Entries of the window, `start` included and `end` not, oldest first."""
        for month in _months(start, end):
            rows = self._table.index(f"LEDGER#{month}", stamp(start), stamp(end))
            yield from readable_rows(rows, lambda row: noun_of(LedgerEntry, row), unread)

    def note(self, occurrence: Occurrence) -> bool:
        """Record an occurrence exactly once; False when its key was known already."""
        row: Item = {
            "pk": f"OCCURRENCE#{_key(occurrence.key)}",
            "sk": "OCCURRENCE",
            "gsi1pk": f"OCCURRENCE#{_month(occurrence.at)}",
            "gsi1sk": f"{stamp(occurrence.at)}#{_key(occurrence.key)}",
            "expires": epoch(occurrence.at, OCCURRENCES_DAYS),
            "doc": wire.dump_stored(occurrence),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return False
        return True

    def is_noted(self, key: str) -> bool:
        """One consistent read by the key."""
        return self._table.get(f"OCCURRENCE#{_key(key)}", "OCCURRENCE") is not None

    def occurrences(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[Occurrence]:
        """Occurrences of the window, `start` included and `end` not, oldest first."""
        for month in _months(start, end):
            rows = self._table.index(f"OCCURRENCE#{month}", stamp(start), stamp(end))
            yield from readable_rows(rows, lambda row: noun_of(Occurrence, row), unread)


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


def spending(usd: Decimal, at: datetime) -> Item:
    """Monthly cost of the account's endpoints, as one item."""
    pk, sk = SPENDING
    return {"pk": pk, "sk": sk, "usd": str(usd), "at": stamp(at), "expires": epoch(at, SPENDING_DAYS)}


class HistoryTable:
    """Writes past changes and reads them as `History`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: list[tuple[str, PastChange]] = []
        self._changed: frozenset[str] = frozenset()
        """Endpoints with a row in the index, whenever it was written."""
        self._spending: Decimal | None = None
        self._read_at: datetime | None = None

    def record(self, endpoint: str, change_id: str, past: PastChange) -> None:
        """Store how a change stands or ended; the same change is one row, the last word counts.

        A row of the change that this release cannot read is left as it is, and counted.
        """
        item = _item(endpoint, change_id, past)
        before = self._table.get(f"ENDPOINT#{endpoint}", f"PAST#{change_id}")
        after = read_if_readable(before, lambda row: {**row, **item, "doc": _merged_document(row, past)})
        if before is None or after is not None:
            self._table.put(after or item)
        self._read_at = None

    def history(self, endpoint: str, now: datetime, modified_at: datetime | None = None) -> History:
        """Past of the endpoint and the account, tests of this month, and the money for tests.

        `modified_at` spares the endpoint's own rows where it was not modified within `LATELY` and the index, which
        may be a little behind, has none of it.
        """
        rows = self._account(now)
        own: list[PastChange] = []
        if modified_at is None or now - modified_at < LATELY or endpoint in self._changed:
            found = self._table.partition(f"ENDPOINT#{endpoint}", "PAST#")
            own = list(readable_rows(found, lambda row: noun_of(PastChange, row)))
        month = (now.year, now.month)

        def lately(past: PastChange) -> bool:
            return past.ended is PastEnd.TESTED and (past.at.year, past.at.month) == month

        return History(
            endpoint=tuple(sorted(own, key=lambda past: past.at)),
            account=tuple(past for name, past in rows if name != endpoint),
            tests_this_month=sum(lately(p) for p in own),
            tests_usd_this_month=sum((p.usd for _, p in rows if lately(p)), Decimal(0)),
            gpu_usd_per_month=self._spending,
        )

    def still_saving(self) -> Collection[str]:
        """One query of the index in which the journal lists them, which may be a moment old."""
        rows = self._table.index("SAVING", only=("pk",))
        return {text(row, "pk").removeprefix("CHANGE#") for row in rows}

    def ended_changes(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[EndedChange]:
        """Every change and test that ended in the window, `start` included and `end` not, oldest first."""
        yield from readable_rows(self._table.index("HISTORY", stamp(start), stamp(end)), _ended_change, unread)

    def _account(self, now: datetime) -> list[tuple[str, PastChange]]:
        if self._read_at is None or abs(now - self._read_at) > FRESH:
            start = stamp(now - timedelta(days=TEACHES_DAYS))
            found = list(self._table.index("HISTORY"))
            self._changed = frozenset(readable_rows(found, lambda row: text(row, "endpoint")))
            lately = [row for row in found if text(row, "gsi1sk") >= start]
            self._rows = [(ended.endpoint, ended.past) for ended in readable_rows(lately, _ended_change)]
            spent = self._table.get(*SPENDING)
            self._spending = read_if_readable(spent, lambda row: money(row, "usd"))
            self._read_at = now
        return self._rows


def _ended_change(row: Row) -> EndedChange:
    change_id = text(row, "sk").removeprefix("PAST#")
    return EndedChange(text(row, "endpoint"), change_id, noun_of(PastChange, row))


def _merged_document(row: Row, past: PastChange) -> str:
    """The document with what the row's own holds beyond it; UnreadableError where that cannot be read."""
    noun_of(PastChange, row)
    return wire.dump_rewritten(past, text(row, "doc"))


def _item(endpoint: str, change_id: str, past: PastChange) -> Item:
    return {
        "pk": f"ENDPOINT#{endpoint}",
        "sk": f"PAST#{change_id}",
        "gsi1pk": "HISTORY",
        "gsi1sk": f"{stamp(past.at)}#{change_id}",
        "endpoint": endpoint,
        "expires": epoch(past.at, KEPT_DAYS),
        "doc": wire.dump_stored(past),
    }
