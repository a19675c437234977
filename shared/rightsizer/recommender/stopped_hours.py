"""Hours in which office hours had an endpoint stopped: neither idle nor unknown."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time

from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.usage import PER_HOUR, SLOT_S, SLOTS, DailyUsage


def mark_stopped(days: Sequence[DailyUsage], stopped: Sequence[StoppedTime]) -> tuple[DailyUsage, ...]:
    """The days with their stopped slots named, and without instances in hours that were stopped as a whole.

    A slot that has a datapoint was not stopped, whatever the times say.
    """
    return tuple(_marked(usage, stopped) for usage in days) if stopped else tuple(days)


def _marked(usage: DailyUsage, stopped: Sequence[StoppedTime]) -> DailyUsage:
    slots = {slot for each in stopped for slot in _slots_of(each, usage)}
    away = tuple(s for s in sorted(slots) if usage.busy_s[s] is None and usage.requests[s] is None)
    if not away:
        return usage
    resting = set(away)
    hours = [all(s in resting for s in range(h * PER_HOUR, (h + 1) * PER_HOUR)) for h in range(24)]
    counts = tuple(None if rests else count for rests, count in zip(hours, usage.instances, strict=True))
    return replace(usage, stopped=away, instances=counts)


def _slots_of(each: StoppedTime, usage: DailyUsage) -> range:
    """Slots of the day that the time touches."""
    begin = datetime.combine(usage.day, time(), UTC)
    first = math.floor((each.start - begin).total_seconds() / SLOT_S)
    last = SLOTS if each.end is None else math.ceil((each.end - begin).total_seconds() / SLOT_S)
    return range(max(first, 0), min(last, SLOTS))
