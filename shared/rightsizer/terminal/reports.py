"""The report of a deployed stack at a terminal: the summary that is mailed, or all of it as JSON."""

import json
from typing import Annotated

import typer

from rightsizer import bootstrap
from rightsizer.domain.reason import one_line
from rightsizer.flows.report import made, window
from rightsizer.render import notice, text
from rightsizer.render import report_json as data
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import app, print_json
from rightsizer.terminal.options import Given, order


@app.command(epilog="Examples: rightsizer report; rightsizer report --monthly --json > report.json")
@order
def report(
    given: Given,
    monthly: Annotated[
        bool, typer.Option("--monthly", help="The last whole month, not the last whole week (from Monday, UTC).")
    ] = False,
) -> None:
    """Show what was spent, saved and kept of what was promised, in the last whole week. Reads only.

    It is made anew from the stack's table, and nothing is stored or sent. What rightsizer itself costs is in the
    reports that the stack stores.
    """
    now = bootstrap.now()
    told = made(given.report_sources(), *window("monthly" if monthly else "weekly", now), now)
    if given.as_json:
        print_json(json.loads(data.report(told)))
    else:
        show.say(text.report(told)[1].rstrip())
        for row in told.unread:
            show.say(one_line(notice.unread(row)))
        if told.misread:
            show.say(notice.line(told.misread))
