"""The realised saving of a change, in parts that follow each other: at its end, then a day at a time while it stands.

Each part begins where the last one ended, and its id names its end. The end is always a time that the table has
already, so that a part that is booked again after a crash is the same part.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.changes.measurement import counted, realised_usd
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.live_state import EndpointSight
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.ports.changes import Changer, Journal, SavingsLedger

PART = timedelta(days=1)
NOTES = ("finish", "left")
"""Lines that the end itself adds to the journal."""


@dataclass(frozen=True, slots=True)
class Books:
    """Books the hours of the cheaper fleet, each hour once."""

    ledger: SavingsLedger

    def close(self, change: Change, now: datetime) -> Change:
        """The closed change with everything booked up to its last step, or to the return that ended its saving."""
        if change.turned_at is None or change.plan.kind != "change" or not change.saves:
            return change
        last = max((e.at for e in change.journal if e.step not in NOTES), default=now)
        return self.part(change, change.returned_at or last)

    def part(self, change: Change, end: datetime) -> Change:
        """The change with its saving booked until `end`; the time between is the part."""
        if change.turned_at is None:
            return change
        since = change.booked_until or change.turned_at
        end = max(end, since)
        if end == since and change.booked_until is not None:
            return change
        hours = (end - since).total_seconds() / 3600
        total = realised_usd(change, (end - change.turned_at).total_seconds() / 3600)
        self.ledger.book(
            LedgerEntry(
                id=f"{change.id}#realised#{end.isoformat()}",
                endpoint=change.ref.name,
                change_id=change.id,
                owner=change.owner,
                at=end,
                kind="realised",
                usd=total - change.booked_usd,
                hours=hours,
                proven=change.state is ChangeState.PROVEN and change.unseen_hours == 0,
                note=_note(change, hours),
            )
        )
        return replace(change, booked_until=end, booked_usd=total)


def book_savings(journal: Journal, changer: Changer, books: Books, change_id: str, now: datetime) -> Change | None:
    """Book the whole days that a closed change saved since it was last booked; None when it saves no more.

    It stands while the endpoint has the configuration that it left, and, where it made none, while it is the last
    change of its endpoint that wrote anything. The day in which it was seen to stand no more is not booked.
    """
    change = journal.load(change_id)
    if change is None or not change.goes_on_saving or change.booked_until is None:
        return None
    if journal.held_by(change.ref.name):
        return None  # another change is under way; what it leads to decides
    sight = changer.endpoint(change.ref.name)
    config = change.plan.new_config or (change.before.config_name if change.before else "")
    ours = bool(change.plan.new_config) or journal.last_change(change.ref.name) == change.id
    if not isinstance(sight, EndpointSight) or sight.config_name != config or not ours:
        journal.booked(replace(change, saves=False))
        return None
    end = change.booked_until + PART
    while end <= now:
        change = journal.booked(books.part(counted(change, sight, end), end))
        end += PART
    return change


def _note(change: Change, hours: float) -> str:
    kind = change.option.target.instance_type
    since = f"{change.instance_hours:.1f} instance hours of {kind} since the turn" if kind else "since the turn"
    if change.fallback_hours:
        since += f", {change.fallback_hours:.1f} of them on a fallback pool, which saves nothing"
    if change.unseen_hours:
        since += f", {change.unseen_hours:.1f} of them on a pool that AWS does not show: no saving is booked for them"
    return f"{hours:.1f} h, {since}; {change.state.value}"
