"""Figures of a weekly report: spent, wasted, saved from found to proven, and rightsizer's own cost."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from rightsizer.domain.account_finding import AccountFinding
from rightsizer.domain.bill import Reconciliation
from rightsizer.domain.checks import money, not_empty
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.money import MoneyTable, Saving, Totals
from rightsizer.domain.outcome import LedgerEntry, Occurrence, TrackRecord, UnreadRow
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Pack, Recommendation

SHOWN = 200
"""Rows of one kind in the page and in the JSON: the largest by money. All endpoints are in the CSV and JSON lines."""


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """Use of one Lambda function in a window, as CloudWatch counted it (namespace AWS/Lambda)."""

    name: str
    memory_mb: int
    invocations: int
    duration_ms: float
    """Sum over the invocations. Lambda bills this rounded up to whole milliseconds, and the start of the runtime."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Parameters of the stack that its own cost depends on."""

    arm: bool = True
    """Whether the functions run on arm64."""
    grouped_alarm: bool = False


@dataclass(frozen=True, slots=True)
class CostLine:
    """One part of the running cost."""

    what: str
    usd: Decimal
    how: str
    """The figures behind it, with units and the unit price."""

    def __post_init__(self) -> None:
        not_empty("CostLine.what", self.what)
        money("CostLine.usd", self.usd)


@dataclass(frozen=True, slots=True)
class RunningCost:
    """An estimate for one window, with what it rests on."""

    lines: tuple[CostLine, ...]
    basis: str
    """Where the unit prices come from, their date, and what is not in the sum."""

    @property
    def usd(self) -> Decimal:
        """The sum of the lines."""
        return sum((line.usd for line in self.lines), Decimal(0))


@dataclass(frozen=True, slots=True)
class HoursSaving:
    """Saving of the office hours of one endpoint in a window, against running always."""

    endpoint: str
    owner: str
    stopped_hours: float
    ran_hours: float
    usd: Decimal | None
    """What the instances that ran right before each stop would have cost in the stopped hours; None without a price."""
    ran_usd: Decimal | None
    """What those of the last stop cost in the hours that ran; None without a price."""
    priced_by: str
    """Price, source and date of each instance type; before commitments, which go on being billed."""

    def __post_init__(self) -> None:
        not_empty("HoursSaving.endpoint", self.endpoint)


@dataclass(frozen=True, slots=True)
class SinceLast:
    """Figures of the report of the window before, and the endpoints that came, went or changed since."""

    start: datetime
    end: datetime
    totals: Totals
    appeared: tuple[str, ...] = ()
    """Endpoints that the earlier report had no spend of. Empty, as the next two, where it or this one has too many."""
    gone: tuple[str, ...] = ()
    moved: tuple[tuple[str, Decimal], ...] = ()
    """Endpoints that cost another amount a month now, and how much more, US dollars; the largest first."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report of one account and Region over one window."""

    account: str
    region: str
    start: datetime
    end: datetime
    made_at: datetime
    totals: Totals
    recommendations: tuple[Recommendation, ...]
    funnel: tuple[Saving, ...]
    """Every saving of the window at its stage, the largest first."""
    proposals: tuple[Proposal, ...]
    """Asked, decided or ended in the window, or open at its end."""
    ledger: tuple[LedgerEntry, ...]
    occurrences: tuple[Occurrence, ...]
    unobserved: tuple[tuple[EndpointRef, Reason], ...] = ()
    running_cost: RunningCost | None = None
    """What rightsizer itself cost in the window, as an estimate; None when it is not known."""
    price_sources: tuple[str, ...] = ()
    packs: tuple[Pack, ...] = ()
    """Small endpoints that would fit on one card together; instead of their own options, not on top of them."""
    money: MoneyTable = field(default_factory=MoneyTable)
    """The one table of money, which all sums come from."""
    since_last: SinceLast | None = None
    """None where the report of the window before is not stored, or cannot be read."""
    track_record: TrackRecord | None = None
    """Slowdowns and risks as promised and as they turned out, over half a year; None in reports older than it."""
    not_shown: int = 0
    """Recommendations and proposals that are left out here."""
    unread: tuple[UnreadRow, ...] = ()
    """Stored rows that could not be read and are in no figure."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, a sentence each: no change begins while there is one."""
    account_findings: tuple[AccountFinding, ...] = ()
    """What else the account pays for, the largest saving first: advice only, and in no sum."""
    account_unread: tuple[Reason, ...] = ()
    """What could not be read for it."""
    office_hours: tuple[HoursSaving, ...] = ()
    """What stopped hours saved in the window, the largest first; in no other sum."""
    reconciliation: Reconciliation | None = None
    """The figures against AWS's bill; None where no bill was asked for."""

    @property
    def office_hours_usd(self) -> Decimal:
        """US dollars that stopped hours saved in the window, as far as they are priced."""
        return sum((saving.usd for saving in self.office_hours if saving.usd is not None), Decimal(0))
