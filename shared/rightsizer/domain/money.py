"""The money of a report: one row for each endpoint and one for each day of the window. Every format reads these rows.

A row adds up by itself: spend is utilised + reserve + wasted + what is not split, and each stage is a part of the one
before. A sum over rows is `totals`; nothing else adds money up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.price import CENT, HOURS_PER_MONTH

NOBODY = "nobody named"
"""Group of the endpoints without an owner tag."""
UNSAID = "not known"
"""Group of the endpoints of which the wanted fact is not known."""


class Stage(StrEnum):
    """Where a saving stands at the end of a window."""

    NOT_ASKED = "not-asked"
    WAITING = "waiting"
    """Proposed; nobody has answered."""
    DECLINED = "declined"
    """Rejected or snoozed."""
    UNDER_WAY = "under-way"
    """Approved, and not in force yet."""
    WENT_BACK = "went-back"
    """Approved, and rolled back or handed over: it saves nothing."""
    APPLIED = "applied"
    """In force, and not proven."""
    PROVEN = "proven"


IDENTIFIED = frozenset(Stage)
PROPOSED = IDENTIFIED - {Stage.NOT_ASKED}
APPROVED = PROPOSED - {Stage.WAITING, Stage.DECLINED}
IN_FORCE = frozenset({Stage.APPLIED, Stage.PROVEN})
OPEN = frozenset({Stage.NOT_ASKED, Stage.WAITING, Stage.UNDER_WAY})
"""What could still be saved: not what was declined, went back, or is saved already."""


@dataclass(frozen=True, slots=True)
class Saving:
    """One saving of the funnel."""

    stage: Stage
    usd_per_month: Decimal
    """Estimated, whole cents; never negative. Rounded here and nowhere else."""
    endpoint: str
    owner: str
    proposal_id: str = ""
    """Proposal that promises the saving; empty where none was made, and the latest recommendation promises it."""
    account: str = ""
    region: str = ""
    number: int = 1
    """Of a plan of several changes that one approval covers: which of them saves it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Account, Region and name of its endpoint."""
        return self.account, self.region, self.endpoint


class UseMethod(StrEnum):
    """How the used part of the needed capacity was found."""

    REPLAY = "replay"
    """Mean load of the look-back replayed on the recommended option."""
    REQUESTS = "requests"
    """Requests of the mean hour over those of the busiest hour of the look-back: the busiest hour counts as full."""
    NONE = ""
    """Not known: nothing is split."""


@dataclass(frozen=True, slots=True)
class MonthMoney:
    """Part of a window that lies in one calendar month, UTC: the known days of one endpoint in it."""

    start: datetime
    end: datetime
    """The month and the window both end no earlier."""
    hours: Decimal
    """Hours of the known days."""
    spent: Decimal
    would_have_cost: Decimal

    def __post_init__(self) -> None:
        aware("MonthMoney.start", self.start)


@dataclass(frozen=True, slots=True)
class MoneyRow:
    """Money of one endpoint in one window: US dollars a month in whole cents, unless named otherwise."""

    account: str
    region: str
    endpoint: str
    owner: str = ""
    environment: str = ""
    """As the tags say; empty where nothing was judged."""
    instance_type: str = ""
    instance_count: int = 0
    finding: str = ""
    judged: bool = False
    """Whether days of the window are behind its latest recommendation. Else only savings of the past are in the row."""
    spend: Decimal | None = None
    """What runs costs a month; None without a price."""
    without_changes: Decimal | None = None
    """What the endpoint would cost a month without the changes that are in force; never below `spend`."""
    utilised: Decimal | None = None
    """Part of the spend that works; None where that is not known, as is `reserve` then."""
    reserve: Decimal | None = None
    """Part that is needed and does not work in the mean hour: room for peaks and failures."""
    wasted: Decimal | None = None
    """Part that the recommended smaller option would not cost; None without a price."""
    use_method: UseMethod = UseMethod.NONE
    savings: Mapping[Stage, Decimal] = field(default_factory=dict)
    """Estimated savings by the stage that they stood at when the window ended."""
    realised: Decimal = Decimal(0)
    """US dollars saved in the window at the hours booked in it, less what changes and tests cost."""
    growth: Decimal = Decimal(0)
    """US dollars that growth added in the window; in no saving."""
    spent: Decimal | None = None
    """US dollars of the days of the window that are known; None where no day is."""
    would_have_cost: Decimal | None = None
    """US dollars of the same days without our changes; never below `spent`."""
    months: tuple[MonthMoney, ...] = ()
    """`spent` and `would_have_cost` by calendar month, as bills are cut."""

    def __post_init__(self) -> None:
        not_empty("MoneyRow.endpoint", self.endpoint)

    @property
    def key(self) -> tuple[str, str, str]:
        """Account, Region and name: no two rows of a table share it."""
        return self.account, self.region, self.endpoint

    def at(self, stages: Iterable[Stage]) -> Decimal:
        """Savings of the endpoint at these stages."""
        return sum((self.savings.get(stage, Decimal(0)) for stage in stages), Decimal(0))


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over rows: all of them, or those of one group. US dollars per month unless named otherwise."""

    spend: Decimal
    """Of the endpoints that were judged by days of the window."""
    identified: Decimal
    """Estimated monthly savings: all of the funnel. Each of the next four is a part of the one before."""
    proposed: Decimal
    approved: Decimal
    applied: Decimal
    """In force at the end of the window, proven or not."""
    proven: Decimal
    open: Decimal
    """What could still be saved: not asked, waiting for an answer, or approved and not in force yet."""
    went_back: Decimal
    """Approved, and rolled back or handed over. With `open`, `declined` and `applied` it makes up `identified`."""
    declined: Decimal
    realised: Decimal
    """US dollars really saved in the reported window, at the hours billed."""
    endpoints: int
    unpriced: int
    """Endpoints whose spend is unknown for lack of a price; they are not in `spend`."""
    growth: Decimal = Decimal(0)
    """US dollars that growth added in the reported window, at the hours billed; in no saving, and `realised` is not
    less for it."""
    waiting: Decimal = Decimal(0)
    """Proposed, and nobody has answered; a part of `open`."""
    without_changes: Decimal = Decimal(0)
    """The spend as it would be without the changes that are in force."""
    utilised: Decimal = Decimal(0)
    """With `reserve`, `wasted` and `unsplit` it makes up `spend`."""
    reserve: Decimal = Decimal(0)
    wasted: Decimal = Decimal(0)
    unsplit: Decimal = Decimal(0)
    """Needed spend of which nobody knows how much works."""
    spent: Decimal | None = None
    """US dollars of the known days of the window; None where none is known."""
    would_have_cost: Decimal | None = None

    @property
    def is_priced(self) -> bool:
        """Whether the spend of any endpoint is known; where none is, a sum of zero says nothing."""
        return not self.endpoints or self.unpriced < self.endpoints


