"""A commitment for what remains after right-sizing: what counts as steady, what it saves, and when it stops paying."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.account_finding import AccountFinding
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.environment import Environment, EnvironmentReading
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.reporting.payment import savings_plan_finding, steady_fleet
from tests.samples import option, price, recommendation

NONE = Commitment(Decimal(0), known=True)
PRICES = PriceTable(
    "eu-west-1",
    {"ml.g5.xlarge": price("ml.g5.xlarge", "1.40"), "ml.g5.12xlarge": price("ml.g5.12xlarge", "7.09")},
    NONE,
)
RATES = {"ml.g5.xlarge": Decimal("1.008"), "ml.g5.12xlarge": Decimal("5.1048")}  # 28 % less


def steady(name: str = "chat", count: int = 10, **changes: Any) -> Recommendation:
    """An endpoint that is right as it is: so many g5.xlarge."""
    given: dict[str, Any] = {"instance_type": "ml.g5.xlarge", "instance_count": count, "options": ()}
    given |= {"finding": Finding.OPTIMIZED, "usd_per_month": Decimal("1022") * count}
    return recommendation(name, **(given | changes))


def told(*found: Recommendation, prices: PriceTable = PRICES, rates: Any = RATES) -> AccountFinding | None:
    return savings_plan_finding(found, prices, rates)


def counts(*found: Recommendation) -> dict[str, int]:
    return dict(steady_fleet(found).counts)


def test_what_is_right_counts_as_it_runs_and_what_shrinks_as_it_will() -> None:
    smaller = recommendation("large")  # 1 x g5.12xlarge, of which one g5.xlarge is enough
    assert counts(steady(count=2), smaller) == {"ml.g5.xlarge": 3}
    assert steady_fleet([smaller]).open_usd == Decimal("4140.50")


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (Target("ml.g5.xlarge", 3, minimum=1, maximum=3), {"ml.g5.xlarge": 1}),
        (Target("ml.g5.xlarge", 4, hourly_counts=(1,) * 12 + (4,) * 12), {"ml.g5.xlarge": 1}),
        (Target("ml.g5.xlarge", 4), {"ml.g5.xlarge": 4}),
    ],
    ids=["bounds", "hours", "count"],
)
def test_of_what_scales_the_least_is_steady(target: Target, left: dict[str, int]) -> None:
    assert counts(recommendation("a", options=(option(target=target),))) == left


@pytest.mark.parametrize(
    "one",
    [
        steady(finding=Finding.NOT_ENOUGH_DATA),
        steady(evidence=None),
        steady(environment=EnvironmentReading(Environment.DEVELOPMENT, "tag environment", ())),
        recommendation("a", options=(option(kind=OptionKind.SCALE_TO_ZERO),)),
        recommendation("a", finding=Finding.IDLE, options=(option(kind=OptionKind.DELETE),)),
    ],
    ids=["too little data", "no evidence", "development", "scales to zero", "idle"],
)
def test_what_may_go_is_not_committed(one: Recommendation) -> None:
    fleet = steady_fleet([one])
    assert (dict(fleet.counts), fleet.left_out) == ({}, 1)


def test_seventy_per_cent_is_covered_at_the_rate_and_the_break_even_is_the_discount() -> None:
    found = told(steady())
    assert found is not None
    assert found.what.startswith("1 endpoint still costs USD 14.00 at every hour after right-sizing")
    assert "Savings Plan of USD 7.056 an hour" in found.what  # 0.7 x 10 x 1.008
    assert found.usd_per_month == Decimal("2003.12")  # (9.80 - 7.056) x 730
    assert found.evidence["discount"].startswith("28.0 %")
    assert found.evidence["break-even"].startswith(
        "pays as long as 72 % of it is used: until the steady spend falls by 50 %"
    )


def test_the_what_if_turns_into_a_loss_where_half_is_gone() -> None:
    found = told(steady())
    assert found is not None
    assert found.evidence["if 0 % less runs"] == "saves USD 2,003.12 a month"
    assert found.evidence["if 25 % less runs"] == "saves USD 2,003.12 a month"
    assert found.evidence["if 50 % less runs"] == f"costs USD {(Decimal('7.056') - 7) * 730:,.2f} a month"
    assert found.evidence["if 75 % less runs"].startswith("costs USD 2,595.88")


def test_what_is_committed_already_is_not_advised_again() -> None:
    committed = replace(PRICES, commitment=Commitment(Decimal(5), known=True))
    found = told(steady(), prices=committed)
    assert found is not None
    assert "Savings Plan of USD 2.056 an hour" in found.what
    assert told(steady(), prices=replace(PRICES, commitment=Commitment(Decimal(8), known=True))) is None


def test_without_rates_a_what_if_and_no_saving() -> None:
    found = told(steady(), rates=None)
    assert found is not None
    assert found.usd_per_month is None
    assert found.evidence["at a discount of 30 %"].endswith("pays as long as 70 % of the plan is used")


def test_types_without_a_rate_are_named_and_nothing_is_said_where_none_has_one() -> None:
    other = steady("other", 1, instance_type="ml.g5.12xlarge", kind=EndpointKind.REAL_TIME)
    found = told(steady(), other, rates={"ml.g5.xlarge": Decimal("1.008")})
    assert found is not None
    assert "ml.g5.12xlarge: it has no rate of a plan here" in found.not_checked
    assert told(steady(), rates={}) is None


def test_the_open_savings_come_first_in_the_advice() -> None:
    found = told(steady(), recommendation("large"))
    assert found is not None
    assert found.advice.startswith("first the open savings (USD 4,140.50 a month), then buy it")
