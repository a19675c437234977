"""The report against AWS's bill, in a sentence, as a part of the page, and as cells of the CSV."""

from decimal import Decimal

from rightsizer.domain.bill import BillLevel, ReconciledRow, Reconciliation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.render import sentences
from rightsizer.render.html import Cell, Markup, join, table, tag

NO_BILL = "no bill was read (docs/bill.md)"
HOW = (
    "Billed: the hours of AWS's bill at public prices, which is what our prices stand for. Paid: with Savings Plans"
    " spread over what they cover, before credits, discounts, refunds and tax. Saved: what the days would have cost"
    " without the changes, less what was billed."
)
HEADS = {BillLevel.ENDPOINT: "Endpoint", BillLevel.TYPE: "Instance types", BillLevel.TAG: "Value of the tag"}


def not_reconciled(reconciliation: Reconciliation | None) -> str:
    """Why the report was not compared with a bill; empty where it was."""
    if reconciliation is None:
        return f"not reconciled: {NO_BILL}"
    return f"not reconciled: {reconciliation.reason}" if reconciliation.reason else ""


def bill_text(report: Report) -> str:
    """How the report compares with the bill, in a sentence."""
    found = report.reconciliation
    said, whole = not_reconciled(found), found.whole if found else None
    if found is None or whole is None or said:
        return said or f"not reconciled: {NO_BILL}"
    days = sentences.count(whole.days, "day")
    kept = "" if not whole.realised else f"; {_saved(whole)}"
    again = ", which AWS may still rewrite" if found.provisional else ""
    return (
        f"reconciled with {found.source} by {found.level}, {days}{again}: {_usd(whole.billed)} billed at public prices,"
        f" {_usd(whole.spent)} by our prices and hours ({error_text(whole.cost_error)}){kept}"
    )


NOT_SAVED = "nothing was saved on the bill"
"""Why an estimate has no error."""


def _saved(row: ReconciledRow) -> str:
    text = f"{_usd(row.reconciled)} saved against the bill, {_usd(row.realised)} by our prices and hours"
    if row.promised is None:
        return text
    return f"{text}, {_usd(row.promised)} promised ({error_text(row.estimate_error, NOT_SAVED)})"


def error_text(share: float | None, undefined: str = "the bill has nothing of it") -> str:
    """An error in words: ``1.2 % too high``; where there is none, why."""
    if share is None:
        return undefined
    if abs(share) < 0.0005:
        return "no error"
    return f"{sentences.percent(abs(share))} too {'high' if share > 0 else 'low'}"


def change_cell(report: Report, endpoint: str) -> str:
    """The saving of a changed endpoint against the bill, or why it is not known."""
    reconciliation = report.reconciliation
    if reconciliation is None or reconciliation.reason or reconciliation.level is not BillLevel.ENDPOINT:
        return "not reconciled"
    rows = [one for one in reconciliation.rows if one.name == endpoint]
    if len(rows) != 1:
        why = "no day of it is known to bill and table" if not rows else f"{len(rows)} endpoints have this name"
        return f"not reconciled: {why}"
    row = rows[0]
    error = "" if row.promised is None else f"; promised {error_text(row.estimate_error, NOT_SAVED)}"
    return f"{_usd(row.reconciled)} for the endpoint, {sentences.count(row.days, 'day')}{error}"


def section_content(report: Report) -> Markup:
    """The sentence, what to know of it, and the table."""
    found, said = report.reconciliation, bill_text(report)
    sentence = tag("p", f"{said[0].upper()}{said[1:]}.")
    if found is None or found.reason:
        return sentence
    notes = [tag("p", note, class_="note") for note in found.notes]
    several = _are_of_several_places(found)
    rows = [_row(row, f"{row.account} {row.region}" if several else "") for row in found.rows[:SHOWN]]
    heads = (
        HEADS[found.level], "Days", "Hours billed", "By our prices", "Billed", "Difference", "Error", "Paid", "Saved",
        "Error of the estimate",
    )  # fmt: skip
    listed = table("Against the bill", heads, rows, "")
    beside = [(name.capitalize(), usd) for name, usd in found.aside]
    beside += [("Endpoint hours of the bill in no row", found.unmatched)] if found.unmatched else []
    sums = [[Cell(name), Cell(_usd(usd), float(usd), "n")] for name, usd in beside]
    other = table("Beside it, in no row", ("What", "In the window"), sums, "") if sums else None
    return tag("div", sentence, tag("p", HOW, class_="note"), *notes, join(listed, other))


