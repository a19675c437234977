"""`rightsizer waste` and `rightsizer savings`: the report's one table of money, at a terminal, for any days."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, cast

import typer
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from rightsizer import bootstrap, wire
from rightsizer.domain.money import GroupedBy, MoneyRow, MoneyTable, Totals, UseMethod, sum_rows
from rightsizer.domain.reason import one_line
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.flows import report as reporting
from rightsizer.render import bill as billed
from rightsizer.render import sentences
from rightsizer.reporting.split_money import by_component
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import Bill, StackOptions, order


class GroupBy(StrEnum):
    """Things that can have a row of their own."""

    ENDPOINT = "endpoint"
    OWNER = "owner"
    ENVIRONMENT = "environment"
    TYPE = "type"
    REGION = "region"
    COMPONENT = "component"


METHODS: Mapping[UseMethod, str] = {
    UseMethod.REPLAY: "replayed on the smaller option",
    UseMethod.REQUESTS: "mean hour against the busiest",
    UseMethod.NONE: "not split",
}
"""How the used part was found, in words."""
By = Annotated[GroupBy, typer.Option("--by", help="One row for each of these.")]
Days = Annotated[int, typer.Option("--days", min=1, max=365, metavar="DAYS", help="Look at the days before now.")]

WORDS = (
    "Wasted: what the recommended option would not cost. Works: the part of the rest that served requests on average. "
    "Reserve: its room for peaks and failures. Not split: no load is known."
)
"""What the columns of `waste` mean."""

type Columns = Sequence[tuple[str, Callable[[Totals], Decimal]]]
WASTE: Columns = (
    ("Spend", lambda one: one.spend),
    ("Works", lambda one: one.utilised),
    ("Reserve", lambda one: one.reserve),
    ("Not split", lambda one: one.unsplit),
    ("Wasted", lambda one: one.wasted),
)
SAVINGS: Columns = (
    ("Could be saved", lambda one: one.open),
    ("Waits of it", lambda one: one.waiting),
    ("Proven", lambda one: one.proven),
    ("Went back", lambda one: one.went_back),
    ("Saved, USD", lambda one: one.realised),
)


@app.command(epilog=examples("rightsizer waste", "rightsizer waste --by owner", "rightsizer waste --json | jq .totals"))
@order
def waste(options: StackOptions, by: By = GroupBy.ENDPOINT, days: Days = 14) -> None:
    """Show what each endpoint costs, and how much of that works.

    Reads the stack's table. Spend is what works, the reserve for peaks, and what the recommended option would not cost.
    """
    _show(options, by, days, WASTE, lambda totals: totals.spend > 0)


@app.command(epilog=examples("rightsizer savings", "rightsizer savings --days 90 --bill cost-explorer"))
@order
def savings(options: StackOptions, by: By = GroupBy.ENDPOINT, days: Days = 30, bill: Bill = "") -> None:
    """Show what could be saved, what is proven, and what was saved.

    Reads the stack's table. Estimates are US dollars a month; saved is what the days really saved, at the hours booked.
    With --bill the saving is reconciled with AWS's bill, as far as that has whole days of the window.
    """
    _show(options, by, days, SAVINGS, lambda totals: totals.identified > 0 or totals.realised != 0, bill)


def _show(
    options: StackOptions,
    by: GroupBy,
    days: int,
    columns: Columns,
    wanted: Callable[[Totals], bool],
    bill: str = "",
) -> None:
    now = bootstrap.now()
    sources = options.report_sources(bill)
    sources = replace(sources, bill=None, hours=sources.bill.hours if sources.bill else None)
    report = reporting.assemble_report(sources, now - timedelta(days=days), now, now)
    groups = {
        name: totals for name, totals in grouped(report.money, by, report.recommendations).items() if wanted(totals)
    }
    ordered = sorted(groups.items(), key=lambda pair: (-columns[-1][1](pair[1]), -columns[0][1](pair[1]), pair[0]))
    if options.as_json:
        print_json(money_document(report, by, ordered))
        return
    console = tables.output()
    console.print(money_page(by, ordered, report.money.totals(), columns, console))
    console.print(f"US dollars a month, {_window(report)}.", style="dim", highlight=False)
    if columns is WASTE:
        tables.say(WORDS)
    if columns is SAVINGS:
        text = billed.bill_text(report)
        tables.say(one_line(f"{text[0].upper()}{text[1:]}."))
        for line in billed.lines(report):
            tables.say(one_line(line))
    for row in report.unread:
        tables.say(one_line(sentences.unread_row(row)))


def grouped(money: MoneyTable, by: GroupBy, recommendations: Iterable[Recommendation] = ()) -> dict[str, Totals]:
    """The sums of each group; an endpoint is a group of its own. Components are those of `recommendations`."""
    if by is GroupBy.COMPONENT:
        return by_component(money, recommendations)
    if by is GroupBy.ENDPOINT:
        return {row.endpoint: sum_rows([row]) for row in money.rows}
    return money.by(cast("GroupedBy", by.value))


def _window(report: Report) -> str:
    return f"{sentences.day_text(report.start)} to {sentences.day_text(report.end)}, {report.account}, {report.region}"


def money_page(
    by: GroupBy, rows: Sequence[tuple[str, Totals]], whole: Totals, columns: Columns, console: Console
) -> RenderableType:
    """The groups with their sum as a table, or as a list on a narrow console."""
    if not rows:
        return Text("Nothing is known of these days: no endpoint was evaluated, and nothing was saved.")
    grid = Grid(box=None, pad_edge=False, header_style="bold", show_footer=True, footer_style="bold")
    grid.add_column(by.value.capitalize(), footer="in all", overflow="fold")
    for head, figure in columns:
        grid.add_column(head, justify="right", no_wrap=True, footer=f"{figure(whole):,.2f}")
    for name, totals in rows:
        last = columns[-1][1](totals)
        cells = [Text(f"{figure(totals):,.2f}") for _, figure in columns]
        cells[-1].stylize("yellow" if columns is WASTE and last > 0 else "green" if last > 0 else "")
        grid.add_row(Text(one_line(name)), *cells)
    return grid if tables.fits(console, grid) else tables.figures_list(_figures([*rows, ("in all", whole)], columns))


def _figures(rows: Sequence[tuple[str, Totals]], columns: Columns) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Each name with what is not zero."""
    for name, totals in rows:
        yield name, [(head, f"{figure(totals):,.0f}") for head, figure in columns if round(figure(totals))]


def money_document(report: Report, by: GroupBy, rows: Sequence[tuple[str, Totals]]) -> dict[str, Any]:
    """The table as plain data; docs/cli-json.md has the keys."""
    found = {row.endpoint: row for row in report.money.rows}
    return {
        "version": document.VERSION,
        "start": report.start.isoformat(),
        "end": report.end.isoformat(),
        "by": by.value,
        "rows": [
            {"name": name, **totals_document(totals), **(_endpoint(found[name]) if by is GroupBy.ENDPOINT else {})}
            for name, totals in rows
        ],
        "totals": totals_document(report.money.totals()),
        "reconciliation": None if report.reconciliation is None else wire.plain(report.reconciliation),
        "unreadable": document.unread_documents(report.unread),
    }


def totals_document(totals: Totals) -> dict[str, Any]:
    """Sums by name: money as text, numbers of endpoints as numbers."""
    values = {each.name: getattr(totals, each.name) for each in fields(Totals)}
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


def _endpoint(row: MoneyRow) -> dict[str, Any]:
    return {
        "owner": row.owner,
        "environment": row.environment,
        "instance_type": row.instance_type,
        "instance_count": row.instance_count,
        "finding": row.finding,
        "use_method": METHODS[row.use_method],
    }
