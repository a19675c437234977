"""The typer application and what every command shares; exit codes, stable for CI (docs/cli.md)."""

import json
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rightsizer import __version__, bootstrap
from rightsizer.aws.session import Session
from rightsizer.errors import InputError
from rightsizer.render.pictures import figure_class
from rightsizer.settings import LOOKBACK
from rightsizer.terminal import document, tables
from rightsizer.terminal.survey import DEFAULTS_HOLD, Survey, SurveyPolicy, add_rest_of_bill, survey, survey_policy
from rightsizer.terminal.tables import Screen

if TYPE_CHECKING:
    from rightsizer.aws.local_cache import LocalCache
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.domain.hours_record import HoursRecord
    from rightsizer.ports.changes import HoursBook


def examples(*lines: str) -> str:
    """The end of a command's help: lines to copy, each kept whole (``\\b`` is click's mark for that)."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


app = typer.Typer(
    name="rightsizer",
    help="Find SageMaker GPU endpoints that cost more than their traffic needs, and answer what rightsizer proposes.",
    epilog=examples(
        "rightsizer doctor --region eu-west-1  # what your credentials may read",
        "rightsizer scan --region eu-west-1    # what could be saved; writes nothing",
        "rightsizer explain --help             # one command, with examples",
    )
    + "\n\nExit codes: 0 nothing to do, 1 failed, 2 wrong usage, 10 savings found, 20 something could not be read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Exit(IntEnum):
    """Exit code of a command."""

    NOTHING_TO_DO = 0
    """Everything was read and no saving of the asked size was found."""
    FAILED = 1
    """The command could not do its work; the message says why."""
    USAGE = 2
    """The command line was not understood."""
    SAVINGS_FOUND = 10
    """At least one saving of the asked size was found, whether or not everything could be read."""
    INCOMPLETE = 20
    """No saving was found, and something could not be read, so there may be one."""
    INTERRUPTED = 130
    """Ctrl-C."""


def _version(wanted: bool) -> None:
    if wanted:
        boto3 = metadata.version("boto3")
        sys.stdout.write(f"rightsizer {__version__} (Python {platform.python_version()}, boto3 {boto3})\n")
        raise typer.Exit(Exit.NOTHING_TO_DO)


@app.callback()
def common_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the versions of rightsizer, Python and boto3."
        ),
    ] = False,
) -> None:
    """Options before the name of a command."""


Region = Annotated[
    str | None, typer.Option("--region", help="AWS Region, such as eu-west-1; else AWS_REGION, else the profile's.")
]
Profile = Annotated[str | None, typer.Option("--profile", help="Profile of your AWS configuration.")]


def _url(text: str | None) -> str | None:
    parts = urlsplit(text or "http://none")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise typer.BadParameter(f"{text!r} is not an address such as http://127.0.0.1:5000")
    return text


EndpointUrl = Annotated[
    str | None,
    typer.Option(
        "--endpoint-url", callback=_url, help="Send every call to this address, such as a simulated account's."
    ),
]
LookBack = Annotated[
    int | None,
    typer.Option(
        "--look-back",
        min=LOOKBACK.start,
        max=LOOKBACK.stop - 1,
        metavar="DAYS",
        help="Days of metrics to look at; else those of the policy, 14 where it says none.",
    ),
]
PolicyOf = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="FILE|ssm:NAME",
        help="Policy document to obey in place of the stack's; - reads standard input.",
    ),
]
Stack = Annotated[
    str, typer.Option("--stack", envvar="RIGHTSIZER_STACK", help="Name of the deployed CloudFormation stack.")
]


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise typer.BadParameter(f"there is no time zone {text!r} (IANA names, such as Europe/Berlin)") from None
    return text


Zone = Annotated[
    str,
    typer.Option(
        "--zone",
        callback=_zone,
        envvar="RIGHTSIZER_ZONE",
        metavar="ZONE",
        help="Time zone of proposed office hours, such as Europe/Berlin.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text; docs/cli.md explains its keys.")]


def open_session(region: str | None, profile: str | None, endpoint_url: str | None) -> Session:
    """The session of a command; SettingsError for a Region that is unknown, with those that are known."""
    session = Session(region, profile, endpoint_url)
    session.require_known_region()
    return session


def _money(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value < 0:
        raise typer.BadParameter(f"{text!r} is not an amount of US dollars, zero or more")
    return value


@app.command(
    epilog=examples(
        "rightsizer scan --region eu-west-1",
        "rightsizer scan --json --min-saving 200 > scan.json  # in CI: 10 if $200 can be saved",
    )
)
def scan(
    region: Region = None,
    profile: Profile = None,
    min_saving: Annotated[
        Decimal | None,
        typer.Option(
            "--min-saving",
            parser=_money,
            metavar="USD",
            help="Smallest monthly saving, in US dollars, that counts as found; else that of the policy (50).",
        ),
    ] = None,
    look_back: LookBack = None,
    zone: Zone = "UTC",
    policy: PolicyOf = "",
    stack: Stack = "rightsizer",
    cached: Annotated[
        bool, typer.Option("--cache", help="Keep configurations and closed days of metrics on this machine.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Read everything anew into the cache.")] = False,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the endpoints of a Region and what each could save.

    Reads only, and needs nothing deployed. The largest saving comes first. An endpoint without datapoints is unknown,
    not idle. Where a stack is deployed, its policy is obeyed. Exit codes: 0 nothing to save, 10 savings found, 20
    something could not be read.
    """
    session = open_session(region, profile, endpoint_url)
    cache = bootstrap.local_cache(session, refresh=refresh) if cached or refresh else None
    obeyed = survey_policy(session, stack, policy, look_back, min_saving)
    found = _survey(session, obeyed, zone, cache=cache)
    if as_json:
        from rightsizer.terminal.wake_page import asleep_document

        limits = obeyed.known.account_limits.hours
        away = [asleep_document(record, found.at, limits, False, stack) for record in found.asleep]
        print_json(document.survey_document(found) | {"asleep": away, "policy": document.policy_document(obeyed)})
    else:
        console = tables.output()
        console.print(tables.listing(found, console.width))
        if obeyed.source != DEFAULTS_HOLD:
            tables.say(f"Policy: {obeyed.source}.")
    tables.print_policy_problems(obeyed, Screen(stderr=True))
    tables.print_warnings(found, Screen(stderr=True))
    if cache is not None:
        Screen(stderr=True).print(_cache_line(cache), style="dim", markup=False)
    raise typer.Exit(code_of(found))


