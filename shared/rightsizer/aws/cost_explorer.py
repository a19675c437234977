"""Bills from Cost Explorer: usage by day and usage type, or by day and the value of a cost-allocation tag.

Sources: API reference of GetCostAndUsage (two groups at most; End is exclusive); AWS Cost Management pricing (USD 0.01
a request, and a page is one). GetCostAndUsageWithResources is not asked: it wants EC2 in its filter, is switched on by
hand, and knows 14 days (its API reference).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from rightsizer.aws.bill_columns import instance_type_of
from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.bill import BilledCharge, BillLevel, BillNature, BillWindow, ChargeKind
from rightsizer.errors import InputError, ReadError

if TYPE_CHECKING:
    from types_boto3_ce import CostExplorerClient

SERVICE = "Amazon SageMaker"
DAY = timedelta(days=1)
MOST_PAGES = 8
"""Requests of one report: USD 0.08 at most."""
METRICS = ("UnblendedCost", "AmortizedCost", "UsageQuantity")
COVERED, NEGATION = "SavingsPlanCoveredUsage", "SavingsPlanNegation"
USAGE_RECORDS = ("Usage", COVERED, "DiscountedUsage")
KINDS: Mapping[str, ChargeKind] = {
    "Credit": ChargeKind.CREDIT,
    "Refund": ChargeKind.REFUND,
    "Tax": ChargeKind.TAX,
    "Enterprise Discount Program Discount": ChargeKind.DISCOUNT,
    "Private Rate Card Discount": ChargeKind.DISCOUNT,
    "Bundled Discount": ChargeKind.DISCOUNT,
}


class CostExplorerBill:
    """Port `BillReader` over Cost Explorer. With `tag` usage is told apart by its values, else by instance type."""

    def __init__(self, client: "CostExplorerClient", tag: str = "") -> None:
        self._client, self._tag = client, tag
        self._days: set[str] = set()
        self._until: datetime | None = None
        self._estimated = True

    def lines(self, scope: BillWindow) -> Iterator[BilledCharge]:
        """The charges of the window's days; one request a page."""
        self._days, self._until, self._estimated = set(), None, False
        for period in self._periods(scope):
            start = _day(period["TimePeriod"]["Start"])
            self._estimated = self._estimated or bool(period.get("Estimated", True))
            for group in period["Groups"]:
                usage_type, other = group["Keys"]
                line = self._line(scope, start, usage_type, other, group["Metrics"])
                if line is None:
                    continue
                if line.kind is ChargeKind.USAGE:
                    self._days.add(f"{start:%Y-%m-%d}")
                    self._until = max(start + DAY, self._until or start)
                yield line

    def nature(self) -> BillNature:
        """Level, days and end of the bill, by the answers."""
        level = BillLevel.TAG if self._tag else BillLevel.TYPE
        return BillNature("Cost Explorer", level, frozenset(self._days), self._until, self._estimated, self._tag)

    def _periods(self, scope: BillWindow) -> Iterator[Mapping[str, Any]]:
        last = scope.end if scope.end == _midnight(scope.end) else _midnight(scope.end) + DAY
        by = {"Type": "TAG", "Key": self._tag} if self._tag else {"Type": "DIMENSION", "Key": "RECORD_TYPE"}
        asked: dict[str, Any] = {
            "TimePeriod": {"Start": f"{scope.start:%Y-%m-%d}", "End": f"{last:%Y-%m-%d}"},
            "Granularity": "DAILY",
            "Metrics": list(METRICS),
            "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}, by],
            "Filter": {"And": [_only(*pair) for pair in self._filters(scope)]},
        }
        for _ in range(MOST_PAGES):
            with translate_read_errors("ce:GetCostAndUsage", "reading the bill from Cost Explorer"):
                page: Any = self._client.get_cost_and_usage(**asked)
            yield from page["ResultsByTime"]
            if not page.get("NextPageToken"):
                return
            asked["NextPageToken"] = page["NextPageToken"]
        raise ReadError(
            f"reading the bill from Cost Explorer: over {MOST_PAGES} pages, at USD 0.01 each; take a shorter window, or"
            " an export of CUR 2.0"
        )

    def _filters(self, scope: BillWindow) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "SERVICE", (SERVICE,)
        yield "REGION", (scope.region,)
        yield "LINKED_ACCOUNT", (scope.account,)
        if self._tag:
            yield "RECORD_TYPE", USAGE_RECORDS

    def _line(
        self, scope: BillWindow, start: datetime, usage_type: str, other: str, metrics: Mapping[str, Any]
    ) -> BilledCharge | None:
        record = "Usage" if self._tag else other
        if record == NEGATION:
            return None
        hosted = instance_type_of(usage_type) if record in USAGE_RECORDS else ""
        cost = metrics["UnblendedCost"]
        return BilledCharge(
            kind=ChargeKind.USAGE if hosted else KINDS.get(record, ChargeKind.OTHER),
            start=start,
            end=start + DAY,
            account=scope.account,
            region=scope.region,
            name=other.partition("$")[2] if self._tag else "",
            instance_type=hosted,
            hours=_amount(metrics["UsageQuantity"]) if hosted else Decimal(0),
            listed=_amount(cost),
            paid=_amount(metrics["AmortizedCost"] if hosted else cost),
            currency=str(cost["Unit"]),
        )


def _only(key: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {"Dimensions": {"Key": key, "Values": list(values)}}


def _amount(metric: Mapping[str, Any]) -> Decimal:
    try:
        found = Decimal(str(metric["Amount"]))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite():
        raise InputError(f"Cost Explorer answers the amount {str(metric['Amount'])[:40]!r}")
    return found


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text[:10]).replace(tzinfo=UTC)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)
