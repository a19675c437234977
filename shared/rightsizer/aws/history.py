"""What past changes taught, on the table: one row for each change that ended or runs."""

from datetime import datetime, timedelta

from rightsizer import wire
from rightsizer.aws.table import Item, Table, epoch, stamp
from rightsizer.model.history import History, PastChange

ACCOUNT_DAYS = 180
"""How far back other endpoints' changes teach something."""
KEPT_DAYS = 800
FRESH = timedelta(minutes=5)
"""How long the account's rows are reused while many endpoints are evaluated."""


class HistoryBook:
    """Writes past changes and reads them as `History`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: list[tuple[str, PastChange]] = []
        self._read_at: datetime | None = None

    def record(self, endpoint: str, change_id: str, past: PastChange) -> None:
        """Store how a change stands or ended; the same change is one row, the last word counts."""
        self._table.put(_item(endpoint, change_id, past))
        self._read_at = None

    def history(self, endpoint: str, now: datetime) -> History:
        """The endpoint's own past, the others' of half a year, and this month's and today's counts."""
        own = [
            wire.loads(PastChange, str(row["doc"])) for row in self._table.partition(f"ENDPOINT#{endpoint}", "PAST#")
        ]
        rows = self._account(now)
        month, today = (now.year, now.month), now.date()
        return History(
            endpoint=tuple(sorted(own, key=lambda past: past.at)),
            account=tuple(past for name, past in rows if name != endpoint),
            tests_this_month=sum(p.ended == "tested" and (p.at.year, p.at.month) == month for _, p in rows),
            changes_today=sum(p.ended != "tested" and p.at.date() == today for _, p in rows),
        )

    def _account(self, now: datetime) -> list[tuple[str, PastChange]]:
        if self._read_at is None or abs(now - self._read_at) > FRESH:
            start = stamp(now - timedelta(days=ACCOUNT_DAYS))
            found = self._table.index("HISTORY", start)
            self._rows = [(str(row["endpoint"]), wire.loads(PastChange, str(row["doc"]))) for row in found]
            self._read_at = now
        return self._rows


def _item(endpoint: str, change_id: str, past: PastChange) -> Item:
    return {
        "pk": f"ENDPOINT#{endpoint}",
        "sk": f"PAST#{change_id}",
        "gsi1pk": "HISTORY",
        "gsi1sk": f"{stamp(past.at)}#{change_id}",
        "endpoint": endpoint,
        "expires": epoch(past.at, KEPT_DAYS),
        "doc": wire.dumps(past),
    }
