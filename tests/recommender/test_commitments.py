"""Savings Plans: what they cover goes on being billed, and only what is on demand above them is saved."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment
from rightsizer.recommender.pricing import cost_of, kept_by_commitment, share_commitment
from tests.recommender.plain import PRICE

USD = st.decimals(0, 1000, places=2)


def test_what_a_plan_goes_on_billing_is_taken_off_the_saving() -> None:
    """USD 1095 of 3000 a month are on demand, 1905 are covered, and 1458.24 would go."""
    plan = Commitment(Decimal(1905) / 730, known=True)
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
    plan = Commitment(Decimal(usd), known=True)
    assert kept_by_commitment(Decimal(gross), Decimal(2000), plan) == Decimal(kept)


@given(gross=st.decimals(-1000, 1000, places=2), more=USD, usd=st.decimals(0, 5, places=2))
def test_what_is_saved_is_on_demand(gross: Decimal, more: Decimal, usd: Decimal) -> None:
    now = max(gross, Decimal(0)) + more
    kept = kept_by_commitment(gross, now, Commitment(usd, known=True))
    saved = max(gross, Decimal(0)) - kept
    assert 0 <= saved <= max(now - usd * 730, Decimal(0))
    assert 0 <= kept <= usd * 730 + Decimal("0.01")


@given(costs=st.lists(USD, min_size=1, max_size=6), usd=st.decimals(0, 9, places=2))
def test_what_all_endpoints_save_is_what_the_account_buys_on_demand(costs: list[Decimal], usd: Decimal) -> None:
    account, plan = sum(costs, Decimal(0)), Commitment(usd, known=True)
    saved = [cost - kept_by_commitment(cost, cost, share_commitment(plan, cost, account)) for cost in costs]
    assert abs(sum(saved, Decimal(0)) - max(account - usd * 730, Decimal(0))) < Decimal("0.04")
    assert share_commitment(plan, costs[0], None) == plan, "where nobody knows the others, it bears all of it"
