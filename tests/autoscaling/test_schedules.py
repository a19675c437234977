"""Counts of the day or of the week as scheduled actions: as few as there are changes, each in time."""

import calendar
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.autoscaling.scheduled_actions import last_firing
from rightsizer.autoscaling.schedules import (
    MOST_ACTIONS,
    CronError,
    ScheduledCount,
    early_hours,
    parse_cron,
    scheduled_counts,
)
from rightsizer.domain.schedule import DayCounts, days_text, week_of

OFFICE = (1,) * 8 + (3,) * 10 + (1,) * 6
WEEK = (*OFFICE * 5, *(1,) * 48)
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def rows(counts: Sequence[int]) -> list[tuple[int, str, str]]:
    return [(one.count, one.schedule, one.label) for one in scheduled_counts(counts)]


def running(actions: Sequence[ScheduledCount], at: datetime) -> int:
    """The count that was set last, in the week before."""
    fired = [(last_firing({"Schedule": one.schedule}, at - timedelta(days=7), at), one.count) for one in actions]
    return max((when, count) for when, count in fired if when is not None)[1]


def test_a_rise_is_asked_for_a_quarter_of_an_hour_early_and_a_fall_at_its_hour() -> None:
    assert rows(OFFICE) == [(3, "cron(45 7 * * ? *)", "08"), (1, "cron(0 18 * * ? *)", "18")]


def test_days_that_are_alike_share_one_action() -> None:
    assert rows(WEEK) == [(3, "cron(45 7 ? * MON-FRI *)", "mon-fri-08"), (1, "cron(0 18 ? * MON-FRI *)", "mon-fri-18")]
    assert rows(OFFICE * 7) == rows(OFFICE)


def test_mondays_count_is_asked_for_on_sunday() -> None:
    whole = (*(4,) * 120, *(1,) * 48)
    assert rows(whole) == [(1, "cron(0 0 ? * SAT *)", "sat-00"), (4, "cron(45 23 ? * SUN *)", "mon-00")]


def test_days_that_wrap_around_the_week_are_named_in_crons_order() -> None:
    gulf = (*OFFICE * 4, *(1,) * 48, *OFFICE)
    assert [schedule for _, schedule, _ in rows(gulf)] == ["cron(45 7 ? * SUN-THU *)", "cron(0 18 ? * SUN-THU *)"]
    split = (*OFFICE, *(1,) * 24, *OFFICE, *(1,) * 96)
    assert [schedule for _, schedule, _ in rows(split)] == ["cron(45 7 ? * MON,WED *)", "cron(0 18 ? * MON,WED *)"]


def test_three_days_in_a_row_are_a_range_and_a_fall_after_a_rise_is_not_early() -> None:
    three = (*(1,) * 24, *OFFICE * 3, *(1,) * 72)
    assert [schedule for _, schedule, _ in rows(three)] == ["cron(45 7 ? * TUE-THU *)", "cron(0 18 ? * TUE-THU *)"]
    peak = (1,) * 8 + (3,) + (2,) * 9 + (1,) * 6
    assert [(count, schedule) for count, schedule, _ in rows(peak)] == [
        (3, "cron(45 7 * * ? *)"),
        (2, "cron(0 9 * * ? *)"),
        (1, "cron(0 18 * * ? *)"),
    ]


@pytest.mark.parametrize(
    ("days", "month", "wanted"),
    [
        ("15W * ?", 11, {16}),  # a Sunday
        ("1W * ?", 11, {2}),  # a Sunday at the start of the month
        ("2W * ?", 5, {1}),  # a Saturday
        ("31W * ?", 5, {29}),  # a Sunday at the end of the month
        ("31W * ?", 11, set[int]()),  # there is no such day
        ("L-1 * ?", 11, {29}),
        ("30-2 * ?", 11, {30, 1, 2}),
        ("1,15,20-21 * ?", 11, {1, 15, 20, 21}),
        ("? * SUN#1", 11, {1}),
        ("? * 1#2", 11, {8}),
        ("? * MON#5", 11, {30}),
        ("? * 1L", 11, {29}),
        ("? * 2L", 11, {30}),
        ("? * TUE,SAT", 11, {3, 10, 17, 24, 7, 14, 21, 28}),
    ],
)
def test_days_of_the_month_and_of_the_week_as_aws_writes_them(days: str, month: int, wanted: set[int]) -> None:
    """November 2026 begins with a Sunday and ends with a Monday; May begins with a Friday and ends with a Sunday."""
    cron = parse_cron(f"0 6 {days} *")
    last = calendar.monthrange(2026, month)[1]
    assert {day for day in range(1, last + 1) if cron.is_firing_on(date(2026, month, day))} == wanted


