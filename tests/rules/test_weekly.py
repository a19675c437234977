"""A fleet that may have fewer instances on days that are quiet by habit."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from rightsizer.flows.judge import judge_digests
from rightsizer.model.digest import DayDigest, UsageDigest
from rightsizer.model.history import History, PastChange
from rightsizer.model.hours import DAY, WEEK, on_day
from rightsizer.model.option import Option, OptionKind
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code
from rightsizer.model.recommendation import Gate, Recommendation
from tests.rules import kit
from tests.rules.test_failed_fleets import GOAL, POLICIES, POLICY, TYPE, day

FRIDAY, SATURDAY, SUNDAY = 4, 5, 6
FROM = 5
"""The first of the fortnight that is looked back on; day 0 is a Sunday."""


def course(
    instances: float = 40.0, quiet: float = 0.25, since: int = FROM, weekend: float | None = None
) -> list[DayDigest]:
    """The fortnight; at the weekend the load is `quiet` of the usual one. Days from `since` have those instances."""
    return fortnight(FROM, instances, quiet, since, weekend)


def fortnight(first: int, instances: float, quiet: float, since: int, weekend: float | None = None) -> list[DayDigest]:
    found = []
    for number in range(first, first + 14):
        one = day(number, instances if number >= since else 40.0)
        if one.day.weekday() >= SATURDAY:
            less = (weekend or instances) if number >= since else 40.0
            one = replace(
                one,
                requests=tuple(quiet * (n or 0.0) for n in one.requests),
                busy_s=tuple(quiet * (s or 0.0) for s in one.busy_s),
                latency=tuple((index, quiet * weight) for index, weight in one.latency),
                latency_total_s=quiet * one.latency_total_s,
                instances=(less,) * DAY,
            )
        found.append(one)
    return found


def judged(
    days: Sequence[DayDigest],
    count: int = 40,
    policy: Policy = POLICY,
    past: Sequence[PastChange] = (),
    scaled: bool = False,
    now: datetime = kit.NOW,
) -> Recommendation:
    endpoint = kit.endpoint(count=count, p95_s=GOAL.p95_s)
    if scaled:
        ours = ({"ScheduledActionName": "rightsizer-c-1-0812345"},)
        endpoint = replace(endpoint, scaling=(replace(POLICIES, minimum=1, maximum=40, policies=(), scheduled=ours),))
    prices = kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE))
    usage = UsageDigest("chat", "AllTraffic", tuple(days))
    return judge_digests(endpoint, usage, prices, kit.catalogue(), {}, History(tuple(past)), policy, now)


def chosen(found: Recommendation) -> Option:
    assert found.chosen is not None, found.reason.sentence
    return found.chosen


def test_a_weekend_that_is_quiet_gets_fewer_instances_than_the_working_days() -> None:
    option = chosen(judged(course()))
    counts = option.target.hourly_counts or ()
    assert (option.kind, len(counts)) == (OptionKind.SCHEDULE, WEEK)
    assert max(on_day(counts, SUNDAY)) < min(on_day(counts, FRIDAY))
    assert option.target.instance_count == max(counts)
    assert option.mean_instances == pytest.approx(sum(counts) / WEEK, abs=1e-3)
    everyday = chosen(judged(course(quiet=0.8)))
    assert len(everyday.target.hourly_counts or (0,) * DAY) == DAY
    assert option.usd_per_month < everyday.usd_per_month


def test_its_replay_counts_every_day_of_the_fortnight_on_the_counts_of_that_day() -> None:
    found = judged(course())
    assert found.replay is not None
    assert (found.replay.days, len(found.replay.hourly_load)) == (14, 14 * DAY)
    assert max(found.replay.hourly_load) < 1
    counts = chosen(found).target.hourly_counts or ()
    weekend = [d for d in course() if d.day.weekday() >= SATURDAY]
    first = course().index(weekend[0])
    expected = sum(n or 0.0 for n in weekend[0].requests[:12]) / 3600 / on_day(counts, SATURDAY)[0]
    assert found.replay.hourly_load[first * DAY] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(POLICY, several_at_once=True), id="all dimensions at once have no days of the week"),
        pytest.param(replace(POLICY, by_itself=Policy().by_itself), id="hours are not opened"),
        pytest.param(replace(POLICY, days_for_week=15), id="a fortnight is too short"),
    ],
)
def test_otherwise_all_days_have_the_same_course(policy: Policy) -> None:
    assert all(len(o.target.hourly_counts or ()) in (0, DAY) for o in judged(course(), policy=policy).options)


def test_a_sunday_with_its_few_instances_is_no_sign_that_the_fleet_does_not_carry_the_week() -> None:
    """The evaluation after a quiet day: what ran yesterday was never meant for the days before it."""
    option = chosen(judged(course()))
    counts = option.target.hourly_counts or ()
    usual, weekend = float(max(on_day(counts, FRIDAY))), float(max(on_day(counts, SUNDAY)))
    days = fortnight(1, usual, 0.25, 8, weekend)
    assert days[-1].day.weekday() == SUNDAY
    monday = datetime.combine(days[-1].day + timedelta(days=1), time(4), UTC)
    then = monday - timedelta(days=8)
    past = PastChange(then, TYPE, TYPE, 40, int(usual), "proven", mean_instances=option.mean_instances)
    found = judged(days, int(weekend), past=[past], scaled=True, now=monday)
    assert found.gate is Gate.SILENT, found.gate_reason.sentence
    assert found.gate_reason.code is not Code.UNDER_PROVISIONED
    week = float(option.usd_per_month)
    assert found.usd_per_month is not None
    assert 0.95 * week < float(found.usd_per_month) < 1.05 * week, "a Sunday alone would say much less"
    tight = [replace(d, instances=(weekend,) * DAY) if d.day.weekday() == FRIDAY else d for d in days]
    strained = judged(tight, int(weekend), past=[past], scaled=True, now=monday)
    assert strained.gate_reason.code is Code.UNDER_PROVISIONED, "the last usual day is looked at"
