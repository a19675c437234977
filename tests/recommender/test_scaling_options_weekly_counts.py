"""Counts for classes of days: where they pay, what they are sized by, and how they are remembered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.domain.schedule import DayCounts
from rightsizer.domain.usage import PER_HOUR, DailyUsage, VariantUsage
from rightsizer.recommender import choose, recommend
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import FleetShape, can_still_carry
from rightsizer.recommender.hourly_counts import has_load_jumped, like_last_day, on_weekdays, replay_plan
from rightsizer.recommender.late_requests import failed_by_hour, failed_instances
from rightsizer.recommender.priced_option import with_late_share, within_p95
from rightsizer.recommender.scaling_options import days_of_no_habit, find_weekly_counts, has_whole_weeks
from rightsizer.recommender.stages import _with_at_least
from tests import samples
from tests.recommender import kit
from tests.recommender.kit import judge_digests
from tests.recommender.test_gate_verdicts import failure, fleet, verdict
from tests.recommender.test_hourly_counts import TYPE, day

OPEN = dict.fromkeys(range(8, 18), 1300.0)
QUIET = dict.fromkeys(range(24), 10.0)
BUSY = QUIET | OPEN
OFFICE = tuple(3 if 8 <= hour < 18 else 1 for hour in range(24))
WEEK = (DayCounts((0, 1, 2, 3, 4), OFFICE), DayCounts((5, 6), (1,) * 24))
"""1 November 2026 is a Sunday, and so are days 7 and 14. Days 5 to 18 are those of the look-back."""


def fortnight(first: int = 5, busy: Sequence[int] = (0, 1, 2, 3, 4)) -> list[DailyUsage]:
    """Fourteen days, busy in office hours of these weekdays."""
    days = [day(number, QUIET) for number in range(first, first + 14)]
    return [day(n, BUSY) if d.day.weekday() in busy else d for n, d in enumerate(days, first)]


def judged(days: Sequence[DailyUsage], count: int = 3, *past: PastChange, scaled: bool = False) -> Recommendation:
    policy = Policy(by_itself=frozenset({OptionKind.INSTANCE_COUNT, OptionKind.SCHEDULE}), tests_per_month=0)
    endpoint = kit.endpoint(TYPE, count, p95_s=2.0)
    own = ScalableTarget("endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", 1, 3)
    endpoint = replace(
        endpoint,
        objective=replace(endpoint.objective, min_instances=1),
        scaling=(own,) if scaled else (),
    )
    prices = kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE))
    usage = VariantUsage("chat", "AllTraffic", tuple(days))
    rest: Any = (prices, kit.catalogue(), {}, History(past), policy, kit.NOW)
    return judge_digests(endpoint, usage, *rest)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[EvaluationContext]:
    """The situations that were judged."""
    found: list[EvaluationContext] = []

    def spy(base: Recommendation, context: EvaluationContext, dimensions: Any) -> Recommendation:
        found.append(context)
        return choose.choose_option(base, context, dimensions)

    monkeypatch.setattr(recommend, "choose_option", spy)
    return found


def context_of(seen: list[EvaluationContext], days: Sequence[DailyUsage], *past: PastChange) -> EvaluationContext:
    judged(days, 3, *past)
    return seen[-1]


def shape(context: EvaluationContext, hourly: bool = True) -> FleetShape:
    return FleetShape(TYPE, 1.0, context.workers, False, hourly, 8)


def target_of(found: Recommendation) -> Target:
    assert found.chosen_option is not None, found.reason.sentence
    return found.chosen_option.target


def put_in_force(days_ago: float, ended: PastEnd = PastEnd.PROVEN, counts: tuple[DayCounts, ...] = WEEK) -> PastChange:
    failure = "alarm" if ended is PastEnd.ROLLED_BACK else ""
    mean = sum(len(one.weekdays) * sum(one.counts) for one in counts) / 168
    at = kit.NOW - timedelta(days=days_ago)
    return PastChange(at, TYPE, TYPE, 3, 3, ended, failure=failure, mean_instances=mean, day_counts=counts)


def test_weekdays_and_weekends_that_differ_get_counts_of_their_own() -> None:
    found = target_of(judged(fortnight()))
    assert found.day_counts == WEEK
    assert (found.hourly_counts, found.instance_count) == (OFFICE, 3), "the most of each hour, for readers of before"
    assert found.mean_count == pytest.approx(1 + 2 * 50 / 168)


def test_a_saving_below_a_twentieth_is_not_worth_two_classes(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    daily = Fleet(OFFICE, context.workers, False, 1.0)
    assert find_weekly_counts(context, shape(context), daily, may_keep_count=True) == WEEK
    little = Fleet((2,) * 9 + (1,) * 15, context.workers, False, 1.0)
    assert find_weekly_counts(context, shape(context), little, may_keep_count=True) == ()


def test_only_where_hours_may_be_set_and_two_instances_run(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    daily = Fleet((3,) * 24, context.workers, False, 1.0)
    assert find_weekly_counts(context, shape(context, hourly=False), daily, may_keep_count=True) == ()
    judged([replace(one, instances=(1.0,) * 24) for one in fortnight()], 1)
    assert seen[-1].peak_count == 1
    assert find_weekly_counts(seen[-1], shape(context), daily, may_keep_count=True) == ()


@pytest.mark.parametrize(("days", "whole"), [(14, True), (13, False), (7, False)])
def test_each_day_of_the_week_has_to_be_seen_twice(days: int, whole: bool, seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight()[-days:])
    assert has_whole_weeks(context) is whole
    assert bool(target_of(judged(fortnight()[-days:])).day_counts) is whole


def test_a_few_hours_that_were_not_seen_do_not_end_it(seen: list[EvaluationContext]) -> None:
    days = fortnight()
    gap = (None,) * (9 * PER_HOUR)
    some = replace(days[3], requests=(*gap, *days[3].requests[len(gap) :]))
    assert has_whole_weeks(context_of(seen, [*days[:3], some, *days[4:]]))
    more = replace(days[3], requests=(*gap, *gap, *days[3].requests[2 * len(gap) :]))
    assert not has_whole_weeks(context_of(seen, [*days[:3], more, *days[4:]]))


def test_a_holiday_does_not_lower_the_counts_of_working_days() -> None:
    days = fortnight()
    assert days[5].day.strftime("%a") == "Wed"
    days[5] = day(10, QUIET)
    assert target_of(judged(days)).day_counts == WEEK


def test_the_end_of_a_month_is_no_habit_of_its_weekday(seen: list[EvaluationContext]) -> None:
    """Busy on one Friday of two: the next time it may be a Monday."""
    days = fortnight(busy=())
    assert days[0].day.strftime("%a") == "Fri"
    days[0] = day(5, dict.fromkeys(range(24), 1300.0))
    context = context_of(seen, days)
    gulf = ((6, 0, 1, 2, 3), (4, 5))
    assert days_of_no_habit(context, gulf) == {days[0].day}
    assert (
        find_weekly_counts(context, shape(context), Fleet((3,) * 24, context.workers, False, 1.0), may_keep_count=True)
        == ()
    )


def test_working_days_are_a_habit_though_one_is_a_holiday(seen: list[EvaluationContext]) -> None:
    days = fortnight()
    days[5] = day(10, QUIET)
    assert days_of_no_habit(context_of(seen, days), ((0, 1, 2, 3, 4), (5, 6))) == frozenset()


def test_classes_that_run_alike_are_one() -> None:
    """A shop that is closed on Sundays: Saturday is not read apart."""
    found = target_of(judged(fortnight(busy=(0, 1, 2, 3, 4, 5))))
    assert [one.weekdays for one in found.day_counts] == [(0, 1, 2, 3, 4, 5), (6,)]


def test_free_days_without_a_request_get_the_owners_minimum() -> None:
    days = [d if d.day.weekday() < 5 else day(n, {}) for n, d in enumerate(fortnight(), 5)]
    assert target_of(judged(days)).day_counts == WEEK


def test_a_plan_is_replayed_on_each_class_of_days(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    plan = Fleet(OFFICE, context.workers, False, 1.0, day_counts=WEEK)
    then, today = replay_plan(context, plan)
    assert then.requests == today.requests > 5000, "the heaviest slots of each class speak for the others"
    assert then.mean_instances == pytest.approx(plan.mean_count)
    none = Fleet(OFFICE, context.workers, False, 1.0, day_counts=(DayCounts((0, 1, 2, 3, 4), (1,) * 24), WEEK[1]))
    assert replay_plan(context, none)[0].late > then.late


def test_what_failed_is_compared_with_the_same_hours_of_the_same_days(seen: list[EvaluationContext]) -> None:
    """A weekly mean of 1.6 let weekday fleets of two pass where three had failed."""
    context = context_of(seen, fortnight(), put_in_force(2, PastEnd.ROLLED_BACK))
    weekdays, weekend = on_weekdays(context, (0, 1, 2, 3, 4)), on_weekdays(context, (5, 6))
    given = (TYPE, 1.0, context.workers)
    assert failed_instances(weekdays, *given) == pytest.approx(sum(OFFICE) / 24)
    assert failed_instances(weekend, *given) == 1
    assert failed_instances(context, *given) == pytest.approx(sum(OFFICE) / 24), "a plan for all days is held to both"
    assert failed_by_hour(weekdays, *given) == OFFICE
    assert failed_by_hour(weekend, *given) == (1,) * 24


def test_a_mean_alone_is_no_floor_of_an_hour(seen: list[EvaluationContext]) -> None:
    daily = replace(put_in_force(2, PastEnd.ROLLED_BACK), day_counts=())
    context = context_of(seen, fortnight(), daily)
    assert failed_by_hour(context, TYPE, 1.0, context.workers) == (0,) * 24
    assert failed_instances(context, TYPE, 1.0, context.workers) == daily.mean_instances


def in_force(last: int, days_ago: float = 20) -> list[DailyUsage]:
    """A fortnight up to that day under the schedule."""
    days = []
    for number in range(last - 13, last + 1):
        made = day(number, BUSY if day(number, {}).day.weekday() < 5 else QUIET)
        counts = OFFICE if made.day.weekday() < 5 else (1,) * 24
        days.append(replace(made, instances=tuple(map(float, counts))))
    return days


@pytest.mark.parametrize("last", range(12, 19))
def test_a_schedule_in_force_stands_on_every_day_of_the_week(last: int, seen: list[EvaluationContext]) -> None:
    """Sunday's one instance would not carry a Monday, and need not."""
    found = judged(in_force(last), 3, put_in_force(25), scaled=True)
    context = seen[-1]
    assert can_still_carry(context)
    assert not has_load_jumped(context)
    assert context.instances == pytest.approx(1 + 2 * 50 / 168), "the week's mean, not the last day's"
    assert found.finding is not Finding.UNDER_PROVISIONED


