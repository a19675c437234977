"""Tell whether a change may start now, and when it may otherwise."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from zoneinfo import ZoneInfo

from rightsizer.model.limits import ChangeWindow

STEP = timedelta(minutes=15)
HORIZON = timedelta(days=8)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEAD = timedelta(minutes=30)
"""From the plan of a shadow test until its shadow gets requests: alarms, a deployment, a model that loads."""
LATE = timedelta(minutes=30)
"""How much of the busiest hour a test may miss."""


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


def busiest(hourly: Sequence[float]) -> int | None:
    """The hour of the day, UTC, with the most requests over all days; None where none were seen.

    `hourly` are whole days of 24 hours, oldest first. What is not finite counts as nothing.
    """
    sums = [sum(v for v in hourly[hour::24] if isfinite(v)) for hour in range(24)]
    return max(range(24), key=lambda hour: sums[hour]) if max(sums) > 0 else None


def over_peak(window: ChangeWindow, hour: int, lasts: timedelta, now: datetime) -> datetime:
    """`now` when a test of that length begun now sees the busiest `hour` whole, else the next time at which it may.

    The test gets requests `LEAD` after it begins; it may miss `LATE` of the hour. Of the times of one day at which the
    window is open, the one that puts the hour nearest to the middle of the test. Where the window is never open at any
    of them it goes before the hour, and a test of a day sees every hour: the answer is that of `opens` then. Source:
    decision.md 4.6, two hours over the peak.
    """
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spare = max(lasts - HOUR, timedelta(0))
    for days in () if spare >= DAY - HOUR else range(-1, HORIZON.days):
        last = midnight + timedelta(days=days, hours=hour) - LEAD
        first, end = last - spare, last + LATE
        if first <= now <= end and is_open(window, now):
            return now
        steps = (first + n * STEP for n in range((end - first) // STEP + 1))
        free = [at for at in steps if at >= now and is_open(window, at)]
        if free:
            return min(free, key=lambda at: abs(at - (last - spare / 2)))
    return opens(window, now)
