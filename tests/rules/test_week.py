"""Days that are quiet by habit, and counts by the hour of the week as scheduled actions."""

from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.model.digest import DayDigest
from rightsizer.model.hours import DAY, NAMES, WEEK, on_day, turns, week_of
from rightsizer.model.observation import ScalableTarget
from rightsizer.rules.scaling import by_the_hour, hourly_alone
from rightsizer.rules.schedule.cron import read
from rightsizer.rules.week import last_usual, quiet_weekdays
from tests.rules.test_sleep import busy

MONDAY = date(2026, 11, 2)
SATURDAY, SUNDAY = 5, 6


def weeks(*calls: float) -> list[DayDigest]:
    """Days from Monday on, each with so many requests in five minutes."""
    return [busy(number + 1, per_slot) for number, per_slot in enumerate(calls)]


OFFICE = (10.0,) * 5 + (3.0, 1.0)


def test_a_weekend_that_was_quiet_twice_is_quiet_by_habit() -> None:
    days = weeks(*OFFICE, *OFFICE)
    assert days[0].day == MONDAY
    assert quiet_weekdays(days, 14) == {SATURDAY, SUNDAY}
    assert last_usual(days, 14).day.weekday() == 4


@pytest.mark.parametrize(
    "days",
    [
        pytest.param(weeks(*OFFICE), id="seen once"),
        pytest.param(weeks(*OFFICE, *OFFICE)[1:], id="a day too few"),
        pytest.param(weeks(*OFFICE, *(10.0,) * 7), id="one weekend of two"),
        pytest.param(weeks(*(10.0,) * 14), id="all days alike"),
        pytest.param(weeks(*((10.0,) + (1.0,) * 6) * 2), id="one busy day a week is what stands out"),
        pytest.param(weeks(*(0.0,) * 14), id="no requests"),
    ],
)
def test_otherwise_every_day_counts_alike(days: list[DayDigest]) -> None:
    assert quiet_weekdays(days, 14) == frozenset()
    assert last_usual(days, 14) == days[-1]


def test_two_types_on_one_day_are_one_day() -> None:
    days = weeks(*OFFICE, *OFFICE)
    assert quiet_weekdays([*days, *weeks(*(0.1,) * 14)], 14) == {SATURDAY, SUNDAY}


def test_a_schedule_of_the_day_has_an_action_for_each_change() -> None:
    assert [(t.cron, t.count, t.name) for t in turns((1,) * 8 + (3,) * 12 + (1,) * 4)] == [
        ("cron(0 8 * * ? *)", 3, "08"),
        ("cron(0 20 * * ? *)", 1, "20"),
    ]
    assert turns((2,) * DAY) == ()


def test_a_schedule_of_the_week_names_the_days_on_which_it_differs() -> None:
    usual = (1,) * 8 + (3,) * 12 + (1,) * 4
    found = [(t.cron, t.count, t.name) for t in turns(week_of(usual, (1,) * DAY, {SATURDAY, SUNDAY}))]
    assert found == [
        ("cron(0 8 ? * MON,TUE,WED,THU,FRI *)", 3, "0812345"),
        ("cron(0 20 ? * MON,TUE,WED,THU,FRI *)", 1, "2012345"),
    ]


counts = some.integers(1, 4)


@given(
    some.lists(counts, min_size=DAY, max_size=DAY),
    some.lists(counts, min_size=DAY, max_size=DAY),
    some.sets(some.integers(0, 6)),
)
def test_the_actions_of_any_week_set_every_hour_of_it(usual: list[int], quiet: list[int], days: set[int]) -> None:
    """Played from one firing to the next, as Application Auto Scaling does, with the product's own reader of cron."""
    wanted = week_of(usual, quiet, days)
    assert len(wanted) == WEEK
    assert played(wanted) == list(wanted)
    steps = by_the_hour("chat", "AllTraffic", wanted, "c-1")[1:]
    names = [step.params["ScheduledActionName"] for step in steps]
    assert len(set(names)) == len(names)
    target = ScalableTarget("r", "d", 1, 4, scheduled=tuple({"ScheduledActionName": name} for name in names))
    assert hourly_alone(target) is bool(names)


def played(wanted: Sequence[int]) -> list[int]:
    actions = [(turn, read(turn.cron[5:-1])) for turn in turns(wanted)]
    seen: list[int] = []
    count = wanted[-1]
    for at in range(WEEK):
        day = MONDAY + timedelta(days=at // DAY)
        due = [turn for turn, cron in actions if cron.on(day) and at % DAY in cron.hours]
        assert len(due) <= 1
        count = due[0].count if due else count
        seen.append(count)
    return seen


def test_counts_of_a_weekday() -> None:
    wanted = week_of((2,) * DAY, (1,) * DAY, {SUNDAY})
    assert [set(on_day(wanted, day)) for day in range(len(NAMES))] == [{2}] * 6 + [{1}]
    assert on_day((3,) * DAY, SUNDAY) == (3,) * DAY
