"""The money of the report in words and tables, with the table of inference components."""

from collections.abc import Sequence
from decimal import Decimal

from rightsizer.domain.money import NOBODY, GroupedBy
from rightsizer.domain.recommendation import ComponentFinding, Recommendation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.render import report_tables, sentences
from rightsizer.render.html import Cell, HtmlNode, Markup, badge, folded, join, table, tag

GROUPS: tuple[tuple[GroupedBy, str], ...] = (
    ("owner", "Owner"),
    ("environment", "Environment"),
    ("region", "Region"),
    ("account", "Account"),
)
FIRST = 5
"""Rows of a table that are shown before a button is pressed."""
LISTED = 8
"""Endpoints that are named where endpoints came, went or changed."""


def first_sentence(report: Report) -> Markup:
    """The lead in large letters, and below it what was saved in the window."""
    totals = report.totals
    saved = f"{sentences.exact_money(totals.realised)} was saved in this window, at the hours of each change."
    unasked = (
        ": what waits, what is under way, and what nobody was asked about" if totals.open > totals.waiting > 0 else ""
    )
    more = [saved, f"{sentences.exact_money(totals.open)} a month could still be saved{unasked}."]
    more += [f"{name}: {sentences.exact_money(usd)}." for name, usd in report_tables.growth_added(totals)]
    if totals.unpriced:
        more.append(f"{sentences.count(totals.unpriced, 'endpoint')} without a known price: not in the spend.")
    short = report_tables.short_text(report)
    return tag(
        "div",
        tag("p", report_tables.lead_text(report), class_="lead"),
        tag("p", f"{short}.", class_="alert") if short else None,
        tag("p", " ".join(more), class_="soft"),
    )


def waits(report: Report) -> Markup:
    """Who has not answered, and what that costs a day."""
    rows = [
        [
            Cell(wait.owner or NOBODY, look="name"),
            Cell(wait.proposals, wait.proposals, "n"),
            _usd(wait.usd_per_month),
            _usd(wait.usd_per_day),
            Cell(sentences.day_text(wait.since), wait.since.timestamp(), "nowrap"),
        ]
        for wait in report.money.waits
    ]
    heads = ("Owner", "Proposals", "Saving a month", "Waiting costs a day", "Oldest asked on")
    return table("Who is waited for", heads, rows, "Nobody: every proposal is answered.", FIRST)


NOT_KNOWN = Cell("not known", -1.0, "n")


def groups(report: Report) -> Markup:
    """The money by owner, and folded by environment, Region and account."""
    first, *others = GROUPS
    markups = [
        folded(f"By {what if what != 'region' else 'Region'}", _group(report, what, name)) for what, name in others
    ]
    return tag("div", _group(report, *first), *markups)


def _group(report: Report, what: GroupedBy, name: str) -> Markup:
    rows = [
        [
            Cell(group, look="name"),
            Cell(totals.endpoints, totals.endpoints, "n"),
            *((_usd(totals.spend), _usd(totals.wasted)) if totals.is_priced else (NOT_KNOWN, NOT_KNOWN)),
            _usd(totals.open),
            _usd(totals.proven),
            _usd(totals.realised),
        ]
        for group, totals in report.money.by(what).items()
    ]
    heads = (name, "Endpoints", "Spend a month", "Wasted", "Could still be saved", "Proven", "Saved in this window")
    return table(f"By {what}", heads, rows, "No endpoint was found.", FIRST)


def since_last(report: Report) -> HtmlNode:
    """Changes since the report of the window before."""
    before = report.since_last
    if before is None:
        return tag("p", "The report of the window before is not stored, so there is nothing to compare.", class_="soft")
    totals = report.totals
    figures = (
        ("Spend a month", before.totals.spend, totals.spend),
        ("Wasted", before.totals.wasted, totals.wasted),
        ("Waits for an answer", before.totals.waiting, totals.waiting),
        ("Proven", before.totals.proven, totals.proven),
        ("Saved in the window", before.totals.realised, totals.realised),
    )
    rows = [[Cell(name), _usd(old), _usd(new), _usd(new - old, "+")] for name, old, new in figures]
    heads = ("Figure", f"{sentences.day_text(before.start)} to {sentences.day_text(before.end)}", "Now", "Difference")
    moves = [
        ("New", before.appeared),
        ("Gone", before.gone),
        ("Cost another price now", tuple(f"{name} ({_signed(usd)})" for name, usd in before.moved)),
    ]
    markups = [tag("p", tag("b", f"{name}: "), _listed(names)) for name, names in moves if names]
    return join(table("Since the last report", heads, rows, ""), *markups)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _signed(usd: Decimal) -> str:
    return f"{'+' if usd > 0 else ''}{sentences.exact_money(usd)}"


def _usd(usd: Decimal, sign: str = "") -> Cell:
    return Cell(_signed(usd) if sign else sentences.exact_money(usd), float(usd), "n")


TITLE = "Inference components"
HEADS = ("Endpoint", "Component", "Finding", "Copies", "Needed", "Part of the price", "Why")


def section_content(recommendations: Sequence[Recommendation]) -> Markup | None:
    """Components of all endpoints, the dearest first; None where no endpoint has any."""
    rows = sorted(
        ((recommendation, finding) for recommendation in recommendations for finding in recommendation.components),
        key=lambda row: (-(row[1].usd_per_month or 0), row[0].ref.name, row[1].name),
    )
    if not rows:
        return None
    packed = [f"{one.ref.name}: {sentences.packing_sentence(one.packing)}." for one in recommendations if one.packing]
    text = "A month, by what the copies reserve of their instances. " + " ".join(packed[:SHOWN])
    cells = [_row(recommendation, finding) for recommendation, finding in rows[:SHOWN]]
    return tag("div", tag("p", text, class_="note"), table(TITLE, HEADS, cells, ""))


def _row(recommendation: Recommendation, finding: ComponentFinding) -> list[Cell]:
    usd = finding.usd_per_month
    cost = "of its base" if finding.base else "not known" if usd is None else sentences.exact_money(usd)
    return [
        Cell(recommendation.ref.name, recommendation.ref.name),
        Cell(finding.name, finding.name),
        Cell(badge(sentences.FINDINGS[finding.finding], "")),
        Cell("not read" if finding.copies is None else f"{finding.copies}", finding.copies or 0, "n"),
        Cell("" if finding.needed is None else f"{finding.needed}", finding.needed or 0, "n"),
        Cell(cost, float(usd or 0), "n"),
        Cell(finding.reason.sentence, look="why"),
    ]
