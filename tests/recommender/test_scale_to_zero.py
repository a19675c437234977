"""When silence says that the traffic has stopped, and when it is only the night."""

from collections.abc import Sequence
from datetime import date, timedelta

import pytest

from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.scale_to_zero import find_stopped_traffic, idle_time

HOUR = SLOTS // 24


def day(number: int, requests: Sequence[float | None]) -> DailyUsage:
    none = (None,) * 4
    first = date(2026, 11, 1)
    return DailyUsage(
        first + timedelta(days=number), "t", 1, tuple(requests), (0.0,) * SLOTS, (1.0,) * 24, (), 0, 0, *none
    )


def busy(number: int, per_slot: float = 2.0) -> DailyUsage:
    return day(number, [per_slot] * SLOTS)


def until(number: int, hour: int, per_slot: float = 2.0) -> DailyUsage:
    """A day with requests up to that hour."""
    return day(number, [per_slot] * (hour * HOUR) + [0.0] * (SLOTS - hour * HOUR))


def test_traffic_that_came_day_and_night_and_is_gone_since_the_afternoon_has_stopped() -> None:
    found = find_stopped_traffic([busy(0), busy(1), until(2, 14)], 9.0)
    assert found is not None
    assert (found.hours, found.longest_before_h) == (10.0, 0.0)


@pytest.mark.parametrize(
    "days",
    [
        pytest.param([until(0, 14)], id="one day says nothing of the next night"),
        pytest.param([until(0, 14), until(1, 14)], id="it is silent each evening"),
        pytest.param([busy(0), until(1, 14), until(2, 14)], id="it was silent on one evening of two"),
        pytest.param([busy(0, 0.1), busy(1, 0.1), until(2, 14, 0.1)], id="so few that silence is chance"),
        pytest.param([busy(0), busy(1), until(2, 18)], id="not for long enough"),
        pytest.param([day(0, [2.0] * 144 + [0.0] * 60 + [2.0] * 84), until(1, 14)], id="as long a gap at noon"),
        pytest.param([busy(0), day(1, [2.0] * 168 + [None] * 120)], id="unknown is not silent"),
    ],
)
def test_silence_that_may_end_tomorrow_is_no_stop(days: list[DailyUsage]) -> None:
    assert find_stopped_traffic(days, 9.0) is None


def test_several_silent_days_are_compared_with_whole_days_before_them() -> None:
    week = [busy(n) for n in range(7)]
    silent = [day(n, [0.0] * SLOTS) for n in range(8, 11)]
    assert find_stopped_traffic([*week, until(7, 12), *silent], 72.0) is not None
    sparse = [busy(n, 0.05) for n in range(7)]
    assert find_stopped_traffic([*sparse, until(7, 12, 0.05), *silent], 72.0) is None


def test_the_first_silent_weekend_may_be_the_habit_of_every_week() -> None:
    """Monday to Thursday were busy, then three silent days: Friday to Sunday were never seen before."""
    week = [busy(n) for n in range(1, 5)]
    silent = [day(n, [0.0] * SLOTS) for n in range(5, 8)]
    assert find_stopped_traffic([*week, *silent], 72.0) is None
    assert find_stopped_traffic([*[busy(n) for n in range(-3, 1)], *week, *silent], 72.0) is not None


def test_two_types_of_one_day_count_as_that_day() -> None:
    morning = [2.0] * (SLOTS // 2) + [None] * (SLOTS // 2)
    evening = [None] * (SLOTS // 2) + [2.0] * (SLOTS // 2)
    assert find_stopped_traffic([day(0, morning), day(0, evening), until(1, 14)], 9.0) is not None


@pytest.mark.parametrize(
    ("calls", "cold"),
    [
        pytest.param([10.0, 20.0, 40.0], 30.0, id="a start takes ten minutes: two slots"),
        pytest.param([10.0, 0.0, 40.0], 10.0, id="nobody called in the second slot, and then it ran"),
        pytest.param([None, 20.0, 40.0], 20.0, id="unknown calls may have started it, and the next slot is early"),
        pytest.param([10.0, None, 40.0], 10.0, id="unknown calls are not counted"),
    ],
)
def test_all_requests_of_a_start_meet_a_fleet_that_is_not_there(calls: list[float | None], cold: float) -> None:
    usage = day(0, [0.0] * 12 + calls + [0.0] * (SLOTS - 12 - len(calls)))
    assert idle_time([usage], 15).cold == cold


def test_the_requests_of_a_start_are_counted_across_midnight() -> None:
    first, second = day(0, [0.0] * (SLOTS - 1) + [5.0]), day(1, [7.0, 9.0] + [0.0] * (SLOTS - 2))
    assert idle_time([first, second], 15).cold == 12.0


def test_requests_after_a_pause_shorter_than_the_timeout_meet_a_fleet_that_runs() -> None:
    usage = day(0, [4.0] + [0.0] * 3 + [5.0, 6.0] + [0.0] * (SLOTS - 6))
    assert idle_time([usage], 15).cold == 0.0
