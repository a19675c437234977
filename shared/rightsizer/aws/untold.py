"""Proposals of which the message was lost: the stream that brings them to `propose` gave up, or was switched off.

A proposal is written once more, unchanged but for its version, so that the stream carries it again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from rightsizer.aws.decisions import ASKED_BACK, PREFIX
from rightsizer.aws.nouns import noun_of
from rightsizer.aws.rows import Row, document, if_readable, text, whole
from rightsizer.aws.table import Table, stamp
from rightsizer.domain.capacity_change import Errand
from rightsizer.domain.proposal import Proposal, ProposalState, shown_as
from rightsizer.errors import ConflictError
from rightsizer.telemetry import Failed, attempt

QUIET = timedelta(hours=1)
"""The stream itself tries for an hour (template.yaml, MaximumRecordAgeInSeconds)."""
NEW, RECENT = timedelta(days=2), timedelta(days=30)
MOST = 25
"""At a time: a channel that is down must not fill the queue of dead letters."""


def tell_again(table: Table, now: datetime, *, everything: bool) -> int:
    """Write those again of which no message is known; with `everything` also those whose message lags. How many.

    One that cannot be read or written stops no other. What this release cannot read is left as it is and counted;
    `propose` told it when the stream brought it, and the report names it.
    """
    told = 0
    for row in _rows(table, now - (RECENT if everything else NEW), now - QUIET):
        if told == MOST:
            break
        again = attempt("sending a lost message again", text(row, "pk"), partial(_told_again, table, row, everything))
        told += 0 if isinstance(again, Failed) else again
    return told


def _rows(table: Table, start: datetime, end: datetime) -> Iterator[Row]:
    for key in (*(f"{PREFIX}{state}" for state in ProposalState), ASKED_BACK):
        yield from table.index(key, stamp(start), stamp(end))


def _told_again(table: Table, row: Row, lagging: bool) -> int:
    message = table.get(f"MESSAGE#{text(row, 'pk').removeprefix(PREFIX)}", "MESSAGE")
    if message is not None and not lagging:
        return 0
    after = if_readable(row, _once_more)
    if after is None:
        return 0  # it is left as it is; the report names it
    body = document(after)
    shown = shown_as(text(after, "state"), str(body.get("outcome", "")), body.get("asked_back_by", ""))
    known = if_readable(message, lambda found: text(found, "shown"))
    return _again(table, after) if known != shown else 0


def _once_more(row: Row) -> Row:
    """The row with its next version; UnreadableError where `propose` could make nothing of it."""
    noun_of(Errand if "kind" in row else Proposal, row)
    text(row, "state")
    return row | {"version": whole(row, "version") + 1}


def _again(table: Table, after: Row) -> int:
    try:
        table.swap(after, whole(after, "version") - 1)
    except ConflictError:
        return 0  # it moved at this moment, and the stream has it
    return 1
