"""Days of the week that are quiet by habit."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date

from rightsizer.model.digest import REGIME, DayDigest


def quiet_weekdays(days: Sequence[DayDigest], least_days: int) -> frozenset[int]:
    """Weekdays (0 is Monday) that never had half of the busiest day's requests, each seen at least twice.

    None while fewer than `least_days` days are known. None either where most weekdays would be: then a few days stand
    out, by accident as likely as by habit, and the others are no exception.
    """
    calls: dict[date, float] = defaultdict(float)
    for digest in days:
        calls[digest.day] += digest.request_count
    by_weekday: dict[int, list[float]] = defaultdict(list)
    for day, count in calls.items():
        by_weekday[day.weekday()].append(count)
    busiest = max(calls.values(), default=0.0)
    if len(calls) < least_days or busiest <= 0 or any(len(seen) < 2 for seen in by_weekday.values()):
        return frozenset()
    quiet = frozenset(day for day, seen in by_weekday.items() if max(seen) < REGIME * busiest)
    return quiet if 2 * len(quiet) < len(by_weekday) else frozenset()


def last_usual(days: Sequence[DayDigest], least_days: int) -> DayDigest:
    """The last day that was not quiet by habit: its fleet is the usual one."""
    quiet = quiet_weekdays(days, least_days)
    return next((d for d in reversed(days) if d.day.weekday() not in quiet), days[-1])
