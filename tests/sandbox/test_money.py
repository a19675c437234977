"""Prices, plans and the bill."""

import json
from datetime import timedelta
from typing import Any

import pytest

from sandbox.account import Sandbox
from sandbox.refusals import NotSimulated


def products(box: Sandbox, **filters: str) -> list[Any]:
    rows = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()]
    pages = box.client("pricing", "us-east-1").get_paginator("get_products").paginate(
        ServiceCode="AmazonSageMaker", Filters=rows
    )  # fmt: skip
    return [json.loads(item) for page in pages for item in page["PriceList"]]


def test_a_sloppy_filter_finds_several_components_and_an_exact_one_finds_one(box: Sandbox) -> None:
    sloppy = products(box, regionCode="eu-west-1", instanceName="ml.g5.xlarge")
    assert len({item["product"]["attributes"]["component"] for item in sloppy}) == len(sloppy) > 3
    (exact,) = products(box, regionCode="eu-west-1", instanceName="ml.g5.xlarge", component="Hosting")
    assert exact["product"]["attributes"]["usagetype"] == "EU-Host:ml.g5.xlarge"
    (term,) = exact["terms"]["OnDemand"].values()
    (rate,) = term["priceDimensions"].values()
    assert float(rate["pricePerUnit"]["USD"]) > 1
    (bare,) = products(box, regionCode="eu-west-1", instanceType="ml.g5.xlarge")
    assert bare["product"]["attributes"]["component"] == "Studio-JupyterLab"


def test_price_filters_are_case_sensitive(box: Sandbox) -> None:
    assert products(box, regionCode="eu-west-1", component="hosting") == []


def test_all_hosting_prices_of_a_region_come_in_pages(box: Sandbox) -> None:
    assert len(products(box, regionCode="us-east-1", component="Hosting")) > 100
    assert len(box.calls.of("pricing")) > 1


def test_the_bill_follows_what_ran_and_is_a_day_late(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", 2, created=box.clock.now - timedelta(days=10))
    today = box.clock.now.date()
    answer = box.client("ce").get_cost_and_usage(
        TimePeriod={"Start": str(today - timedelta(days=3)), "End": str(today + timedelta(days=1))},
        Granularity="DAILY", Metrics=["UnblendedCost", "UsageQuantity"],
        GroupBy=[{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
        Filter={"Dimensions": {"Key": "SERVICE", "Values": ["Amazon SageMaker"]}},
    )["ResultsByTime"]  # fmt: skip
    assert answer[0]["Groups"][0]["Keys"] == ["EU-Host:ml.g5.xlarge"]
    assert float(answer[0]["Groups"][0]["Metrics"]["UsageQuantity"]["Amount"]) == 48
    assert [row["Estimated"] for row in answer] == [False, False, True, True]
    assert answer[3]["Groups"] == []


def test_an_account_shows_the_plan_that_it_bought_and_no_forecast(box: Sandbox) -> None:
    assert box.client("savingsplans", "us-east-1").describe_savings_plans()["savingsPlans"] == []
    box.world.plans.buy(100.0)
    (plan,) = box.client("savingsplans", "us-east-1").describe_savings_plans()["savingsPlans"]
    assert float(plan["commitment"]) == 100
    today = box.clock.now.date()
    yesterday = {"Start": str(today - timedelta(days=3)), "End": str(today - timedelta(days=1))}
    with pytest.raises(NotSimulated):
        box.client("ce").get_cost_forecast(TimePeriod=yesterday, Metric="UNBLENDED_COST", Granularity="DAILY")
