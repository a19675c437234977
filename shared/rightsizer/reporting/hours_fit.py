"""Office hours that past requests leave room for: the tag's value, the hours closed, and who would have met the door.

Requests are known by slots of five minutes in UTC, hours are wall time of a zone: each slot is read by the clock of
its own day. The hours are checked by the code that carries them out, so the list of closed doors is what would happen.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from statistics import median
from zoneinfo import ZoneInfo

from rightsizer.domain.office_hours import DAY_MINUTES, DAYS, FIRST_LEAD, HoursLimits, Opening, parse_hours
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import PER_HOUR, SLOT_S, SLOTS, MetricStatistic, MetricWindow

EVIDENCE = (MetricStatistic("Invocations", "Sum"), MetricStatistic("CPUUtilization", "SampleCount"))
"""Signals that tell requests, and that instances ran while none came."""
EVIDENCE_DAYS = 28
"""Days without a request outside of the hours: each weekday was seen four times."""
DEVELOPMENT_DAYS = 14
"""The same in development, where a closed door costs a colleague some minutes."""
KNOWN = 0.95
"""Share of the slots that must be known: a gap may hide requests."""
MARGIN = 30
"""Minutes that the hours open before the earliest request, and close after the latest one, before rounding."""
ROUND = 30
"""Minutes to which the hours are rounded, outwards."""
ALIKE = 120
"""Minutes by which days may begin or end earlier or later and still share a span."""
STRAY_DAYS = 2
"""Days with requests outside of the hours that are listed and not covered, at most: a try at midnight."""
STRAY_SHARE = 0.005
"""Share of all requests that may lie there."""
STRAY_GAIN = 2 * 60
"""Minutes a week that leaving a day out must close more."""
STOPS_AFTER = timedelta(minutes=10)
"""From the end of the hours until the instances are gone: a tick, and the delete; an assumption."""
FIVE_MINUTES = timedelta(seconds=SLOT_S)
SLOT_MINUTES = SLOT_S // 60
WEEK_MINUTES = 7 * DAY_MINUTES


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Requests of an endpoint, and instances against now, by slots of five minutes."""

    start: datetime
    """UTC; a multiple of five minutes."""
    requests: tuple[float | None, ...]
    """None where neither a request nor a running instance was seen: unknown, not silent."""
    running: tuple[float | None, ...]
    """Instances as a share of those of the last known hour; None where not published."""

    def at(self, number: int) -> datetime:
        """When the slot begins."""
        return self.start + number * FIVE_MINUTES


@dataclass(frozen=True, slots=True)
class ClosedDoor:
    """Requests of five minutes that the hours would not have let in."""

    at: datetime
    requests: float


@dataclass(frozen=True, slots=True)
class FittedHours:
    """Office hours for the tag, and what they would have meant in the look-back."""

    text: str
    """The tag's value."""
    days: int
    """Days of the look-back."""
    closed_hours: float
    """Hours of a week in which nothing would run: the start before each opening and the stop after it are taken off."""
    running_share: float
    """Instances in the closed slots, as a share of those of now."""
    requests: float
    closed_doors: tuple[ClosedDoor, ...]
    """Every slot with requests outside of the hours, oldest first; empty: none."""
    unknown_slots: int
    """Slots outside of the hours of which nothing is known."""

    @property
    def closed_share(self) -> float:
        """Share of the time in which nothing would run, 0..1."""
        return self.closed_hours * 60 / WEEK_MINUTES


def request_times(window: MetricWindow) -> RequestTimes | None:
    """The requests in a window of five minutes with the signals `EVIDENCE`; None without a datapoint."""
    size = int((window.end - window.start) / FIVE_MINUTES)
    cut = [series.cut(window.start, size) if (series := window.series.get(s)) else [math.nan] * size for s in EVIDENCE]
    calls, samples = cut
    known = [v for v in samples if v > 0]
    if not known and not any(v == v for v in calls):
        return None
    now = median(known[-PER_HOUR:]) if known else 1.0
    return RequestTimes(
        window.start,
        tuple(v if v == v else 0.0 if s > 0 else None for v, s in zip(calls, samples, strict=True)),
        tuple(s / now if s > 0 else None for s in samples),
    )


def look_back(zone_name: str, days: int, now: datetime) -> tuple[datetime, datetime]:
    """The last whole days by the zone's clock, UTC."""
    zone = zone_of(zone_name)
    last = now.astimezone(zone).date()
    ends = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (last - timedelta(days=days), last))
    start, end = ends
    return start, end


def zone_of(name: str) -> tzinfo:
    """The time zone of an IANA name."""
    return UTC if name == "UTC" else ZoneInfo(name)