def test_a_weekend_that_doubled_is_compared_with_weekends(seen: list[EvaluationContext]) -> None:
    days = in_force(14)
    assert days[-1].day.strftime("%a") == "Sun"
    calls = replace(day(14, {hour: 2.1 * count for hour, count in QUIET.items()}), instances=(1.0,) * 24)
    judged([*days[:-1], calls], 3, put_in_force(25), scaled=True)
    assert has_load_jumped(seen[-1])
    judged([*days[:-1], calls], 3, replace(put_in_force(25), day_counts=()), scaled=True)
    assert not has_load_jumped(seen[-1])


def test_without_a_schedule_by_weekdays_all_days_are_alike(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    assert like_last_day(context) is context


def by_days(weekdays: int, weekend: int) -> tuple[DayCounts, ...]:
    return (DayCounts((0, 1, 2, 3, 4), (weekdays,) * 24), DayCounts((5, 6), (weekend,) * 24))


@pytest.mark.parametrize(
    ("wanted", "failed", "rests"),
    [
        (by_days(3, 2), {"day_counts": by_days(3, 2)}, True),
        (by_days(4, 2), {"day_counts": by_days(3, 2), "mean_instances": 3.5}, False),
        (by_days(3, 3), {"day_counts": by_days(4, 2), "mean_instances": 3.4}, False),
        (by_days(3, 2), {"mean_instances": 3.0}, True),
        (by_days(4, 1), {"mean_instances": 3.5}, False),
    ],
    ids=["the same", "more on weekdays", "more on weekends", "no day above the mean", "weekdays above the mean"],
)
def test_a_failed_schedule_is_held_against_the_same_hours(
    wanted: tuple[DayCounts, ...], failed: dict[str, Any], rests: bool
) -> None:
    small = fleet(5, 5, (5,) * 24)
    target = replace(small.option.target, instance_count=4, day_counts=wanted)
    found = verdict(replace(small, option=replace(small.option, target=target)), failure(**failed))
    assert (found[1] is Code.BLACKLISTED) is rests


def test_late_requests_of_a_week_are_counted_by_the_counts_of_each_day(seen: list[EvaluationContext]) -> None:
    """A weekend as busy as the week with one instance: by the most of each hour nobody would be late."""
    context = context_of(seen, fortnight(busy=range(7)))
    hardware = context.inputs.catalogue.find(TYPE)
    assert hardware is not None
    target = Target(TYPE, 3, hourly_counts=OFFICE, day_counts=WEEK)
    option = samples.option(kind=OptionKind.SCHEDULE, target=target)
    told = with_late_share(context, option, hardware, 1.0)
    assert told.late_share is not None
    assert told.late_share > 0.05
    assert (
        with_late_share(context, replace(option, target=replace(target, day_counts=())), hardware, 1.0).late_share
        is None
    )
    assert within_p95(context, option) is None


def test_a_step_that_makes_classes_of_days_alike_has_one_class_fewer(seen: list[EvaluationContext]) -> None:
    """Saturday of one and Sunday of two instances are alike where no hour goes below two."""
    context = context_of(seen, fortnight())
    classes = (DayCounts((0, 1, 2, 3, 4), (3,) * 24), DayCounts((5,), (1,) * 24), DayCounts((6,), (2,) * 24))
    target = Target(TYPE, 3, hourly_counts=(3,) * 24, day_counts=classes)
    step = _with_at_least(context, samples.option(kind=OptionKind.SCHEDULE, target=target), 2)
    assert step is not None
    assert step.target.day_counts == (classes[0], DayCounts((5, 6), (2,) * 24))


def test_days_that_are_judged_apart_a_second_time_are_streamed_and_replayed_once(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    weekend = on_weekdays(context, (5, 6))
    stream, plan = weekend.stream, Fleet((1,) * 24, 1, False, 1.0)
    weekend.replay(plan)
    again = on_weekdays(replace(context, extra_margin=2), (5, 6))
    assert again.extra_margin == 2
    assert again.stream is stream
    assert again.replay(plan) is weekend.replay(plan)
    assert on_weekdays(context, (0,)).stream != stream


def test_days_on_the_reference_fleet_are_replayed_once_for_each_choice_of_days(seen: list[EvaluationContext]) -> None:
    context = context_of(seen, fortnight())
    busy = [day for day in context.days if day.day.weekday() < 5]
    quiet = [day for day in context.days if day.day.weekday() >= 5]
    found = context.reference_replay_of(busy, 500)
    assert context.reference_replay_of(list(busy), 500) is found
    assert context.reference_replay_of(quiet, 500) != found
    assert context.reference_replay_of(busy, 100) is not found
