"""The columns of AWS's bills, and how a row under them becomes a charge: CUR 2.0 (and CUR), FOCUS 1.0 and later."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import ClassVar

from rightsizer.domain.bill import BilledCharge, BillLevel, BillNature, ChargeKind
from rightsizer.errors import InputError

type BillRow = Sequence[str]

PRODUCT = "AmazonSageMaker"
HOSTED = re.compile(r"(?:^|-)(?:Host|AsyncInf):(ml\.[a-z0-9.-]+)$")
"""Usage types of endpoints' instance hours, such as ``EUW1-Host:ml.g5.xlarge``; us-east-1's may have no prefix."""
MOST_USD = Decimal(1_000_000_000)
"""Of one row; beyond it is no amount of a bill."""
NONE = Decimal(0)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def instance_type_of(usage_type: str) -> str:
    """The instance type of an endpoint's usage; empty for all other usage."""
    found = HOSTED.search(usage_type)
    return found[1] if found else ""


def endpoint_of(resource: str) -> str:
    """Name of the endpoint that a resource's ARN names, in lower case as ARNs of SageMaker are; empty for others."""
    _, found, name = resource.rpartition(":endpoint/")
    return name.lower() if found else ""


@lru_cache(maxsize=4096)
def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(f"{text[:40]!r} is no time; it should be such as 2026-11-20T05:00:00Z") from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


class BillColumns(ABC):
    """Reads the rows of one file, and remembers how far the bill goes.

    `before` is what read the file before it.
    """

    source: ClassVar[str]
    mark: ClassVar[str]
    """A column that no other format has."""
    needed: ClassVar[Sequence[str]]
    advice: ClassVar[str]

    def __init__(self, name: str, heads: BillRow, before: "BillColumns | None" = None) -> None:
        if before is not None and before.source != self.source:
            raise InputError(f"{name} is {self.source}, and the file before it {before.source}; name one export")
        names = [self.head(one) for one in heads]
        self._at: Mapping[str, int] = {one: place for place, one in enumerate(names)}
        missing = [one for one in self.needed if one not in self._at]
        if missing:
            raise InputError(
                f"{name}: the column{'s' * (len(missing) > 1)} {', '.join(missing)} missing; {self.advice}"
            )
        self.days: set[str] = before.days if before else set()
        self.until: datetime | None = before.until if before else None
        self.open_rows: bool = before.open_rows if before else False

    @staticmethod
    def head(name: str) -> str:
        """The name of a column as this program writes it."""
        return name.strip()

    @classmethod
    def fits(cls, heads: BillRow) -> bool:
        """Whether a file with these columns is of this format."""
        return cls.mark in {cls.head(one) for one in heads}

    @abstractmethod
    def line(self, cells: BillRow) -> BilledCharge | None:
        """The charge of a row; None where it is of another service."""

    def nature(self) -> BillNature:
        """Format, days and end of the bill, by the rows so far."""
        return BillNature(self.source, BillLevel.ENDPOINT, frozenset(self.days), self.until, self.open_rows)

    def text(self, cells: BillRow, *names: str) -> str:
        """The first of these columns that has something in it; empty where none has."""
        for name in names:
            at = self._at.get(name)
            if at is not None and cells[at]:
                return cells[at]
        return ""

    def amount(self, cells: BillRow, *names: str) -> Decimal:
        """A number; 0 where no column of these has one. InputError names the column."""
        text = self.text(cells, *names)
        if not text:
            return NONE
        try:
            found = Decimal(text)
        except InvalidOperation:
            found = Decimal("NaN")
        if not found.is_finite() or abs(found) > MOST_USD:
            raise InputError(f"{names[0]} is {text[:40]!r}, which is no amount")
        return found

    def watch(self, cells: BillRow, start: str, end: str, *, is_usage: bool) -> tuple[datetime, datetime]:
        """Begin and end of the row; usage tells how far the bill goes."""
        begin, until = _moment(cells[self._at[start]]), _moment(cells[self._at[end]])
        if until < begin:
            raise InputError(f"{end} lies before {start}")
        if is_usage:
            self.days.add(f"{begin:%Y-%m-%d}")
            self.until = until if self.until is None else max(until, self.until)
        return begin, until


