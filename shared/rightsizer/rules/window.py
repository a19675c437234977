"""Tell whether a change may start now, and when it may otherwise."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from rightsizer.model.limits import ChangeWindow

STEP = timedelta(minutes=15)
HORIZON = timedelta(days=8)


def opens(window: ChangeWindow, now: datetime) -> datetime:
    """`now` when the window is open, else the next quarter of an hour at which it is. Wall time of the window's zone.

    A window past midnight belongs to the day on which it starts.
    """
    if is_open(window, now):
        return now
    moment = now.astimezone(UTC).replace(minute=now.minute // 15 * 15, second=0, microsecond=0)
    for _ in range(HORIZON // STEP):
        moment += STEP
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
