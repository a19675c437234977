"""Hours that office hours close are no money: neither cost, nor saving of an option."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.history import History
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import HOURS_TAG, StoppedTime
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH, PLAN_DISCOUNT, Commitment
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.pricing import cost_of, monthly_cost
from rightsizer.recommender.usage_days import running_hours
from rightsizer.reporting.office_hours import hours_savings
from tests.recommender import kit
from tests.recommender.kit import NOW, endpoint, judge, prices, steady, window

TAGS = {HOURS_TAG: "daily 07:00-19:00 UTC"}
TYPE = "ml.g6e.xlarge"


def nights(days: int, hours: float = 12) -> tuple[StoppedTime, ...]:
    """Nights of so many days up to now, each from 19:00 on."""
    starts = (NOW - timedelta(days=day) - timedelta(hours=5) for day in range(days, -1, -1))
    return tuple(StoppedTime(at, at + timedelta(hours=hours), at, at, ((TYPE, 2),)) for at in starts)


def recommended(stopped: tuple[StoppedTime, ...], tags: dict[str, str]) -> Recommendation:
    history = History(stopped=stopped)
    made = replace(endpoint(TYPE, 2), tags={"rightsizer:shadow-ok": "true"} | tags)
    return judge(made, [window(steady())], prices(), kit.catalogue(), {}, history, Policy(), NOW)


@pytest.mark.parametrize(
    ("tags", "stopped", "hours"),
    [
        ({}, nights(28), 730),
        (TAGS, (), 730),
        (TAGS, nights(28), 365),
        (TAGS, nights(60), 365),
        (TAGS, nights(28, 6), 547.5),
        (TAGS, nights(3), 730 * (12 + 0.75) / 24),
        (TAGS, nights(40)[:20], 730),
        ({HOURS_TAG: "nonsense"}, nights(3), 730),
        (TAGS, (StoppedTime(NOW - timedelta(days=40)),), 1),
    ],
    ids=[
        "no-tag",
        "never-stopped",
        "nights",
        "four-weeks-at-most",
        "late-stops",
        "first-week-by-tag",
        "over",
        "unreadable",
        "asleep-for-weeks",
    ],
)
def test_the_hours_of_a_month_are_those_that_ran(
    tags: dict[str, str], stopped: tuple[StoppedTime, ...], hours: float
) -> None:
    assert float(running_hours(tags, stopped, NOW)) == pytest.approx(hours, abs=0.01)


def test_cost_and_savings_count_the_hours_that_run() -> None:
    always, half = recommended((), {}), recommended(nights(28), TAGS)
    assert (always.usd_per_month, half.usd_per_month) != (None, None)
    assert half.usd_per_month == pytest.approx((always.usd_per_month or 0) / 2)
    assert [one.target for one in half.options[:1]] == [one.target for one in always.options[:1]]
    assert half.saving_usd_per_month == pytest.approx(always.saving_usd_per_month / 2, abs=Decimal("0.02"))
    assert half.saving_usd_per_month > 0
    assert half.evidence is not None
    assert half.evidence.figures["office hours"].startswith("runs 365 of 730 hours a month")


def test_the_report_of_stopped_hours_tells_the_same_money() -> None:
    """What ran, and what was stopped, add up to the cost of an endpoint that always runs."""
    stopped = nights(28)
    found = recommended(stopped, TAGS)
    record = HoursRecord(EndpointRef("1", "us-east-1", "chat"), stopped_times=stopped)
    (saved,) = hours_savings([record], prices(), NOW - timedelta(days=28), NOW)
    month = HOURS_PER_MONTH / (28 * 24)
    assert saved.usd is not None
    assert saved.ran_usd is not None
    assert found.usd_per_month is not None
    price = prices().find(TYPE)
    assert price is not None
    assert saved.ran_usd * month == pytest.approx(found.usd_per_month, abs=Decimal("0.02"))
    assert (saved.ran_usd + saved.usd) * month == pytest.approx(monthly_cost(price, 2), abs=Decimal("0.02"))


def test_a_commitment_goes_on_being_billed_while_it_is_stopped() -> None:
    table = prices(commitment=Commitment(2 * (1 - PLAN_DISCOUNT), known=True)).running(Decimal(365))
    price = table.find(TYPE)
    assert price is not None
    today = monthly_cost(price, 2)
    cost = cost_of(today, price, 1, 1, 0.0, table.commitment, Policy(), new_fleet=False)
    assert cost.saving == today - 2 * 730, "the plan is billed at night too"