class CurColumns(BillColumns):
    """CUR 2.0; also CUR, whose columns have the same names in another spelling."""

    source = "CUR 2.0"
    mark = "line_item_line_item_type"
    needed = (
        "line_item_product_code",
        "line_item_usage_type",
        "line_item_usage_start_date",
        "line_item_usage_end_date",
        "line_item_usage_account_id",
        "line_item_usage_amount",
        "line_item_unblended_cost",
        "line_item_currency_code",
        "product_region_code",
        "savings_plan_savings_plan_effective_cost",
    )
    advice = "create the export with the columns that docs/bill.md lists"

    @staticmethod
    def head(name: str) -> str:
        """``lineItem/UsageAmount`` of CUR is ``line_item_usage_amount`` of CUR 2.0."""
        found = _WORDS.sub("_", name.strip().replace("/", "_")).lower()
        return {"product_region": "product_region_code"}.get(found, found)

    def line(self, cells: BillRow) -> BilledCharge | None:
        """The charge of a row. Negations of Savings Plans are none: they take back what covered usage lists."""
        kind = self.text(cells, "line_item_line_item_type")
        covered = kind == "SavingsPlanCoveredUsage"
        is_usage = covered or kind in ("Usage", "DiscountedUsage")
        start, end = self.watch(cells, "line_item_usage_start_date", "line_item_usage_end_date", is_usage=is_usage)
        if self.text(cells, "line_item_product_code") != PRODUCT:
            return self._fee(cells, kind, start, end)
        if kind == "SavingsPlanNegation":
            return None
        self.open_rows = self.open_rows or not self.text(cells, "bill_invoice_id")
        cost = self.amount(cells, "line_item_unblended_cost")
        hosted = instance_type_of(self.text(cells, "line_item_usage_type")) if is_usage else ""
        listed = self.amount(cells, "pricing_public_on_demand_cost") or cost
        return BilledCharge(
            kind=ChargeKind.USAGE if hosted else CUR_KINDS.get(kind, ChargeKind.OTHER),
            start=start,
            end=end,
            account=self.text(cells, "line_item_usage_account_id"),
            region=self.text(cells, "product_region_code"),
            name=endpoint_of(self.text(cells, "line_item_resource_id")),
            instance_type=hosted,
            hours=self.amount(cells, "line_item_usage_amount") if hosted else NONE,
            listed=listed if hosted else cost,
            paid=self.amount(cells, "savings_plan_savings_plan_effective_cost") if covered else cost,
            currency=self.text(cells, "line_item_currency_code") or "no currency",
        )

    def _fee(self, cells: BillRow, kind: str, start: datetime, end: datetime) -> BilledCharge | None:
        """Commitment of a SageMaker Savings Plan that covered nothing; None for all else."""
        if kind != "SavingsPlanRecurringFee" or "SageMaker" not in self.text(cells, "savings_plan_offering_type"):
            return None
        unused = self.amount(cells, "savings_plan_total_commitment_to_date") - self.amount(
            cells, "savings_plan_used_commitment"
        )
        account = self.text(cells, "line_item_usage_account_id")
        return _aside(ChargeKind.UNUSED_PLAN, start, end, account, unused, self.text(cells, "line_item_currency_code"))


CUR_KINDS: Mapping[str, ChargeKind] = {
    "Credit": ChargeKind.CREDIT,
    "Refund": ChargeKind.REFUND,
    "Tax": ChargeKind.TAX,
    "EdpDiscount": ChargeKind.DISCOUNT,
    "PrivateRateDiscount": ChargeKind.DISCOUNT,
    "BundledDiscount": ChargeKind.DISCOUNT,
    "Discount": ChargeKind.DISCOUNT,
}


class FocusColumns(BillColumns):
    """FOCUS 1.0 and later, as AWS exports it."""

    source = "FOCUS"
    mark = "ChargeCategory"
    needed = (
        "ChargePeriodStart",
        "ChargePeriodEnd",
        "SubAccountId",
        "RegionId",
        "ServiceName",
        "ListCost",
        "EffectiveCost",
        "BilledCost",
        "BillingCurrency",
        "ConsumedQuantity",
        "ResourceId",
    )
    advice = "create the export of the table FOCUS_1_2_AWS or FOCUS_1_0_AWS with all its columns"

    def line(self, cells: BillRow) -> BilledCharge | None:
        """The charge of a row. What a commitment covers has its share of it as effective cost."""
        kind = self.text(cells, "ChargeCategory")
        unused = self.text(cells, "CommitmentDiscountStatus") == "Unused"
        is_usage = kind == "Usage" and not unused and self.text(cells, "ChargeClass") != "Correction"
        start, end = self.watch(cells, "ChargePeriodStart", "ChargePeriodEnd", is_usage=is_usage)
        account, paid = self.text(cells, "SubAccountId"), self.amount(cells, "EffectiveCost")
        currency = self.text(cells, "BillingCurrency") or "no currency"
        if unused:
            of_ours = "sagemaker" in self.text(cells, "CommitmentDiscountType", "CommitmentDiscountName").lower()
            return _aside(ChargeKind.UNUSED_PLAN, start, end, account, paid, currency) if of_ours else None
        service = self.text(cells, "x_ServiceCode", "ServiceName")
        if service != PRODUCT and "SageMaker" not in service:
            return None
        self.open_rows = self.open_rows or not self.text(cells, "InvoiceId")
        hosted = instance_type_of(self.text(cells, "x_UsageType", "SkuMeter")) if is_usage else ""
        billed = self.amount(cells, "BilledCost")
        return BilledCharge(
            kind=ChargeKind.USAGE if hosted else self._kind(cells, kind, is_usage),
            start=start,
            end=end,
            account=account,
            region=self.text(cells, "RegionId"),
            name=endpoint_of(self.text(cells, "ResourceId")),
            instance_type=hosted,
            hours=self.amount(cells, "ConsumedQuantity", "PricingQuantity") if hosted else NONE,
            listed=self.amount(cells, "ListCost") if hosted else billed,
            paid=paid if hosted else billed,
            currency=currency,
        )

    def _kind(self, cells: BillRow, category: str, is_usage: bool) -> ChargeKind:
        if self.text(cells, "ChargeClass") == "Correction" or category == "Adjustment":
            return ChargeKind.REFUND
        if is_usage:
            return ChargeKind.OTHER
        return {"Credit": ChargeKind.CREDIT, "Tax": ChargeKind.TAX}.get(category, ChargeKind.OTHER)


def _aside(kind: ChargeKind, start: datetime, end: datetime, account: str, usd: Decimal, currency: str) -> BilledCharge:
    return BilledCharge(kind, start, end, account, "", "", "", NONE, usd, usd, currency)


BILL_FORMATS: Sequence[type[BillColumns]] = (CurColumns, FocusColumns)
