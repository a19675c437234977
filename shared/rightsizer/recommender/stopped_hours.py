"""Hours in which office hours had an endpoint stopped: neither idle nor unknown."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from rightsizer.domain.office_hours import FIRST_LEAD, HOURS_TAG, StoppedTime, parse_hours, stopped_hours
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.usage import PER_HOUR, SLOT_S, SLOTS, DailyUsage
from rightsizer.errors import InputError

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
