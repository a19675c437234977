"""Errands on the one table, among the proposals: the same key prefix, so that the same click decides on them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from rightsizer import wire
from rightsizer.aws import decisions
from rightsizer.aws.decisions import KEPT_DAYS, PREFIX, SORT
from rightsizer.aws.nouns import beside, versioned
from rightsizer.aws.parking import Parking
from rightsizer.aws.rows import Row, beyond, if_readable, read_row, readable
from rightsizer.aws.table import Item, Table, epoch, stamp
from rightsizer.domain.capacity_change import OPEN, Errand
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ConflictError

ASKED_AGAIN = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
KIND = "errand"
"""Attribute ``kind`` of the item; a proposal about an endpoint has none."""
OURS = frozenset(
    {"pk", "sk", "gsi1pk", "gsi1sk", "kind", "state", "subject", "expires_at", "version", "doc", "expires"}
)
"""Attributes of an errand's item that this program writes."""


class Errands:
    """Keeps the promises of `ports_spot.ErrandBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._parking = Parking(table)

    def ask(self, errand: Errand) -> bool:
        """Store a new errand; False when it was asked before, also where what was asked cannot be read.

        An older pending one of the subject is withdrawn.
        """
        known = decisions.find(self._table, errand.id)
        before = if_readable(known, _revive)
        if known is not None and (before is None or before.state not in ASKED_AGAIN):
            return False
        if any(found.subject == errand.subject for found in self._in(*OPEN)):
            return False  # the one that is being carried out comes first; the next sweep sees what it made
        for older in self._in(ProposalState.PENDING):
            if older.subject == errand.subject and older.work.kind == errand.work.kind:
                self._withdraw(older)
        try:
            if known is not None and before is not None:
                fresh = _item(replace(errand, version=before.version + 1))
                self._table.swap(beyond(known, OURS) | dict(fresh), before.version)
            else:
                self._table.put(_item(replace(errand, version=1)), unless="pk")
        except ConflictError:
            return False
        return True

    def load(self, errand_id: str) -> Errand | None:
        """The errand as it stands, or None."""
        found = decisions.find(self._table, errand_id)
        return _revive(found) if found and found.get("kind") == KIND else None

    def save(self, errand: Errand) -> Errand:
        """Save over the version that was read and return it with the new one; ConflictError when somebody was first."""
        after = replace(errand, version=errand.version + 1)
        self._table.swap(_item(after), errand.version)
        return after

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the approved or begun errands whose next look is due, and of those that cannot be read."""
        unread: list[UnreadRow] = []
        found = [one.id for one in self.open_errands(unread) if one.next_due is None or one.next_due <= now]
        return *found, *(row.key.removesuffix(f" {SORT}").removeprefix(PREFIX) for row in unread)

    def made_at(self) -> datetime:
        """When the table was made; what was decided before that was restored or copied into it."""
        return self._table.made_at()

    def open_errands(self, unread: list[UnreadRow] | None = None) -> list[Errand]:
        """Every errand that was approved and is not at its end; one that cannot be read is put into `unread`."""
        return self._in(*OPEN, unread=unread)

    def park(self, errand_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Leave an errand that cannot be read, and tell of it once."""
        self._parking.park(f"{PREFIX}{errand_id}", SORT, cause, now, tell)

    def _in(self, *states: ProposalState, unread: list[UnreadRow] | None = None) -> list[Errand]:
        rows = [row for state in states for row in self._table.index(f"{PREFIX}{state}")]
        return list(readable([row for row in rows if row.get("kind") == KIND], _revive, unread))

    def _withdraw(self, older: Errand) -> None:
        outcome = "A newer one takes its place."
        try:
            self.save(replace(older, state=ProposalState.WITHDRAWN, outcome=outcome, next_due=None))
        except ConflictError:
            return  # somebody decided on it at this moment, and that counts


def _item(errand: Errand) -> Item:
    item: Row = beside(errand) | {
        "pk": f"{PREFIX}{errand.id}",
        "sk": SORT,
        "gsi1pk": f"{PREFIX}{errand.state}",
        "gsi1sk": f"{stamp(errand.created_at)}#{errand.id}",
        "kind": KIND,
        "state": str(errand.state),
        "subject": errand.subject,
        "expires_at": epoch(errand.expires_at),
        "version": errand.version,
        "doc": wire.stored(errand),
    }
    if errand.state in KEPT_DAYS:
        ended = errand.journal[-1].at if errand.journal else errand.created_at
        item["expires"] = epoch(ended, KEPT_DAYS[errand.state])
    return item


def _revive(item: Row) -> Errand:
    return read_row(item, lambda row: versioned(Errand, row, OURS))
