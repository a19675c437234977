"""Office hours of an endpoint: what the tag ``rightsizer:hours`` says, and when the next opening begins and ends.

The tag is wall time of a named zone. Both clock changes are read in the callers' favour: a start on a time that the
clock shows twice, or skips, is the earlier of the two readings, an end the later one. So no request of the office
hours meets a closed door because a clock changed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from rightsizer.errors import InputError

HOURS_TAG = "rightsizer:hours"
"""The tag by which an owner names the hours in which the endpoint has to run."""
ALWAYS_OPEN = "daily 00:00-24:00 UTC"
"""The value by which an owner says no: the endpoint always runs, and nobody is asked about its hours again."""
FALLBACK_TAG = "rightsizer:fallback-config"
"""The tag by which an owner names the configuration that starts where capacity lacks."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WANTED = "it should look like 'mon-fri 08:00-19:00 Europe/Berlin'"
SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)", re.ASCII)
DAY_MINUTES = 24 * 60
HORIZON = timedelta(days=400)
"""How far the next opening is looked for; a tag whose every day is a holiday for so long opens never."""
AROUND = timedelta(days=8)
"""Longer than an opening can be that ends at all: a week has one closed minute then."""
FIRST_LEAD = timedelta(minutes=45)
"""Time for a start of which nothing was measured: models of some 100 GB load within it."""
LEAST_LEAD, MOST_LEAD = timedelta(minutes=25), timedelta(hours=3)
LEAD_FACTOR = 1.5
"""Of the longest start that was measured: what a slower morning may take more."""
SPARE = timedelta(minutes=20)
"""For two ticks that come late, are lost or die, and for autoscaling, which is put back after the endpoint is in
service. It costs ten minutes a day; a lost tick would cost callers their first minutes."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the clock on some days of the week; it belongs to the day on which it starts."""

    days: frozenset[int]
    """Monday is 0."""
    start: int
    """Minutes from midnight, 0 to 1439."""
    end: int
    """Minutes from midnight, 1 to 1440; at most `start`: on the next day."""


@dataclass(frozen=True, slots=True)
class StoppedTime:
    """A time in which an endpoint was stopped by us: neither idle nor unknown."""

    start: datetime
    end: datetime | None = None
    """None while it lasts."""
    was_modified_at: datetime | None = None
    """LastModifiedTime right before the stop; None where that was not recorded."""
    modified_at: datetime | None = None
    """LastModifiedTime once it ran again as before. None where it did not: another configuration, other code, somebody
    else's creation, or not recorded. Then it is a new endpoint."""
    ran: tuple[tuple[str, int], ...] = ()
    """(Instance type, count) of each variant right before the stop; empty where that is not known."""


def stopped_hours(stopped: Iterable[StoppedTime], start: datetime, end: datetime) -> float:
    """Hours between `start` and `end` in which the endpoint was stopped; a time that lasts goes on until `end`."""
    spans = ((max(stop.start, start), min(stop.end or end, end)) for stop in stopped)
    return sum((last - first).total_seconds() / 3600 for first, last in spans if first < last)


