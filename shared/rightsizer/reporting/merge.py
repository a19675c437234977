"""Several reports: those of one window as one, and one against that of the window before."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from rightsizer.domain.bill import Reconciliation
from rightsizer.domain.money import DayMoney, MoneyTable, OwnerWait, Totals, WeekHour, add_totals
from rightsizer.domain.reason import day_text
from rightsizer.domain.report import Report, RunningCost, SinceLast
from rightsizer.errors import InputError


def merge_reports(reports: Sequence[Report]) -> Report:
    """One report of all of them. InputError where windows differ, or one account and Region is there twice.

    What cannot be added up is left out: the track record, and what changed since the report before.
    """
    first = reports[0]
    if any((report.start, report.end) != (first.start, first.end) for report in reports):
        windows = ", ".join(sorted({f"{day_text(report.start)} to {day_text(report.end)}" for report in reports}))
        raise InputError(f"reports of one window alone can be merged, and these are of {windows}")
    places = [(report.account, report.region) for report in reports]
    if len(set(places)) < len(places):
        raise InputError("one account and Region is there twice, and would be counted twice")
    if len(reports) == 1:
        return first
    money = _merge_money(reports)
    return replace(
        first,
        account=", ".join(dict.fromkeys(report.account for report in reports)),
        region=", ".join(dict.fromkeys(report.region for report in reports)),
        made_at=min(report.made_at for report in reports),
        totals=money.totals(),
        money=money,
        recommendations=_joined(reports, lambda report: report.recommendations),
        funnel=tuple(
            sorted(
                _joined(reports, lambda report: report.funnel),
                key=lambda saving: (-saving.usd_per_month, saving.endpoint),
            )
        ),
        proposals=_joined(reports, lambda report: report.proposals),
        ledger=_joined(reports, lambda report: report.ledger),
        occurrences=tuple(
            sorted(_joined(reports, lambda report: report.occurrences), key=lambda occurrence: occurrence.at)
        ),
        unobserved=_joined(reports, lambda report: report.unobserved),
        running_cost=_merge_costs(reports),
        price_sources=tuple(dict.fromkeys(_joined(reports, lambda report: report.price_sources))),
        packs=_joined(reports, lambda report: report.packs),
        track_record=None,
        since_last=None,
        reconciliation=_merge_bills(reports),
        not_shown=sum(report.not_shown for report in reports),
        unread=_joined(reports, lambda report: report.unread),
        misread=_joined(reports, lambda report: report.misread),
        account_findings=_joined(reports, lambda report: report.account_findings),
        account_unread=_joined(reports, lambda report: report.account_unread),
        office_hours=_joined(reports, lambda report: report.office_hours),
    )


def _joined[T](reports: Iterable[Report], part: Callable[[Report], Sequence[T]]) -> tuple[T, ...]:
    return tuple(each for report in reports for each in part(report))


def _merge_money(reports: Sequence[Report]) -> MoneyTable:
    rows = _joined(reports, lambda report: report.money.rows)
    rest: Totals | None = None
    for report in reports:
        if report.money.rest is not None:
            rest = report.money.rest if rest is None else add_totals(rest, report.money.rest)
    return MoneyTable(
        rows=tuple(sorted(rows, key=lambda row: (-(row.spend or Decimal(0)), row.key))),
        days=_merge_days(reports),
        waits=_merge_waits(reports),
        week=_merge_weeks(reports),
        rest=rest,
    )


def _merge_days(reports: Sequence[Report]) -> tuple[DayMoney, ...]:
    """The days of all; one that any report does not know is a gap."""
    by_start: dict[datetime, list[DayMoney]] = {}
    for day in _joined(reports, lambda report: report.money.days):
        by_start.setdefault(day.start, []).append(day)
    return tuple(
        DayMoney(
            start,
            _sum_if_known(day.spent for day in parts),
            _sum_if_known(day.would_have_cost for day in parts),
            sum(day.endpoints for day in parts),
        )
        for start, parts in sorted(by_start.items())
    )


def _sum_if_known(parts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum, or None where any part is not known."""
    total = Decimal(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _merge_waits(reports: Sequence[Report]) -> tuple[OwnerWait, ...]:
    found: dict[str, OwnerWait] = {}
    for wait in _joined(reports, lambda report: report.money.waits):
        other = found.get(wait.owner)
        if other is not None:
            usd = wait.usd_per_month + other.usd_per_month
            wait = OwnerWait(wait.owner, wait.proposals + other.proposals, usd, min(wait.since, other.since))
        found[wait.owner] = wait
    return tuple(sorted(found.values(), key=lambda wait: (-wait.usd_per_month, wait.owner)))


def _merge_weeks(reports: Sequence[Report]) -> tuple[WeekHour, ...]:
    """The mean load of each hour of the week, weighted by the spend of each report."""
    drawn = [(float(report.totals.spend), report.money.week) for report in reports if report.money.week]
    found = []
    for hours in zip(*(week for _, week in drawn), strict=True):
        known = [(weight, hour.load) for (weight, _), hour in zip(drawn, hours, strict=True) if hour.load is not None]
        weight = sum(each for each, _ in known)
        load = sum(each * part for each, part in known) / weight if weight else None
        found.append(replace(hours[0], load=load))
    return tuple(found)


def _merge_costs(reports: Sequence[Report]) -> RunningCost | None:
    """What all stacks cost; None where it is not known of one."""
    running_costs = [report.running_cost for report in reports if report.running_cost is not None]
    if len(running_costs) < len(reports):
        return None
    return RunningCost(tuple(line for cost in running_costs for line in cost.lines), running_costs[0].basis)


def _merge_bills(reports: Sequence[Report]) -> Reconciliation | None:
    """Each report's comparison with its bill, side by side; None where none has one.

    Charges of a whole account, such as tax, are in the report of each of its Regions. They are added up for accounts
    that have one report here.
    """
    if all(report.reconciliation is None for report in reports):
        return None
    found = {_place(report): report.reconciliation or Reconciliation(reason="no bill was read") for report in reports}
    bills = {place: reconciliation for place, reconciliation in found.items() if not reconciliation.reason}
    levels = ", ".join(f"{place} by {reconciliation.level}" for place, reconciliation in bills.items())
    if len({reconciliation.level for reconciliation in bills.values()}) > 1:
        return Reconciliation(
            reason=f"the bills cannot be added up, because they tell usage apart differently: {levels}"
        )
    if not bills:
        return Reconciliation(
            reason="; ".join(f"{place}: {reconciliation.reason}" for place, reconciliation in found.items())
        )
    regions = Counter(report.account for report in reports)
    aside: dict[str, Decimal] = {}
    for report in reports:
        if _place(report) in bills and regions[report.account] == 1:
            aside |= {name: aside.get(name, Decimal(0)) + usd for name, usd in bills[_place(report)].aside}
    rows = [
        replace(row, account=report.account, region=report.region)
        for report in reports
        for row in (bills[_place(report)].rows if _place(report) in bills else ())
    ]
    return Reconciliation(
        source=", ".join(dict.fromkeys(reconciliation.source for reconciliation in bills.values())),
        level=next(iter(bills.values())).level,
        days=min(reconciliation.days for reconciliation in bills.values()),
        provisional=any(reconciliation.provisional for reconciliation in bills.values()),
        rows=tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.account, row.region, row.name))),
        unmatched=sum((reconciliation.unmatched for reconciliation in bills.values()), Decimal(0)),
        aside=tuple(sorted(aside.items())),
        notes=_bill_notes(found, [account for account, times in regions.items() if times > 1]),
    )


