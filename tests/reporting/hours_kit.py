"""Past requests of an endpoint in few words, for tests of proposed office hours."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.reporting.hours_fit import FIVE_MINUTES, RequestTimes, look_back, zone_of

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
"""A Monday; the clock changed in Europe on 25 October and in New York on 1 November."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def times(
    calls: Callable[[datetime], float | None],
    zone: str = "UTC",
    days: int = 28,
    running: Callable[[datetime], float | None] = lambda _: 1.0,
) -> RequestTimes:
    """Requests of whole days, from the wall time of each slot."""
    start, end = look_back(zone, days, NOW)
    walls = [
        (start + number * FIVE_MINUTES).astimezone(zone_of(zone)) for number in range((end - start) // FIVE_MINUTES)
    ]
    return RequestTimes(start, tuple(calls(wall) for wall in walls), tuple(running(wall) for wall in walls))


def of_words(case: dict[str, Any]) -> RequestTimes:
    """Requests as a labelled case says them: spans with requests, strays, and what is not known."""
    zone = case.get("zone", "UTC")
    spans = [_span(one) for one in case.get("requests", ())]
    strays = {at: float(calls) for at, calls in case.get("strays", {}).items()}
    begins = NOW - timedelta(days=case.get("metrics_days", 400))
    unknown = [_span(one) for one in case.get("unknown", ())]
    night = case.get("instances_at_night", 1.0)

    def calls(wall: datetime) -> float | None:
        if wall < begins or any(_in(wall, one) for one in unknown):
            return None
        stray = strays.get(f"{wall:%Y-%m-%d %H:%M}", 0.0)
        return stray + (case.get("per_slot", 20.0) if any(_in(wall, one) for one in spans) else 0.0)

    def running(wall: datetime) -> float | None:
        if calls(wall) is None:
            return None
        return 1.0 if any(_in(wall, one) for one in spans) else night

    return times(calls, zone, case.get("days", 28), running)


type Words = tuple[frozenset[int], int, int]


def _span(text: str) -> Words:
    """``mon-fri 09:00-17:00``; an end before the start is on the next day."""
    days, _, span = text.partition(" ")
    first, _, last = days.partition("-")
    start, end = ((60 * int(one[:2]) + int(one[3:])) for one in span.split("-"))
    low, high = DAYS.index(first), DAYS.index(last or first)
    return frozenset(range(low, high + 1)), start, end if end > start else end + 1440


def _in(wall: datetime, span: Words) -> bool:
    days, start, end = span
    minute = 60 * wall.hour + wall.minute
    today = wall.weekday() in days and start <= minute < end
    return today or ((wall.weekday() - 1) % 7 in days and start <= minute + 1440 < end)


def total(values: Iterable[float | None]) -> float:
    return sum(value for value in values if value)
