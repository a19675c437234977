"""The MessageBook on the table. Its keys do not begin with PROPOSAL#, so that the stream does not feed itself."""

from collections.abc import Callable
from datetime import datetime

from rightsizer.aws.decisions import PREFIX, SORT
from rightsizer.aws.parking import Parking
from rightsizer.aws.rows import Row, if_readable, text
from rightsizer.aws.table import Table
from rightsizer.domain.proposal import MessageRef


class Messages:
    """Keeps the promises of `ports.MessageBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._read: Row = {}

    def message(self, proposal_id: str) -> MessageRef | None:
        """Where the proposal was posted; None also where that cannot be read, so that it is posted anew."""
        found = self._table.get(f"MESSAGE#{proposal_id}", "MESSAGE")
        self._read = found or {}
        return if_readable(found, _revive)

    def remember(self, message: MessageRef) -> None:
        """Store where it was posted and what it shows, over the row that was read last where it is the same."""
        row: Row = {
            "pk": f"MESSAGE#{message.proposal_id}",
            "sk": "MESSAGE",
            "channel": message.channel,
            "ts": message.ts,
            "shown": message.shown,
        }
        same = self._read.get("pk") == row.get("pk")
        self._table.put(self._read | row if same else row)

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, and tell of it once; whether people know."""
        return Parking(self._table).park(f"{PREFIX}{proposal_id}", SORT, cause, now, tell)


def _revive(row: Row) -> MessageRef:
    proposal_id = text(row, "pk").removeprefix("MESSAGE#")
    return MessageRef(proposal_id, text(row, "channel"), text(row, "ts"), text(row, "shown"))
