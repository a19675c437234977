"""A change window is wall time of its zone, and belongs to the day on which it starts."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.model.limits import ChangeWindow
from rightsizer.rules.window import LATE, LEAD, busiest, is_open, opens, over_peak

NIGHT = ChangeWindow("Europe/Berlin", frozenset({4}), time(22), time(4))
MOMENTS = st.integers(1_767_225_600, 1_798_761_600).map(lambda at: datetime.fromtimestamp(at, UTC))


def test_without_a_window_it_is_always_open() -> None:
    assert is_open(ChangeWindow(), datetime(2026, 11, 2, 3, tzinfo=UTC))


def test_a_friday_night_reaches_into_saturday() -> None:
    assert is_open(NIGHT, datetime(2026, 11, 7, 2, tzinfo=UTC)), "Saturday 03:00 in Berlin"
    assert not is_open(NIGHT, datetime(2026, 11, 8, 2, tzinfo=UTC)), "Sunday 03:00 in Berlin"


def test_the_zone_counts_and_not_utc() -> None:
    summer = datetime(2026, 7, 3, 20, 30, tzinfo=UTC)
    assert is_open(NIGHT, summer), "22:30 in Berlin's summer"
    assert not is_open(NIGHT, summer - timedelta(hours=1))


@given(MOMENTS)
def test_the_next_opening_is_open_and_not_in_the_past(now: datetime) -> None:
    at = opens(NIGHT, now)
    assert at >= now
    assert is_open(NIGHT, at)


HOUR = timedelta(hours=1)
OFFICE = ChangeWindow("UTC", frozenset(), time(9), time(17))


def at(hour: int, minute: int = 0, day: int = 2) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_the_busiest_hour_is_that_of_all_days_together() -> None:
    quiet = [0.0] * 24
    assert (
        busiest([*quiet[:9], 50.0, *quiet[10:], *quiet[:14], 40.0, *quiet[15:], *quiet[:14], 20.0, *quiet[15:]]) == 14
    )


def test_without_requests_there_is_no_busiest_hour() -> None:
    assert busiest(()) is None
    assert busiest([0.0] * 48) is None
    assert busiest([float("nan")] * 24) is None
    assert busiest([float("nan")] * 3 + [1.0]) == 3


def test_a_test_begins_so_that_the_busiest_hour_is_its_middle() -> None:
    begins = over_peak(ChangeWindow(), 14, 2 * HOUR, at(6))
    assert begins + LEAD + HOUR == at(14, 30)


def test_a_test_that_would_see_the_whole_hour_waits_no_longer() -> None:
    for now in (at(12, 30), at(13), at(13, 30), at(14)):
        assert over_peak(ChangeWindow(), 14, 2 * HOUR, now) == now
    assert over_peak(ChangeWindow(), 14, 2 * HOUR, at(12, 29)) > at(12, 29)
    assert over_peak(ChangeWindow(), 14, 2 * HOUR, at(14, 1)) == at(13, 0, day=3)


def test_a_test_of_one_hour_may_miss_a_part_of_the_busiest_but_no_more() -> None:
    begins = over_peak(ChangeWindow(), 14, HOUR, at(6))
    assert begins == at(13, 30)
    assert over_peak(ChangeWindow(), 14, HOUR, begins + LATE) == begins + LATE
    assert over_peak(ChangeWindow(), 14, HOUR, begins + LATE + timedelta(seconds=1)) == at(13, 30, day=3)


def test_a_busiest_hour_after_midnight_is_met_from_the_evening_before() -> None:
    assert over_peak(ChangeWindow(), 0, 2 * HOUR, at(6)) == at(23)
    assert over_peak(ChangeWindow(), 0, 2 * HOUR, at(23, 20)) == at(23, 20)


def test_a_test_of_a_day_sees_every_hour_and_begins_at_once() -> None:
    for hour in range(24):
        assert over_peak(ChangeWindow(), hour, 24 * HOUR, at(7, 7)) == at(7, 7)


def test_the_window_moves_the_start_as_far_as_the_hour_is_still_seen() -> None:
    assert over_peak(OFFICE, 9, 2 * HOUR, at(6)) == at(9), "half of the hour is missed at most"
    assert over_peak(OFFICE, 18, 4 * HOUR, at(6)) == at(16), "the middle would need 16:00"


def test_a_window_that_never_meets_the_busiest_hour_goes_before_it() -> None:
    assert over_peak(OFFICE, 3, 2 * HOUR, at(6)) == at(9)
    assert over_peak(OFFICE, 3, 2 * HOUR, at(10)) == at(10)


@given(MOMENTS, st.integers(0, 23), st.floats(1, 24))
def test_a_test_that_begins_then_meets_the_busiest_hour_within_a_day(now: datetime, hour: int, hours: float) -> None:
    lasts = timedelta(hours=hours)
    begins = over_peak(ChangeWindow(), hour, lasts, now)
    live, over = begins + LEAD, begins + LEAD + lasts
    peak = begins.replace(hour=hour, minute=0, second=0, microsecond=0)
    days = [peak + timedelta(days=n) for n in (-1, 0, 1, 2)]
    assert now <= begins <= now + timedelta(days=1, hours=1)
    assert any(live <= day + LATE and day + HOUR <= over + timedelta(seconds=1) for day in days)
    assert over_peak(ChangeWindow(), hour, lasts, begins) == begins, "having waited, it begins"


@given(MOMENTS, st.integers(0, 23), st.floats(1, 24))
def test_no_test_begins_outside_the_window_or_in_the_past(now: datetime, hour: int, hours: float) -> None:
    begins = over_peak(NIGHT, hour, timedelta(hours=hours), now)
    assert begins >= now
    assert is_open(NIGHT, begins)
