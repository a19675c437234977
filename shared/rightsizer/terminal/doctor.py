"""`rightsizer doctor`: what works, what does not, what was not checked, and what to do about it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from rightsizer import bootstrap
from rightsizer.aws import deployment, write_checks
from rightsizer.aws.account import is_protected, parameters_of, table_of
from rightsizer.aws.doctor import clock, endpoint_quotas, examine, execution_roles, incident_alarms
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.bootstrap import self_test
from rightsizer.bootstrap.policy import StackPolicy, policy_of_parameters
from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.message import wake_command
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import region_option, terminal_command
from rightsizer.domain.self_test import Check, Outcome, Tested
from rightsizer.errors import PermissionMissingError, RightsizerError, VanishedError
from rightsizer.render import sentences
from rightsizer.render.sentences import READ_AGAIN
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import AsJson, EndpointUrl, Exit, Profile, Region, app, examples, open_session, print_json
from rightsizer.terminal.tables import Screen
from rightsizer.terminal.wake_page import asleep_line

MARKS = {
    Outcome.OK: ("ok         ", "green"),
    Outcome.FAILED: ("FAILED     ", "red"),
    Outcome.NOT_CHECKED: ("not checked", "yellow"),
}

PROTECT = "aws cloudformation update-termination-protection --enable-termination-protection{} --stack-name {}"
ELSEWHERE = (
    "Not looked at: Slack, the topic's subscribers, schedules, dead letters and the functions' roles. "
    "After a deployment this does:"
)
INDENT = " " * 13
"""Before what a check says, below its mark."""


@app.command(
    epilog=examples(
        "rightsizer doctor --region eu-west-1             # before the first scan",
        "rightsizer doctor --deployed --region eu-west-1  # after each deployment",
    )
)
def doctor(
    region: Region = None,
    profile: Profile = None,
    endpoint_url: EndpointUrl = None,
    stack: Annotated[
        str, typer.Option("--stack", envvar="RIGHTSIZER_STACK", help="Name of the deployed stack.")
    ] = "rightsizer",
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Also let each function of the stack test itself."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check credentials, permissions and the deployed stack.

    Changes nothing. Says what works, what does not with its remedy, and what could not be checked. Without --deployed
    it tries every read that a scan makes. With it, each function tests its own permissions, its bucket and Slack, and
    schedules, queues, subscriptions, table and roles are looked at from here.
    """
    session = open_session(region, profile, endpoint_url)
    if deployed:
        errors = Screen(stderr=True)
        tested = deployed_checks(session, stack, lambda line: errors.print(line, style="dim", markup=False))
    else:
        tested = [local_checks(session, stack)]
    if as_json:
        print_json(as_document(tested))
    else:
        tell(tested, tables.output(), session.region)
    failed = any(part.count(Outcome.FAILED) for part in tested)
    raise typer.Exit(Exit.INCOMPLETE if failed else Exit.NOTHING_TO_DO)


def local_checks(session: Session, stack: str) -> Tested:
    """Checks of a scan's reads, clock and quotas, of a stack's settings, and of the roles that may be passed.

    Without valid credentials nothing else is tried: every other check would say the same.
    """
    reads = tuple(examine(session, bootstrap.now()))
    if not reads[0].is_ok:
        return Tested("terminal", reads)
    around = (clock(session, bootstrap.now()), *endpoint_quotas(session, bootstrap.catalogue(), bootstrap.now()))
    return Tested("terminal", (*reads, *around, *_settings(session, stack), *execution_roles(session, stack)))


def deployed_checks(session: Session, stack: str, progress: Callable[[str], None]) -> list[Tested]:
    """The self-test of each function, with what IAM says of its writes, and what is around the functions.

    Raises SettingsError where nothing of that name is deployed, ReadError when nobody may ask.
    """
    progress(f"looking at the stack {stack}")
    resources = deployment.resources_of(session, stack)
    found = list[Tested]()
    progress("asking the functions")
    for part in deployment.test_functions(session, resources, self_test.event()):
        found.append(part)
        progress(f"{part.part}: {part.count(Outcome.OK)} of {len(part.checks)} ok")
    progress("asking IAM what the roles may write")
    may_change = (parameters_of(session, stack) or {}).get("MayChange", "tagged")
    access = write_checks.StackAccess(session, stack, resources, session.account())
    simulated = {part.part: part.checks for part in write_checks.simulate_writes(access, may_change)}
    both = [Tested(part.part, (*part.checks, *simulated.get(part.part, ()))) for part in found]
    progress("looking at queues, schedules and the table")
    around = deployment.check_surroundings(session, resources, table_of(session, stack))
    return [*both, Tested(around.part, (*around.checks, *_settings(session, stack), *execution_roles(session, stack)))]


