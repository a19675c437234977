"""The first and the last moment of a change window, and the quarter hour at which it opens."""

from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from rightsizer.changes.start_limits import STEP, is_open, next_open, next_test_start
from rightsizer.domain.demand import Peak
from rightsizer.domain.policy import TICK, ChangeWindow

HOUR = timedelta(hours=1)
OFFICE = ChangeWindow("UTC", frozenset(), time(9), time(17))
NIGHT = ChangeWindow("UTC", frozenset({0}), time(22), time(4))
"""Of Monday, 2 November 2026, to Tuesday."""


def at(hour: int, minute: int = 0, day: int = 2, second: int = 0, microsecond: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, microsecond, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "now", "opened"),
    [
        (OFFICE, at(8, 59), False),
        (OFFICE, at(9), True),
        (OFFICE, at(16, 59), True),
        (OFFICE, at(17), False),
        (NIGHT, at(21, 59), False),
        (NIGHT, at(22), True),
        (NIGHT, at(3, 59, day=3), True),
        (NIGHT, at(4, 0, day=3), False),
        (NIGHT, at(22, 0, day=3), False),
        (NIGHT, at(3, 59, day=2), False),
    ],
)
def test_a_window_is_open_from_its_start_until_right_before_its_end(
    window: ChangeWindow, now: datetime, opened: bool
) -> None:
    assert is_open(window, now) is opened


def test_a_sunday_night_reaches_into_monday() -> None:
    sunday = ChangeWindow("UTC", frozenset({6}), time(22), time(4))
    assert is_open(sunday, at(3))
    assert not is_open(sunday, at(3, day=3))


def test_a_window_of_a_whole_day_is_open_on_its_days_alone() -> None:
    mondays = ChangeWindow("UTC", frozenset({0}), time(9), time(9))
    assert is_open(mondays, at(3))
    assert not is_open(mondays, at(3, day=3))
    assert next_open(mondays, at(12, day=3)) == at(0, day=9)


def test_a_closed_window_opens_at_the_next_full_quarter_of_an_hour() -> None:
    assert next_open(OFFICE, at(8, 44, second=7, microsecond=9)) == at(9)
    quarter = ChangeWindow("UTC", frozenset(), time(9, 15), time(17))
    assert next_open(quarter, at(9, 14, second=59)) == at(9, 15)
    assert next_open(quarter, at(17, 31)) == at(9, 15, day=3)
    assert next_open(OFFICE, at(9, 7, second=3)) == at(9, 7, second=3), "it is open now"


@pytest.mark.parametrize(
    ("start", "end", "opens"),
    [
        (time(9, 5), time(9, 15), at(9, 5)),
        (time(9, 2), time(9, 12), at(9, 5)),
        (time(23, 58), time(0, 8), at(0, day=3)),
    ],
)
def test_a_window_shorter_than_a_quarter_of_an_hour_is_met(start: time, end: time, opens: datetime) -> None:
    short = ChangeWindow("UTC", frozenset(), start, end)
    assert next_open(short, at(8, 31)) == opens
    assert is_open(short, opens + TICK - timedelta(seconds=1)), "the tick that begins it comes up to five minutes later"


def test_whoever_asks_in_another_zone_gets_the_same_answer_and_none_in_the_past() -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    short = ChangeWindow("UTC", frozenset(), time(4), time(4, 30))
    now = at(4, 37)
    assert next_open(short, now.astimezone(india)) == next_open(short, now) == at(4, day=3)
    late = ChangeWindow("UTC", frozenset(), time(4, 59), time(4, 31))
    assert next_open(late, now.astimezone(india)) == at(5)


def test_the_last_moment_at_which_a_test_may_begin_counts() -> None:
    nine = Peak(9, (0, 1, 2, 3, 4, 5, 6))
    early = ChangeWindow("UTC", frozenset(), time(8, 45), time(17))
    assert next_test_start(early, nine, HOUR, at(9), STEP) == at(9)
    assert next_test_start(early, nine, HOUR, at(9, second=1), STEP) == at(8, 45, day=3)
    assert next_test_start(early, nine, HOUR, at(8, 45), timedelta(0)) == at(8, 45)


def test_a_usual_day_within_three_days_is_waited_for_and_a_later_one_is_not() -> None:
    """Monday's hour is over: the first is Tuesday's at 13:00, and Friday's is three days after it."""
    always, two = ChangeWindow(), timedelta(hours=2)
    assert next_test_start(always, Peak(14, (4,)), two, at(18)) == at(13, day=6)
    assert next_test_start(always, Peak(14, (5,)), two, at(18)) == at(13, day=3), "Saturday is four days later"


def test_the_days_are_those_of_utc_to_the_microsecond() -> None:
    peak = Peak(14, (0, 1, 2, 3, 4, 5, 6))
    now = at(6, second=1, microsecond=5)
    assert next_test_start(ChangeWindow(), peak, timedelta(hours=2), now) == at(13)
    india = timezone(timedelta(hours=5, minutes=30))
    assert next_test_start(ChangeWindow(), peak, timedelta(hours=2), now.astimezone(india)) == at(13)
