"""The report of a deployed stack at a terminal: the summary that is mailed, or all of it as JSON."""

import json
from typing import Annotated

import typer

from rightsizer import bootstrap
from rightsizer.domain.cleaned import one_line
from rightsizer.flows.report import made, window
from rightsizer.render import notice, text
from rightsizer.render import report_json as data
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import Given, order


@app.command(epilog=examples("rightsizer report", "rightsizer report --monthly --json > report.json"))
@order
def report(
    given: Given,
    monthly: Annotated[bool, typer.Option("--monthly", help="The last whole month instead of the last week.")] = False,
) -> None:
    """Show what was spent and saved in the last whole week.

    A week begins on Monday, 00:00 UTC. The report is made from the stack's table; nothing is stored or sent. What
    rightsizer itself costs is only in the reports that the stack stores.
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
