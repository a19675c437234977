"""Limits on the start of a change: the change window, and the rest of a day's budget."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from rightsizer.domain.demand import Peak
from rightsizer.domain.policy import TICK, UNLIMITED, BudgetShare, ChangeLimits, ChangeWindow, Room
from rightsizer.domain.reason import Code, Reason

STEP = timedelta(minutes=15)
"""Between the times at which a shadow test may begin."""
HORIZON = timedelta(days=8)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEAD = timedelta(minutes=30)
"""From the plan of a shadow test until its shadow gets requests: alarms, a deployment, a model that loads."""
LATE = timedelta(minutes=15)
"""How much of the busiest hour a test may miss, beside what whoever begins it comes late."""
PASSED_OVER = timedelta(days=3)
"""How much later a day may be on which the busiest hour carries what it usually does: over a weekend."""


def next_open(window: ChangeWindow, now: datetime) -> datetime:
    """`now` if the change window is open, else the next tick of five minutes in it, within eight days.

    The window is in its own time zone.

    A window past midnight belongs to the day on which it starts.
    """
    if is_open(window, now):
        return now
    moment = now.astimezone(UTC)
    minutes = TICK // timedelta(minutes=1)
    moment = moment.replace(minute=moment.minute // minutes * minutes, second=0, microsecond=0)
    for _ in range(HORIZON // TICK):
        moment += TICK
        if is_open(window, moment):
            return moment
    return moment


def is_open(window: ChangeWindow, now: datetime) -> bool:
    """Whether `now` lies in the window."""
    local = now.astimezone(UTC if window.zone == "UTC" else ZoneInfo(window.zone))
    clock, day = local.time().replace(tzinfo=None), local.weekday()
    if window.start == window.end:
        return not window.days or day in window.days
    if window.start < window.end:
        inside = window.start <= clock < window.end
    elif clock >= window.start:
        inside = True
    else:
        inside, day = clock < window.end, (day - 1) % 7
    return inside and (not window.days or day in window.days)


def next_test_start(
    window: ChangeWindow, peak: Peak, lasts: timedelta, now: datetime, late: timedelta = timedelta(0)
) -> datetime:
    """`now` if a test begun now covers the whole busiest hour, else the next possible start.

    The test gets requests `LEAD` after it begins; it may miss `LATE` of the hour, and begin `late` after the last such
    time, for whoever waited comes a little later. Of the times of one day at which the window is open, the one that
    puts the hour nearest to the middle of the test; a day on which the hour carries little is passed over for one
    within `PASSED_OVER` of it. A window that is never open at any such time goes before the hour, and a test of a day
    sees every hour: the answer is that of `next_open` then. Source: docs/shadow-tests.md, "When it begins".
    """
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [midnight + n * DAY for n in range(HORIZON.days)] if lasts < DAY else []
    found = {day: _start(window, day + peak.hour * HOUR, lasts, now, late) for day in days}
    free = [(day, at) for day, at in found.items() if at is not None]
    if not free:
        return next_open(window, now)
    usual = [at for day, at in free if day.weekday() in peak.weekdays and at - free[0][1] <= PASSED_OVER]
    return usual[0] if usual else free[0][1]


def _start(
    window: ChangeWindow, busiest: datetime, lasts: timedelta, now: datetime, late: timedelta
) -> datetime | None:
    """When a test of that one busiest hour begins: now, if it may, or the best time to come; None where none is."""
    spare = max(lasts - HOUR, timedelta(0))
    last = busiest - LEAD
    first, end = last - spare, last + LATE
    if first <= now <= end + late and is_open(window, now):
        return now
    steps = (first + n * STEP for n in range((end - first) // STEP + 1))
    free = [at for at in steps if at >= now and is_open(window, at) and is_open(window, at + late)]
    return min(free, key=lambda at: abs(at - (last - spare / 2))) if free else None


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
