"""Proposals on the table: find, list, decide, follow the change, expire.

A proposal of which the message was lost, because the stream that brings it to `propose` gave up or was switched off, or
whose event was refused, is written once more, unchanged but for its version, so that the stream carries it again. The
keys of messages (`rightsizer.aws.message_book`) do not begin with PROPOSAL#, so that the stream does not feed itself.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from rightsizer import wire
from rightsizer.aws import decisions
from rightsizer.aws.decisions import ASKED_BACK, PREFIX, SORT, item_in_state
from rightsizer.aws.documents import Batches, Parking, noun_of
from rightsizer.aws.errors import TRIES
from rightsizer.aws.table import (
    Item,
    Row,
    Table,
    document,
    epoch,
    read_if_readable,
    readable_rows,
    stamp,
    text,
    unknown_attributes,
    whole_number,
)
from rightsizer.domain.capacity_change import CapacityChange
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import STOPPABLE, UNDOABLE, Proposal, ProposalState, shown_state
from rightsizer.errors import ConflictError
from rightsizer.telemetry import Failure, attempt, logger

OPEN = frozenset({ProposalState.PENDING, ProposalState.APPROVED, ProposalState.APPLYING})
"""An endpoint has at most one proposal in these states."""
ENDED = frozenset({ProposalState.APPLIED, ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER})
SHOWN_STATES = (*sorted(OPEN), ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER)
"""What the stack's dashboard shows."""
OURS = frozenset(
    {"pk", "sk", "gsi1pk", "gsi1sk", "state", "endpoint", "expires_at", "version", "doc", "asked_back", "expires"}
)
"""Attributes of a proposal's item that this program writes."""
NOT_ASKED: dict[str, Any] = {"asked_back_by": "", "asked_back_at": None}
"""Fields of a proposal's document that no order to go back is in."""
EXPIRY, EXPIRY_DAYS = "EXPIRY", 2
LATELY = timedelta(hours=6)
"""How far back an hourly sweep looks for ended proposals; what several of them missed the daily one closes."""
QUIET = timedelta(hours=1)
"""The stream itself tries for an hour (template.yaml, MaximumRecordAgeInSeconds)."""
NEW, RECENT = timedelta(days=2), timedelta(days=30)
MOST = 25
"""At a time: a channel that is down must not fill the queue of dead letters."""


def item(proposal: Proposal, over: Row | None = None) -> Item:
    """The proposal as it is first written; or once more, over the `over` of the same id that ended."""
    return {
        **unknown_attributes(over or {}, OURS),
        "pk": f"{PREFIX}{proposal.id}",
        "sk": SORT,
        "gsi1pk": f"{PREFIX}{proposal.state}",
        "gsi1sk": f"{stamp(proposal.created_at)}#{proposal.id}",
        "state": str(proposal.state),
        "endpoint": proposal.ref.name,
        "expires_at": epoch(proposal.expires_at),
        "version": whole_number(over, "version") + 1 if over else 1,
        "doc": wire.dump_stored(proposal),
    }


def expiry_mark(proposal_id: str, expires_at: datetime) -> Item:
    """The small row by which the index shows when a proposal's time is over."""
    return {
        "pk": f"{EXPIRY}#{proposal_id}",
        "sk": EXPIRY,
        "gsi1pk": EXPIRY,
        "gsi1sk": f"{stamp(expires_at)}#{proposal_id}",
        "proposal": proposal_id,
        "expires": epoch(expires_at, EXPIRY_DAYS),
    }


def revive(found: Row) -> Proposal:
    """The proposal of an item; UnreadableError when this release cannot read it."""
    return noun_of(Proposal, found)


