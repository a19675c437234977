"""What one day may start: the one rule of the journal and of the back-test."""

from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.limits import ChangeLimits

UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class Room:
    """What may have started earlier on the day for a change still to start on it.

    The first change of a day starts whatever its switch costs, or a change dearer than the day's budget could never be
    made. The journal asks this by a conditional write, so it is a pair of bounds and no function.
    """

    changes: int
    """Fewer changes than these."""
    usd: Decimal
    """Switch costs of at most this, US dollars; below zero where the change alone is dearer than the budget."""

    def has(self, changes: int, usd: Decimal) -> bool:
        """Whether there is room after so many changes, with so much switch cost, on that day."""
        return self.changes > 0 and (changes == 0 or (changes < self.changes and usd <= self.usd))


def room_for(usd: Decimal, limits: ChangeLimits, *, restores: bool = False) -> Room:
    """The room that a change needs whose switch costs `usd`; what restores always has it, and counts on its day."""
    if restores:
        return Room(UNLIMITED, Decimal(UNLIMITED))
    return Room(limits.changes_per_day, limits.usd_per_day - usd)