@dataclass(frozen=True, slots=True)
class DayMoney:
    """One day of the window, UTC, in US dollars."""

    start: datetime
    spent: Decimal | None
    """Spend of the day; None where too little of it is known for the whole day: a gap, never a zero."""
    would_have_cost: Decimal | None
    """Spend of the day without our changes; None as for `spent`."""
    endpoints: int
    """Endpoints that are known for the whole day."""

    def __post_init__(self) -> None:
        aware("DayMoney.start", self.start)


@dataclass(frozen=True, slots=True)
class OwnerWait:
    """Proposals that one owner has not answered."""

    owner: str
    """Empty where nobody is named."""
    proposals: int
    usd_per_month: Decimal
    since: datetime
    """When the oldest of them was asked."""

    @property
    def usd_per_day(self) -> Decimal:
        """Cost of a day of waiting, US dollars."""
        return usd_per_day(self.usd_per_month)


@dataclass(frozen=True, slots=True)
class WeekHour:
    """One hour of the week, UTC, over all priced endpoints with known requests."""

    weekday: int
    """0 is Monday."""
    hour: int
    load: float | None
    """Share of each endpoint's busiest hour, weighted by its spend, 0..1; None where nothing is known."""


@dataclass(frozen=True, slots=True)
class MoneyTable:
    """The one table of money of a report."""

    rows: tuple[MoneyRow, ...] = ()
    """By endpoint, the largest spend first."""
    days: tuple[DayMoney, ...] = ()
    """Every day of the window, oldest first."""
    waits: tuple[OwnerWait, ...] = ()
    """The largest first."""
    week: tuple[WeekHour, ...] = ()
    """168 hours from Monday 00:00, or none where no requests are known."""
    rest: Totals | None = None
    """Sum of the rows that are left out here; None where none is."""

    def totals(self) -> Totals:
        """The sums over all rows, those that are left out here included."""
        totals = sum_rows(self.rows)
        return add_totals(totals, self.rest) if self.rest is not None else totals

    def by(self, what: "GroupedBy") -> dict[str, Totals]:
        """The sums of each group, the largest spend first; the groups add up to the sum of `rows`."""
        groups: dict[str, list[MoneyRow]] = {}
        for row in self.rows:
            groups.setdefault(GROUP_OF[what](row), []).append(row)
        made = {name: sum_rows(rows) for name, rows in groups.items()}
        return dict(sorted(made.items(), key=lambda pair: (-pair[1].spend, pair[0])))


