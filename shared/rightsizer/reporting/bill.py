"""A report's figures against AWS's bill: the charges summed up as they are read, then compared day by day.

Only whole days are compared that the bill has whole and the table knows. Usage is compared at public prices, so that a
Savings Plan, which covers whatever runs, changes no difference of an endpoint.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.bill import (
    CURRENCY,
    BilledCharge,
    BillLevel,
    BillNature,
    BillWindow,
    ChargeKind,
    ReconciledRow,
    Reconciliation,
)
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.ownership import OWNER_TAGS
from rightsizer.domain.price import CENT, HOURS_PER_MONTH
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import count, time_text
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import InputError
from rightsizer.reporting.money import NO_USD, SpendCourses, spend_courses
from rightsizer.reporting.totals import Records, is_evaluated_in, money_sources

DAY = timedelta(days=1)
SETTLED = timedelta(hours=24)
"""AWS brings a bill up to date at least once in so long (Data Exports and Cost Explorer user guides)."""
BILLIONTHS = 1_000_000_000
"""Sums are whole billionths, three for each day: a million rows need no more memory than their endpoints."""
UNNAMED = (
    "The export names no endpoint, so instance types are compared: create it with resource IDs to know each endpoint."
)
BY_TYPE = (
    "The bill is told apart by instance type alone: no figure here is of one endpoint, and each has all that ran on the"
    " types, also endpoints that the table does not know."
)
PROVISIONAL = "AWS may still rewrite these days: no invoice is issued for them."
PLAN_UNUSED = (
    "{} of Savings Plans commitment covered nothing in this window: what was saved at public prices was in so far not"
    " saved in money."
)


class BillSums:
    """Charges of one account, Region and window, summed up line by line."""

    def __init__(self, scope: BillWindow) -> None:
        self.scope = scope
        self.first = scope.start.replace(hour=0, minute=0, second=0, microsecond=0)
        self.length = -(-(scope.end - self.first) // DAY)
        self.usage: dict[tuple[str, str], array[int]] = {}
        """Hours, list price and paid price of each day, in billionths, by endpoint and instance type."""
        self.aside: dict[ChargeKind, Decimal] = defaultdict(Decimal)
        self.elsewhere = 0
        """Lines of other accounts and Regions."""

    def add(self, line: BilledCharge) -> None:
        """Take one charge into account. InputError where it cannot be compared: another currency, or a whole month."""
        if line.account not in ("", self.scope.account) or line.region not in ("", self.scope.region):
            self.elsewhere += 1
        elif line.start >= self.scope.end or line.end <= self.first:
            return
        elif line.currency != CURRENCY:
            raise InputError(
                f"the bill is in {line.currency[:8]!r}, and the report in {CURRENCY}: no rate of exchange is assumed"
            )
        elif line.kind is not ChargeKind.USAGE:
            self.aside[line.kind] += line.paid * _share_inside(line, self.first, self.scope.end)
        elif line.end - line.start > DAY:
            raise InputError(
                "the bill has usage rows of more than a day, which cannot be laid on the days of a report;"
                " create the export with the time granularity HOURLY or DAILY"
            )
        else:
            self._add_usage(line)

    def _add_usage(self, line: BilledCharge) -> None:
        day = (line.start - self.first) // DAY
        if not 0 <= day < self.length:
            return
        sums = self.usage.setdefault((line.name, line.instance_type), array("q", bytes(24 * self.length)))
        try:
            for at, amount in enumerate((line.hours, line.listed, line.paid), 3 * day):
                sums[at] += int(amount * BILLIONTHS)
        except OverflowError:
            raise InputError(
                "the amounts of one endpoint and day are larger than any bill; the file is damaged"
            ) from None

    @property
    def is_named(self) -> bool:
        """Whether any usage says whose it is."""
        return any(name for name, _ in self.usage)

    def over(self, keys: Iterable[tuple[str, str]], days: Collection[int]) -> tuple[Decimal, Decimal, Decimal]:
        """Hours, listed and paid of these keys and days."""
        found = [0, 0, 0]
        for key in keys:
            sums = self.usage[key]
            for day in days:
                for at in range(3):
                    found[at] += sums[3 * day + at]
        hours, listed, paid = (Decimal(one) / BILLIONTHS for one in found)
        return hours, listed, paid


def _share_inside(line: BilledCharge, start: datetime, end: datetime) -> Decimal:
    """Share of a charge's period that lies in the window: a tax of a month counts for the days of the window."""
    length = (line.end - line.start) // timedelta(seconds=1)
    inside = (min(line.end, end) - max(line.start, start)) // timedelta(seconds=1)
    return Decimal(inside) / length if length > 0 else Decimal(1)