def fit_hours(seen: RequestTimes, zone_name: str, days: int) -> FittedHours | Reason:
    """The hours that close most and meet nobody, or nearly nobody; or why there are none.

    `seen` are whole days by the zone's clock, as `look_back` has them.
    """
    if lacking := _lacking(seen, days):
        return lacking
    zone, total = zone_of(zone_name), sum(filter(None, seen.requests))
    if not total:
        return Reason(Code.IDLE, f"no request came in {days} days: it is idle, and office hours would not help")
    masks = _slots_of_days(seen, zone)
    fitted_hours: FittedHours | None = None
    for left_out in _left_out(masks):
        fitted = _best_fit(seen, {d: m for d, m in masks.items() if d not in left_out}, zone_name, days)
        if fitted is None or not _is_tolerable(fitted, zone, total):
            continue
        if fitted_hours is None or fitted.closed_hours * 60 >= fitted_hours.closed_hours * 60 + STRAY_GAIN:
            fitted_hours = fitted
    if fitted_hours is None:
        text = f"in {days} days requests came at all hours of the day and on all days, or nearly so"
        return Reason(Code.NOT_CHEAPER, f"{text}: there is no time to close it")
    return fitted_hours


def _lacking(seen: RequestTimes, days: int) -> Reason | None:
    """Why too little is known."""
    known = [number for number, calls in enumerate(seen.requests) if calls is not None]
    wanted = f"{days} days of it are asked for"
    if not known:
        return Reason(Code.NO_DATAPOINTS, f"CloudWatch shows no requests and no instance; {wanted}")
    since = (len(seen.requests) - known[0]) / SLOTS
    if known[0] > PER_HOUR or len(seen.requests) < (days - 0.05) * SLOTS:
        return Reason(Code.TOO_FEW_DAYS, f"metrics begin {since:.1f} days before the last midnight, and {wanted}")
    share = len(known) / len(seen.requests)
    if share < KNOWN:
        text = f"{100 * share:.0f} % of the five-minute slots of {days} days have metrics, and unknown is not silent"
        return Reason(Code.TOO_MANY_GAPS, f"{text}: it takes {100 * KNOWN:.0f} %")
    return None


def _slots_of_days(seen: RequestTimes, zone: tzinfo) -> dict[date, int]:
    """For each day with requests, by the clock, a bit for each slot of its clock with requests."""
    found: dict[date, int] = {}
    for number, calls in enumerate(seen.requests):
        if calls:
            wall = seen.at(number).astimezone(zone)
            found[wall.date()] = found.get(wall.date(), 0) | 1 << (60 * wall.hour + wall.minute) // SLOT_MINUTES
    return found


def _left_out(masks: Mapping[date, int]) -> Iterator[frozenset[date]]:
    """Sets of days to leave out: none, then the one and the two without which the hours close most."""
    best: frozenset[date] = frozenset()
    yield best
    for _ in range(min(STRAY_DAYS, len(masks) - 1)):
        tried = [best | {day} for day in sorted(masks) if day not in best]
        best = max(tried, key=lambda days: _closed_by({d: m for d, m in masks.items() if d not in days}))
        yield best


def _closed_by(masks: Mapping[date, int]) -> float:
    return max((closed_minutes(spans) for spans in _fits(masks)), default=0)


@dataclass(frozen=True, slots=True)
class WeekSpan:
    """A span of the clock on some days; `start` may lie below 0, and `end` beyond 1440."""

    days: tuple[int, ...]
    start: int
    end: int

    @property
    def is_expressible(self) -> bool:
        """Whether a tag can say it: less than a day, or a day from midnight to midnight."""
        return self.end - self.start < DAY_MINUTES or (self.start, self.end) == (0, DAY_MINUTES)


def _fits(masks: Mapping[date, int]) -> Iterator[tuple[WeekSpan, ...]]:
    """Spans with the day cut in its longest silence, and at midnight."""
    for cut in dict.fromkeys((_quietest_slot(masks.values()), 0)):
        spans = tuple(_grouped(_extremes(masks, cut)))
        if spans and all(span.is_expressible for span in spans):
            yield spans