type GroupedBy = Literal["owner", "environment", "region", "account", "type"]
GROUP_OF: Mapping[str, Callable[[MoneyRow], str]] = MappingProxyType(
    {
        "owner": lambda row: row.owner or NOBODY,
        "environment": lambda row: row.environment or UNSAID,
        "region": lambda row: row.region or UNSAID,
        "account": lambda row: row.account or UNSAID,
        "type": lambda row: row.instance_type or UNSAID,
    }
)
"""What a report can be grouped by, and the group of a row."""


def usd_per_day(usd_per_month: Decimal) -> Decimal:
    """US dollars a day, whole cents, of dollars a month of 730 hours."""
    return (usd_per_month * 24 / HOURS_PER_MONTH).quantize(CENT)


def sum_rows(rows: Iterable[MoneyRow]) -> Totals:
    """The sums over rows; the only place in which money of endpoints is added up."""
    found = list(rows)
    judged = [row for row in found if row.judged]
    priced = [row for row in judged if row.spend is not None]

    def staged(stages: Iterable[Stage]) -> Decimal:
        wanted = tuple(stages)
        return _sum(row.at(wanted) for row in found)

    return Totals(
        spend=_sum(row.spend for row in priced),
        identified=staged(IDENTIFIED),
        proposed=staged(PROPOSED),
        approved=staged(APPROVED),
        applied=staged(IN_FORCE),
        proven=staged({Stage.PROVEN}),
        open=staged(OPEN),
        went_back=staged({Stage.WENT_BACK}),
        declined=staged({Stage.DECLINED}),
        realised=_sum(row.realised for row in found),
        endpoints=len(judged),
        unpriced=len(judged) - len(priced),
        growth=_sum(row.growth for row in found),
        waiting=staged({Stage.WAITING}),
        without_changes=_sum(row.without_changes for row in priced),
        utilised=_sum(row.utilised for row in priced),
        reserve=_sum(row.reserve for row in priced),
        wasted=_sum(row.wasted for row in priced),
        unsplit=_sum((row.spend or Decimal(0)) - (row.wasted or Decimal(0)) for row in priced if row.utilised is None),
        spent=_known_sum(row.spent for row in found),
        would_have_cost=_known_sum(row.would_have_cost for row in found),
    )


def add_totals(totals: Totals, other: Totals) -> Totals:
    """The sums of two sets of rows that share none."""
    added: dict[str, Any] = {}
    for each in fields(Totals):
        parts = (getattr(totals, each.name), getattr(other, each.name))
        added[each.name] = _known_sum(parts) if each.name in KNOWN_ONLY else sum(parts)
    return Totals(**added)


KNOWN_ONLY = ("spent", "would_have_cost")
"""Sums that are not known where no part is."""


def _sum(amounts: Iterable[Decimal | None]) -> Decimal:
    """The sum in whole cents of what is known."""
    return sum((one for one in amounts if one is not None), Decimal(0)).quantize(CENT)


def _known_sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [one for one in amounts if one is not None]
    return _sum(known) if known else None