class Proposals:
    """The proposal half of the RecommendationStore port."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def proposal(self, proposal_id: str) -> Proposal | None:
        """The proposal as it stands, or None."""
        found = decisions.find(self._table, proposal_id)
        return revive(found) if found and _is_of_endpoint(found) else None

    def proposals(
        self,
        states: Iterable[ProposalState] = (),
        unread: list[UnreadRow] | None = None,
        ended_since: datetime | None = None,
    ) -> Iterator[Proposal]:
        """Proposals in these states, newest first; all when none is named.

        With `ended_since` those whose change ended are left out where they were asked before.
        """
        wanted = tuple(states) or tuple(ProposalState)
        since = stamp(ended_since) if ended_since else ""
        each = [
            self._table.index(f"{PREFIX}{state}", since if state in ENDED else "", newest_first=True)
            for state in wanted
        ]
        if STOPPABLE & set(wanted):
            back = self._table.index(ASKED_BACK, newest_first=True)
            each.append(row for row in back if row.get("state") in wanted)
        merged = heapq.merge(*each, key=lambda row: text(row, "gsi1sk"), reverse=True)  # page by page, never all rows
        yield from readable_rows(filter(_is_of_endpoint, merged), revive, unread)

    def follow(
        self,
        proposal_id: str,
        state: ProposalState,
        change_id: str,
        outcome: str,
        now: datetime,
        measured: Decimal | None = None,
    ) -> None:
        """Let the proposal follow its change. One that ended is not set back to applying by a late message."""

        def after(found: Row) -> Row | None:
            before = document(found)
            same = tuple(before.get(name) for name in ("state", "change_id", "outcome")) == (state, change_id, outcome)
            if same or (before.get("state") in ENDED and state not in ENDED):
                return None
            more: dict[str, Any] = {} if measured is None else {"measured_usd_per_month": str(measured)}
            if state is ProposalState.PROVEN and "asked_back" not in found and before.get("asked_back_by"):
                more |= NOT_ASKED  # the order was for the stage after the one that stands
            return item_in_state(found, state, now, change_id=change_id, outcome=outcome, **more)

        if not self._rewrite(proposal_id, after):
            # Somebody deleted the row: the change goes on and ends, and its lock is released.
            logger.warning("a proposal is gone", extra={"proposal": proposal_id, "change": change_id})

    def _rewrite(self, proposal_id: str, change: Callable[[Row], Row | None]) -> bool:
        """Write what `change` makes of the proposal's row until nobody else was faster; False where there is none.

        None, and a row that cannot be read, are left as they are: a change goes on, its message stays behind.
        """
        for number in range(TRIES):
            found = decisions.find(self._table, proposal_id)
            if found is None:
                return False
            after = read_if_readable(found, change)
            if after is None:
                break
            try:
                self._table.swap(after, whole_number(found, "version"))
            except ConflictError:
                if number == TRIES - 1:
                    raise
            else:
                break
        return True

    def rollback_requests(
        self, *, everything: bool = False, unread: list[UnreadRow] | None = None
    ) -> Iterator[Proposal]:
        """Proposals with an order to go back that is not settled; `everything`: those of the first release too.

        Rows that cannot be read are passed over and put into `unread`.
        The first release left such a proposal in the index of its state, where only its attribute tells it.
        """
        rows = list(self._table.index(ASKED_BACK))
        for state in sorted(UNDOABLE) if everything else ():
            keys = self._table.index(f"{PREFIX}{state}", only=("pk", "asked_back"))
            ids = [text(key, "pk").removeprefix(PREFIX) for key in keys if "asked_back" in key]
            rows += [row for one in ids if (row := decisions.find(self._table, one)) is not None]
        yield from readable_rows(rows, revive, unread)

    def rollback_request(self, proposal_id: str) -> Proposal | None:
        """The proposal, read by its key, where its order to go back is not settled; else None."""
        found = decisions.find(self._table, proposal_id)
        return revive(found) if found and "asked_back" in found and _is_of_endpoint(found) else None

    def settle_rollback_request(self, proposal_id: str, *, is_over: bool = False) -> None:
        """The order to go back was taken or refused: the proposal goes back to the index of its state.

        With `is_over` it is carried out or refused already, so that what stands may be asked to go back anew.
        """

        def mark_settled(found: Row) -> Row | None:
            if "asked_back" not in found:
                return None
            body = document(found)  # an order of a newer release is that release's to settle
            after = unknown_attributes(found, ["asked_back"])
            state = decisions.state_of(found)
            if is_over and state in UNDOABLE:
                after["doc"] = json.dumps(body | NOT_ASKED, separators=(",", ":"))
            return after | {"gsi1pk": f"{PREFIX}{state}", "version": whole_number(found, "version") + 1}

        self._rewrite(proposal_id, mark_settled)

    def count_by_state(self) -> Mapping[ProposalState, int]:
        """Proposals of each state of `SHOWN_STATES`, by their keys in the index."""
        return {state: sum(1 for _ in self._table.index(f"{PREFIX}{state}", only=("pk",))) for state in SHOWN_STATES}

    def tell_again(self, now: datetime, *, everything: bool) -> int:
        """Bring proposals whose message was never posted to `propose` once more; returns how many."""
        return send_again(self._table, now, everything=everything)

    def expire(self, now: datetime, *, everything: bool = True) -> tuple[Proposal, ...]:
        """Close the pending proposals whose time is over; returns those that this call closed.

        Without `everything` those whose time ended within `LATELY`, without a look at the others. One that cannot be
        read or written stops no other.
        """
        closed: list[Proposal] = []
        for row in self._table.index(f"{PREFIX}{ProposalState.PENDING}") if everything else self._ended_lately(now):
            done = attempt("expiring a proposal", text(row, "pk"), partial(self._expire_row, row, now))
            closed += [] if isinstance(done, Failure) else done
        return tuple(closed)

    def _ended_lately(self, now: datetime) -> list[Row]:
        marks = self._table.index(EXPIRY, stamp(now - LATELY), stamp(now))
        keys = [(f"{PREFIX}{one}", SORT) for one in readable_rows(marks, lambda row: text(row, "proposal"))]
        rows = Batches(self._table).read(keys).values()
        return [row for row in rows if row.get("state") == ProposalState.PENDING]

    def _expire_row(self, row: Row, now: datetime) -> Iterable[Proposal]:
        """The proposal of the row where this call closed it."""

        def over(row: Row) -> tuple[Row, int] | None:
            said = "It is asked again if the saving is still there."
            late = whole_number(row, "expires_at") <= epoch(now)
            return (
                (item_in_state(row, ProposalState.EXPIRED, now, outcome=said), whole_number(row, "version"))
                if late
                else None
            )

        for after, version in filter(None, readable_rows([row], over)):
            try:
                self._table.swap(after, version)
            except ConflictError:
                return []  # somebody decided at the last moment, and that counts
            if _is_of_endpoint(after):
                return list(readable_rows([after], revive))
        return []

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, and tell of it once; whether people know."""
        return park_proposal(self._table, proposal_id, cause, now, tell)


