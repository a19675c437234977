"""Cost Explorer, the Price List, Savings Plans and Service Quotas."""

from collections.abc import Iterator, Mapping

from sandbox.strict import Check, Key, Params, shape, state
from sandbox.strict.words import other_than

CE, PRICING, PLANS, QUOTAS = "ce", "pricing", "savingsplans", "service-quotas"
INVALID = "ValidationException"


def leaves(expression: Params) -> Iterator[Params]:
    """The dimensions in a filter, at every depth."""
    if "Dimensions" in expression:
        yield expression["Dimensions"]
    for inner in [*expression.get("And", []), *expression.get("Or", [])]:
        yield from leaves(inner)
    if "Not" in expression:
        yield from leaves(expression["Not"])


def _operators(expression: Params) -> set[str]:
    inner = [*expression.get("And", []), *expression.get("Or", [])]
    return set(expression).union(*(_operators(one) for one in inner))


def _several_roots(p: Params) -> bool:
    def broken(expression: Params) -> bool:
        inner = [*expression.get("And", []), *expression.get("Or", [])]
        return len(expression) != 1 or any(broken(one) for one in inner)

    return "Filter" in p and broken(p["Filter"])


def _turned(p: Params) -> bool:
    return str(p["TimePeriod"]["Start"]) >= str(p["TimePeriod"]["End"])


_SPAN = (
    Check("turned", "an end that is not after the start", INVALID, _turned),
    Check("roots", "a filter with several operators in one expression", INVALID, _several_roots, source="Expression"),
)

METRICS = frozenset(
    {
        "AmortizedCost",
        "BlendedCost",
        "NetAmortizedCost",
        "NetUnblendedCost",
        "NormalizedUsageAmount",
        "UnblendedCost",
        "UsageQuantity",
    }
)
GROUPED_BY = frozenset(
    {
        "AZ",
        "INSTANCE_TYPE",
        "INVOICING_ENTITY",
        "LEGAL_ENTITY_NAME",
        "LINKED_ACCOUNT",
        "OPERATION",
        "PLATFORM",
        "PURCHASE_TYPE",
        "RECORD_TYPE",
        "SERVICE",
        "TENANCY",
        "USAGE_TYPE",
    }
)
"""Dimensions by which costs can be grouped: no resources, and no Regions."""


def _wrong_groups(p: Params) -> bool:
    rows = p.get("GroupBy", [])
    return any(row.get("Type") == "DIMENSION" and row.get("Key") not in GROUPED_BY for row in rows)


CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (CE, "GetCostAndUsage"): (
        shape(CE, "a date that is none, no metrics, an unknown dimension key"),
        *_SPAN,
        Check("metrics", "a metric that it does not have", INVALID, lambda p: set(p["Metrics"]) - METRICS),
        Check("groups", "more than two groups", INVALID, lambda p: len(p.get("GroupBy", [])) > 2),
        Check("grouped", "a dimension that costs cannot be grouped by", INVALID, _wrong_groups),
    ),
    (PRICING, "GetProducts"): (
        shape(PRICING, "more than 50 filters, another filter type, pages of more than 100"),
        Check(
            "format", "a format other than aws_v1", "InvalidParameterException", other_than("FormatVersion", "aws_v1")
        ),
        state(
            "field", "a filter by an attribute that the service has not (case-sensitive)", "InvalidParameterException"
        ),
        state("token", "a token that it did not give", "InvalidNextTokenException"),
    ),
    (PLANS, "DescribeSavingsPlans"): (
        shape(PLANS, "a state outside its enum, more than 100 ARNs, pages of more than 1,000"),
        state("token", "a token that it did not give", INVALID),
    ),
    (PLANS, "DescribeSavingsPlansOfferingRates"): (
        shape(PLANS, "a plan type, payment option, product or filter outside its enum, pages of more than 1,000"),
        state("token", "a token that it did not give", INVALID),
    ),
    (QUOTAS, "ListServiceQuotas"): (
        shape(QUOTAS, "pages of more than 100, another level"),
        state("service", "a service that has no quotas", "NoSuchResourceException"),
        state("token", "a token that it did not give", "InvalidPaginationTokenException"),
    ),
    (QUOTAS, "ListAWSDefaultServiceQuotas"): (
        shape(QUOTAS, "pages of more than 100"),
        state("service", "a service that has no quotas", "NoSuchResourceException"),
        state("token", "a token that it did not give", "InvalidPaginationTokenException"),
    ),
}
