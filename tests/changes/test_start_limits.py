"""A change window is wall time of its zone, and belongs to the day on which it starts."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.start_limits import LATE, LEAD, STEP, is_open, next_open, next_test_start
from rightsizer.domain.demand import Peak
from rightsizer.domain.policy import ChangeWindow

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
    at = next_open(NIGHT, now)
    assert at >= now
    assert is_open(NIGHT, at)


HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
OFFICE = ChangeWindow("UTC", frozenset(), time(9), time(17))
DAILY = (0, 1, 2, 3, 4, 5, 6)
WORKDAYS = (0, 1, 2, 3, 4)
HOURS = st.integers(0, 23)
WINDOWS = st.builds(
    ChangeWindow,
    st.sampled_from(("UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York")),
    st.sampled_from((frozenset(), frozenset({0, 1, 2, 3, 4}), frozenset({5}))),
    HOURS.map(time),
    HOURS.map(time),
)


def at(hour: int, minute: int = 0, day: int = 2) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def begins(hour: int, lasts: timedelta, now: datetime, window: ChangeWindow | None = None) -> datetime:
    return next_test_start(window or ChangeWindow(), Peak(hour, DAILY), lasts, now)


def test_a_test_begins_so_that_the_busiest_hour_is_its_middle() -> None:
    assert begins(14, 2 * HOUR, at(6)) + LEAD + HOUR == at(14, 30)


def test_a_test_that_would_see_the_whole_hour_waits_no_longer() -> None:
    for now in (at(12, 30), at(13), at(13, 30), at(13, 45)):
        assert begins(14, 2 * HOUR, now) == now
    assert begins(14, 2 * HOUR, at(12, 29)) > at(12, 29)
    assert begins(14, 2 * HOUR, at(13, 46)) == at(13, 0, day=3)


def test_a_test_of_one_hour_may_miss_a_part_of_the_busiest_but_no_more() -> None:
    first = begins(14, HOUR, at(6))
    assert first == at(13, 30)
    assert begins(14, HOUR, first + LATE) == first + LATE
    assert begins(14, HOUR, first + LATE + timedelta(seconds=1)) == at(13, 30, day=3)


def test_whoever_waited_may_come_a_little_late() -> None:
    early = ChangeWindow("UTC", frozenset(), time(8, 45), time(17))
    nine = Peak(9, DAILY)
    assert next_test_start(early, nine, HOUR, at(6)) == at(8, 45), "the last time, and not a second later"
    assert next_test_start(early, nine, HOUR, at(8, 47)) == at(8, 45, day=3)
    assert next_test_start(early, nine, HOUR, at(8, 47), STEP) == at(8, 47)
    assert next_test_start(early, nine, HOUR, at(9, 1), STEP) == at(8, 45, day=3)


def test_a_busiest_hour_after_midnight_is_met_from_the_evening_before() -> None:
    assert begins(0, 2 * HOUR, at(6)) == at(23)
    assert begins(0, 2 * HOUR, at(23, 20)) == at(23, 20)


def test_a_test_of_a_day_sees_every_hour_and_begins_at_once() -> None:
    for hour in range(24):
        assert begins(hour, 24 * HOUR, at(7, 7)) == at(7, 7)


def test_the_window_moves_the_start_as_far_as_the_hour_is_still_seen() -> None:
    assert begins(10, 2 * HOUR, at(6), OFFICE) == at(9), "which is the middle"
    assert begins(9, 2 * HOUR, at(6), OFFICE) == at(9), "most of it is missed, but no other time is allowed"
    assert begins(18, 4 * HOUR, at(6), OFFICE) == at(16), "the middle would need 16:00"


def test_a_window_that_never_meets_the_busiest_hour_goes_before_it() -> None:
    assert begins(3, 2 * HOUR, at(6), OFFICE) == at(9)
    assert begins(3, 2 * HOUR, at(10), OFFICE) == at(10)


def test_a_quiet_weekend_is_passed_over() -> None:
    friday = at(18, day=6)
    assert next_test_start(ChangeWindow(), Peak(14, WORKDAYS), 2 * HOUR, friday) == at(13, day=9), "Monday"
    assert next_test_start(ChangeWindow(), Peak(14, WORKDAYS), 2 * HOUR, at(13, day=7)) == at(13, day=9)
    assert next_test_start(ChangeWindow(), Peak(14, DAILY), 2 * HOUR, friday) == at(13, day=7)


def test_a_day_more_than_three_later_is_not_waited_for() -> None:
    assert next_test_start(ChangeWindow(), Peak(14, (3,)), 2 * HOUR, at(18, day=5)) == at(13, day=6), (
        "Friday, not Thursday"
    )


@given(MOMENTS, HOURS, st.integers(60, 23 * 60))
def test_a_test_that_begins_then_meets_the_busiest_hour_within_a_day(now: datetime, hour: int, length: int) -> None:
    lasts = length * MINUTE
    first = begins(hour, lasts, now)
    live, over = first + LEAD, first + LEAD + lasts
    peak = first.replace(hour=hour, minute=0, second=0, microsecond=0)
    days = [peak + timedelta(days=n) for n in (-1, 0, 1, 2)]
    assert now <= first <= now + timedelta(days=1, hours=1)
    assert any(live <= day + LATE and day + HOUR <= over + timedelta(seconds=1) for day in days)


@given(WINDOWS, MOMENTS, HOURS, st.floats(1, 24), st.floats(0, 5), st.sampled_from((DAILY, WORKDAYS, (2,))))
def test_who_waits_until_then_begins_then_or_a_few_minutes_later(
    window: ChangeWindow, now: datetime, hour: int, hours: float, late: float, weekdays: tuple[int, ...]
) -> None:
    peak, lasts = Peak(hour, weekdays), timedelta(hours=hours)
    for _ in range(9):
        first = next_test_start(window, peak, lasts, now, STEP)
        assert first >= now
        assert is_open(window, first) or first - now > timedelta(days=7)
        now = first + late * MINUTE
        if next_test_start(window, peak, lasts, now, STEP) == now:
            break
    else:
        raise AssertionError(f"{window} never lets it begin at {hour}")
