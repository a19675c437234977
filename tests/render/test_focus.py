"""Rows of FOCUS 1.2 have the columns that are mandatory, and values that the specification allows."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.money import MoneyTable, sum_rows
from rightsizer.errors import InputError
from rightsizer.render import focus
from rightsizer.reporting.money import MoneySources, Observed, money_table
from rightsizer.reporting.totals import Records, make_report
from tests.reporting.test_money import MONDAY, seen, tables
from tests.samples import NOW

MANDATORY = {
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd"),
    *("ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity"),
    *("PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
}
"""FOCUS 1.2, feature level "Mandatory"."""
MAY_BE_NULL = {"BillingAccountName", "ChargeClass"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
EMPTY = make_report(Records("1", "eu-west-1", [], [], [], []), MONDAY, NOW, NOW)


def charges(money: MoneyTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(focus.report(replace(EMPTY, money=money)))))


@given(tables())
@settings(max_examples=60)
def test_every_row_is_valid_and_they_add_up_to_what_was_spent(money: MoneyTable) -> None:
    rows = charges(money)
    totals = money.totals()
    assert sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0)) == (totals.spent or 0)
    assert sum((Decimal(row["x_CostWithoutChanges"]) for row in rows), Decimal(0)) == (totals.would_have_cost or 0)
    for row in rows:
        assert all(row[name] for name in MANDATORY - MAY_BE_NULL)
        assert row["ListCost"] == row["ContractedCost"] == row["EffectiveCost"] == row["BilledCost"]
        assert re.fullmatch(r"-?\d+(\.\d+)?", row["BilledCost"])
        assert Decimal(row["PricingQuantity"]) == Decimal(row["ConsumedQuantity"]) > 0
        periods = [
            row[name] for name in ("BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodEnd")
        ]
        assert all(map(TIME.fullmatch, periods))
        assert periods == sorted(periods), "a charge lies in its billing period"
        assert (row["ChargeCategory"], row["ChargeClass"], row["ChargeFrequency"]) == ("Usage", "", "Usage-Based")
        assert (row["ServiceCategory"], row["ServiceSubcategory"]) == ("AI and Machine Learning", "Machine Learning")


def test_the_columns_are_those_that_are_mandatory_and_ours_begin_with_x() -> None:
    assert set(focus.HEADS) >= MANDATORY
    assert all(re.fullmatch(r"x_[A-Z]\w+|[A-Z][A-Za-z]+", name) for name in focus.HEADS)
    assert len(set(focus.HEADS)) == len(focus.HEADS)


def test_a_window_over_the_end_of_a_month_is_two_charges() -> None:
    one = seen(at=datetime(2026, 2, 3, tzinfo=UTC))
    sources = MoneySources("1", "eu-west-1", [one], [], [], Observed())
    start = datetime(2026, 1, 30, tzinfo=UTC)
    money = money_table(sources, (), start, start + timedelta(days=4), one.evaluated_at)
    january, february = charges(money)
    assert (january["ChargePeriodEnd"], january["BilledCost"]) == ("2026-02-01T00:00:00Z", "48.00")
    assert (february["BillingPeriodStart"], february["BillingPeriodEnd"]) == (
        "2026-02-01T00:00:00Z",
        "2026-03-01T00:00:00Z",
    )
    assert january["ResourceId"] == EndpointRef(one.ref.account, "eu-west-1", "rank").arn


def test_a_report_without_its_smaller_endpoints_is_refused() -> None:
    with pytest.raises(InputError, match="the smaller ones are not in this report"):
        charges(replace(EMPTY.money, rest=sum_rows(())))
