"""The report's figures by owner, by week and by change."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.bill import Reconciliation, add_rows
from rightsizer.domain.money import NOBODY, OPEN, MoneyTable, Saving, Totals, add_totals, sum_rows, usd_per_day
from rightsizer.domain.outcome import LedgerEntry, UnreadRow
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.render import sentences

UNKNOWN = "not known"
MOST_WAITS = 5
"""Owners that are named in an e-mail; the page has all."""


@dataclass(frozen=True, slots=True)
class Week:
    """Figures of one week."""

    label: str
    asked: int
    approved: int
    rejected: int
    saved: Decimal


@dataclass(frozen=True, slots=True)
class KeptPromise:
    """Promise of a change for the billed hours, and its real saving."""

    endpoint: str
    change_id: str
    promised: Decimal
    realised: Decimal


def funnel(totals: Totals) -> list[tuple[str, Decimal]]:
    """The stages in their order with their sums, each a part of the one before."""
    return [(name, getattr(totals, name)) for name in ("identified", "proposed", "approved", "applied", "proven")]


def lead_text(report: Report) -> str:
    """The first sentence of a report: what is paid and proven saved, who is waited for, and what that costs."""
    totals, waits = report.totals, report.money.waits
    paid = f"You pay {_whole_usd(totals.spend)} a month for {sentences.count(totals.endpoints, 'endpoint')}."
    if not totals.endpoints:
        paid = "What you pay is not known: no endpoint was evaluated in these days."
    proven = f"{_whole_usd(totals.proven)} a month is proven saved."
    if not totals.waiting:
        return f"{paid} {proven} Nothing waits for an answer."
    named = sum(1 for wait in waits if wait.owner)
    people = sentences.count(named, "owner") if named else "somebody: no owner is named"
    if 0 < named < len(waits):
        people += ", and for endpoints without an owner,"
    cost = _whole_usd(usd_per_day(totals.waiting))
    return f"{paid} {proven} {_whole_usd(totals.waiting)} a month waits for {people} and costs {cost} a day."


def wait_lines(report: Report) -> list[str]:
    """Who is waited for and what that costs a day, a line each; the largest first."""
    shown, rest = report.money.waits[:MOST_WAITS], report.money.waits[MOST_WAITS:]
    named = [(wait.owner or NOBODY, wait.proposals, wait.usd_per_month, wait.usd_per_day) for wait in shown]
    if rest:
        sums = sum(wait.usd_per_month for wait in rest), sum(wait.usd_per_day for wait in rest)
        named.append((f"{len(rest)} more", sum(wait.proposals for wait in rest), Decimal(sums[0]), Decimal(sums[1])))
    return [
        f"Waits for {who}: {sentences.count(proposals, 'proposal')},"
        f" {sentences.exact_money(month)} a month, {sentences.exact_money(day)} a day"
        for who, proposals, month, day in named
    ]


def _whole_usd(usd: Decimal) -> str:
    return f"${usd.quantize(Decimal(1)):,}"


def growth_added(totals: Totals) -> list[tuple[str, Decimal]]:
    """Cost of growth in the window, with its name; nothing where nothing grew."""
    return [("Added by growth in this window", totals.growth)] if totals.growth else []


def shortages(report: Report) -> list[Recommendation]:
    """The endpoints that need more than they have: those with a way to grow first, then by cost."""
    recommendations = [recommendation for recommendation in report.recommendations if recommendation.is_short]
    return sorted(
        recommendations,
        key=lambda recommendation: (
            not recommendation.grows,
            -(recommendation.usd_per_month or Decimal(0)),
            recommendation.ref.name,
        ),
    )


def short_text(report: Report) -> str:
    """How many endpoints need more than they have; empty where none does."""
    return shortage_text(len(shortages(report)))


def shortage_text(number: int) -> str:
    """``1 endpoint needs more than it has``; empty for none."""
    if not number:
        return ""
    needs = "needs more than it has" if number == 1 else "need more than they have"
    return f"{sentences.count(number, 'endpoint')} {needs}"


def could_be_saved(report: Report) -> list[Recommendation]:
    """The recommendations behind what could still be saved, the largest saving first."""
    asked = {proposal.id: proposal.recommendation for proposal in report.proposals}
    latest = {
        (recommendation.ref.account, recommendation.ref.region, recommendation.ref.name): recommendation
        for recommendation in report.recommendations
    }
    still = [saving for saving in report.funnel if saving.stage in OPEN]
    begins: dict[tuple[str, tuple[str, str, str]], Saving] = {}
    for saving in still:  # of a plan the first stage that is open names it
        known = begins.setdefault((saving.proposal_id, saving.key), saving)
        if saving.number < known.number:
            begins[saving.proposal_id, saving.key] = saving
    found = (recommendation_behind(saving, asked, latest) for saving in begins.values())
    return [recommendation for recommendation in found if recommendation is not None]


def recommendation_behind(
    saving: Saving, asked: Mapping[str, Recommendation], latest: Mapping[tuple[str, str, str], Recommendation]
) -> Recommendation | None:
    """The recommendation that promises the saving; of a later stage as what is left of the plan."""
    recommendation = asked.get(saving.proposal_id) if saving.proposal_id else latest.get(saving.key)
    if recommendation is None or saving.number == 1:
        return recommendation
    left = recommendation.stages[saving.number - 2 :]
    return replace(recommendation, options=left[:1], stages=left[1:])


def cut_report(report: Report) -> Report:
    """The report as the JSON has it: of each kind of row the largest, and how many are left out."""

    def worth(recommendation: Recommendation) -> tuple[Decimal, Decimal]:
        return recommendation.identified_usd_per_month, recommendation.usd_per_month or Decimal(0)

    report = replace(report, money=cut_money(report.money), reconciliation=_cut_bill(report.reconciliation))
    if len(report.recommendations) <= SHOWN and len(report.proposals) <= SHOWN:
        return report
    largest = sorted(report.recommendations, key=worth, reverse=True)[:SHOWN]
    proposals = sorted(report.proposals, key=lambda proposal: worth(proposal.recommendation), reverse=True)[:SHOWN]
    every = len(report.recommendations) + len(report.proposals)
    return replace(
        report,
        recommendations=tuple(sorted(largest, key=lambda recommendation: recommendation.ref.name)),
        proposals=tuple(sorted(proposals, key=lambda proposal: proposal.created_at, reverse=True)),
        not_shown=every - len(largest) - len(proposals),
    )


def _cut_bill(reconciliation: Reconciliation | None) -> Reconciliation | None:
    """The comparison with its largest differences, and the sum of the other rows as one."""
    if reconciliation is None or len(reconciliation.rows) <= SHOWN:
        return reconciliation
    others = replace(add_rows(reconciliation.rows[SHOWN:]), name="(all others)")
    return replace(reconciliation, rows=(*reconciliation.rows[:SHOWN], others))


def cut_money(money: MoneyTable) -> MoneyTable:
    """The table with its largest rows, by spend and savings, and the sum of the others."""
    if len(money.rows) <= SHOWN:
        return money
    largest = sorted(money.rows, key=lambda row: (row.at(OPEN), row.spend or Decimal(0)), reverse=True)
    rest = sum_rows(largest[SHOWN:])
    kept = {row.key for row in largest[:SHOWN]}
    rows = tuple(row for row in money.rows if row.key in kept)
    return replace(money, rows=rows, rest=rest if money.rest is None else add_totals(rest, money.rest))


def by_week(report: Report) -> list[Week]:
    """The weeks of the window with anything in them, oldest first; a week begins on Monday, UTC."""
    asked, approved, rejected = (defaultdict[datetime, int](int) for _ in range(3))
    saved: dict[datetime, Decimal] = defaultdict(Decimal)
    for proposal in report.proposals:
        if report.start <= proposal.created_at < report.end:
            asked[_monday(proposal.created_at)] += 1
        if proposal.decision and report.start <= proposal.decision.at < report.end:
            sort = {ProposalState.APPROVED: approved, ProposalState.REJECTED: rejected}.get(proposal.decision.state)
            if sort is not None:
                sort[_monday(proposal.decision.at)] += 1
    for entry in _billed_entries(report):
        if entry.saved_usd:
            saved[_monday(entry.at)] += entry.saved_usd
    weeks = sorted({*asked, *approved, *rejected, *saved})
    return [
        Week(f"from {sentences.day_text(week)}", asked[week], approved[week], rejected[week], saved[week])
        for week in weeks
    ]


def kept_promises(report: Report) -> list[KeptPromise]:
    """The changes with billed hours, against their own promise prorated to those hours."""
    promised = {
        entry.change_id: entry.usd / (Decimal(str(entry.hours)) or HOURS_PER_MONTH)
        for entry in report.ledger
        if entry.kind == "estimated"
    }
    hours: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    saved: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for entry in _billed_entries(report):
        if entry.kind == "realised":
            hours[entry.endpoint, entry.change_id] += Decimal(str(entry.hours))
            saved[entry.endpoint, entry.change_id] += entry.saved_usd
    return [
        KeptPromise(endpoint, change, promised[change] * hours[endpoint, change], usd)
        for (endpoint, change), usd in sorted(saved.items())
        if change in promised
    ]


def _billed_entries(report: Report) -> list[LedgerEntry]:
    """The window's own entries; older ones are in the report only as promises."""
    return [entry for entry in report.ledger if report.start <= entry.at < report.end]


def _monday(at: datetime) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


def unread_text(rows: Sequence[UnreadRow]) -> str:
    """How many stored rows could not be read; empty where every one could."""
    if not rows:
        return ""
    are = "is" if len(rows) == 1 else "are"
    return f"{sentences.count(len(rows), 'stored row')} could not be read and {are} in no figure of this report."


def hours_saved(report: Report) -> list[tuple[str, str]]:
    """The saving of office hours in the window, as name and words; nothing where nothing was stopped."""
    if not report.office_hours:
        return []
    stopped, ran = sum(o.stopped_hours for o in report.office_hours), sum(o.ran_hours for o in report.office_hours)
    unpriced = sum(saving.usd is None for saving in report.office_hours)
    more = f"; {sentences.count(unpriced, 'endpoint')} without a price" if unpriced else ""
    usd = sentences.exact_money(report.office_hours_usd)
    return [
        ("Saved by office hours", f"{usd} in this window, {stopped:,.0f} of {stopped + ran:,.0f} hours stopped{more}")
    ]
