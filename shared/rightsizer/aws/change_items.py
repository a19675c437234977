"""A change as an item of the table."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rightsizer import wire
from rightsizer.aws.rows import read_row
from rightsizer.model.change import Change

ROW = "@row"
"""Among the unknown fields of a change: attributes of its item that this program does not write."""
OURS = frozenset({"pk", "sk", "version", "state", "endpoint", "proposal", "doc", "gsi1pk", "gsi1sk"})
BOOKED_EVERY = timedelta(days=1)
"""How often the saving of a change that stands is booked."""


def version_read(change: Change) -> tuple[str, dict[str, Any]]:
    """The condition that nobody saved since the change was read, with its value."""
    return "version = :read", {":read": {"N": str(change.version)}}


def change_item(change: Change) -> dict[str, Any]:
    """The item; while the change is open it is in the index of due changes, then in that of changes that save."""
    item: dict[str, Any] = dict(change.unknown.get(ROW, {}).get("is", {})) | {
        "pk": {"S": f"CHANGE#{change.id}"},
        "sk": {"S": "CHANGE"},
        "version": {"N": str(change.version)},
        "state": {"S": change.state.value},
        "endpoint": {"S": change.ref.name},
        "proposal": {"S": change.proposal_id},
        "doc": {"S": wire.stored(change)},
    }
    if change.next_due is not None and not change.closed:
        item |= {"gsi1pk": {"S": "DUE"}, "gsi1sk": {"S": sortable(change.next_due)}}
    elif change.goes_on_saving and change.booked_until is not None:
        item |= {"gsi1pk": {"S": "SAVING"}, "gsi1sk": {"S": sortable(change.booked_until + BOOKED_EVERY)}}
    return item


def revived(item: Mapping[str, Any]) -> Change:
    """The change of an item, with what a newer program added; UnreadableError when this release cannot read it."""
    return read_row(item, _revived)


def _revived(item: Mapping[str, Any]) -> Change:
    change = replace(wire.restored(Change, item["doc"]["S"]), version=int(item["version"]["N"]))
    added = {name: value for name, value in item.items() if name not in OURS}
    return replace(change, unknown={**change.unknown, ROW: {"is": added}}) if added else change


def sortable(moment: datetime) -> str:
    """Sorts as text in the order of time."""
    return moment.isoformat(timespec="seconds")
