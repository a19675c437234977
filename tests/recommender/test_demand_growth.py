"""Growth of the requests from week to week: what counts as growth, and what tells nothing."""

from dataclasses import replace
from typing import Any

from rightsizer.domain.usage import DailyUsage
from rightsizer.recommender.demand import weekly_growth
from tests.recommender.plain import near
from tests.recommender.test_demand import day


def week_by_week(*factors: float, days: int = 14, **more: Any) -> list[DailyUsage]:
    """Fourteen days, of which each of the last seven has so many times the requests of the same weekday before."""
    before, since = [day(n) for n in range(7)], [day(n + 7, 10.0 * f) for n, f in enumerate(factors)]
    return [*before, *since][-days:]


def test_growth_is_what_all_weekdays_but_one_grew_by_in_a_week() -> None:
    assert weekly_growth(week_by_week(*(1.4,) * 7)) == near(1.4)
    assert weekly_growth(week_by_week(1.2, *(1.5,) * 6)) == near(1.5), "a holiday is no end of the growth"
    assert weekly_growth(week_by_week(1.2, 1.3, *(1.5,) * 5)) == near(1.3)


def test_a_few_busy_days_a_busy_weekend_and_what_differs_by_chance_are_no_growth() -> None:
    assert weekly_growth(week_by_week(9.0, 9.0, 9.0, 9.0, 9.0, 1.0, 1.0)) == 1.0
    assert weekly_growth([day(n, 90.0 if n % 7 > 4 else 10.0) for n in range(14)]) == 1.0
    assert weekly_growth(week_by_week(*(1.09,) * 7)) == 1.0
    assert weekly_growth(week_by_week(*(0.5,) * 7)) == 1.0


def test_what_is_too_young_to_compare_weeks_grows_where_nearly_every_day_is_above_the_day_before() -> None:
    rising = [day(n, 10.0 * 1.1**n) for n in range(8)]
    assert weekly_growth(rising) == near(1.1**7)
    assert weekly_growth([*rising[:4], day(4, 10.0), *rising[5:]]) == near(1.1**7), "one holiday"
    assert weekly_growth([day(n, 10.0 * 1.5**n) for n in range(6)]) == near(1.5**5), (
        "not seven steps where five were seen"
    )
    assert weekly_growth([day(n, 90.0 if n % 7 > 4 else 10.0) for n in range(8)]) == 1.0, "a weekend"
    assert weekly_growth(rising[:5]) == 1.0, "five days are four steps"


def test_growth_is_told_by_five_whole_days_of_a_week_and_no_fewer() -> None:
    assert weekly_growth(week_by_week(*(2.0,) * 5)) == near(2.0)
    assert weekly_growth(week_by_week(*(2.0,) * 4)) == 1.0
    gaps = [replace(d, requests=(None,) * 30 + d.requests[30:]) for d in week_by_week(*(2.0,) * 7)]
    assert weekly_growth(gaps) == 1.0
    twice = week_by_week(*(2.0,) * 7)
    assert weekly_growth([*twice, *twice]) == 1.0, "days on two types are not compared"
