"""Days of usage: which are stored, which are still to read, and hours stopped by office hours."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History
from rightsizer.domain.office_hours import FIRST_LEAD, HOURS_TAG, StoppedTime, parse_hours, stopped_hours
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.usage import PER_HOUR, SLOT_S, SLOTS, DailyUsage, KeptUsage
from rightsizer.errors import InputError

LATE = timedelta(hours=1)
"""Datapoints may come so late: a day is complete this long after its end."""
OURS = timedelta(hours=6)
"""A modification this close to a change of ours is that change."""
STORED = timedelta(days=63) - timedelta(hours=1)
"""Five-minute datapoints are older than this only where CloudWatch is about to forget them."""
FRESH = timedelta(hours=48)
"""After a change of ours the running day is read too: it tells soonest whether users suffer."""
ENDPOINTS, DAYS = 256, 14
"""Endpoints of a page at most, on average, and days of each: about eight megabytes of digests, 500 in memory."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Window of a variant to read, and the known days before."""

    start: datetime
    end: datetime
    first: date
    """First day that is known then."""
    known: tuple[DailyUsage, ...] = ()


def complete_until(now: datetime) -> date:
    """The first day that is not complete yet."""
    return (now - LATE).astimezone(UTC).date()


def known_until(now: datetime) -> datetime:
    """The end of the last hour that is complete: the same for every second of an hour."""
    return (now - LATE).astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def complete_end(last: date, now: datetime) -> datetime:
    """Until when datapoints are expected where `last` is the newest day that was read: hours of a running day too."""
    return known_until(now) if last >= complete_until(now) else _midnight(complete_until(now))


def last_modified(endpoint: Endpoint, history: History) -> datetime:
    """When it was last modified; a creation of ours after stopped hours modified nothing."""
    return _before_stops(endpoint.modified_at, history)


def configured_at(endpoint: Endpoint, history: History) -> datetime:
    """When the configuration that runs was deployed; shadow tests and stopped hours of ours left it as it was."""
    return _configuration_time(endpoint.modified_at, history)


def _before_stops(at: datetime, history: History) -> datetime:
    for night in reversed(history.stopped):
        if night.modified_at == at and night.was_modified_at is not None:
            at = night.was_modified_at
    return at


def _configuration_time(modified_at: datetime, history: History) -> datetime:
    at = _before_stops(modified_at, history)
    for past in reversed(history.endpoint):
        if past.configured_at is not None and abs(past.at - at) < OURS:
            at = _before_stops(past.configured_at, history)
    return at


def plan_reading(
    endpoint: Endpoint, kept: KeptUsage | None, history: History, lookback_days: int, now: datetime
) -> ReadPlan:
    """The part that is not kept. Everything, where the endpoint was modified by others since, or too little is kept.

    No period that is still open is read: a second more of it would be another answer. The complete hours of the
    running day are read of an endpoint that was modified lately, and of no other. `start` is not before `end` where
    nothing is left to read.
    """
    first = complete_until(now) - timedelta(days=lookback_days)
    recent = now - last_modified(endpoint, history) < FRESH
    end = known_until(now) if recent else _midnight(complete_until(now))
    oldest = known_until(now) - STORED
    if (
        kept is None
        or kept.first > first
        or kept.until <= first
        or kept.until > now.date()
        or (not _is_same_setup(kept, endpoint, history) and not _is_own_scaling(endpoint, history))
        or _has_forgotten_days(kept, endpoint, history, first)
    ):
        return ReadPlan(max(_midnight(first), oldest), end, first)
    days = tuple(d for d in kept.days if first <= d.day < kept.until)
    return ReadPlan(_midnight(kept.until), end, kept.first, days)


def usage_to_keep(endpoint: Endpoint, done: ReadPlan, days: Sequence[DailyUsage], now: datetime) -> KeptUsage:
    """Usage to store after `done` was read: complete days only; the first may be partly read."""
    until = complete_until(now)
    variant = endpoint.variants[0].name
    complete = tuple(d for d in days if d.day < until)
    return KeptUsage(endpoint.ref.name, variant, endpoint.modified_at, min(done.first, until), until, complete)


def _is_same_setup(kept: KeptUsage, endpoint: Endpoint, history: History) -> bool:
    """Whether nobody modified it since, but that our office hours stopped it and created it again."""
    return _before_stops(kept.modified_at, history) == last_modified(endpoint, history)


