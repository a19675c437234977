"""A change as an item of the table."""

from datetime import datetime, timedelta
from typing import Any

from rightsizer import wire
from rightsizer.aws.nouns import beside, versioned
from rightsizer.aws.rows import Row, read_row
from rightsizer.aws.table import Value, typed
from rightsizer.domain.change import Change

OURS = frozenset({"pk", "sk", "version", "state", "endpoint", "proposal", "doc", "gsi1pk", "gsi1sk"})
BOOKED_EVERY = timedelta(days=1)
"""How often the saving of a change that stands is booked."""


def version_read(change: Change) -> tuple[str, dict[str, Any]]:
    """The condition that nobody saved since the change was read, with its value."""
    return "version = :read", {":read": {"N": str(change.version)}}


def change_item(change: Change) -> dict[str, Any]:
    """The typed item; while the change is open it is in the index of due changes, then in that of changes that save."""
    item: dict[str, Value] = beside(change) | {
        "pk": f"CHANGE#{change.id}",
        "sk": "CHANGE",
        "version": change.version,
        "state": change.state.value,
        "endpoint": change.ref.name,
        "proposal": change.proposal_id,
        "doc": wire.stored(change),
    }
    if change.next_due is not None and not change.closed:
        item |= {"gsi1pk": "DUE", "gsi1sk": sortable(change.next_due)}
    elif change.goes_on_saving and change.booked_until is not None:
        item |= {"gsi1pk": "SAVING", "gsi1sk": sortable(change.booked_until + BOOKED_EVERY)}
    return typed(item)


def revived(row: Row) -> Change:
    """The change of a row, with what a newer program added; UnreadableError when this release cannot read it."""
    return read_row(row, lambda found: versioned(Change, found, OURS))


def sortable(moment: datetime) -> str:
    """Sorts as text in the order of time."""
    return moment.isoformat(timespec="seconds")
