"""Charges of AWS's bill, and what a report's figures are worth against them.

Three amounts of one usage: what it costs at public prices (`listed`), what the account pays for it once Savings Plans
are spread over what they cover (`paid`), and what the report's table believed (`spent`). Only the first is compared
with the table, whose prices are public ones too. Credits, refunds, taxes, discounts of a contract and unused commitment
are kept apart: no endpoint caused them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.checks import aware, money, not_empty
from rightsizer.domain.price import CENT

CURRENCY = "USD"
"""Of every figure of a report. A bill in another currency is not compared: no rate of exchange is assumed."""


class ChargeKind(StrEnum):
    """Kinds of charges that a bill is made of."""

    USAGE = "usage"
    """Instance hours, covered by a Savings Plan or not."""
    CREDIT = "credit"
    REFUND = "refund"
    TAX = "tax"
    DISCOUNT = "discount"
    """Of a contract with AWS, as a row of its own."""
    UNUSED_PLAN = "unused Savings Plan"
    """Commitment that was paid, and covered nothing."""
    OTHER = "other SageMaker charges"
    """Training, notebooks, storage and all else of the service that is no instance hour of an endpoint."""


@dataclass(frozen=True, slots=True)
class BilledCharge:
    """One charge of SageMaker, whichever format it was read from."""

    kind: ChargeKind
    start: datetime
    end: datetime
    account: str
    region: str
    name: str
    """Endpoint, or value of the tag; empty where the bill names none."""
    instance_type: str
    """Empty for all but usage."""
    hours: Decimal
    listed: Decimal
    """At public On-Demand prices; the amount itself for what is no usage."""
    paid: Decimal
    currency: str = CURRENCY

    def __post_init__(self) -> None:
        aware("BilledCharge.start", self.start)


class BillLevel(StrEnum):
    """Things that the usage of a bill can be told apart by."""

    ENDPOINT = "endpoint"
    TYPE = "instance type"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class BillWindow:
    """Account, Region and time that a bill is asked for."""

    account: str
    region: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class BillNature:
    """Format, level and reach of a bill, known once it was read to its end."""

    source: str
    """``CUR 2.0``, ``FOCUS``, ``Cost Explorer``."""
    level: BillLevel
    days: frozenset[str]
    """Days, ``2026-11-20``, of which the bill has any usage of any service."""
    until: datetime | None
    """End of the latest usage in it; None where it has none."""
    provisional: bool
    """Whether AWS may still rewrite it: no invoice was issued."""
    tag: str = ""
    """Key of the cost-allocation tag, where `level` is TAG."""


@dataclass(frozen=True, slots=True)
class ReconciledRow:
    """One endpoint, group of instance types or value of a tag, over the days that bill and table both know."""

    name: str
    endpoints: int
    """Endpoints of the table in it."""
    days: int
    """Days that are compared."""
    hours: Decimal
    """Instance hours of the bill."""
    spent: Decimal
    """US dollars by our prices and hours."""
    billed: Decimal
    """US dollars of the billed hours at public prices."""
    paid: Decimal
    """US dollars that the account pays for these hours, Savings Plans spread over what they cover."""
    would_have_cost: Decimal
    """US dollars without our changes, by our prices and hours."""
    reconciled: Decimal
    """Saving against the bill: `would_have_cost` less `billed`; 0 where no change was in force."""
    promised: Decimal | None = None
    """US dollars that the estimates of the changes promised for these days; None where no promise is known."""
    account: str = ""
    region: str = ""
    """Where it runs; empty of a sum, and of rows that an older release stored."""

    def __post_init__(self) -> None:
        not_empty("ReconciledRow.name", self.name)
        for name in ("spent", "billed", "paid", "would_have_cost"):
            money(f"ReconciledRow.{name}", getattr(self, name))

    @property
    def difference(self) -> Decimal:
        """Billed less spent: above zero where the table was too low."""
        return self.billed - self.spent

    @property
    def realised(self) -> Decimal:
        """Saving of these days by our prices and hours."""
        return self.would_have_cost - self.spent

    @property
    def cost_error(self) -> float | None:
        """Share by which `spent` was too high, below zero where too low; None where nothing was billed."""
        return float(-self.difference / self.billed) if self.billed else None

    @property
    def estimate_error(self) -> float | None:
        """Share by which the promise was too high against the bill; None where there is none, or nothing was saved."""
        if self.promised is None or self.reconciled <= 0:
            return None
        return float((self.promised - self.reconciled) / self.reconciled)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A report against the bill, or why it was not compared."""

    reason: str = ""
    """Why nothing was reconciled; empty where something was."""
    source: str = ""
    level: BillLevel = BillLevel.ENDPOINT
    days: int = 0
    """Days of the window that the bill knows whole."""
    provisional: bool = True
    rows: tuple[ReconciledRow, ...] = ()
    """The largest difference first."""
    unmatched: Decimal = Decimal(0)
    """US dollars at public prices of endpoint hours that are in no row: of endpoints or days that the table lacks."""
    aside: tuple[tuple[str, Decimal], ...] = ()
    """Credits, taxes and the like of the same days, by their kind: in no row."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """What a reader of the figures has to know, a sentence each."""

    @property
    def whole(self) -> ReconciledRow | None:
        """The sum of the rows; None where there is none."""
        return add_rows(self.rows) if self.rows else None


def add_rows(rows: Iterable[ReconciledRow]) -> ReconciledRow:
    """The sum of rows, of which there is at least one; `days` are the most of any."""
    found = list(rows)
    promises = [row.promised for row in found if row.promised is not None]
    is_promised = all(row.promised is not None for row in found if row.realised)
    return ReconciledRow(
        name="all",
        endpoints=sum(row.endpoints for row in found),
        days=max(row.days for row in found),
        hours=sum((row.hours for row in found), Decimal(0)),
        spent=_cents(row.spent for row in found),
        billed=_cents(row.billed for row in found),
        paid=_cents(row.paid for row in found),
        would_have_cost=_cents(row.would_have_cost for row in found),
        reconciled=_cents(row.reconciled for row in found),
        promised=_cents(promises) if promises and is_promised else None,
    )


def _cents(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0)).quantize(CENT)