@dataclass(frozen=True, slots=True)
class Opening:
    """One time in which the endpoint has to run: from `start` until before `end`, UTC."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Whether the moment lies in it."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class OfficeHours:
    """Office hours as a tag says them."""

    spans: tuple[Span, ...]
    zone: str
    """IANA name, such as ``Europe/Berlin``."""
    text: str = field(compare=False, default="")
    """As its owner wrote it."""

    def opening(self, now: datetime, holidays: frozenset[date] = frozenset()) -> Opening | None:
        """The opening that `now` lies in; None where it is closed."""
        return next((opening for opening in self._openings(now, holidays, AROUND) if now in opening), None)

    def next_opening(self, now: datetime, holidays: frozenset[date] = frozenset()) -> Opening | None:
        """The first opening that starts after `now`; None where none does within 400 days."""
        return next((opening for opening in self._openings(now, holidays, HORIZON) if opening.start > now), None)

    def _openings(self, now: datetime, holidays: frozenset[date], ahead: timedelta) -> Iterator[Opening]:
        """Openings around and after `now`, in order; those that touch are one."""
        zone: tzinfo = UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        first = now.astimezone(zone).date() - AROUND
        open_now: Opening | None = None
        for number in range((AROUND + ahead).days + 2):
            for opening in sorted(self._of_day(first + timedelta(days=number), zone, holidays), key=lambda o: o.start):
                if open_now is not None and opening.start <= open_now.end:
                    open_now = Opening(open_now.start, max(open_now.end, opening.end))
                    continue
                if open_now is not None:
                    yield open_now
                open_now = opening
        if open_now is not None:
            yield open_now

    def _of_day(self, day: date, zone: tzinfo, holidays: frozenset[date]) -> Iterator[Opening]:
        if day in holidays:
            return
        for span in self.spans:
            if day.weekday() in span.days:
                end = span.end if span.end > span.start else span.end + DAY_MINUTES
                yield Opening(min(_readings(day, span.start, zone)), max(_readings(day, end, zone)))


@lru_cache(1024)
def _readings(day: date, minutes: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """Both moments that a time on the clock may mean; they are one on most days."""
    wall = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(minutes=minutes)
    early, late = (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return early, late


def parse_hours(text: str) -> OfficeHours:
    """The hours that a tag's value says; InputError names the part that cannot be read, and the remedy."""
    parts = text.split()
    if len(parts) < 3:
        raise InputError(f"{HOURS_TAG} is {text!r}; {WANTED}")
    *said, zone = parts
    _check_zone(text, zone)
    spans, days, waiting = list[Span](), set[int](), True
    for part in said:
        if part[0].isdigit():
            if not days:
                raise InputError(f"{HOURS_TAG} is {text!r}: {part!r} has no days before it; {WANTED}")
            spans.append(_span(text, part, frozenset(days)))
            waiting = False
        else:
            days, waiting = (days if waiting else set()) | _days(text, part), True
    if waiting:
        raise InputError(f"{HOURS_TAG} is {text!r}: no time follows the last days; {WANTED}")
    return OfficeHours(tuple(spans), zone, text)


def _check_zone(text: str, zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError(f"{HOURS_TAG} is {text!r}: there is no time zone {zone!r} (IANA names); {WANTED}") from None


def _days(text: str, part: str) -> set[int]:
    if part.lower() == "daily":
        return set(range(7))
    first, dash, last = part.lower().partition("-")
    if first not in DAYS or (last or first) not in DAYS or (dash and not last):
        raise InputError(f"{HOURS_TAG} is {text!r}: {part!r} is neither days (mon to sun, daily) nor a time; {WANTED}")
    start, end = DAYS.index(first), DAYS.index(last or first)
    return {day % 7 for day in range(start, end + 1 if end >= start else end + 8)}


def _span(text: str, part: str, days: frozenset[int]) -> Span:
    found = SPAN.fullmatch(part)
    hours = [int(one) for one in found.groups()] if found else [0, 0, 0, 0]
    start, end = 60 * hours[0] + hours[1], 60 * hours[2] + hours[3]
    if found is None or end > DAY_MINUTES or start == end:
        why = "starts when it ends; a whole day is 00:00-24:00" if found and start == end else "is no time HH:MM-HH:MM"
        raise InputError(f"{HOURS_TAG} is {text!r}: {part!r} {why}; {WANTED}")
    return Span(days, start, DAY_MINUTES if end == 0 else end)


@dataclass(frozen=True, slots=True)
class HoursLimits:
    """Bounds of stopping and waking. Defaults are the careful ones."""

    holidays: frozenset[date] = frozenset()
    """Days, in each endpoint's own zone, on which no opening starts."""
    grace: timedelta = timedelta(minutes=30)
    """No stop within this time after the last requests."""
    wakes_a_day: int = 3
    """Wakes of one endpoint in 24 hours."""
    longest_wake: timedelta = timedelta(hours=12)
    """The longest stay of one wake."""
    least_rest: timedelta = timedelta(hours=2)
    """An endpoint is not stopped for less than this, beside the time that its start takes."""
    zone: str = ""
    """IANA name of the time zone in which hours are proposed; empty: that of the change window."""

    def __post_init__(self) -> None:
        if self.grace < timedelta(minutes=10):
            raise InputError(f"stop_grace_minutes must be at least 10, got {self.grace}")
        if not timedelta(minutes=30) <= self.longest_wake <= timedelta(hours=72):
            raise InputError(f"longest_wake_hours must be between 0.5 and 72, got {self.longest_wake}")


def lead_time(starts: Sequence[float]) -> timedelta:
    """How long before an opening the endpoint is created, from the seconds that its own starts took.

    Without a start of its own it is `FIRST_LEAD`; else the longest of the last ten, half as much again, and `SPARE`.
    """
    known = [seconds for seconds in starts[-10:] if seconds > 0]
    if not known:
        return FIRST_LEAD
    return min(max(timedelta(seconds=LEAD_FACTOR * max(known)) + SPARE, LEAST_LEAD), MOST_LEAD)
