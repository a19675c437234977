"""Savings Plans: what they cover goes on being billed, and only what is on demand above them is saved."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.policy import Policy
from rightsizer.domain.price import PLAN_DISCOUNT, Commitment
from rightsizer.recommender.pricing import cost_of, kept_by_commitment, share_commitment
from tests.recommender.plain import PRICE

USD = st.decimals(0, 1000, places=2)


def plan_that_covers(usd_per_hour: Decimal) -> Commitment:
    """A plan whose commitment pays for this much of what would be billed on demand."""
    return Commitment(usd_per_hour * (1 - PLAN_DISCOUNT), known=True)


def test_a_plan_pays_for_more_on_demand_use_than_it_costs() -> None:
    """At rates of 30 % less, USD 0.70 an hour pay for USD 730 a month on demand; the other 1270 of 2000 are saved."""
    plan = Commitment(Decimal("0.70"), known=True)
    assert kept_by_commitment(Decimal(1270), Decimal(2000), plan) == 0
    assert kept_by_commitment(Decimal(1500), Decimal(2000), plan) == 230


def test_what_a_plan_goes_on_billing_is_taken_off_the_saving() -> None:
    """USD 1095 of 3000 a month are on demand, 1905 are covered, and 1458.24 would go."""
    plan = plan_that_covers(Decimal(1905) / 730)
    found = cost_of(Decimal(3000), PRICE, 1.5, 2, 0.1, plan, Policy(), new_fleet=False)
    assert (found.committed, found.saving) == (Decimal("363.24"), Decimal(1095))


@pytest.mark.parametrize(
    ("gross", "usd", "kept"),
    [
        ("1000", "1", "0"),  # 730 are covered, and 1270 on demand
        ("1500", "1", "230"),
        ("2000", "1", "730"),
        ("100", "3", "100"),
        ("1000", "0", "0"),
        ("0", "9", "0"),
        ("-5", "9", "0"),
    ],
)
def test_a_plan_goes_on_billing_what_it_covers_of_two_thousand_a_month(gross: str, usd: str, kept: str) -> None:
    plan = plan_that_covers(Decimal(usd))
    assert kept_by_commitment(Decimal(gross), Decimal(2000), plan) == Decimal(kept)


@given(gross=st.decimals(-1000, 1000, places=2), more=USD, usd=st.decimals(0, 5, places=2))
def test_what_is_saved_is_on_demand(gross: Decimal, more: Decimal, usd: Decimal) -> None:
    now = max(gross, Decimal(0)) + more
    kept = kept_by_commitment(gross, now, plan_that_covers(usd))
    saved = max(gross, Decimal(0)) - kept
    assert 0 <= saved <= max(now - usd * 730, Decimal(0))
    assert 0 <= kept <= usd * 730 + Decimal("0.01")


@given(costs=st.lists(USD, min_size=1, max_size=6), usd=st.decimals(0, 9, places=2))
def test_what_all_endpoints_save_is_what_the_account_buys_on_demand(costs: list[Decimal], usd: Decimal) -> None:
    account, plan = sum(costs, Decimal(0)), plan_that_covers(usd)
    saved = [cost - kept_by_commitment(cost, cost, share_commitment(plan, cost, account)) for cost in costs]
    assert abs(sum(saved, Decimal(0)) - max(account - usd * 730, Decimal(0))) < Decimal("0.04")
    assert share_commitment(plan, costs[0], None) == plan, "where nobody knows the others, it bears all of it"