def _is_own_scaling(endpoint: Endpoint, history: History) -> bool:
    """Scaling modifies an endpoint too, but leaves what one request costs as it was."""
    at = last_modified(endpoint, history)
    return bool(endpoint.scaling) or any(abs(p.at - at) < OURS for p in history.endpoint)


def _has_forgotten_days(kept: KeptUsage, endpoint: Endpoint, history: History, first: date) -> bool:
    """Whether days before a shadow test are missing: an evaluation beside it took its deployments for new ones."""
    since = configured_at(endpoint, history)
    oldest = max(first, since.date() + timedelta(days=1))
    tested = since != last_modified(endpoint, history)
    return tested and oldest < kept.until and all(d.day > oldest for d in kept.days)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def page_of(endpoint: str, fleet: int, days: int = DAYS) -> str:
    """Page of an endpoint in a fleet of that size, by name alone; `days` of look-back are kept.

    The number of pages is a power of two, so that it changes seldom; when it does, every endpoint is read in full once.
    """
    pages = 1
    while pages * ENDPOINTS * DAYS < fleet * days:
        pages *= 2
    return f"{pages}/{zlib.crc32(endpoint.encode()) % pages:04}"


MEASURED_WEEKS = 4
"""Whole weeks of stopped times that tell how many hours of a month run."""
ONE_WEEK = timedelta(days=7)
LEAST_HOURS = Decimal(1)
"""Hours of a month that an endpoint always counts as running."""


def mark_stopped(days: Sequence[DailyUsage], stopped: Sequence[StoppedTime]) -> tuple[DailyUsage, ...]:
    """The days with their stopped slots named, and without instances in hours that were stopped as a whole.

    A slot that has a datapoint was not stopped, whatever the times say.
    """
    return tuple(_marked(usage, stopped) for usage in days) if stopped else tuple(days)


def _marked(usage: DailyUsage, stopped: Sequence[StoppedTime]) -> DailyUsage:
    slots = {slot for stop in stopped for slot in _slots_of(stop, usage)}
    away = tuple(s for s in sorted(slots) if usage.busy_s[s] is None and usage.requests[s] is None)
    if not away:
        return usage
    resting = set(away)
    hours = [all(s in resting for s in range(h * PER_HOUR, (h + 1) * PER_HOUR)) for h in range(24)]
    counts = tuple(None if rests else count for rests, count in zip(hours, usage.instances, strict=True))
    return replace(usage, stopped=away, instances=counts)


def _slots_of(stop: StoppedTime, usage: DailyUsage) -> range:
    """Slots of the day that the time touches."""
    begin = datetime.combine(usage.day, time(), UTC)
    first = math.floor((stop.start - begin).total_seconds() / SLOT_S)
    last = SLOTS if stop.end is None else math.ceil((stop.end - begin).total_seconds() / SLOT_S)
    return range(max(first, 0), min(last, SLOTS))


def running_hours(tags: Mapping[str, str], stopped: Sequence[StoppedTime], now: datetime) -> Decimal:
    """Hours of a month in which an endpoint runs: 730 without hours, or where they stopped nothing for a week.

    Measured over the last whole weeks since the first stop, four at most, as `reporting.office_hours` counts them.
    Before the first week is over they are what the tag says, with the time of each start.
    """
    text = tags.get(HOURS_TAG, "")
    if not text or not stopped or (stopped[-1].end or now) <= now - ONE_WEEK:
        return HOURS_PER_MONTH
    weeks = min((now - stopped[0].start) // ONE_WEEK, MEASURED_WEEKS)
    if weeks < 1:
        asleep = _planned_rest(text, now)
    else:
        asleep = stopped_hours(stopped, now - weeks * ONE_WEEK, now) / (weeks * ONE_WEEK.total_seconds() / 3600)
    hours = HOURS_PER_MONTH * Decimal(str(round(1 - asleep, 6)))
    return min(max(hours, LEAST_HOURS), HOURS_PER_MONTH)


def _planned_rest(text: str, now: datetime) -> float:
    """Share of a week in which the tag has it stopped, 0..1."""
    try:
        hours = parse_hours(text)
    except InputError:
        return 0.0
    end, rest = now + ONE_WEEK, timedelta()
    opening = hours.opening(now)
    while now < end:
        if opening is None:
            following = hours.next_opening(now)
            wakes = end if following is None else min(following.start - FIRST_LEAD, end)
            rest += max(wakes - now, timedelta())
            opening = following
        now, opening = (end, None) if opening is None else (opening.end, None)
    return rest / ONE_WEEK
