"""The MessageBook on the table. Its keys do not begin with PROPOSAL#, so that the stream does not feed itself."""

from collections.abc import Callable
from datetime import datetime

from rightsizer.aws.decisions import PREFIX, SORT
from rightsizer.aws.parking import Parking
from rightsizer.aws.table import Table
from rightsizer.model.proposal import MessageRef


class Messages:
    """Keeps the promises of `ports.MessageBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def message(self, proposal_id: str) -> MessageRef | None:
        """Where the proposal was posted, or None."""
        found = self._table.get(f"MESSAGE#{proposal_id}", "MESSAGE")
        if found is None:
            return None
        return MessageRef(proposal_id, str(found["channel"]), str(found["ts"]), str(found["shown"]))

    def remember(self, message: MessageRef) -> None:
        """Store where it was posted and what it shows."""
        self._table.put(
            {
                "pk": f"MESSAGE#{message.proposal_id}",
                "sk": "MESSAGE",
                "channel": message.channel,
                "ts": message.ts,
                "shown": message.shown,
            }
        )

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, and tell of it once; whether people know."""
        return Parking(self._table).park(f"{PREFIX}{proposal_id}", SORT, cause, now, tell)
