"""Scheduled actions that set counts by the hour: one for each change of count in the week.

An instance serves about ten minutes after it was asked for. A count that rises is asked for a quarter of an hour
before its hour, so that the hour begins with it; on Monday at midnight it is asked for on Sunday. A count that falls
is set at its hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.domain.schedule import HOURS, WEEKDAYS, days_text

EARLY_MINUTES = 15
"""How long before its hour a larger count is asked for: ten minutes to provision it, and some to spare."""
MOST_ACTIONS = 200
"""Scheduled actions of a scalable target (Application Auto Scaling, quotas; it cannot be raised)."""
CRON_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
"""In cron's own order, in which Sunday is 1."""


@dataclass(frozen=True, slots=True)
class ScheduledCount:
    """A count that is set at one time of the day, on some or all days of the week."""

    count: int
    schedule: str
    """``cron(...)``, in UTC."""
    label: str
    """The hour that it is for, behind the days where they differ: ``08``, ``mon-fri-08``. No two actions share one."""


def scheduled_counts(counts: Sequence[int]) -> tuple[ScheduledCount, ...]:
    """Every change of count as an action: 24 counts are those of each day, 168 those from Monday 00:00 on."""
    week = tuple(counts) * len(WEEKDAYS) if len(counts) == HOURS else tuple(counts)
    days: dict[tuple[int, int, bool], list[int]] = {}
    for at, count in enumerate(week):
        if count != week[at - 1]:
            days.setdefault((at % HOURS, count, count > week[at - 1]), []).append(at // HOURS)
    return tuple(_action(hour, count, rises, on) for (hour, count, rises), on in sorted(days.items()))


def early_hours(counts: Sequence[int]) -> float:
    """Instance hours a day that counts cost because they rise early, on average."""
    rises = sum(max(count - counts[at - 1], 0) for at, count in enumerate(counts))
    return rises * EARLY_MINUTES / 60 * HOURS / len(counts)


def _action(hour: int, count: int, rises: bool, days: Sequence[int]) -> ScheduledCount:
    every = len(days) == len(WEEKDAYS)
    label = f"{hour:02d}" if every else f"{days_text(days).lower().replace(', ', '-')}-{hour:02d}"
    if not rises:
        return ScheduledCount(count, _cron(0, hour, days), label)
    before = days if hour else [(day - 1) % len(WEEKDAYS) for day in days]
    return ScheduledCount(count, _cron(60 - EARLY_MINUTES, (hour - 1) % HOURS, before), label)


def _cron(minute: int, hour: int, days: Sequence[int]) -> str:
    """``cron(45 7 ? * MON-FRI *)``; one of days of the month and of the week has to be a question mark."""
    if len(days) == len(WEEKDAYS):
        return f"cron({minute} {hour} * * ? *)"
    order = sorted((day + 1) % len(WEEKDAYS) for day in days)
    named = [CRON_DAYS[day] for day in order]
    run = len(order) > 2 and order[-1] - order[0] == len(order) - 1
    return f"cron({minute} {hour} ? * {f'{named[0]}-{named[-1]}' if run else ','.join(named)} *)"
