"""When a scheduled action fired last, and what bounds are due because of it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.autoscaling.scheduled_actions import is_over, last_firing, steps_due_now, unreadable_actions
from rightsizer.autoscaling.schedules import CronError
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.plan import Step, StepKind
from sandbox.schedule import next_fire

MONDAY = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
WHO = {"ResourceId": "endpoint/chat/variant/v", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}


def action(schedule: str, low: int | None = None, high: int | None = None, **known: Any) -> dict[str, Any]:
    bounds = {k: v for k, v in {"MinCapacity": low, "MaxCapacity": high}.items() if v is not None}
    name = known.pop("name", "a")
    return {"ScheduledActionName": name, "Schedule": schedule, "ScalableTargetAction": bounds, **WHO, **known}


@pytest.mark.parametrize(
    ("schedule", "fired"),
    [
        ("cron(10 9 ? * MON-FRI *)", "2026-10-30T09:10"),
        ("cron(0 22 * * ? *)", "2026-11-01T22:00"),
        ("cron(0/15 8-17 ? * 2-6 *)", "2026-11-02T09:00"),
        ("cron(0 6 L * ? *)", "2026-10-31T06:00"),
        ("cron(0 6 L-3 * ? *)", "2026-10-28T06:00"),
        ("cron(0 6 LW * ? *)", "2026-10-30T06:00"),
        ("cron(0 6 31W * ? *)", "2026-10-30T06:00"),
        ("cron(0 6 1W 11 ? *)", "2026-11-02T06:00"),
        ("cron(0 6 1W 8 ? *)", "2026-08-03T06:00"),
        ("cron(0 6 ? * 6L *)", "2026-10-30T06:00"),
        ("cron(0 6 ? * FRIL *)", "2026-10-30T06:00"),
        ("cron(0 6 ? * L *)", "2026-10-31T06:00"),
        ("cron(0 6 ? * 3#2 *)", "2026-10-13T06:00"),
        ("cron(0 6 ? * SAT-MON *)", "2026-11-02T06:00"),
        ("cron(0 22-2 ? * * *)", "2026-11-02T02:00"),
        ("cron(0 6 1 JAN,JUL ? 2024-2026)", "2026-07-01T06:00"),
        ("cron(0 6 29 FEB ? *)", "2024-02-29T06:00"),
        ("at(2026-11-02T08:59:00)", "2026-11-02T08:59"),
        ("at(2026-11-02T09:01:00)", None),
        ("cron(0 6 * * ? 2020)", None),
    ],
)
def test_the_expressions_of_aws_are_read(schedule: str, fired: str | None) -> None:
    wanted = None if fired is None else datetime.fromisoformat(fired).replace(tzinfo=UTC)
    assert last_firing(action(schedule), MONDAY - timedelta(days=1500), MONDAY) == wanted


@pytest.mark.parametrize(
    "schedule",
    [
        "cron(0 6 * * ?)",
        "cron(61 6 * * ? *)",
        "cron(0 6 1 * MON *)",
        "cron(0 6 ? * 8 *)",
        "cron(0 6 ? * MON#6 *)",
        "cron(a 6 * * ? *)",
        "cron(0 6 * * ? *",
        "rate(0 hours)",
        "rate(5 weeks)",
        "rate(5 hours)",  # nobody knows since when
        "at(tomorrow)",
        "every day",
        "",
    ],
)
def test_what_is_not_understood_is_a_reason_and_never_a_guess(schedule: str) -> None:
    with pytest.raises(CronError):
        last_firing(action(schedule), MONDAY - timedelta(days=9), MONDAY)
    (reason,) = unreadable_actions([ScalableTarget(**_who(), minimum=1, maximum=2, scheduled=(action(schedule),))])
    assert "autoscaling is away" in reason.sentence


def test_an_unknown_time_zone_is_not_understood() -> None:
    with pytest.raises(CronError, match="Mars/Olympus"):
        last_firing(action("cron(0 6 * * ? *)", Timezone="Mars/Olympus"), MONDAY, MONDAY)


def test_a_suspended_schedule_needs_no_understanding() -> None:
    odd = ScalableTarget(
        **_who(), minimum=1, maximum=2, scheduled=(action("?"),), suspended={"ScheduledScalingSuspended": True}
    )
    assert unreadable_actions([odd]) == ()


@given(
    minute=st.sampled_from(["0", "30", "0/20", "*/15", "5,50"]),
    hour=st.sampled_from(["*", "9", "22", "8-17", "0/6"]),
    days=st.sampled_from([("*", "?"), ("?", "MON-FRI"), ("?", "1"), ("1,15", "?"), ("?", "SAT,SUN"), ("31", "?")]),
    month=st.sampled_from(["*", "11", "FEB", "1-6"]),
    hours=st.integers(0, 2000),
    ahead=st.integers(0, 500_000),
    zone=st.sampled_from(["UTC", "Asia/Kolkata", "Asia/Tokyo"]),
)
def test_the_last_firing_is_the_last_of_all_firings_one_after_the_other(
    minute: str, hour: str, days: tuple[str, str], month: str, hours: int, ahead: int, zone: str
) -> None:
    until = MONDAY + timedelta(minutes=ahead)
    since = until - timedelta(hours=hours)
    schedule = f"cron({minute} {hour} {days[0]} {month} {days[1]} *)"
    at, expected = since.astimezone(ZoneInfo(zone)), None
    while (found := next_fire(schedule, since, at)) is not None and found <= until:
        at = expected = found
    assert last_firing(action(schedule, Timezone=zone), since, until) == expected


@given(st.integers(0, 20_000), st.integers(1, 90), st.booleans())
def test_a_rate_counts_from_its_start_or_its_creation(minutes: int, step: int, started: bool) -> None:
    until = MONDAY + timedelta(minutes=minutes)
    known: dict[str, Any] = {"StartTime" if started else "CreationTime": MONDAY}
    found = last_firing(action(f"rate({step} minutes)", **known), MONDAY - timedelta(days=1), until)
    if minutes < step and not started:
        assert found is None
    else:
        assert isinstance(found, datetime)
        assert timedelta(0) <= until - found < timedelta(minutes=step)
        assert (found - MONDAY) % timedelta(minutes=step) == timedelta(0)


def test_start_and_end_bound_the_firings() -> None:
    daily = "cron(0 6 * * ? *)"
    ended = action(daily, EndTime="2026-10-30T00:00:00+00:00")
    assert last_firing(ended, MONDAY - timedelta(days=9), MONDAY) == datetime(2026, 10, 29, 6, tzinfo=UTC)
    later = action(daily, StartTime=datetime(2026, 11, 2, 7, tzinfo=UTC))
    assert last_firing(later, MONDAY - timedelta(days=9), MONDAY) is None


def test_a_wall_time_that_the_clocks_skip_or_repeat_fires_once() -> None:
    berlin = action("cron(30 2 * * ? *)", Timezone="Europe/Berlin")
    spring = last_firing(berlin, datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 29, 12, tzinfo=UTC))
    autumn = last_firing(berlin, datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert isinstance(spring, datetime)
    assert isinstance(autumn, datetime)
    assert spring.astimezone(UTC) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert autumn.astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_what_is_over_is_not_put_again() -> None:
    assert is_over(action("at(2026-11-02T09:30:00)", Timezone="Europe/Berlin"), MONDAY)
    assert not is_over(action("at(2026-11-02T09:30:00)"), MONDAY)
    assert is_over(action("rate(1 hour)", EndTime=MONDAY), MONDAY)
    assert not is_over(action("cron(0 6 * * ? *)"), MONDAY)


def _who() -> dict[str, Any]:
    return {"resource_id": WHO["ResourceId"], "dimension": WHO["ScalableDimension"]}


def steps(*actions: dict[str, Any], low: int = 1, high: int = 4) -> tuple[Step, ...]:
    register = Step(StepKind.REGISTER_TARGET, WHO["ResourceId"], {**WHO, "MinCapacity": low, "MaxCapacity": high})
    return (register, *(Step(StepKind.PUT_SCHEDULED, WHO["ResourceId"], a) for a in actions))


def due(*actions: dict[str, Any], hours: float = 24) -> tuple[int, int]:
    made = steps_due_now(steps(*actions), (), MONDAY - timedelta(hours=hours), MONDAY, all_actions=False)
    return made.steps[0].params["MinCapacity"], made.steps[0].params["MaxCapacity"]


def test_the_last_action_wins_and_each_sets_only_what_it_names() -> None:
    evening = action("cron(0 19 * * ? *)", 1, 3, name="evening")
    morning = action("cron(0 7 * * ? *)", 4, 9, name="morning")
    more = action("at(2026-11-02T08:00:00)", None, 12, name="more")
    assert due(evening, morning, more) == (4, 12)
    assert due(more, morning, evening) == (4, 12), "by time, not by order"
    assert due(evening, morning, hours=1) == (1, 4), "none of them was due"


def test_two_actions_at_one_moment_leave_the_larger_fleet() -> None:
    small, large = action("cron(0 7 * * ? *)", 1, 2, name="x"), action("cron(0 7 * * ? *)", 3, 6, name="y")
    assert due(small, large) == due(large, small) == (3, 6)


def test_a_minimum_above_the_maximum_raises_it() -> None:
    assert due(action("cron(0 7 * * ? *)", 9)) == (9, 9)


def test_actions_that_stayed_registered_count_on_the_way_back_alone() -> None:
    snapshot = (ScalableTarget(**_who(), minimum=1, maximum=4, scheduled=(action("cron(0 7 * * ? *)", 4, 9),)),)
    since = MONDAY - timedelta(days=1)
    back = steps_due_now(steps(), snapshot, since, MONDAY, all_actions=True)
    forward = steps_due_now(steps(), snapshot, since, MONDAY, all_actions=False)
    assert back.steps[0].params["MinCapacity"] == 4
    assert "was due on Mon 2 Nov 2026, 07:00 UTC" in next(iter(back.said.values()))
    assert (forward.steps, dict(forward.said)) == (steps(), {})


bounds = st.tuples(st.integers(0, 5), st.integers(5, 9))
actions = st.lists(
    st.builds(
        lambda minute, hour, pair, n: action(f"cron({minute} {hour} * * ? *)", *pair, name=f"a{n}"),
        st.integers(0, 59),
        st.integers(0, 23),
        bounds,
        st.integers(0, 99),
    ),
    max_size=4,
    unique_by=lambda a: a["ScheduledActionName"],
)


@given(actions, st.integers(0, 100), st.integers(0, 3000), st.integers(0, 3000))
def test_catching_up_in_two_looks_is_catching_up_in_one(
    rows: list[dict[str, Any]], gap: int, first: int, second: int
) -> None:
    since = MONDAY - timedelta(minutes=gap)
    middle, end = MONDAY + timedelta(minutes=first), MONDAY + timedelta(minutes=first + second)
    at_once = steps_due_now(steps(*rows), (), since, end, all_actions=False)
    half = steps_due_now(steps(*rows), (), since, middle, all_actions=False)
    whole = steps_due_now(half.steps, (), middle, end, all_actions=False)
    assert at_once.steps == whole.steps
    assert at_once.steps[0].params["MinCapacity"] <= at_once.steps[0].params["MaxCapacity"]
