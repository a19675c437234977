"""The Price List Query API and the Savings Plans API, from the dated snapshot of the catalogue.

Sources: API reference of Pricing GetProducts; attributes of SageMaker's products as AWS's own tools read them (see
docs/data-sources.md). Filter values are case-sensitive; each item is a JSON string; a filter on type and Region alone
returns every component of that type. SKUs are made up, prices are the snapshot's.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from rightsizer import catalog
from sandbox.paging import page
from sandbox.refusals import AwsRefusal, NotSimulated
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]

PREFIXES = {
    "us-east-1": "USE1", "us-east-2": "USE2", "us-west-1": "USW1", "us-west-2": "USW2", "eu-west-1": "EU",
    "eu-west-2": "EUW2", "eu-west-3": "EUW3", "eu-central-1": "EUC1", "eu-north-1": "EUN1", "ap-northeast-1": "APN1",
    "ap-northeast-2": "APN2", "ap-southeast-1": "APS1", "ap-southeast-2": "APS2", "ap-south-1": "APS3",
    "ca-central-1": "CAN1", "sa-east-1": "SAE1",
}  # fmt: skip
"""Billing codes of Regions; eu-west-1 has no number."""
# component, suffix of instanceType, code in the usage type, price relative to hosting
_COMPONENTS = (
    ("Hosting", "-Hosting", "Host", 1.0), ("Training", "-Training", "Train", 1.0),
    ("Processing", "-Processing", "Processing", 1.0), ("BatchTransform", "-BatchTransform", "Tsform", 1.0),
    ("Notebook", "-Notebook", "Notebk", 0.97), ("Studio-JupyterLab", "", "Studio:JupyterLab", 0.96),
    ("AsyncInf", "-AsyncInf", "AsyncInf", 1.0),
)  # fmt: skip
PUBLISHED = "2026-09-01T00:00:00Z"


class Pricing:
    """GetProducts."""

    def GetProducts(self, p: Params) -> Params:
        """Products that match all filters; items are JSON strings, pages of 100 at most."""
        if p["ServiceCode"] != "AmazonSageMaker":
            raise NotSimulated(f"prices of {p['ServiceCode']}: AmazonSageMaker's are")
        found = list(_products(_regions(p)))
        for wanted in p.get("Filters", []):
            if wanted["Type"] not in {"TERM_MATCH", "EQUALS"}:
                raise NotSimulated(f"the price filter {wanted['Type']}")
            if wanted["Field"] not in _fields() and on("GetProducts", "field"):
                # [assumed] text; DescribeServices lists the attributes of a service, in their letter case
                raise AwsRefusal("InvalidParameterException", f"AmazonSageMaker has no attribute {wanted['Field']}")
            found = [item for item in found if _attribute(item, wanted["Field"]) == wanted["Value"]]
        size = min(p.get("MaxResults") or 100, 100)
        shown, token = page(found, p.get("NextToken"), size, "InvalidNextTokenException", "GetProducts")
        answer = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(item) for item in shown]}
        return answer | ({"NextToken": token} if token else {})


def _regions(p: Params) -> tuple[str, ...]:
    named = [row["Value"] for row in p.get("Filters", []) if row["Field"] == "regionCode"]
    known = catalog.priced_regions()
    return tuple(region for region in (named or sorted(known)) if region in known)


@cache
def _fields() -> frozenset[str]:
    """The attributes by which the products can be filtered."""
    some = next(_products(tuple(sorted(catalog.priced_regions()))))
    return frozenset({*some["product"]["attributes"], "productFamily", "ServiceCode"})


def _attribute(item: Params, field: str) -> str | None:
    product = item["product"]
    found: str | None = product["productFamily"] if field == "productFamily" else product["attributes"].get(field)
    return found


def _products(regions: tuple[str, ...]) -> Iterator[Params]:
    for region in regions:
        yield from _of_region(region)


@cache
def _of_region(region: str) -> tuple[Params, ...]:
    rows = [row for row in catalog.prices(region) if row.listed]
    return tuple(
        _item(region, row.instance_type, float(row.usd_per_hour) * factor, component, suffix, code)
        for row in rows
        for component, suffix, code, factor in _COMPONENTS
    )


def _item(region: str, kind: str, usd: float, component: str, suffix: str, code: str) -> Params:
    sku = hashlib.sha256(f"{region}{kind}{component}".encode()).hexdigest()[:16].upper()
    usage = f"{PREFIXES.get(region, region.upper())}-{code}:{kind}"
    rate = {
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7", "unit": "Hrs", "beginRange": "0", "endRange": "Inf",
        "description": f"${usd:.4g} per {component} {kind} hour in {region}", "appliesTo": [],
        "pricePerUnit": {"USD": f"{usd:.10f}"},
    }  # fmt: skip
    term = {
        "sku": sku, "offerTermCode": "JRTCKXETXF", "effectiveDate": PUBLISHED, "termAttributes": {},
        "priceDimensions": {rate["rateCode"]: rate},
    }  # fmt: skip
    attributes = {
        "servicecode": "AmazonSageMaker", "servicename": "Amazon SageMaker", "regionCode": region,
        "locationType": "AWS Region", "instanceName": kind, "instanceType": f"{kind}{suffix}", "component": component,
        "platoinstancetype": component, "platoinstancename": kind.split(".")[1], "usagetype": usage,
        "operation": "RunInstance", "vCpu": "N/A", "memory": "N/A", "gpu": "N/A", "currentGeneration": "Yes",
    }  # fmt: skip
    return {
        "product": {"productFamily": "ML Instance", "sku": sku, "attributes": attributes},
        "serviceCode": "AmazonSageMaker", "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
        "version": "20260901000000", "publicationDate": PUBLISHED,
    }  # fmt: skip


class SavingsPlans:
    """DescribeSavingsPlans. An account has none unless a test buys one."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.plans: list[Params] = []

    def buy(self, usd_per_hour: float, kind: str = "SageMaker") -> None:
        """Buy a plan with this commitment, active since a year."""
        plan_id = self._world.unique()
        self.plans.append(
            {
                "savingsPlanId": plan_id,
                "savingsPlanArn": f"arn:aws:savingsplans::{self._world.account}:savingsplan/{plan_id}",
                "state": "active", "savingsPlanType": kind, "currency": "USD",
                "commitment": f"{usd_per_hour:.8f}", "region": self._world.region, "paymentOption": "No Upfront",
                "productTypes": ["SageMaker"], "termDurationInSeconds": 94608000,
                "start": "2025-11-01T00:00:00.000Z", "end": "2028-10-31T23:59:59.000Z",
            }
        )  # fmt: skip

    def DescribeSavingsPlans(self, p: Params) -> Params:
        """Plans in these states."""
        if p.get("filters"):
            raise NotSimulated("filters of DescribeSavingsPlans; states are")
        states = p.get("states") or ["active"]
        found = [plan for plan in self.plans if plan["state"] in states]
        shown, token = page(found, p.get("nextToken"), p.get("maxResults") or 100, operation="DescribeSavingsPlans")
        return {"savingsPlans": shown} | ({"nextToken": token} if token else {})

    def DescribeSavingsPlansOfferingRates(self, p: Params) -> Params:
        """Rates of plans by Region, payment and type of plan, for each component: pages of 100, or as asked.

        Discounts are [assumed]: 31 % is the one official rate that is known, for a year with a part upfront.
        """
        if set(p) - RATE_FILTERS:
            raise NotSimulated(f"rates of plans by {sorted(set(p) - RATE_FILTERS)}")
        regions = [value for row in p.get("filters", []) if row["name"] == "region" for value in row["values"]]
        if [row for row in p.get("filters", []) if row["name"] != "region"] or not regions:
            raise NotSimulated("rates of plans by other filters than the Region")
        wanted = p.get("savingsPlanPaymentOptions") or list(DISCOUNTS)
        ours = "SageMaker" in p.get("savingsPlanTypes", ["SageMaker"]) and "SageMaker" in p.get(
            "products", ["SageMaker"]
        )
        rows = [
            row
            for region in regions
            if ours
            for option in wanted
            for years in (1, 3)
            for row in _rates(region, option, years)
        ]
        named = "DescribeSavingsPlansOfferingRates"
        shown, token = page(rows, p.get("nextToken"), p.get("maxResults") or 100, operation=named)
        return {"searchResults": shown} | ({"nextToken": token} if token else {})


