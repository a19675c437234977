"""A change window is wall time of its zone, and belongs to the day on which it starts."""

from datetime import UTC, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.model.limits import ChangeWindow
from rightsizer.rules.window import is_open, opens

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