def _place(report: Report) -> str:
    return f"{report.account} {report.region}"


def _bill_notes(found: Mapping[str, Reconciliation], several: Sequence[str]) -> tuple[str, ...]:
    """What is not compared, and what each comparison says of itself: once where all say it, else with its place."""
    left = [
        f"{place} is not compared: {reconciliation.reason}."
        for place, reconciliation in found.items()
        if reconciliation.reason
    ]
    if several:
        left.append(
            f"Credits, taxes and the like of {', '.join(several)} are left out: each Region's report has the account's."
        )
    said = Counter(note for reconciliation in found.values() for note in reconciliation.notes)
    notes = [
        note if said[note] == len(found) else f"{place}: {note}"
        for place, reconciliation in found.items()
        for note in reconciliation.notes
    ]
    return (*left, *dict.fromkeys(notes))


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """Figures of the report before; all else in its JSON is passed over."""

    start: datetime
    end: datetime
    totals: Totals
    money: MoneyTable

    def against(self, now: MoneyTable) -> SinceLast:
        """The earlier figures, and the endpoints that came, went or cost another amount."""
        if self.money.rest is not None or now.rest is not None:
            return SinceLast(self.start, self.end, self.totals)
        old, new = _spends(self.money), _spends(now)
        moved = [(name, new[name] - old[name]) for name in new if name in old and new[name] != old[name]]
        return SinceLast(
            self.start,
            self.end,
            self.totals,
            appeared=tuple(sorted(new.keys() - old.keys())),
            gone=tuple(sorted(old.keys() - new.keys())),
            moved=tuple(sorted(moved, key=lambda pair: (-abs(pair[1]), pair[0]))),
        )


def _spends(money: MoneyTable) -> dict[str, Decimal]:
    return {row.endpoint: row.spend for row in money.rows if row.spend is not None}
