"""Proposals on the table: found, listed, decided on, following their change, expiring."""

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime

from rightsizer import wire
from rightsizer.aws import decisions, untold
from rightsizer.aws.decisions import ASKED_BACK, PREFIX, SORT, UNDOABLE, moved
from rightsizer.aws.rows import Row, noun_of, passed_over, readable
from rightsizer.aws.table import Item, Table, Value, epoch, stamp
from rightsizer.errors import ConflictError, ReadError, VanishedError
from rightsizer.model.outcome import UnreadRow
from rightsizer.model.proposal import Decision, Proposal, ProposalState

OPEN = frozenset({ProposalState.PENDING, ProposalState.APPROVED, ProposalState.APPLYING})
"""An endpoint has at most one proposal in these states."""
ENDED = frozenset({ProposalState.APPLIED, ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER})
TRIES = 4
"""How often a write is tried again when somebody else wrote in between."""


def item(proposal: Proposal) -> Item:
    """The proposal as it is first written."""
    return {
        "pk": f"{PREFIX}{proposal.id}",
        "sk": SORT,
        "gsi1pk": f"{PREFIX}{proposal.state}",
        "gsi1sk": f"{stamp(proposal.created_at)}#{proposal.id}",
        "state": str(proposal.state),
        "endpoint": proposal.ref.name,
        "expires_at": epoch(proposal.expires_at),
        "version": 1,
        "doc": wire.stored(proposal),
    }


def revive(found: dict[str, Value]) -> Proposal:
    """The proposal of an item; UnreadableError when this release cannot read it."""
    return noun_of(Proposal, found)


class Proposals:
    """The proposal half of the RecommendationStore port."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def proposal(self, proposal_id: str) -> Proposal | None:
        """The proposal as it stands, or None."""
        found = decisions.find(self._table, proposal_id)
        return revive(found) if found and _of_an_endpoint(found) else None

    def proposals(
        self, states: Iterable[ProposalState] = (), unread: list[UnreadRow] | None = None
    ) -> Iterator[Proposal]:
        """Proposals in these states, newest first; all when none is named."""
        wanted = tuple(states) or tuple(ProposalState)
        each = [self._table.index(f"{PREFIX}{state}", newest_first=True) for state in wanted]
        if UNDOABLE & set(wanted):
            back = self._table.index(ASKED_BACK, newest_first=True)
            each.append(row for row in back if row["state"] in wanted)
        merged = heapq.merge(*each, key=lambda row: str(row["gsi1sk"]), reverse=True)  # page by page, never all rows
        yield from readable(filter(_of_an_endpoint, merged), revive, unread)

    def decide(self, proposal_id: str, decision: Decision, now: datetime) -> Proposal:
        """Record one decision on a pending, unexpired proposal; ConflictError when somebody was first."""
        return wire.revive(Proposal, decisions.decide(self._table, proposal_id, decision, now))

    def follow(self, proposal_id: str, state: ProposalState, change_id: str, outcome: str, now: datetime) -> None:
        """Let the proposal follow its change. One that ended is not set back to applying by a late message."""
        for attempt in range(TRIES):
            found = decisions.find(self._table, proposal_id)
            if found is None:
                raise VanishedError(f"following the change {change_id}: the proposal {proposal_id} is gone")
            try:
                before = decisions.document(found)
            except ReadError as error:
                passed_over(f"{found['pk']} {found['sk']}", error)
                break  # the change goes on; its message stays behind
            same = tuple(before.get(name) for name in ("state", "change_id", "outcome")) == (state, change_id, outcome)
            if same or (before.get("state") in ENDED and state not in ENDED):
                break
            try:
                self._table.swap(moved(found, state, now, change_id=change_id, outcome=outcome), int(found["version"]))
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
            else:
                break

    def asked_back(self, *, everything: bool = False) -> Iterator[Proposal]:
        """Proposals with an order to go back that is not settled; `everything`: those of the first release too.

        The first release left such a proposal in the index of its state, where only its attribute tells it.
        """
        rows = list(self._table.index(ASKED_BACK))
        for state in sorted(UNDOABLE) if everything else ():
            keys = self._table.index(f"{PREFIX}{state}", only=("pk", "asked_back"))
            ids = [str(key["pk"]).removeprefix(PREFIX) for key in keys if "asked_back" in key]
            rows += [row for one in ids if (row := decisions.find(self._table, one)) is not None]
        yield from readable(rows, revive)

    def order_to_go_back(self, proposal_id: str) -> Proposal | None:
        """The proposal, read by its key, where its order to go back is not settled; else None."""
        found = decisions.find(self._table, proposal_id)
        return revive(found) if found and "asked_back" in found and _of_an_endpoint(found) else None

    def settle(self, proposal_id: str) -> None:
        """The order to go back was taken or refused: the proposal goes back to the index of its state."""
        for attempt in range(TRIES):
            found = decisions.find(self._table, proposal_id)
            if found is None or "asked_back" not in found:
                return
            after = found | {"gsi1pk": f"{PREFIX}{found['state']}", "version": int(found["version"]) + 1}
            after.pop("asked_back")
            try:
                self._table.swap(after, int(found["version"]))
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
            else:
                return

    def tell_again(self, now: datetime, *, everything: bool) -> int:
        """Bring proposals whose message was never posted to `propose` once more; returns how many."""
        return untold.tell_again(self._table, now, everything=everything)

    def expire(self, now: datetime) -> tuple[Proposal, ...]:
        """Close the pending proposals whose time is over; returns those that this call closed."""
        closed: list[Proposal] = []
        said = "It is asked again if the saving is still there."

        def over(row: Row) -> tuple[Row, Row] | None:
            late = int(row["expires_at"]) <= epoch(now)
            return (row, moved(row, ProposalState.EXPIRED, now, outcome=said)) if late else None

        pending = self._table.index(f"{PREFIX}{ProposalState.PENDING}")
        for row, after in filter(None, readable(pending, over)):
            try:
                self._table.swap(after, int(row["version"]))
            except ConflictError:
                continue  # somebody decided at the last moment, and that counts
            if _of_an_endpoint(after):
                closed += readable([after], revive)
        return tuple(closed)


def _of_an_endpoint(row: dict[str, Value]) -> bool:
    """Errands live among the proposals (`rightsizer.aws.errand_book`), and carry their kind."""
    return "kind" not in row
