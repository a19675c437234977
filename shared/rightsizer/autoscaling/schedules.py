"""AWS's cron expressions, and scheduled actions that set counts by the hour."""

import calendar
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from rightsizer.domain.schedule import HOURS, WEEKDAYS, days_text

MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
DAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
YEARS = (1970, 2199)

type Matches = Callable[[date], bool]


class CronError(ValueError):
    """An expression that is not understood; its text says which part."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression that was understood. Times are wall times of the zone that is asked with."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[Matches, ...]
    """A day matches when one of them does."""
    weekdays: tuple[Matches, ...]
    months: frozenset[int]
    years: frozenset[int]

    def last_firing(self, since: datetime, until: datetime, zone: tzinfo) -> datetime | None:
        """The latest firing after `since` and not after `until`; None when it did not fire.

        A wall time that the clocks skip fires at the instant that it would have had; one that they repeat fires first.
        """
        day, first = until.astimezone(zone).date(), since.astimezone(zone).date()
        while day >= first:
            if self.is_firing_on(day):
                moments = (
                    datetime.combine(day, time(h, m), zone) for h in self.hours[::-1] for m in self.minutes[::-1]
                )
                found = next((at for at in moments if since < at <= until), None)
                if found is not None:
                    return found
            day -= timedelta(days=1)
        return None

    def is_firing_on(self, day: date) -> bool:
        """Whether it fires on this day."""
        return (
            day.year in self.years
            and day.month in self.months
            and any(matches(day) for matches in self.days)
            and any(matches(day) for matches in self.weekdays)
        )


@lru_cache(256)  # an account has few schedules, each of which is asked about every hour of a replay
def parse_cron(expression: str) -> Cron:
    """The expression between the brackets of ``cron(...)``. CronError where a part is not understood."""
    fields = expression.upper().split()
    if len(fields) != 6:
        raise CronError(f"it has {len(fields)} fields, not six")
    minutes, hours, days, months, weekdays, years = fields
    if days not in ("*", "?") and weekdays not in ("*", "?"):
        raise CronError("it names days of the month and of the week")
    return Cron(
        tuple(sorted(_values(minutes, 0, 59))),
        tuple(sorted(_values(hours, 0, 23))),
        tuple(_day_matcher(part) for part in days.split(",")),
        tuple(_weekday_matcher(part) for part in weekdays.split(",")),
        _values(months, 1, 12, MONTHS),
        _values(years, *YEARS),
    )


def _values(field: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    """Every value that a field names: ``*``, ``3``, ``3-7``, ``22-2`` (past the end), ``0/15``, ``MON-FRI``."""
    found: set[int] = set()
    for part in field.split(","):
        body, slash, step = part.partition("/")
        begin, dash, end = body.partition("-")
        if body == "*" or (slash and not body):
            start, stop = low, high
        else:
            start = _number(begin, low, high, names)
            stop = _number(end, low, high, names) if dash else high if slash else start
        width = _number(step, 1, high - low + 1, None) if slash else 1
        size = high - low + 1
        found |= {low + (start - low + i) % size for i in range(0, (stop - start) % size + 1, width)}
    return frozenset(found)


def _number(text: str, low: int, high: int, names: dict[str, int] | None) -> int:
    value = (names or {}).get(text) or (int(text) if text.isascii() and text.isdigit() else None)
    if value is None or not low <= value <= high:
        raise CronError(f"{text!r} is not between {low} and {high}")
    return value


def _day_matcher(part: str) -> Matches:
    """One entry of the days of the month: a range, ``L``, ``L-3``, ``15W`` or ``LW``."""
    if part == "?":
        return _is_any_day
    if part == "LW":
        return lambda day: day.day == _nearest_weekday(day, _days_of_month(day))
    if part == "L" or part.startswith("L-"):
        before = _number(part[2:], 1, 30, None) if part != "L" else 0
        return lambda day: day.day == _days_of_month(day) - before
    if part.endswith("W"):
        wanted = _number(part[:-1], 1, 31, None)
        return lambda day: wanted <= _days_of_month(day) and day.day == _nearest_weekday(day, wanted)
    values = _values(part, 1, 31)
    return lambda day: day.day in values


def _weekday_matcher(part: str) -> Matches:
    """One entry of the days of the week: a range, ``L`` (Saturday), ``6L`` (the last Friday) or ``3#2``."""
    if part == "?":
        return _is_any_day
    if part == "L":
        return lambda day: _number_of(day) == 7
    if "#" in part:
        name, _, nth = part.partition("#")
        wanted, which = _number(name, 1, 7, DAYS), _number(nth, 1, 5, None)
        return lambda day: _number_of(day) == wanted and (day.day - 1) // 7 + 1 == which
    if part.endswith("L"):
        last = _number(part[:-1], 1, 7, DAYS)
        return lambda day: _number_of(day) == last and day.day > _days_of_month(day) - 7
    values = _values(part, 1, 7, DAYS)
    return lambda day: _number_of(day) in values


def _is_any_day(day: date) -> bool:
    return day.day >= 1


def _number_of(day: date) -> int:
    return day.isoweekday() % 7 + 1


def _days_of_month(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _nearest_weekday(day: date, wanted: int) -> int:
    """The day of the month from Monday to Friday that is nearest to `wanted`, within the month."""
    at = day.replace(day=wanted)
    if at.isoweekday() == 6:
        return wanted - 1 if wanted > 1 else wanted + 2
    if at.isoweekday() == 7:
        return wanted + 1 if wanted < _days_of_month(day) else wanted - 2
    return wanted


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