def _settings(session: Session, stack: str) -> Iterator[Check]:
    """What the settings of a deployed stack name; a scan needs none, so who may not read them lacks nothing."""
    action, purpose = "cloudformation:DescribeStacks", f"the settings of stack {stack}"
    try:
        given = parameters_of(session, stack)
        stack_policy = policy_of_parameters(session, given or {})
    except RightsizerError as error:
        yield Check(action, purpose, Outcome.NOT_CHECKED, str(error), f"allow {action} to these credentials")
        return
    yield from _policy(stack_policy, session.region)
    for problem in stack_policy.settings.misread:
        detail = f"{problem}; no change begins until it is put right"
        yield Check(action, purpose, Outcome.FAILED, detail, "correct the parameter, and deploy again")
    yield from incident_alarms(session, stack_policy.account_limits.incident_alarms)
    if given is not None:
        yield _approvers(Approvers.parse(given.get("Approvers", ""), ""))
    if given is not None and "MayStop" in given:
        yield from _office_hours(session, stack, given["MayStop"] == "tagged", stack_policy.account_limits.hours)


def _policy(stack_policy: StackPolicy, region: str) -> Iterator[Check]:
    """What of the policy document cannot be understood, or that it was not read."""
    what = ("ssm:GetParameter", f"the policy document {stack_policy.name}")
    if stack_policy.unread:
        yield Check(*what, Outcome.NOT_CHECKED, stack_policy.unread, "allow ssm:GetParameter to these credentials")
    for problem in stack_policy.document.problems:
        commands = (f"  {terminal_command(f'policy {word} FILE', region)}" for word in ("check", "put"))
        yield Check(*what, Outcome.FAILED, problem, "\n".join(("correct it in its file, then:", *commands)))
    if stack_policy.stored is not None and not stack_policy.document.problems:
        yield Check(*what, Outcome.OK, f"version {stack_policy.stored.version} is right", "")


def _protection_hint(session: Session, stack: str) -> list[str]:
    """The command that protects the stack from deletion; also where nobody can tell whether it is protected."""
    try:
        return [] if is_protected(session, stack) else [PROTECT.format(region_option(session.region), stack)]
    except RightsizerError:
        return [PROTECT.format(region_option(session.region), stack)]  # to protect a stack twice does nothing


def _office_hours(session: Session, stack: str, may_stop: bool, limits: HoursLimits) -> Iterator[Check]:
    """Endpoints that office hours stopped: whoever removes the stack or narrows MayStop has to wake them first."""
    what, now = ("dynamodb:Query", "endpoints that office hours stopped"), bootstrap.now()
    unread: list[UnreadRow] = []
    try:
        table = Table(session.client("dynamodb"), table_of(session, stack))
        records = sorted(HoursTable(table).records(unread), key=lambda record: record.ref.name)
        lost = [r for r in records if r.state is HoursState.HANDED_OVER and not _status(session, r.ref.name)]
        away = [record for record in records if record.holds_lock]
        back = {r.ref.name for r in away if not may_stop and _status(session, r.ref.name) == "InService"}
        guard = _protection_hint(session, stack) if away and may_stop else []
    except RightsizerError as error:
        if may_stop or isinstance(error, PermissionMissingError):  # a table that is broken is told of by its own checks
            yield Check(*what, Outcome.NOT_CHECKED, str(error), "allow to these credentials what the message names")
        return
    for row in unread:
        yield Check(*what, Outcome.FAILED, sentences.unread_row(row), READ_AGAIN)
    if may_stop and not away and not lost and not unread:
        yield Check(*what, Outcome.OK, "none is asleep")
    for record in away:
        line = asleep_line(record, now, limits)
        if may_stop:
            wake = wake_command(record.ref.name, session.region, stack)
            remedy = "before MayStop is narrowed or the stack removed, wake it and wait until it serves"
            remedy += "; until then let AWS refuse to delete the stack:" if guard else ":"
            yield Check(*what, Outcome.OK, line, "\n  ".join((remedy, wake, *guard)))
        elif record.ref.name in back:
            yield Check(*what, Outcome.OK, f"{record.ref.name} was asleep, and somebody started it: it is InService")
        else:
            detail = f"{line}; the stack has MayStop=nothing, so nobody starts it"
            yield Check(*what, Outcome.FAILED, detail, _by_hand("deploy with MayStop=tagged again", record, now))
    for record in lost:
        detail = f"{record.ref.name} was handed over, and does not exist"
        yield Check(*what, Outcome.FAILED, detail, _by_hand("nothing is done by itself", record, now))


