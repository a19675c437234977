"""Rows of the table: with a document that newer releases wrote, and by the hundred."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import batched
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.table import (
    Item,
    Row,
    Table,
    condition_values,
    epoch,
    from_dynamodb,
    raise_write_error,
    read_if_readable,
    read_row,
    stamp,
    text,
    to_dynamodb,
    unknown_attributes,
    whole_number,
)
from rightsizer.errors import ConflictError, ThrottledError
from rightsizer.telemetry import count, logger

if TYPE_CHECKING:
    from rightsizer.domain.message import SafeTell

BESIDE = "@row"
"""Among the unknown fields of a noun: attributes of its row that this program does not write."""
LATER = timedelta(hours=1)
"""When a row that could not be read, or a saving that could not be booked, is looked at again."""
TOLD_DAYS = 30
TELLING = timedelta(minutes=10)
"""Longer than a function runs."""
BY_TIME = frozenset({"DUE", "SAVING"})
"""Partitions of the index in which the sort key says when a row is looked at next."""


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

    def park(self, pk: str, sk: str, cause: str, now: datetime, tell: "SafeTell") -> bool:
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

    def tell_once(self, pk: str, subject: str, text: str, now: datetime, tell: "SafeTell") -> bool:
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


MOST_READ, MOST_WRITTEN = 100, 25
"""Items of one BatchGetItem and of one BatchWriteItem at most (DynamoDB API reference)."""
PAUSES_S = (0.0, 0.1, 0.4, 1.6)
"""Before each try of what is left."""

type RowKey = tuple[str, str]
"""Partition key and sort key."""


class Batches:
    """Many rows of one table in few calls. Errors are those of `rightsizer.errors`."""

    def __init__(self, table: Table, sleep: Callable[[float], None] = time.sleep) -> None:
        self._table = table
        self._sleep = sleep

    def read(self, keys: Collection[RowKey]) -> dict[RowKey, Row]:
        """The rows under these keys, read consistently; a key without a row is left out.

        ThrottledError where DynamoDB leaves keys unread again and again.
        """
        found: dict[RowKey, Row] = {}
        name = self._table.name
        doing = f"reading {len(keys)} rows of the table {name}"

        def ask(left: Any) -> Any:
            with translate_read_errors("dynamodb:BatchGetItem", doing):
                answer: Any = self._table.client.batch_get_item(
                    RequestItems={name: {"Keys": left, "ConsistentRead": True}}
                )
            for row in map(from_dynamodb, answer["Responses"].get(name, ())):
                found[text(row, "pk"), text(row, "sk")] = row
            return answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys")

        for some in batched(dict.fromkeys(keys), MOST_READ):
            self._until_done(ask, [to_dynamodb({"pk": pk, "sk": sk}) for pk, sk in some], doing)
        return found

    def write(self, rows: Sequence[Item]) -> None:
        """Write these rows without conditions; no two may have one key.

        An error leaves some of them written. ThrottledError where DynamoDB leaves rows unwritten again and again.
        """
        name = self._table.name
        doing = f"writing {len(rows)} rows to the table {name}"

        def ask(left: Any) -> Any:
            try:
                answer: Any = self._table.client.batch_write_item(RequestItems={name: left})
            except (ClientError, BotoCoreError) as error:
                raise_write_error(error, "dynamodb:BatchWriteItem", doing)
            return answer.get("UnprocessedItems", {}).get(name)

        for some in batched(rows, MOST_WRITTEN):
            self._until_done(ask, [{"PutRequest": {"Item": to_dynamodb(row)}} for row in some], doing)

    def _until_done(self, ask: Callable[[Any], Any], left: Any, doing: str) -> None:
        """Ask for what is left, until nothing is; at most as often as there are pauses."""
        for pause in PAUSES_S:
            self._sleep(pause)
            left = ask(left)
            if not left:
                return
        raise ThrottledError(f"{doing}: DynamoDB left {len(left)} of a batch undone {len(PAUSES_S)} times")
