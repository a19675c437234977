"""Proposals of which the message was lost: the stream that brings them to `propose` gave up, or was switched off.

A proposal is written once more, unchanged but for its version, so that the stream carries it again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rightsizer.aws import decisions
from rightsizer.aws.decisions import ASKED_BACK, PREFIX
from rightsizer.aws.table import Table, Value, stamp
from rightsizer.errors import ConflictError, ReadError
from rightsizer.model.proposal import ProposalState, shown_as

QUIET = timedelta(hours=1)
"""The stream itself tries for an hour (template.yaml, MaximumRecordAgeInSeconds)."""
NEW, RECENT = timedelta(days=2), timedelta(days=30)
MOST = 25
"""At a time: a channel that is down must not fill the queue of dead letters."""


def tell_again(table: Table, now: datetime, *, everything: bool) -> int:
    """Write those again of which no message is known; with `everything` also those whose message lags. How many."""
    told = 0
    for row in _rows(table, now - (RECENT if everything else NEW), now - QUIET):
        if told < MOST and _lost(table, row, everything):
            told += _again(table, row)
    return told


def _rows(table: Table, start: datetime, end: datetime) -> Iterator[dict[str, Value]]:
    for key in (*(f"{PREFIX}{state}" for state in ProposalState), ASKED_BACK):
        yield from table.index(key, stamp(start), stamp(end))


def _lost(table: Table, row: dict[str, Value], lagging: bool) -> bool:
    message = table.get(f"MESSAGE#{str(row['pk']).removeprefix(PREFIX)}", "MESSAGE")
    if message is None or not lagging:
        return message is None
    try:
        body = decisions.document(row)
    except ReadError:
        return False  # a row that nobody can read is no message's fault
    return message["shown"] != shown_as(str(row["state"]), str(body.get("outcome", "")), body.get("asked_back_by", ""))


def _again(table: Table, row: dict[str, Value]) -> int:
    try:
        table.swap(row | {"version": int(row["version"]) + 1}, int(row["version"]))
    except ConflictError:
        return 0  # it moved at this moment, and the stream has it
    return 1
