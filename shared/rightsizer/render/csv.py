"""A report as CSV for a spreadsheet: a row for each saving of the window, and one for each endpoint without one."""

import csv
import io
from collections.abc import Mapping
from dataclasses import fields
from unicodedata import normalize

from rightsizer.domain.money import MoneyRow, Totals
from rightsizer.domain.option import Option
from rightsizer.domain.reason import one_line
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render import bill
from rightsizer.render.report_tables import recommendation_behind

HEADS = (
    *("account", "region", "endpoint", "owner", "mode", "finding", "reason_code", "reason"),
    *("instance_type", "instance_count", "usd_per_month"),
    *("option_kind", "option_instance_type", "option_instance_count", "option_usd_per_month"),
    *("saving_usd_per_month", "performance_risk", "confidence", "evaluated_at"),
    *("stage", "funnel_usd_per_month", "proposal"),
    *("environment", "spend_usd_per_month", "without_changes_usd_per_month", "wasted_usd_per_month"),
    *("utilised_usd_per_month", "reserve_usd_per_month", "saved_usd_in_window"),
    *bill.CSV_HEADS,
)
WIDTH = len(HEADS) - 10 - len(bill.CSV_HEADS)
"""Columns of the recommendation; those of the funnel and of the endpoint's money come after them."""
DANGEROUS = ("=", "+", "-", "@")
"""A cell that begins so is a formula to a spreadsheet (OWASP, "CSV Injection"), as are their full-width forms."""


def report(report: Report) -> str:
    """The table with a head row; CRLF line ends, as RFC 4180 asks. Each column of money adds up to its total.

    An endpoint with several savings has a row for each of them, with its own amounts in the first one alone. Where the
    bill is told apart by instance type or tag, its comparison follows in rows without an endpoint.
    """
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(HEADS)
    asked = {proposal.id: proposal.recommendation for proposal in report.proposals}
    latest = {
        (recommendation.ref.account, recommendation.ref.region, recommendation.ref.name): recommendation
        for recommendation in report.recommendations
    }
    money = {row.key: row for row in report.money.rows}
    billed = bill.csv_rows(report)
    counted: set[tuple[str, str, str]] = set()
    for saving in report.funnel:
        found = recommendation_behind(saving, asked, latest)
        again, own = saving.key in counted, money.pop(saving.key, None)
        known = _row(found, again) if found else _bare_row(saving.key, saving.owner)
        counted.add(saving.key)
        funnel = [saving.stage, saving.usd_per_month, saving.proposal_id]
        rows.writerow([*known, *funnel, *_money_cells(own), *bill.csv_cells(billed.get(saving.key) if own else None)])
    for key in dict.fromkeys((*latest, *money)):
        if key not in counted:
            row = money.get(key)
            known = _row(latest[key]) if key in latest else _bare_row(key, row.owner if row else "")
            rows.writerow([*known, "", "", "", *_money_cells(row), *bill.csv_cells(billed.get(key) if row else None)])
    for one in bill.csv_groups(report):
        known = [
            one.account or report.account,
            one.region or report.region,
            *[""] * 6,
            safe_cell(one.name),
            *[""] * (WIDTH - 9),
        ]
        rows.writerow([*known, *[""] * 10, *bill.csv_cells(one)])
    return text.getvalue()


def groups(by: str, found: Mapping[str, Totals]) -> str:
    """The sums of each group, a row each; the head row names the figures as the JSON does."""
    text = io.StringIO()
    rows = csv.writer(text)
    names = [each.name for each in fields(Totals)]
    rows.writerow([by, *names])
    for group, totals in found.items():
        amounts = (getattr(totals, name) for name in names)
        rows.writerow([safe_cell(group), *("" if amount is None else amount for amount in amounts)])
    return text.getvalue()


def _bare_row(key: tuple[str, str, str], owner: str) -> list[object]:
    return [*map(safe_cell, key), safe_cell(owner), *[""] * (WIDTH - 4)]


def _money_cells(row: MoneyRow | None) -> list[object]:
    """The money of an endpoint; empty cells where it stands in an earlier row, or is not known."""
    if row is None:
        return [""] * 7
    amounts = (row.spend, row.without_changes, row.wasted, row.utilised, row.reserve, row.realised)
    return [safe_cell(row.environment), *("" if usd is None else usd for usd in amounts)]


def _row(recommendation: Recommendation, again: bool = False) -> list[object]:
    """The cells of a recommendation; `again`: without today's cost, which stands in an earlier row of the endpoint."""
    ref = recommendation.ref
    named = (
        ref.account,
        ref.region,
        ref.name,
        recommendation.owner,
        recommendation.mode,
        recommendation.finding,
        recommendation.reason.code,
        recommendation.reason,
    )
    cost = "" if recommendation.usd_per_month is None or again else recommendation.usd_per_month
    today = [safe_cell(recommendation.instance_type), recommendation.instance_count, cost]
    return [
        *(safe_cell(str(part)) for part in named),
        *today,
        *_target_cells(recommendation.chosen_option),
        recommendation.evaluated_at.isoformat(),
    ]


def _target_cells(option: Option | None) -> list[object]:
    if option is None:
        return [""] * 7
    target = option.target
    what = [safe_cell(str(option.kind)), safe_cell(target.instance_type), target.instance_count, option.usd_per_month]
    return [*what, option.saving_usd_per_month, int(option.performance_risk), option.confidence]


def safe_cell(text: str) -> str:
    """Text on one line; what a spreadsheet would compute, spaces passed over, begins with a quote."""
    said = one_line(text)
    return f"'{said}" if normalize("NFKC", said).lstrip().startswith(DANGEROUS) else said


FORMAT = ReportFormat("csv", "text/csv; charset=utf-8", report)