@dataclass(frozen=True, slots=True)
class ExpectedCosts:
    """Costs of each endpoint and day by the report's table, and the facts that tell whose charge is whose."""

    course: SpendCourses
    promise_ratios: Mapping[str, Decimal]
    """Promised over realised, by endpoint, of the changes that were booked in the window."""
    types: Mapping[str, frozenset[str]]
    """Instance types that each endpoint ran on, its approved changes included."""
    owners: Mapping[str, str]


def expected_costs(records: Records, start: datetime, end: datetime, made_at: datetime) -> ExpectedCosts:
    """The costs behind the table of the window, by endpoint and day."""
    recommendations = [
        recommendation for recommendation in records.recommendations if is_evaluated_in(recommendation, start, end)
    ]
    sources = money_sources(replace(records, recommendations=recommendations))
    types: dict[str, set[str]] = {
        recommendation.ref.name: set(_types(recommendation)) for recommendation in recommendations
    }
    for proposal in records.proposals:
        if proposal.ref.name in types and _was_approved(proposal):
            types[proposal.ref.name].update(_types(proposal.recommendation))
            option = proposal.recommendation.chosen_option
            if option is not None:
                types[proposal.ref.name].update(
                    (option.target.instance_type, *(o.instance_type for o in option.target.others))
                )
    return ExpectedCosts(
        course=spend_courses(sources, start, end, made_at),
        promise_ratios=promise_ratios(records.ledger, start, end),
        types={name: frozenset(filter(None, some)) for name, some in types.items()},
        owners={recommendation.ref.name: recommendation.owner for recommendation in recommendations},
    )


def _types(recommendation: Recommendation) -> Iterator[str]:
    yield recommendation.instance_type
    yield from (variant.instance_type for variant in recommendation.variants)


def _was_approved(proposal: Proposal) -> bool:
    return proposal.decision is not None and proposal.decision.state is ProposalState.APPROVED


def promise_ratios(ledger: Sequence[LedgerEntry], start: datetime, end: datetime) -> dict[str, Decimal]:
    """Promised over realised by endpoint, over the booked hours; only where every booked change has its promise."""
    promised = {
        entry.change_id: entry.usd / (Decimal(str(entry.hours)) or HOURS_PER_MONTH)
        for entry in ledger
        if entry.kind == "estimated"
    }
    sums: dict[str, tuple[Decimal, Decimal]] = {}
    unknown: set[str] = set()
    for entry in ledger:
        if entry.kind != "realised" or not start <= entry.at < end:
            continue
        if entry.change_id not in promised:
            unknown.add(entry.endpoint)
            continue
        wanted, got = sums.get(entry.endpoint, (NO_USD, NO_USD))
        hours = Decimal(str(entry.hours))
        sums[entry.endpoint] = wanted + promised[entry.change_id] * hours, got + entry.usd
    return {name: wanted / got for name, (wanted, got) in sums.items() if got > 0 and name not in unknown}


def reconcile(sums: BillSums, nature: BillNature, costs: ExpectedCosts, now: datetime) -> Reconciliation:
    """The table against the bill, at the level that the bill is told apart by; the reason where nothing compares."""
    covered = _covered_days(nature, costs.course, now)
    level = nature.level
    notes = [BY_TYPE] if level is BillLevel.TYPE else []
    if level is BillLevel.ENDPOINT and sums.usage and not sums.is_named:
        level, notes = BillLevel.TYPE, [UNNAMED, BY_TYPE]
    reconciliation = Reconciliation(
        source=nature.source, level=level, days=len(covered), provisional=nature.provisional
    )
    if not covered:
        return replace(reconciliation, reason=_no_days(nature))
    groups = list(_groups(level, nature, costs, sums))
    rows = [row for group in groups if (row := _row(group, sums, costs, covered)) is not None]
    if not rows:
        return replace(reconciliation, reason="no endpoint of the table is known on any whole day of the bill")
    whole = sums.over(sums.usage, covered)[1].quantize(CENT)
    left, every = len(groups) - len(rows), len(costs.course.days)
    if left:
        notes.append(f"{count(left, level.value)} could not be compared: the table or the bill lacks every day of it.")
    if len(covered) < every:
        notes.append(f"{len(covered)} of {count(every, 'day')} are compared: the bill does not have the others whole.")
    notes += [PROVISIONAL] if nature.provisional else []
    unused = sums.aside.get(ChargeKind.UNUSED_PLAN, NO_USD).quantize(CENT)
    notes += [PLAN_UNUSED.format(f"USD {unused:,.2f}")] if unused else []
    return replace(
        reconciliation,
        rows=tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.name))),
        unmatched=whole - sum((row.billed for row in rows), NO_USD),
        aside=tuple((kind.value, usd.quantize(CENT)) for kind, usd in sorted(sums.aside.items()) if usd.quantize(CENT)),
        notes=tuple(notes),
    )


