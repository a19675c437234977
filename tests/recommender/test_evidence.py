"""When most requests come: by the median over the days, and on which weekdays."""

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.evidence import peak_of

MONDAY = date(2026, 11, 2)
DAILY = (0, 1, 2, 3, 4, 5, 6)


def day(number: int, hours: dict[int, float], other: float = 10.0) -> DailyUsage:
    """Requests by hour; None of anything else is known."""
    requests = tuple(hours.get(slot * 24 // SLOTS, other) / 12 for slot in range(SLOTS))
    unknown: tuple[None, ...] = (None,) * SLOTS
    no_spreads = (None, None, None, None)
    when = MONDAY + timedelta(days=number)
    return DailyUsage(when, "ml.g5.xlarge", 1, requests, unknown, (1.0,) * 24, (), 0.0, 0.0, *no_spreads)


def test_it_is_the_hour_that_is_busiest_on_most_days() -> None:
    days = [day(n, {14: 500.0}) for n in range(13)] + [day(13, {14: 500.0, 3: 10_000.0})]
    found = peak_of(days)
    assert found is not None
    assert (found.hour, found.weekdays) == (14, DAILY)


def test_where_few_requests_come_it_is_the_hour_with_most_of_them() -> None:
    found = peak_of([day(0, {9: 1.0}, 0.0), day(1, {20: 1.0}, 0.0), day(2, {20: 1.0}, 0.0), day(3, {}, 0.0)])
    assert found is not None
    assert found.hour == 20


def test_a_quiet_weekend_is_not_of_the_peak() -> None:
    found = peak_of([day(n, {14: 500.0 if n % 7 < 5 else 20.0}) for n in range(14)])
    assert found is not None
    assert found.weekdays == (0, 1, 2, 3, 4)


def test_a_weekday_that_was_not_seen_counts_as_one_like_the_others() -> None:
    found = peak_of([day(0, {14: 500.0}), day(1, {14: 500.0})])
    assert found is not None
    assert found.weekdays == DAILY


def test_no_hour_stands_out_of_a_flat_day_or_of_silence() -> None:
    assert peak_of([]) is None
    assert peak_of([day(0, {}, 0.0)]) is None
    assert peak_of([day(n, {8: 11.0}) for n in range(7)]) is None


def test_what_is_not_known_counts_on_no_day() -> None:
    days = [day(n, {14: 500.0}) for n in range(15)]
    gaps = [replace(d, requests=(*d.requests[:168], *(None,) * 12, *d.requests[180:])) for d in days[:8]]
    found = peak_of([*gaps, *days[8:]])
    assert found is not None
    assert (found.hour, found.weekdays) == (14, DAILY)


def test_two_digests_of_a_day_are_one_day() -> None:
    halves = [day(0, {14: 300.0}, 0.0), day(0, {15: 200.0}, 0.0), day(1, {15: 400.0}, 0.0)]
    found = peak_of(halves)
    assert found is not None
    assert found.hour == 15


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=24, max_size=24), max_size=10))
def test_it_is_always_an_hour_with_requests_and_some_weekday(days: list[list[float]]) -> None:
    found = peak_of([day(n, dict(enumerate(hours))) for n, hours in enumerate(days)])
    if found is not None:
        assert sum(hours[found.hour] for hours in days) > 0
        assert found.weekdays