@pytest.mark.parametrize(
    ("minutes", "wanted"),
    [
        ("5/20", (5, 25, 45)),
        ("/20", (0, 20, 40)),
        ("*/1", tuple(range(60))),
        ("3,50", (3, 50)),
        ("58-1", (0, 1, 58, 59)),
    ],
)
def test_minutes_by_steps_lists_and_past_the_hour(minutes: str, wanted: tuple[int, ...]) -> None:
    assert parse_cron(f"{minutes} 6 * * ? *").minutes == wanted
    assert parse_cron("0 0/24 * * ? *").hours == (0,)


@pytest.mark.parametrize("odd", ["0 0/25 * * ? *", "0 6 32W * ? *", "0 6 ? * 8L *", "0 6 ? * SUN#2#3 *"])
def test_what_no_calendar_has_is_refused(odd: str) -> None:
    with pytest.raises(CronError, match="is not between"):
        parse_cron(odd)


def test_one_count_needs_no_action() -> None:
    assert scheduled_counts((2,) * 24) == scheduled_counts((2,) * 168) == ()


def test_early_instances_cost_a_quarter_of_an_hour_for_each_that_is_added() -> None:
    assert early_hours(OFFICE) == 0.5
    assert early_hours(WEEK) == 0.5 * 5 / 7
    assert early_hours((2,) * 24) == 0


DAYS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 4)), min_size=1, max_size=6).map(
    lambda runs: [count for hours, count in runs for _ in range(hours)]
)
"""Hours of a day as runs of equal counts; the last one goes on to midnight."""


@st.composite
def weeks(draw: st.DrawFn) -> list[int]:
    """Each day is one of at most three, so that some are alike."""
    kinds = [(hours + 24 * hours[-1:])[:24] for hours in draw(st.lists(DAYS, min_size=1, max_size=3))]
    return [count for _ in range(7) for count in draw(st.sampled_from(kinds))]


def holds(week: list[int], every: int = 1) -> None:
    """Each hour begins with its count and keeps it until the next rise is asked for, and names are used once."""
    actions = scheduled_counts(week)
    assert len({one.label for one in actions}) == len(actions) <= 168 < MOST_ACTIONS
    if actions:
        hours = [MONDAY + timedelta(days=7, hours=hour) for hour in range(0, 168, every)]
        assert [running(actions, at) for at in hours] == week[::every]
        assert [running(actions, at + timedelta(minutes=44)) for at in hours] == week[::every]


@given(weeks())
def test_every_hour_begins_with_its_count_and_no_two_actions_share_a_name(week: list[int]) -> None:
    holds(week)


@settings(max_examples=3)
@given(st.lists(st.integers(1, 4), min_size=168, max_size=168))
def test_a_week_without_any_pattern_gets_an_action_for_each_change(week: list[int]) -> None:
    holds(week, every=5)


def test_days_are_named_as_people_do() -> None:
    names = [days_text(days) for days in ((0, 1, 2, 3, 4), (5, 6), (6, 0, 1), (2,), (0, 2), range(7))]
    assert names == ["Mon-Fri", "Sat-Sun", "Sun-Tue", "Wed", "Mon, Wed", "every day"]


def test_classes_make_a_week_only_where_each_day_is_in_one_of_them() -> None:
    five, two = DayCounts((0, 1, 2, 3, 4), OFFICE), DayCounts((5, 6), (1,) * 24)
    assert week_of((five, two)) == WEEK
    assert week_of((five,)) is None
    assert week_of((five, two, DayCounts((6,), OFFICE))) is None
    assert week_of((five, DayCounts((5, 6), (1, 2)))) is None
