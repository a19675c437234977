"""The report of a stack at a terminal, of any window, in any format, and several of them as one."""

import json
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Table as Grid
from rich.text import Text

from rightsizer import bootstrap, wire
from rightsizer.domain.money import GroupedBy, Totals
from rightsizer.domain.reason import one_line, time_text
from rightsizer.domain.report import Report
from rightsizer.errors import InputError
from rightsizer.flows import report as reporting
from rightsizer.render import bill as billed
from rightsizer.render import csv, focus, messages, report_json, report_page, report_picture, sentences, text
from rightsizer.reporting.merge import merge_reports
from rightsizer.reporting.split_money import by_component
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import Bill, StackOptions, order


class Format(StrEnum):
    """Formats that a report is written in."""

    HTML = "html"
    CSV = "csv"
    JSON = "json"
    FOCUS = "focus"
    PNG = "png"


class Group(StrEnum):
    """Facts that the money is grouped by."""

    OWNER = "owner"
    ENVIRONMENT = "environment"
    REGION = "region"
    ACCOUNT = "account"
    TYPE = "type"
    COMPONENT = "component"


RENDER: Mapping[Format, Callable[[Report], str]] = {
    Format.HTML: report_page.report,
    Format.CSV: csv.report,
    Format.JSON: report_json.report,
    Format.FOCUS: focus.report,
}
GROUP_HEADS = ("Endpoints", "Spend a month", "Wasted", "Could still be saved", "Proven", "Saved in the window")
GROUPABLE = (None, Format.CSV, Format.JSON)
DAYS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M"]


@app.command(
    epilog=examples(
        "rightsizer report",
        "rightsizer report --monthly --by owner",
        "rightsizer report --since 2026-11-01 --until 2026-11-15 --format html --output report.html",
        "rightsizer report --monthly --bill s3://billing/exports/cur",
        "rightsizer report --merge one.json --merge other.json --by account",
    )
)
@order
def report(
    options: StackOptions,
    monthly: Annotated[bool, typer.Option("--monthly", help="The last whole month instead of the last week.")] = False,
    since: Annotated[datetime | None, typer.Option("--since", formats=DAYS, help="Begin of the window, UTC.")] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", formats=DAYS, help="End of the window, UTC, not in it; or now.")
    ] = None,
    form: Annotated[Format | None, typer.Option("--format", help="Write the report in this format.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", dir_okay=False, help="File to write instead of standard output.")
    ] = None,
    by: Annotated[Group | None, typer.Option("--by", help="Show the money of each group alone.")] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option("--merge", exists=True, dir_okay=False, help="JSON of a stored report; all of them as one."),
    ] = None,
    bill: Bill = "",
) -> None:
    """Show what was spent and saved, last week or in any window.

    A week begins on Monday, 00:00 UTC. The report is made from the stack's table; nothing is stored or sent. What
    rightsizer itself costs is only in the reports that the stack stores. With --merge no stack is asked: the reports of
    several Regions or accounts are read from their JSON.
    """
    form = Format.JSON if options.as_json and form is None else form
    if by is not None and form not in GROUPABLE:
        raise InputError(f"--by is for the terminal, csv and json; {form} has the groups in it or knows none")
    if form is Format.PNG and output is None:
        raise InputError("a picture needs a file to go to: name it with --output")
    if merge and (monthly or since or until or bill):
        raise InputError("--merge takes the window of the files: leave --monthly, --since, --until and --bill out")
    now = bootstrap.now()
    if merge:
        made = merge_reports([_stored(path) for path in merge])
    else:
        made = reporting.assemble_report(options.report_sources(bill), *_window(monthly, since, until, now), now)
    if by is not None:
        _show_groups(made, by, form, output)
    elif form is Format.PNG and output is not None:
        output.write_bytes(report_picture.report_png(made))
    elif form is Format.JSON and output is None:
        print_json(json.loads(report_json.report(made)))
    elif form is not None:
        _write(RENDER[form](made), output)
    else:
        _show(made)


def _window(monthly: bool, since: datetime | None, until: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    """The window that was asked for; InputError where it is none."""
    if since is None and until is None:
        return reporting.report_window("monthly" if monthly else "weekly", now)
    if since is None:
        raise InputError("--until needs --since: a window has a begin")
    if monthly:
        raise InputError("--monthly is a window of its own: leave --since and --until out")
    start, end = since.replace(tzinfo=UTC), until.replace(tzinfo=UTC) if until is not None else now
    if start >= end:
        raise InputError(f"the window ends before it begins: {time_text(start)}, to {time_text(end)}")
    if start >= now:
        raise InputError(f"nothing is known of days to come: the window begins on {time_text(start)}")
    return start, end


def _stored(path: Path) -> Report:
    try:
        return wire.loads(Report, path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _write(said: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(said)
    else:
        output.write_text(said, newline="")


def _show(report: Report) -> None:
    tables.say(text.report(report)[1].rstrip())
    for line in billed.lines(report):
        tables.say(one_line(line))
    for row in report.unread:
        tables.say(one_line(sentences.unread_row(row)))
    if report.misread:
        tables.say(messages.misread_line(report.misread, report.region))


def _show_groups(report: Report, by: Group, form: Format | None, output: Path | None) -> None:
    """The money of each group as a table, as CSV or as JSON; what a stored report left out is a group of its own."""
    if by is Group.COMPONENT:
        groups = by_component(report.money, report.recommendations)
    else:
        groups = report.money.by(cast("GroupedBy", by.value))
    if report.money.rest is not None:
        groups |= {"(left out of the stored report)": report.money.rest}
    if form is Format.JSON:
        said = {
            "version": document.VERSION,
            "by": by.value,
            "groups": {name: wire.plain(totals) for name, totals in groups.items()},
        }
        if output is None:
            print_json(said)
        else:
            _write(json.dumps(said, indent=2) + "\n", output)
    elif form is Format.CSV or output is not None:
        _write(csv.groups(by.value, groups), output)
    else:
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        grid.add_column(by.value.capitalize(), overflow="fold", min_width=12)
        for head in GROUP_HEADS:
            grid.add_column(head, justify="right", no_wrap=True)
        rows = {name: group_figures(totals) for name, totals in groups.items()}
        for name, figures in rows.items():
            grid.add_row(Text(one_line(name)), *figures)
        console = tables.output()
        named = ((name, list(zip(GROUP_HEADS, figures, strict=True))) for name, figures in rows.items())
        console.print(grid if tables.fits(console, grid) else tables.figures_list(named))


def group_figures(totals: Totals) -> tuple[str, ...]:
    """Cells of a group's row; a figure that is not known is a word, and never a zero."""
    spend, wasted = (sentences.exact_money(usd) for usd in (totals.spend, totals.wasted))
    if not totals.is_priced:
        spend = wasted = "not known"
    saved = (sentences.exact_money(usd) for usd in (totals.open, totals.proven, totals.realised))
    return (str(totals.endpoints), spend, wasted, *saved)
