"""`rightsizer doctor`: what works, what does not, what was not checked, and what to do about it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console

from rightsizer import bootstrap
from rightsizer.aws import deployment, write_checks
from rightsizer.aws.account import parameters_of, table_of
from rightsizer.aws.doctor import examine, execution_roles, incident_alarms
from rightsizer.aws.session import Session
from rightsizer.bootstrap import self_test
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.self_test import Check, Outcome, Tested
from rightsizer.errors import RightsizerError
from rightsizer.render import sentences
from rightsizer.settings import from_environment
from rightsizer.terminal import document

MARKS = {
    Outcome.OK: ("ok         ", "green"),
    Outcome.FAILED: ("FAILED     ", "red"),
    Outcome.NOT_CHECKED: ("not checked", "yellow"),
}


def local_checks(session: Session, stack: str) -> Tested:
    """Checks of a scan's reads, of a stack's settings, and of the roles that may be passed."""
    found = (*examine(session, bootstrap.now()), *_settings(session, stack), *execution_roles(session, stack))
    return Tested("terminal", found)


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
        known = from_environment({"RIGHTSIZER_LIMITS": (given or {}).get("Limits", "{}")})
    except RightsizerError as error:
        yield Check(action, purpose, Outcome.NOT_CHECKED, str(error), f"allow {action} to these credentials")
        return
    for problem in known.misread:
        detail = f"{problem}; no change begins until it is put right"
        yield Check(action, purpose, Outcome.FAILED, detail, "correct the parameter, and deploy again")
    yield from incident_alarms(session, known.limits.incident_alarms)
    if given is not None:
        yield _approvers(Approvers.parse(given.get("Approvers", ""), ""))


def _approvers(known: Approvers) -> Check:
    """Whom the list lets decide, in Slack and at a terminal; each of them may be nobody on purpose."""
    what = ("parameter Approvers", "who may decide")
    if known.unknown_entries:
        remedy = "name Slack user ids, role/NAME, user/NAME or ARNs of IAM (docs/security.md), and deploy again"
        return Check(*what, Outcome.FAILED, f"it names nobody by {', '.join(known.unknown_entries)}", remedy)
    if not known.entries:
        detail = "nobody in Slack; at a terminal whoever IAM lets write to the table"
        return Check(*what, Outcome.OK, detail, "")
    at_terminal = ", ".join(known.terminal_entries) or "nobody, as long as the list has no role/NAME"
    in_slack = sentences.count(len(known.slack_users), "user") if known.slack_users else "nobody"
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


def tell(tested: Sequence[Tested], console: Console) -> None:
    """Print each check; of several parts only problems, and a line that counts the rest."""
    for part in tested:
        if len(tested) > 1:
            counted = f"{part.count(Outcome.OK)} ok, {part.count(Outcome.FAILED)} failed"
            console.print(f"{part.part}: {counted}, {part.count(Outcome.NOT_CHECKED)} not checked", style="bold")
        for check in part.checks:
            if check.outcome is not Outcome.OK or len(tested) == 1:
                _line(check, console)
    failed = sum(part.count(Outcome.FAILED) for part in tested)
    unchecked = sum(part.count(Outcome.NOT_CHECKED) for part in tested)
    if len(tested) > 1:
        console.print(f"\n{failed} failed, {unchecked} not checked, {sum(p.count(Outcome.OK) for p in tested)} ok.")


def _line(check: Check, console: Console) -> None:
    mark, style = MARKS[check.outcome]
    console.print(mark, style=style, end="  ")
    console.print(f"{check.action}: {check.purpose}", markup=False)
    for text in (check.detail, f"Remedy: {check.remedy}" if check.remedy else ""):
        if text:
            console.print(f"             {text}", markup=False)
