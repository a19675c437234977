"""`rightsizer training`: an account's finished training jobs, and changes for their next runs."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer import bootstrap
from rightsizer.advice.market import snapshot
from rightsizer.advice.training_history import TrainingFinding, TypeResult, WorkAdvice, advise_runs
from rightsizer.aws.training import TrainingHistory
from rightsizer.domain.endpoint import MODE_TAG
from rightsizer.errors import InputError, PermissionMissingError
from rightsizer.render.pictures import Line, LineChart, line_chart_png
from rightsizer.terminal import tables as show
from rightsizer.terminal.advise_page import document
from rightsizer.terminal.app import (
    AsJson,
    EndpointUrl,
    Exit,
    Profile,
    Region,
    app,
    check_picture,
    examples,
    open_session,
    print_json,
    progress_of,
    write_picture,
)

MOST_LINES = 8
"""Works in the chart, the most expensive ones."""
VERSION = 1
"""Of the document that --json prints; a field is only ever added to it."""


@app.command(
    epilog=examples(
        "rightsizer training --region eu-west-1             # the last 30 days",
        "rightsizer training --days 90 --json | jq '.work[0].findings'",
    )
)
def training(
    region: Region = None,
    profile: Profile = None,
    endpoint_url: EndpointUrl = None,
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="Days of finished jobs to look at.")] = 30,
    most: Annotated[int, typer.Option("--most", min=1, max=5000, help="Newest jobs that are read at most.")] = 1000,
    png: Annotated[
        Path | None, typer.Option("--png", help="Write a chart of hours and price of each type (extra pictures).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what the next training and processing runs should change.

    Compares finished jobs by cost and time. Reads the jobs and their metrics in CloudWatch; changes nothing.
    Runs whose names differ in a stamp only count as one work. Exit code 10: something can be saved.
    """
    check_picture(png)
    session, now = open_session(region, profile, endpoint_url), bootstrap.now()
    market = snapshot(session.region)
    history, since = TrainingHistory(session), now - timedelta(days=days)
    with progress_of("reading training jobs") as progress:
        runs = history.runs(since, now, most, progress)
    try:
        with progress_of("reading processing jobs") as progress:
            runs += history.processing_runs(since, now, most, progress)
    except PermissionMissingError as error:
        show.Screen(stderr=True).print(Text.assemble(("processing jobs are left out: ", "yellow"), str(error)))
    for reason in dict.fromkeys(run.tags_unread for run in runs if run.tags_unread is not None):
        said = ("owners and opt-outs of some jobs are not known: ", "yellow")
        show.Screen(stderr=True).print(Text.assemble(said, reason.sentence))
    work = advise_runs(runs, market)
    if png is not None:
        write_picture(png, line_chart_png(training_chart(work, session.region, days)))
    if as_json:
        whole = {"version": VERSION, "region": session.region, "days": days, "jobs": len(runs)}
        print_json({**whole, "work": [{**document(each), "saving_usd": each.saving_usd} for each in work]})
    else:
        show.output().print(training_page(work, len(runs), days))
    saves = any(each.saving_usd > 0 for each in work)
    raise typer.Exit(Exit.SAVINGS_FOUND if saves else Exit.NOTHING_TO_DO)


def training_chart(work: Sequence[WorkAdvice], region: str, days: int) -> LineChart:
    """Median hours and price of a run on each type, a line for each work. InputError where nothing can be drawn."""
    drawn = [each for each in work if each.results][:MOST_LINES]
    if not drawn:
        raise InputError("no finished run has a duration and a price, so there is nothing to draw")
    lines = [Line(each.name, sorted((result.hours, result.usd) for result in each.results)) for each in drawn]
    all_results = [result for each in drawn for result in each.results]
    marks = [
        (type_result.hours, type_result.usd, f"{type_result.count} x {type_result.instance_type}")
        for type_result in all_results
    ]
    foot = f"On-Demand list prices, {region}, runs of {days} days; Spot by its billable seconds"
    return LineChart("Runs of the same work on each type", "hours of a run", "US dollars of a run", lines, marks, foot)


def training_page(work: Sequence[WorkAdvice], jobs: int, days: int) -> RenderableType:
    """Each work with its types and findings, the most expensive first."""
    saved = [each for each in work if each.saving_usd > 0]
    parts: list[RenderableType] = [
        Text(f"{jobs} finished training and processing jobs of {days} days, On-Demand list prices")
    ]
    if saved:
        least, whole = sum(each.saving_usd for each in saved), sum(each.usd for each in work)
        head = f"The next runs of {len(saved)} of {len(work)} works can cost less: with the best change of each,"
        parts.append(Text(f"{head} USD {least:,.2f} less of USD {whole:,.2f} in these days.", style="bold green"))
    for each in work:
        kind = "processing, " if each.is_processing else ""
        counts = f"{kind}{each.runs} runs, {each.failed} failed, {each.interruptions} interruptions"
        owner = f" (owner {each.owner})" if each.owner else ""
        parts += [Text(), Text(f"{each.name}{owner}: {counts}, USD {each.usd:,.2f}", style="bold")]
        if each.unpriced:
            parts.append(
                Padding(
                    Text(f"no price is known of {', '.join(each.unpriced)}, so no cost"), (0, 0, 0, 2), expand=False
                )
            )
        if each.results:
            parts.append(Padding(_results(each.results), (0, 0, 0, 2), expand=False))
        parts += [Padding(line, (0, 0, 0, 2), expand=False) for line in _findings(each.findings)]
        if each.is_opted_out:
            text = f"nothing is proposed: the tag {MODE_TAG} of the newest run says off"
            parts.append(Padding(Text(text), (0, 0, 0, 2), expand=False))
    return Group(*parts)


def _results(results: Sequence[TypeResult]) -> Table:
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("Type", "Runs", "Hours", "USD/run", ""):
        rows.add_column(name, justify="right" if name in ("Runs", "Hours", "USD/run") else "left")
    for type_result in results:
        mark = "no other is quicker and cheaper" if type_result.is_on_frontier and len(results) > 1 else ""
        figures = (str(type_result.runs), f"{type_result.hours:.2f}", f"{type_result.usd:,.2f}", mark)
        rows.add_row(*(Text(cell) for cell in (f"{type_result.count} x {type_result.instance_type}", *figures)))
    return rows


def _findings(findings: Sequence[TrainingFinding]) -> Iterator[Text]:
    for finding in findings:
        saving = f", save USD {finding.usd_per_run:,.2f} a run" if finding.usd_per_run else ""
        yield Text(f"- {finding.next_step}{saving}: {finding.reason.text} [{finding.reason.source}]")