def _covered_days(nature: BillNature, course: SpendCourses, now: datetime) -> frozenset[int]:
    """Numbers of the whole days that the bill has whole."""
    until = nature.until
    return frozenset(
        number
        for number, (start, end) in enumerate(course.days)
        if until is not None
        and end - start == DAY
        and f"{start:%Y-%m-%d}" in nature.days
        and end <= until
        and end + SETTLED <= now
    )


def _no_days(nature: BillNature) -> str:
    if nature.until is None:
        return "the bill has no usage: it may be of another month, or AWS has not delivered it yet"
    return (
        f"the bill has no whole day of this window: its usage ends on {time_text(nature.until)}, and a day"
        f" counts {SETTLED // timedelta(hours=1)} hours after its end"
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Endpoints of the table and keys of the bill that belong together."""

    label: str
    endpoints: Sequence[str]
    keys: Sequence[tuple[str, str]]


def _groups(level: BillLevel, nature: BillNature, costs: ExpectedCosts, sums: BillSums) -> Iterator[_Group]:
    if level is BillLevel.TYPE:
        yield from _type_groups(costs, sums)
        return
    by_owner = level is BillLevel.TAG and nature.tag in OWNER_TAGS
    members: dict[str, list[str]] = defaultdict(list)
    for name in costs.course.judged:
        members[costs.owners.get(name, "") if by_owner else name].append(name)
    keys: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key in sums.usage:
        keys[key[0].lower()].append(key)  # ARNs of SageMaker are in lower case, and names are unique without it
    for label, endpoints in members.items():
        if label and (level is BillLevel.ENDPOINT or keys.get(label.lower())):
            yield _Group(label, endpoints, keys.get(label.lower(), ()))


def _type_groups(costs: ExpectedCosts, sums: BillSums) -> Iterator[_Group]:
    """Types that endpoints moved between are one group: the bill cannot tell who moved."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for some in costs.types.values():
        first, *others = sorted(some) or [""]
        for other in others:
            parent[root(other)] = root(first)
    endpoints: dict[str, list[str]] = defaultdict(list)
    for name, some in costs.types.items():
        if some:
            endpoints[root(min(some))].append(name)
    types: dict[str, set[str]] = defaultdict(set)
    for each in list(parent):
        types[root(each)].add(each)
    for top, members in endpoints.items():
        own = types[top] | {top}
        yield _Group(" + ".join(sorted(own)), members, [key for key in sums.usage if key[1] in own])


def _row(group: _Group, sums: BillSums, costs: ExpectedCosts, covered: frozenset[int]) -> ReconciledRow | None:
    """The comparison over the days that are known of every endpoint of the group; None where no day is."""
    amounts = [costs.course.amounts.get(name, {}) for name in group.endpoints]
    days = covered.intersection(*amounts)
    if not days:
        return None
    spent, would = (sum((one[day][at] for one in amounts for day in days), NO_USD) for at in (0, 1))
    hours, listed, paid = sums.over(group.keys, days)
    billed, promised, is_known = listed.quantize(CENT), NO_USD, True
    for name, one in zip(group.endpoints, amounts, strict=True):
        saved = sum((one[day][1] - one[day][0] for day in days), NO_USD)
        promised += saved * costs.promise_ratios.get(name, NO_USD)
        is_known = is_known and (not saved or name in costs.promise_ratios)
    return ReconciledRow(
        name=group.label,
        endpoints=len(group.endpoints),
        days=len(days),
        hours=round(hours, 2),
        spent=spent,
        billed=billed,
        paid=paid.quantize(CENT),
        would_have_cost=would,
        reconciled=would - billed if would != spent else NO_USD,
        promised=promised.quantize(CENT) if is_known and would != spent else None,
        account=sums.scope.account,
        region=sums.scope.region,
    )