@app.command(
    epilog=examples(
        "rightsizer explain chat-prod --region eu-west-1",
        "rightsizer explain chat-prod --json | jq '.excluded[]'  # types that were ruled out",
    )
)
def explain(
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Name of the endpoint.")],
    region: Region = None,
    profile: Profile = None,
    look_back: LookBack = None,
    zone: Zone = "UTC",
    policy: PolicyOf = "",
    stack: Stack = "rightsizer",
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the figures, options and refusals of one endpoint.

    Reads only. Each option has its saving, its risk and how it is undone; each type that was ruled out has its reason.
    """
    session = open_session(region, profile, endpoint_url)
    obeyed = survey_policy(session, stack, policy, look_back, None)
    found = _survey(session, obeyed, zone, endpoint)
    errors = Screen(stderr=True)
    for lost in found.unobserved:
        errors.print(f"{lost.ref.name} could not be read: {lost.reason.sentence}", style="red", markup=False)
    for recommendation in found.recommendations:
        if as_json:
            said = {"policy": document.policy_document(obeyed, recommendation)}
            print_json(document.explanation_document(recommendation, found.rest.findings) | said)
        else:
            console = tables.output()
            console.print(tables.explanation(recommendation, found.rest.findings, console.width))
            console.print(tables.policy_of_endpoint(obeyed, recommendation))
    tables.print_policy_problems(obeyed, errors)
    tables.print_warnings(found, errors)
    raise typer.Exit(Exit.FAILED if found.unobserved else code_of(found))


def code_of(survey: Survey) -> Exit:
    """The exit code of a survey."""
    if survey.large_enough:
        return Exit.SAVINGS_FOUND
    return Exit.NOTHING_TO_DO if survey.is_whole else Exit.INCOMPLETE


def _cache_line(cache: "LocalCache") -> str:
    if cache.oldest is None:
        return f"nothing came from the cache; what cannot change is now in {cache.folder}"
    hours = (bootstrap.now() - cache.oldest).total_seconds() / 3600
    age = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} hours"
    return (
        f"configurations of {cache.used} endpoints, closed days of their metrics, and the counts of those that were not"
        f" modified and that no policy moves, come from the cache {cache.folder}; the oldest was read {age} ago"
        " (--refresh reads all anew)"
    )


def _survey(
    session: Session, obeyed: SurveyPolicy, zone: str, *names: str, cache: "LocalCache | None" = None
) -> Survey:
    ports, now = bootstrap.reading_ports(session, cache=cache), bootstrap.now()
    book = _stopped_by_hours(session, obeyed.table)
    known = partial(_hours_records, book) if book is not None else ports.hours
    ports = replace(ports, document=obeyed.document, hours=known)
    if obeyed.table:
        memory = _memory_of_stack(session, obeyed.table)
        ports = replace(ports, history=memory.history, questions=memory.open_questions)
    with progress_of("reading endpoints") as progress:
        found = survey(ports, session.region, obeyed.policy, now, progress, names)
    bill = bootstrap.bill_ports(session, ports.prices, book, zone)
    return add_rest_of_bill(found, bill, is_whole=not names)


def _stopped_by_hours(session: Session, table: str) -> "HoursBook | None":
    """The records of what the stack's office hours stopped; None without a stack."""
    if not table:
        return None
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.table import Table

    return HoursTable(Table(session.client("dynamodb"), table))


def _memory_of_stack(session: Session, table: str) -> "Recommendations":
    """What the stack changed and asked."""
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.table import Table

    return Recommendations(Table(session.client("dynamodb"), table), bootstrap.now)


def _hours_records(book: "HoursBook", _names: Collection[str]) -> "Mapping[str, HoursRecord]":
    """All of them: one query, however many endpoints are asked for."""
    return {record.ref.name: record for record in book.records()}


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; nothing when that is not a terminal."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Screen(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, number: int) -> None:
            bar.update(task, completed=done, total=number)

        yield report


def print_json(value: Any) -> None:
    """A document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def check_picture(path: Path | None) -> None:
    """InputError where a chart could not be drawn or written, before the work for it begins; None: no chart."""
    if path is None:
        return
    figure_class()
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"writing the chart {path}: it cannot be written there; give a path that can be written")


def write_picture(path: Path, picture: bytes) -> None:
    """A chart as a file, and a line about it on standard error; InputError where it cannot be written."""
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise InputError(f"writing the chart {path}: {error}; give a path that can be written") from None
    sys.stderr.write(f"chart written to {path}\n")
