"""Counts by the hour of the day, for all days of the week alike or for classes of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = 24


@dataclass(frozen=True, slots=True)
class DayCounts:
    """Counts by the hour on some days of the week, the same on each of them."""

    weekdays: tuple[int, ...]
    """Monday is 0."""
    counts: tuple[int, ...]
    """24 counts, one per hour of the day UTC."""


def days_text(weekdays: Iterable[int]) -> str:
    """Days of the week as people write them: ``Mon-Fri``, ``Sat-Sun``, ``Wed``, ``Mon, Wed``."""
    days = sorted(set(weekdays))
    if len(days) == len(WEEKDAYS):
        return "every day"
    starts = [day for day in days if (day - 1) % 7 not in days]
    if len(starts) != 1 or len(days) == 1:
        return ", ".join(WEEKDAYS[day] for day in days)
    return f"{WEEKDAYS[starts[0]]}-{WEEKDAYS[(starts[0] + len(days) - 1) % 7]}"


def span_text(counts: Sequence[int]) -> str:
    """``1 to 3``, or ``1`` where all counts are alike."""
    return f"{min(counts)} to {max(counts)}" if max(counts) > min(counts) else f"{max(counts)}"


def week_of(classes: Sequence[DayCounts]) -> tuple[int, ...] | None:
    """168 counts from Monday 00:00 UTC; None where a day is missing, is there twice, or has not 24 counts."""
    by_day = {day: counts.counts for counts in classes for day in counts.weekdays}
    named = sorted(day for counts in classes for day in counts.weekdays)
    if named != list(range(len(WEEKDAYS))) or any(len(counts.counts) != HOURS for counts in classes):
        return None
    return tuple(count for day in range(len(WEEKDAYS)) for count in by_day[day])
