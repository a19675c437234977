"""Counts by the hour: down to one instance where none is needed, and never more than runs where that is enough."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import PER_HOUR, SLOTS, DailyUsage, VariantUsage
from rightsizer.recommender.hourly_counts import concurrency_by_hour, hourly_plan, requests_of_week
from rightsizer.recommender.replay import stream_of
from tests.recommender import kit
from tests.recommender.kit import judge_digests
from tests.recommender.test_failed_fleets import index

EMPTY: tuple[int, ...] = ()
TYPE = "ml.g5.xlarge"


def day(number: int, calls: dict[int, float], latency_s: float = 0.5, instances: float = 3.0) -> DailyUsage:
    """A day with so many requests in the five minutes of these hours, and none in the others."""
    slots = [calls.get(slot // PER_HOUR, 0.0) for slot in range(SLOTS)]
    when = date(2026, 11, 1) + timedelta(days=number)
    busy = tuple(n * latency_s for n in slots)
    bins = ((index(latency_s), sum(slots)),)
    none = (None,) * 4
    return DailyUsage(when, TYPE, 1, tuple(slots), busy, (instances,) * 24, bins, sum(busy), 0.0, *none)


def levels_of(days: Sequence[DailyUsage], requests: int = 100_000) -> tuple[tuple[int, ...], ...]:
    return concurrency_by_hour(stream_of(days, ((0.5, 1.0),), requests), 1.0)


def judged(days: Sequence[DailyUsage], count: int, minimum: int | None = 1) -> Recommendation:
    """With nothing but the counts of that type left to choose."""
    policy = Policy(by_itself=frozenset({OptionKind.INSTANCE_COUNT, OptionKind.SCHEDULE}), tests_per_month=0)
    endpoint = kit.endpoint(TYPE, count, p95_s=2.0)
    endpoint = replace(endpoint, objective=replace(endpoint.objective, min_instances=minimum))
    prices = kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE))
    usage = VariantUsage("chat", "AllTraffic", tuple(days))
    now = datetime.combine(days[-1].day + timedelta(days=1), time(), UTC)
    rest: Any = (prices, kit.catalogue(), {}, History(), policy, now)
    return judge_digests(endpoint, usage, *rest)


def test_an_hour_that_one_instance_holds_gets_one_and_so_does_an_hour_without_a_request() -> None:
    levels = ((3,) * 9, (1,) * 9, EMPTY, *((2,) for _ in range(21)))
    assert hourly_plan(levels, 1.0, 1.2, 1, 9)[:4] == (3, 1, 1, 3)
    assert hourly_plan(levels, 1.0, 1.2, 2, 9)[:4] == (2, 1, 1, 1), "two at once are one instance of two workers"


@pytest.mark.parametrize("requests", [100_000, 3000], ids=["whole", "heaviest slots only"])
def test_a_load_of_every_day_at_the_same_hour_lends_nothing_to_the_empty_hours_beyond_its_neighbours(
    requests: int,
) -> None:
    """The slope before and after may begin early; the night is empty every night."""
    levels = levels_of([day(n, {9: 300.0, 10: 300.0}) for n in range(5)], requests)
    assert [hour for hour in range(24) if levels[hour]] == [8, 9, 10, 11]


def test_a_load_of_some_days_is_luck_and_may_come_hours_earlier_or_later() -> None:
    levels = levels_of([day(n, {9: 300.0} if n == 2 else {9: 0.0}) for n in range(5)])
    assert [hour for hour in range(24) if levels[hour]] == [5, 6, 7, 8, 9, 10, 11, 12, 13]
    two = levels_of([day(n, {9: 300.0}) for n in range(2)])
    assert [hour for hour in range(24) if two[hour]] == [5, 6, 7, 8, 9, 10, 11, 12, 13], "two days are no habit"


def test_few_requests_are_no_habit_though_they_come_every_day() -> None:
    levels = levels_of([day(n, {9: 0.5}) for n in range(6)])
    assert all(levels), "36 requests in six days say nothing of the hour"


def test_where_the_margin_wants_more_than_runs_the_empty_hours_still_get_less() -> None:
    """Three instances are busy in the day: the margin asks for a fourth, which today has not either."""
    days = [day(n, dict.fromkeys(range(9, 17), 1300.0)) for n in range(14)]
    found = judged(days, 3)
    assert found.chosen_option is not None
    hours = found.chosen_option.target.hourly_counts
    assert hours == tuple(3 if 8 <= hour < 18 else 1 for hour in range(24))


def test_where_nobody_said_that_one_is_enough_two_at_every_hour_go_first() -> None:
    days = [day(n, dict.fromkeys(range(9, 17), 1300.0)) for n in range(14)]
    two, one = judged(days, 3, minimum=None).options
    assert (min(one.target.week_counts), one.risks[RiskResource.AVAILABILITY]) == (1, Risk.MEDIUM)
    assert (min(two.target.week_counts), RiskResource.AVAILABILITY in two.risks) == (2, False)
    assert two.risk <= Risk.LOW, "so that automatic mode may take it"
    assert [min(option.target.week_counts) for option in judged(days, 3).options] == [1]


def test_a_fleet_that_needs_every_instance_all_day_stays() -> None:
    found = judged([day(n, dict.fromkeys(range(24), 1300.0)) for n in range(14)], 3)
    assert found.chosen_option is None


def test_the_requests_of_the_week_are_added_by_weekday_and_hour() -> None:
    """1 November 2026 is a Sunday."""
    week = requests_of_week([day(n, {9: 10.0 + n}) for n in range(9)])
    assert len(week) == 168
    assert week[9] == 12 * (11.0 + 18.0), "two Mondays"
    assert week[6 * 24 + 9] == 12 * (10.0 + 17.0), "two Sundays"
    assert sum(week) == sum(week[24 * weekday + 9] for weekday in range(7))