def park_proposal(table: Table, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
    """Leave a proposal that cannot be read, and tell of it once; whether people know."""
    return Parking(table).park(f"{PREFIX}{proposal_id}", SORT, cause, now, tell)


def _is_of_endpoint(row: Row) -> bool:
    """Capacity changes live among the proposals (`rightsizer.aws.capacity_changes`), and carry their kind."""
    return "kind" not in row


def send_again(table: Table, now: datetime, *, everything: bool) -> int:
    """Write those again of which no message is known; with `everything` also those whose message lags. How many.

    One that cannot be read or written stops no other. What this release cannot read is left as it is and counted;
    `propose` told it when the stream brought it, and the report names it.
    """
    told = 0
    for row in _rows(table, now - (RECENT if everything else NEW), now - QUIET):
        if told == MOST:
            break
        again = attempt(
            "sending a lost message again", text(row, "pk"), partial(_send_row_again, table, row, everything)
        )
        told += 0 if isinstance(again, Failure) else again
    return told


def _rows(table: Table, start: datetime, end: datetime) -> Iterator[Row]:
    for key in (*(f"{PREFIX}{state}" for state in ProposalState), ASKED_BACK):
        yield from table.index(key, stamp(start), stamp(end))


def _send_row_again(table: Table, row: Row, lagging: bool) -> int:
    message = table.get(f"MESSAGE#{text(row, 'pk').removeprefix(PREFIX)}", "MESSAGE")
    owes_event = message is not None and "event_due" in message
    if message is not None and not lagging and not owes_event:
        return 0
    after = read_if_readable(row, _next_version)
    if after is None:
        return 0  # it is left as it is; the report names it
    body = document(after)
    back, revision = body.get("asked_back_by", ""), decisions.revision_of(body)
    shown = shown_state(text(after, "state"), str(body.get("outcome", "")), back, revision)
    known = read_if_readable(message, lambda found: text(found, "shown"))
    return _write_next_version(table, after) if known != shown or owes_event else 0


def _next_version(row: Row) -> Row:
    """The row with its next version; UnreadableError where `propose` could make nothing of it."""
    noun_of(CapacityChange if "kind" in row else Proposal, row)
    text(row, "state")
    return row | {"version": whole_number(row, "version") + 1}


def _write_next_version(table: Table, after: Row) -> int:
    try:
        table.swap(after, whole_number(after, "version") - 1)
    except ConflictError:
        return 0  # it moved at this moment, and the stream has it
    return 1