RATE_FILTERS = frozenset(
    {"savingsPlanPaymentOptions", "savingsPlanTypes", "products", "serviceCodes", "filters", "nextToken", "maxResults"}
)
DISCOUNTS = {"No Upfront": 0.28, "Partial Upfront": 0.31, "All Upfront": 0.33}
"""Of a year; three years have ten points more."""


@cache
def _rates(region: str, option: str, years: int) -> tuple[Params, ...]:
    """The rate of each component of each type that is sold in the Region."""
    prefix, less = PREFIXES.get(region, region.upper()), 1 - DISCOUNTS[option] - (0.1 if years == 3 else 0.0)
    offering = {
        "offeringId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{region}{option}{years}")), "paymentOption": option,
        "planType": "SageMaker", "durationSeconds": years * 31_536_000, "currency": "USD",
        "planDescription": f"{years} year {option} SageMaker Savings Plan",
    }  # fmt: skip
    return tuple(
        {
            "savingsPlanOffering": offering, "rate": f"{float(row.usd_per_hour) * factor * less:.6f}", "unit": "Hrs",
            "productType": "SageMaker", "serviceCode": "AmazonSageMaker", "operation": "RunInstance",
            "usageType": f"{prefix}-{code}:{row.instance_type}", "properties": [{"name": "region", "value": region}],
        }
        for row in catalog.prices(region)
        if row.listed
        for _, _, code, factor in _COMPONENTS
    )  # fmt: skip


def hourly(region: str, kind: str) -> float:
    """The hosting price of a type, or a refusal when the snapshot has none."""
    for row in catalog.prices(region):
        if row.instance_type == kind:
            return float(row.usd_per_hour)
    raise AwsRefusal("DataUnavailableException", f"no price of {kind} in {region} in the snapshot")
