"""A report in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification, cost and usage dataset).

One row for each endpoint and calendar month of the window, of the known days alone. The costs are our prices times
hours and no invoice: all four cost columns are the same, and `x_IsEstimate` says so. Columns that need what is not
known here (SKU, unit price, all tags) are left out, as the specification allows where they are conditional.
"""

import csv
import io
from datetime import UTC, datetime, timedelta

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.money import MoneyRow, MonthMoney
from rightsizer.domain.report import Report
from rightsizer.errors import InputError
from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render.csv import safe_cell

HEADS = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency"),
    *("ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingCategory", "PricingQuantity", "PricingUnit"),
    *("ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *("ServiceCategory", "ServiceName", "ServiceSubcategory"),
    *("x_Owner", "x_Environment", "x_InstanceType", "x_CostWithoutChanges", "x_IsEstimate"),
)
AWS = "Amazon Web Services"
UNIT = "Hours"


def report(report: Report) -> str:
    """The rows with a head row, as RFC 4180 asks. `BilledCost` adds up to `spent` of the report's totals.

    InputError where the report is one of which the smaller endpoints were left out.
    """
    if report.money.rest is not None:
        raise InputError(
            "FOCUS needs every endpoint, and the smaller ones are not in this report: ask the stack for it"
        )
    text = io.StringIO()
    rows = csv.DictWriter(text, HEADS)
    rows.writeheader()
    for row in report.money.rows:
        for month in row.months:
            rows.writerow(_charge(row, month))
    return text.getvalue()


def _charge(row: MoneyRow, month: MonthMoney) -> dict[str, object]:
    first = month.start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=31)).replace(day=1)
    hours = f"{month.hours.normalize():f}"
    costs = dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), month.spent)
    return costs | {
        "BillingAccountId": safe_cell(row.account),
        "BillingAccountName": "",
        "BillingCurrency": "USD",
        "BillingPeriodStart": _time(first),
        "BillingPeriodEnd": _time(following),
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargeDescription": safe_cell(f"Instance hours of the endpoint {row.endpoint}, by list price, estimated"),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": _time(month.start),
        "ChargePeriodEnd": _time(month.end),
        "ConsumedQuantity": hours,
        "ConsumedUnit": UNIT,
        "InvoiceIssuerName": AWS,
        "PricingCategory": "Standard",
        "PricingQuantity": hours,
        "PricingUnit": UNIT,
        "ProviderName": AWS,
        "PublisherName": AWS,
        "RegionId": row.region,
        "RegionName": row.region,
        "ResourceId": EndpointRef(row.account, row.region, row.endpoint).arn,
        "ResourceName": safe_cell(row.endpoint),
        "ResourceType": "Endpoint",
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "Amazon SageMaker",
        "ServiceSubcategory": "Machine Learning",
        "x_Owner": safe_cell(row.owner),
        "x_Environment": safe_cell(row.environment),
        "x_InstanceType": safe_cell(row.instance_type),
        "x_CostWithoutChanges": month.would_have_cost,
        "x_IsEstimate": "true",
    }


def _time(at: datetime) -> str:
    """A time as the specification writes it, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


FORMAT = ReportFormat("focus", "text/csv; charset=utf-8", report)
