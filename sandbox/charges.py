"""What AWS would bill for instances that ran: charges by the hour, and the same bill as CUR 2.0, FOCUS and by day.

Sources: Cost and Usage Reports user guide ("Understanding Savings Plans": covered usage at public prices, a negation of
the same amount, the commitment as a recurring fee); table dictionaries of CUR 2.0, FOCUS 1.0 and 1.2. Instances are
billed by the second. Made from what ran alone: nothing here knows the program that reads a bill.
"""

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
PRODUCT = "AmazonSageMaker"


@dataclass(frozen=True, slots=True)
class Ran:
    """Instances of one endpoint between two times."""

    endpoint: str
    instance_type: str
    start: datetime
    end: datetime
    count: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A SageMaker Savings Plan: its commitment an hour, and the share that it takes off public prices."""

    usd_per_hour: float
    discount: float = 0.31


@dataclass(frozen=True, slots=True)
class Charge:
    """One row of a bill, before it has a format. Kinds are CUR's line item types."""

    kind: str
    start: datetime
    end: datetime
    account: str
    region: str
    service: str = PRODUCT
    usage_type: str = ""
    resource: str = ""
    hours: float = 0.0
    listed: float = 0.0
    effective: float = 0.0
    committed: float = 0.0
    used: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose bill it is, at which prices, under which plan."""

    account: str
    region: str
    prefix: str
    hourly: Callable[[str], float]
    plan: Plan | None = None
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Tags by endpoint."""

    def arn(self, endpoint: str) -> str:
        """The resource's id, in lower case as SageMaker's are."""
        return f"arn:aws:sagemaker:{self.region}:{self.account}:endpoint/{endpoint.lower()}"


def charges(ran: Iterable[Ran], payer: Payer, start: datetime, end: datetime) -> Iterator[Charge]:
    """The charges of every hour from `start` to `end`. The plan covers what runs, in the order of the endpoints."""
    runs = sorted(ran, key=lambda one: (one.endpoint, one.start))
    at = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while at < end:
        yield from _hour(runs, payer, at)
        at += HOUR


def _hour(runs: list[Ran], payer: Payer, at: datetime) -> Iterator[Charge]:
    plan, left = payer.plan, payer.plan.usd_per_hour if payer.plan else 0.0
    for one in runs:
        seconds = (min(one.end, at + HOUR) - max(one.start, at)).total_seconds()
        if seconds <= 0:
            continue
        hours = one.count * seconds / 3600
        listed = hours * payer.hourly(one.instance_type)
        rate = 1 - plan.discount if plan else 1.0
        share = min(1.0, left / (listed * rate)) if plan and listed else 0.0
        left -= share * listed * rate
        yield from _usage(one, payer, at, (hours, listed, rate), share)
    if plan:
        yield Charge(
            "SavingsPlanRecurringFee", at, at + HOUR, payer.account, payer.region, "MachineLearningSavingsPlans",
            effective=left, committed=plan.usd_per_hour, used=plan.usd_per_hour - left,
        )  # fmt: skip


def _usage(one: Ran, payer: Payer, at: datetime, costs: tuple[float, float, float], share: float) -> Iterator[Charge]:
    hours, listed, rate = costs
    tags = payer.tags.get(one.endpoint, {})
    where = (payer.account, payer.region, PRODUCT, f"{payer.prefix}-Host:{one.instance_type}", payer.arn(one.endpoint))
    if share:
        covered = listed * share
        yield Charge(
            "SavingsPlanCoveredUsage", at, at + HOUR, *where, hours * share, covered, covered * rate, tags=tags
        )
        yield Charge("SavingsPlanNegation", at, at + HOUR, *where, 0.0, -covered, 0.0, tags=tags)
    if share < 1:
        rest = 1 - share
        yield Charge("Usage", at, at + HOUR, *where, hours * rest, listed * rest, listed * rest, tags=tags)


CUR_HEADS = (
    "bill_invoice_id", "identity_line_item_id", "line_item_line_item_type", "line_item_product_code",
    "line_item_usage_account_id", "line_item_usage_start_date", "line_item_usage_end_date", "line_item_usage_type",
    "line_item_resource_id", "line_item_usage_amount", "line_item_unblended_cost", "line_item_currency_code",
    "pricing_public_on_demand_cost", "product_region_code", "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date", "savings_plan_used_commitment", "savings_plan_offering_type",
)  # fmt: skip


def cur_rows(found: Iterable[Charge], currency: str = "USD", invoice: str = "") -> Iterator[list[object]]:
    """The rows of CUR 2.0 under `CUR_HEADS`."""
    for number, one in enumerate(found):
        covered = one.kind == "SavingsPlanCoveredUsage"
        usage = covered or one.kind == "Usage"
        fee = one.kind == "SavingsPlanRecurringFee"
        unblended = one.committed if fee else one.listed
        yield [
            invoice, f"line{number}", one.kind, one.service, one.account, _iso(one.start), _iso(one.end),
            one.usage_type, one.resource, f"{one.hours:.10f}", f"{unblended:.10f}", currency,
            f"{one.listed:.10f}" if usage else "", "" if one.kind == "Tax" else one.region,
            f"{one.effective:.10f}" if covered else "0",
            f"{one.committed:.10f}" if fee else "0", f"{one.used:.10f}" if fee else "0",
            "SageMakerSavingsPlans" if fee or covered else "",
        ]  # fmt: skip


FOCUS_HEADS = (
    "BilledCost", "BillingCurrency", "ChargeCategory", "ChargeClass", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "ConsumedQuantity", "EffectiveCost", "ListCost", "RegionId",
    "ResourceId", "ServiceName", "SubAccountId", "x_ServiceCode", "x_UsageType",
)  # fmt: skip
SERVICES = {PRODUCT: "Amazon SageMaker"}
"""Names of services where they are not their codes."""
_CATEGORIES = {"Credit": "Credit", "Tax": "Tax", "Refund": "Usage"}


def focus_rows(found: Iterable[Charge], currency: str = "USD") -> Iterator[list[object]]:
    """The rows of FOCUS 1.0 under `FOCUS_HEADS`: no negations; what is covered is billed at 0 and has its cost."""
    for one in found:
        if one.kind == "SavingsPlanNegation":
            continue
        covered, fee = one.kind == "SavingsPlanCoveredUsage", one.kind == "SavingsPlanRecurringFee"
        if fee and not one.effective:
            continue
        usage = covered or fee or one.kind == "Usage"
        yield [
            f"{0.0 if covered or fee else one.listed:.10f}", currency, _CATEGORIES.get(one.kind, "Usage"),
            "Correction" if one.kind == "Refund" else "", _iso(one.end), _iso(one.start),
            "Unused" if fee else "Used" if covered else "", "SageMaker Savings Plan" if fee or covered else "",
            f"{one.hours:.10f}" if usage else "", f"{one.effective if usage else one.listed:.10f}",
            f"{one.listed:.10f}", one.region, one.resource, SERVICES.get(one.service, one.service),
            one.account, one.service, one.usage_type,
        ]  # fmt: skip


def written(heads: Iterable[str], rows: Iterable[list[object]], *, packed: bool = False) -> bytes:
    """A file of an export."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(heads)
    lines.writerows(rows)
    body = text.getvalue().encode()
    return gzip.compress(body, 1) if packed else body


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
