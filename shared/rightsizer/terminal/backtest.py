"""`rightsizer backtest`: what automatic mode would have done, and how it would have gone. Reads only."""

from collections.abc import Callable
from typing import Annotated

import typer

from rightsizer import bootstrap
from rightsizer.aws.deployed import limits_of
from rightsizer.aws.session import Session
from rightsizer.backtest.hindsight import calibration_of
from rightsizer.bootstrap.evaluation import policy_of
from rightsizer.domain.backtest import Backtest
from rightsizer.domain.endpoint import Unobserved
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ReadError, SettingsError
from rightsizer.flows.backtest import backtests
from rightsizer.flows.evaluate import Watcher
from rightsizer.settings import Settings, change_limits, from_environment
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import AsJson, EndpointUrl, Profile, Region, app, examples, print_json, progress_of
from rightsizer.terminal.backtest_tables import Account, shown
from rightsizer.terminal.exit_codes import Exit
from rightsizer.terminal.screen import Screen
from rightsizer.terminal.tried_document import document_of

UNTESTED = (Code.OTHER_KIND, Code.VANISHED)
"""Reasons for which an endpoint is not tested though everything was read."""


def _limits(text: str | None) -> str | None:
    try:
        change_limits(text or "{}")
    except SettingsError as error:
        raise typer.BadParameter(str(error).replace("RIGHTSIZER_LIMITS", "--limits")) from None
    return text


@app.command(
    epilog=examples(
        "rightsizer backtest --region eu-west-1",
        """rightsizer backtest --limits '{"dimensions": ["schedule"]}'  # with counts by the hour""",
    )
)
def backtest(
    days: Annotated[int, typer.Option("--days", min=2, max=63, help="Days to go back; CloudWatch keeps 63.")] = 14,
    region: Region = None,
    profile: Profile = None,
    endpoint_url: EndpointUrl = None,
    stack: Annotated[
        str,
        typer.Option("--stack", envvar="RIGHTSIZER_STACK", help="Name of the stack whose parameter Limits is taken."),
    ] = "rightsizer",
    limits: Annotated[
        str | None,
        typer.Option("--limits", callback=_limits, metavar="JSON", help="Limits to try instead of the stack's."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what automatic mode would have done in past days.

    Reads only. Each past morning is judged with what was known then, as if every endpoint had the tag
    rightsizer:mode=auto. The days after a change are replayed on the new instances. How fast a type is that never ran
    is known between two bounds only; where they disagree, the verdict says so.
    """
    session = Session(region, profile, endpoint_url)
    errors = Screen(stderr=True)
    known, source = _settings(session, stack, limits, errors)
    ports, now, lost = bootstrap.reading_ports(session), bootstrap.now(), list[Reason]()
    summaries = list(ports.fleet.list_endpoints())
    policy = policy_of(known)
    with progress_of("testing endpoints") as report:
        watcher = Watcher(done=_steps(report, len(summaries)), told=lost.append)
        results = list(backtests(ports, summaries, policy, known.limits, days, now, watcher))
    tried = sorted(
        (each for each in results if isinstance(each, Backtest)), key=lambda each: (-each.saved_usd, each.endpoint)
    )
    unread = [each for each in results if isinstance(each, Unobserved)]
    found = Account(
        session.region, now, days, source, known.limits, tuple(tried), tuple(unread), calibration_of(tried, policy)
    )
    if as_json:
        print_json(document_of(found))
    else:
        console = show.output()
        console.print(shown(found, console.width))
    for reason in dict.fromkeys([*lost, *(each.reason for each in unread)]):
        errors.print(f"warning: {reason.sentence}", style="yellow", markup=False)
    whole = not lost and all(each.reason.code in UNTESTED for each in unread)
    acts = any(each.changes for each in tried)
    raise typer.Exit(Exit.SAVINGS_FOUND if acts else Exit.NOTHING_TO_DO if whole else Exit.INCOMPLETE)


def _settings(session: Session, stack: str, limits: str | None, errors: Screen) -> tuple[Settings, str]:
    """The operator's settings and where they are from; the defaults, with a warning, where nobody may read them."""
    if limits is not None:
        return from_environment({"RIGHTSIZER_LIMITS": limits}), "--limits"
    try:
        text = limits_of(session, stack)
    except ReadError as error:
        errors.print(f"warning: the defaults of Limits are taken: {error}", style="yellow", markup=False)
        return Settings(), "the defaults of Limits, the stack's could not be read"
    if text is None:
        return Settings(), f"the defaults of Limits, no stack {stack} is deployed here"
    change_limits(text)  # with limits that mean nothing the stack changes nothing, and a back-test would show otherwise
    return from_environment({"RIGHTSIZER_LIMITS": text}), f"Limits of the stack {stack}"


def _steps(report: Callable[[int, int], None], number: int) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        report(done, number)

    report(0, number)
    return step