def _are_of_several_places(reconciliation: Reconciliation) -> bool:
    return len({(row.account, row.region) for row in reconciliation.rows}) > 1


def _row(row: ReconciledRow, place: str) -> list[Cell]:
    several = f"{sentences.count(row.endpoints, 'endpoint')}" if row.endpoints > 1 else ""
    several = ", ".join(filter(None, (several, place)))
    promised = "" if row.promised is None else error_text(row.estimate_error, NOT_SAVED)
    return [
        Cell(join(tag("b", row.name), tag("div", several, class_="note") if several else None), row.name, "name"),
        Cell(row.days, row.days, "n"),
        Cell(f"{row.hours:,.1f}", float(row.hours), "n"),
        _cell(row.spent),
        _cell(row.billed),
        _cell(row.difference),
        Cell(error_text(row.cost_error), row.cost_error or 0.0, "n"),
        _cell(row.paid),
        _cell(row.reconciled),
        Cell(promised or "not known", row.estimate_error or 0.0, "n"),
    ]


def _cell(usd: Decimal) -> Cell:
    return Cell(_usd(usd), float(usd), "n")


def _usd(usd: Decimal) -> str:
    return sentences.exact_money(usd)


def lines(report: Report, most: int = 10) -> list[str]:
    """The rows with the largest differences and what to know of them, for a terminal."""
    reconciliation = report.reconciliation
    if reconciliation is None or reconciliation.reason:
        return []
    several = _are_of_several_places(reconciliation)
    parts = [
        f"  {f'{row.account} {row.region} ' if several else ''}{row.name}: {_usd(row.billed)} billed,"
        f" {_usd(row.spent)} by our prices and hours ({error_text(row.cost_error)})"
        f"{f'; {_saved(row)}' if row.realised else ''}"
        for row in reconciliation.rows[:most]
    ]
    parts += (
        [f"  {len(reconciliation.rows) - most} more: --format html, csv or json"]
        if len(reconciliation.rows) > most
        else []
    )
    parts += [f"  {name}, in no row: {_usd(usd)}" for name, usd in reconciliation.aside]
    parts += (
        [f"  endpoint hours of the bill in no row: {_usd(reconciliation.unmatched)}"]
        if reconciliation.unmatched
        else []
    )
    return [*parts, *(f"  {note}" for note in reconciliation.notes)]


CSV_HEADS = ("bill_days", "bill_by_our_prices_usd", "billed_usd", "paid_usd", "bill_difference_usd", "reconciled_usd")
"""Columns of the CSV: over the days that bill and table both know."""


def csv_rows(report: Report) -> dict[tuple[str, str, str], ReconciledRow]:
    """The rows by account, Region and endpoint; none where the bill knows no endpoints."""
    reconciliation = report.reconciliation
    if reconciliation is None or reconciliation.level is not BillLevel.ENDPOINT:
        return {}
    return {(row.account or report.account, row.region or report.region, row.name): row for row in reconciliation.rows}


def csv_groups(report: Report) -> tuple[ReconciledRow, ...]:
    """The rows that are of no single endpoint, and so lines of their own in the CSV."""
    reconciliation = report.reconciliation
    return reconciliation.rows if reconciliation is not None and reconciliation.level is not BillLevel.ENDPOINT else ()


def csv_cells(row: ReconciledRow | None) -> list[object]:
    """The cells under `CSV_HEADS`; empty ones where nothing was compared."""
    if row is None:
        return [""] * len(CSV_HEADS)
    return [row.days, row.spent, row.billed, row.paid, row.difference, row.reconciled]
