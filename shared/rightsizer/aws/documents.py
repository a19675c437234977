"""Rows with a document: kept with fields of newer releases, or parked where this release cannot read them.

A parked row is one that something is to be done about. It gets a later look, is counted and is told once. It is left as
it is, except for the time at which the index shows it next. That it was told stands in a row of its own
(`PARKED#<key>`), since the stream would report a write to a proposal's row. Both end by themselves: a row that is
readable again is written whole by its next step, and the mark goes after 30 days, so that people are reminded.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rightsizer import wire
from rightsizer.aws.table import (
    Row,
    Table,
    condition_values,
    epoch,
    read_if_readable,
    read_row,
    stamp,
    text,
    to_dynamodb,
    unknown_attributes,
    whole_number,
)
from rightsizer.errors import ConflictError
from rightsizer.telemetry import count, logger

BESIDE = "@row"
"""Among the unknown fields of a noun: attributes of its row that this program does not write."""
LATER = timedelta(hours=1)
"""When a row that could not be read, or a saving that could not be booked, is looked at again."""
TOLD_DAYS = 30
TELLING = timedelta(minutes=10)
"""Longer than a function runs."""
BY_TIME = frozenset({"DUE", "SAVING"})
"""Partitions of the index in which the sort key says when a row is looked at next."""

type SafeTell = Callable[[str, str], bool]


def noun_of[T](noun: type[T], row: Row) -> T:
    """The noun of the row's document; UnreadableError when there is none, or this release cannot read it."""
    return read_row(row, lambda found: wire.load_stored(noun, text(found, "doc")))


def noun_with_version[T](noun: type[T], row: Row, ours: Iterable[str]) -> T:
    """The noun with the row's version, and with the attributes that are not `ours` among its unknown fields.

    The noun is a dataclass with the fields `version` and `unknown`. The row's version counts: a decision raises it
    without touching the document's.
    """
    found: Any = noun_of(noun, row)
    added = unknown_attributes(row, ours)
    unknown = {**found.unknown, BESIDE: {"is": added}} if added else found.unknown
    made: T = replace(found, version=whole_number(row, "version"), unknown=unknown)
    return made


def other_attributes(noun: Any) -> Row:
    """The attributes that the row of a `noun_with_version` noun had beside ours."""
    added: Row = noun.unknown.get(BESIDE, {}).get("is", {})
    return added


class Parking:
    """Parks rows of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def park(self, pk: str, sk: str, cause: str, now: datetime, tell: SafeTell) -> bool:
        """Postpone the row by an hour and tell people once in `TOLD_DAYS`; whether they know or are being told.

        Two functions may meet one row at one moment. One of them holds the mark for `TELLING` while it tells; where it
        dies, or the message is not taken, whoever meets the row after that tells.
        """
        logger.warning("a stored row cannot be read and is parked", row=f"{pk} {sk}", problem=cause)
        count(RowsUnreadable=1)
        self.postpone(pk, sk, now)
        what = pk.replace("#", " ", 1).lower()
        text = (
            f"{cause}. Nothing is done about it until it can be read, and everything else goes on. It is looked at "
            f"again every hour; this is said once in {TOLD_DAYS} days. Deploy the release that wrote the row ({pk} "
            f"{sk} in the table {self._table.name}), or restore it from a backup: docs/upgrade.md."
        )
        return self.tell_once(pk, f"{what} cannot be read and waits", text, now, tell)

    def tell_once(self, pk: str, subject: str, text: str, now: datetime, tell: SafeTell) -> bool:
        """Tell of a row once in `TOLD_DAYS`; whether people know it, or are being told."""
        mark: Row = {"pk": f"PARKED#{pk}", "sk": "PARKED", "at": stamp(now)}
        known = self._table.get(f"PARKED#{pk}", "PARKED")
        until = read_if_readable(known, lambda row: whole_number(row, "expires"))
        if until is not None and until > epoch(now):
            return True
        if not self._take_mark({**mark, "expires": epoch(now + TELLING)}, known):
            return True
        told = tell(subject, text)
        self._table.put({**mark, "expires": epoch(now, TOLD_DAYS) if told else epoch(now)})
        return told

    def _take_mark(self, mark: Row, known: Row | None) -> bool:
        """Whether we are the one who tells, by one conditional write."""
        write = self._table.put_over(mark, known, "at")
        try:
            self._table.transact([write], f"telling of {mark.get('pk')}")
        except ConflictError:
            return False
        return True

    def postpone(self, pk: str, sk: str, now: datetime) -> None:
        """Let the index show the row an hour later; nothing where somebody saved it meanwhile, or it has no time."""
        row = self._table.get(pk, sk)
        if row is None or row.get("gsi1pk") not in BY_TIME:
            return
        read = condition_values(row, "gsi1sk", "version")
        same = "version = :version" if "version" in read else "attribute_not_exists(version)"
        condition = f"gsi1sk = :gsi1sk AND {same}"
        later = {":later": (now + LATER).isoformat(timespec="seconds")}
        values = to_dynamodb({f":{name}": value for name, value in read.items()} | later)
        try:
            self._table.update(pk, sk, "SET gsi1sk = :later", condition, values)
        except ConflictError:
            logger.info("a row was saved before it could be given a later look", row=f"{pk} {sk}")
