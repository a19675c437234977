"""What a day may still start: so many changes, and so much for their switches.

The first change of a day starts whatever its switch costs, or a change dearer than the day's budget could never be
made. What restores an earlier fleet always starts, and counts on its day.
"""

from decimal import Decimal

from rightsizer.domain.policy import UNLIMITED, BudgetShare, ChangeLimits, Room
from rightsizer.domain.reason import Code, Reason


def budget_share(day: str, usd: Decimal, limits: ChangeLimits, *, restores: bool = False) -> BudgetShare:
    """The part of the day's budget that a change takes whose switch costs `usd`, US dollars.

    The journal takes it by one conditional write, where nobody can start another change in between.
    """
    room = Room(limits.changes_per_day, limits.usd_per_day - usd)
    if restores:
        room = Room(UNLIMITED, Decimal(UNLIMITED))
    return BudgetShare(day, usd, room, f"{limits.changes_per_day} changes, USD {limits.usd_per_day}")


def budget_refusal(share: BudgetShare, limits: ChangeLimits, changes: int, usd: Decimal) -> Reason | None:
    """Why the day's budget has no room for one more change; None where there is room."""
    if share.room.has(changes, usd):
        return None
    if changes >= limits.changes_per_day:
        sentence = f"{changes} changes started that day, Limits allows {limits.changes_per_day}"
    else:
        sentence = f"the switches of that day would cost more than ${limits.usd_per_day}"
    return Reason(Code.BUDGET_SPENT, sentence)