def _by_hand(first: str, record: HoursRecord, now: datetime) -> str:
    """A remedy with the commands that bring the endpoint back, each on a line of its own."""
    lines = record.remaining or commands_by_hand(record, now)
    return "\n".join((f"{first}; by hand:", *(f"  {line}" for line in lines)))


def _status(session: Session, endpoint: str) -> str:
    """Status of the endpoint, empty where none has this name; ReadError."""
    try:
        with translate_read_errors("sagemaker:DescribeEndpoint", f"looking for {endpoint}"):
            return str(session.client("sagemaker").describe_endpoint(EndpointName=endpoint)["EndpointStatus"])
    except VanishedError:
        return ""


def _approvers(approvers: Approvers) -> Check:
    """Whom the list lets decide, in Slack and at a terminal; each of them may be nobody on purpose."""
    what = ("parameter Approvers", "who may decide")
    if approvers.unknown_entries:
        remedy = "name Slack user ids, role/NAME, user/NAME or ARNs of IAM (docs/security.md), and deploy again"
        return Check(*what, Outcome.FAILED, f"it names nobody by {', '.join(approvers.unknown_entries)}", remedy)
    if not approvers.entries:
        detail = "nobody in Slack; at a terminal whoever IAM lets write to the table"
        return Check(*what, Outcome.OK, detail, "")
    at_terminal = ", ".join(approvers.terminal_entries) or "nobody, as long as the list has no role/NAME"
    in_slack = sentences.count(len(approvers.slack_users), "user") if approvers.slack_users else "nobody"
    return Check(*what, Outcome.OK, f"in Slack: {in_slack}; at a terminal: {at_terminal}", "")


def as_document(tested: Sequence[Tested]) -> dict[str, Any]:
    """The checks as JSON, in the order in which they were made."""
    rows = [
        {
            "part": part.part,
            "action": check.action,
            "purpose": check.purpose,
            "outcome": check.outcome.value,
            "ok": check.is_ok,
            "detail": check.detail,
            "remedy": check.remedy,
        }
        for part in tested
        for check in part.checks
    ]
    return {"version": document.VERSION, "checks": rows}


def tell(tested: Sequence[Tested], console: Console, region: str = "") -> None:
    """Print each check; of several parts only what asks for an act, and a line that counts the rest."""
    for part in tested:
        if len(tested) > 1:
            counted = f"{part.count(Outcome.OK)} ok, {part.count(Outcome.FAILED)} failed"
            console.print(f"{part.part}: {counted}, {part.count(Outcome.NOT_CHECKED)} not checked", style="bold")
        for check in part.checks:
            if check.outcome is not Outcome.OK or check.remedy or len(tested) == 1:
                _line(check, console)
    if len(tested) == 1 and tested[0].checks[0].is_ok:
        console.print(f"\n{ELSEWHERE}", markup=False)
        tables.say_commands([terminal_command("doctor --deployed", region)])
    failed = sum(part.count(Outcome.FAILED) for part in tested)
    unchecked = sum(part.count(Outcome.NOT_CHECKED) for part in tested)
    if len(tested) > 1:
        console.print(f"\n{failed} failed, {unchecked} not checked, {sum(p.count(Outcome.OK) for p in tested)} ok.")


def _line(check: Check, console: Console) -> None:
    mark, style = MARKS[check.outcome]
    line = Grid.grid(padding=(0, 2, 0, 0))
    line.add_column(min_width=len(INDENT) - 2, no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(Text(mark.rstrip(), style=style), Text(f"{check.action}: {check.purpose}"))
    console.print(line)
    for text in (check.detail, f"Remedy: {check.remedy}" if check.remedy else ""):
        if text:
            first, *commands = text.split("\n")
            console.print(Padding(Text(first), (0, 0, 0, len(INDENT)), expand=False))
            for command in commands:
                console.print(f"{INDENT}{command}", markup=False, soft_wrap=True)