def _quietest_slot(masks: Iterable[int]) -> int:
    """The middle of the longest run of slots of the clock in which no request came on any day; 0 without one."""
    union = 0
    for mask in masks:
        union |= mask
    busy = [bool(union >> slot & 1) for slot in range(SLOTS)]
    if not any(busy):
        return 0
    first, best, at, run = busy.index(True), 0, 0, 0
    for step in range(1, SLOTS + 1):
        slot = (first + step) % SLOTS
        run = 0 if busy[slot] else run + 1
        if run > best:
            best, at = run, slot
    return (at - best // 2) % SLOTS


def _extremes(masks: Mapping[date, int], cut: int) -> dict[int, tuple[int, int]]:
    """For each weekday with requests, minutes from midnight of its earliest and after its latest, from `cut` on."""
    low = (1 << cut) - 1
    found: dict[int, tuple[int, int]] = {}
    for day in sorted({*masks, *(each - timedelta(days=1) for each in masks)}):
        shifted = masks.get(day, 0) >> cut | (masks.get(day + timedelta(days=1), 0) & low) << (SLOTS - cut)
        if shifted:
            first = (shifted & -shifted).bit_length() - 1 + cut
            last = shifted.bit_length() + cut
            was = found.get(day.weekday(), (first * SLOT_MINUTES, last * SLOT_MINUTES))
            found[day.weekday()] = min(was[0], first * SLOT_MINUTES), max(was[1], last * SLOT_MINUTES)
    return found


def _grouped(extremes: Mapping[int, tuple[int, int]]) -> Iterator[WeekSpan]:
    """Days that begin and end alike share a span, with its margin; rounded outwards."""
    groups: list[tuple[list[int], int, int]] = []
    for day, (first, last) in sorted(extremes.items()):
        for number, (members, start, end) in enumerate(groups):
            if abs(first - start) <= ALIKE and abs(last - end) <= ALIKE:
                groups[number] = [*members, day], min(start, first), max(end, last)
                break
        else:
            groups.append(([day], first, last))
    for members, first, last in groups:
        start = (first - MARGIN) // ROUND * ROUND
        end = -(-(last + MARGIN) // ROUND) * ROUND
        if end - start >= DAY_MINUTES:  # a day that is open all day has no margin
            start, end = max(start, 0), min(end, DAY_MINUTES) if last <= DAY_MINUTES else end
        yield WeekSpan(tuple(members), start, end)


def closed_minutes(spans: Iterable[WeekSpan]) -> float:
    """Minutes of a week that nothing runs: each rest long enough, less the start before it ends and the stop."""
    open_now = sorted(
        (DAY_MINUTES * day + span.start, DAY_MINUTES * day + span.end) for span in spans for day in span.days
    )
    lost = (FIRST_LEAD + STOPS_AFTER) / timedelta(minutes=1)
    least = (FIRST_LEAD + HoursLimits().least_rest) / timedelta(minutes=1)
    closed, until = 0.0, max((end - WEEK_MINUTES for _, end in open_now), default=0)
    for start, end in open_now:
        rest = start - until
        if rest >= least:
            closed += rest - lost
        until = max(until, end)
    return closed


def hours_text(spans: Iterable[WeekSpan], zone_name: str) -> str:
    """The spans as the tag has them, such as ``mon-fri 08:00-19:00 Europe/Berlin``."""
    parts: list[str] = []
    for span in spans:
        start, end, later = span.start, span.end, span.start // DAY_MINUTES
        start -= later * DAY_MINUTES
        end -= later * DAY_MINUTES
        end -= DAY_MINUTES if end > DAY_MINUTES else 0
        parts += [*_day_words((day + later) % 7 for day in span.days), f"{_clock(start)}-{_clock(end)}"]
    return " ".join((*parts, zone_name))


def _day_words(days: Iterable[int]) -> Iterator[str]:
    """``mon-fri``, ``sat``; ``daily`` for all."""
    left = sorted(days)
    if len(left) == len(DAYS):
        yield "daily"
        return
    while left:
        run = [left.pop(0)]
        while left and left[0] == run[-1] + 1:
            run.append(left.pop(0))
        yield DAYS[run[0]] if len(run) == 1 else f"{DAYS[run[0]]}-{DAYS[run[-1]]}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _best_fit(seen: RequestTimes, masks: Mapping[date, int], zone_name: str, days: int) -> FittedHours | None:
    """The fit that closes most; None where none closes anything."""
    fits = [spans for spans in _fits(masks) if closed_minutes(spans) > 0]
    if not fits:
        return None
    spans = max(fits, key=closed_minutes)
    return _as_carried_out(seen, hours_text(spans, zone_name), closed_minutes(spans) / 60, days)


def _as_carried_out(seen: RequestTimes, text: str, closed_hours: float, days: int) -> FittedHours:
    """What the tag would have meant: each slot looked up in the openings of the hours as they are read."""
    openings = list(_openings(text, seen.at(0), seen.at(len(seen.requests))))
    doors, unknown, running = [], 0, []
    at, after = 0, seen.start
    for calls, share in zip(seen.requests, seen.running, strict=True):
        begin, after = after, after + FIVE_MINUTES
        while at < len(openings) and openings[at].end < after:
            at += 1
        if at < len(openings) and openings[at].start <= begin:
            continue
        unknown += calls is None
        if calls:
            doors.append(ClosedDoor(begin, calls))
        if share is not None:
            running.append(share)
    return FittedHours(
        text=text,
        days=days,
        closed_hours=closed_hours,
        running_share=sum(running) / len(running) if running else 1.0,
        requests=sum(filter(None, seen.requests)),
        closed_doors=tuple(doors),
        unknown_slots=unknown,
    )


def _openings(text: str, start: datetime, end: datetime) -> Iterator[Opening]:
    """The openings of the tag that touch the time, in order."""
    hours = parse_hours(text)
    now = hours.opening(start)
    while now is not None or (now := hours.next_opening(start)) is not None:
        if now.start >= end:
            return
        yield now
        start, now = now.end, hours.opening(now.end)


def _is_tolerable(fitted: FittedHours, zone: tzinfo, total: float) -> bool:
    """Whether nobody, or only few callers on few days, would have met a closed door."""
    days = {door.at.astimezone(zone).date() for door in fitted.closed_doors}
    return len(days) <= STRAY_DAYS and sum(door.requests for door in fitted.closed_doors) <= STRAY_SHARE * total
