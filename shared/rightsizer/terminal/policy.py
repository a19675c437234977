"""`rightsizer policy`: check, show, compare and store the policy document."""

import json
import sys
from itertools import groupby
from operator import itemgetter
from shlex import quote
from typing import Annotated

import typer
from rich.padding import Padding
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from rightsizer.aws.policy_parameter import STANDARD, put_policy, tier_of
from rightsizer.bootstrap.policy import StackPolicy, policy_with
from rightsizer.domain.environment import Environment
from rightsizer.domain.policy_document import Subject
from rightsizer.domain.reason import time_text
from rightsizer.errors import InputError, SettingsError
from rightsizer.policy_reader import read_policy
from rightsizer.terminal import tables
from rightsizer.terminal.app import Exit, app, examples, print_json
from rightsizer.terminal.options import StackOptions, order
from rightsizer.terminal.policy_page import (
    PolicyDifference,
    PolicyRow,
    differences,
    policy_rows,
    policy_schema,
    read_file,
    subjects,
)

DOCUMENT_VERSION = 1
"""Of the JSON that these commands print."""
TIER_USD = {"Standard": "0.00", "Advanced": "0.05"}
"""US dollars a month for storing one parameter (Systems Manager pricing)."""
EMPTY = len("{}")
UP_TO_NOW = "Nothing would change."

policy = typer.Typer(
    name="policy",
    help="Check, show and change who decides and how far.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples(
        "rightsizer policy check policy.yaml  # is it right? needs no account",
        "rightsizer policy diff policy.yaml   # what it would change",
        "rightsizer policy put policy.yaml    # store it; in force within a minute",
        "rightsizer policy show               # what holds, and where each value was said",
    ),
)
app.add_typer(policy)
File = Annotated[str, typer.Argument(metavar="FILE", help="The document as YAML or JSON; - reads standard input.")]

OptionalFile = Annotated[
    str, typer.Argument(metavar="[FILE]", help="The document as YAML or JSON; - reads standard input.")
]


def _compact(text: str) -> str:
    """The text without blanks between its parts; as it is where it is no JSON or gives a key twice."""
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


@policy.command(
    epilog=examples(
        "rightsizer policy check policy.yaml  # exit code 0: right, 1: something cannot be understood",
        "rightsizer policy check              # the document that the stack reads",
    )
)
@order
def check(options: StackOptions, file: OptionalFile = "") -> None:
    """Say what of a document cannot be understood.

    Each problem names its place and what is allowed. With a file nothing is asked of AWS; without one it is the
    document that the stack reads. Nothing is stored. Every key is listed in docs/policy.md; the schema for editors
    comes from rightsizer policy schema.
    """
    if file:
        text = read_file(file)
        problems = read_policy(text).problems
    else:
        stack_policy = _in_force(options)
        text, problems = stack_policy.stored.text if stack_policy.stored else "{}", stack_policy.misread
    text = _compact(text)
    size, tier = len(text.encode()), tier_of(text)
    if options.as_json:
        row = {"valid": not problems, "problems": list(problems), "bytes": size, "tier": tier}
        print_json({"version": DOCUMENT_VERSION, "check": row | {"usd_per_month": TIER_USD[tier]}})
    else:
        for problem in problems:
            tables.say(problem)
        tables.say(_verdict(len(problems), size, tier))
    if problems:
        raise typer.Exit(Exit.FAILED)


def _verdict(problems: int, size: int, tier: str) -> str:
    room = f"{size:,} bytes, stored as a parameter of SSM's {tier.lower()} tier (USD {TIER_USD[tier]} a month)"
    if tier == "Advanced":
        room += f"; with {STANDARD:,} bytes or less it is free"
    wrong = "1 value cannot be understood" if problems == 1 else f"{problems} values cannot be understood"
    right = "The policy document is right" if size > EMPTY else "The policy document sets nothing, so the defaults hold"
    return f"{wrong if problems else right}: {room}."


@policy.command(epilog=examples("rightsizer policy schema > policy.schema.json"))
def schema() -> None:
    """Print the JSON schema of the document, for editors and CI."""
    sys.stdout.write(f"{json.dumps(policy_schema(), indent=2)}\n")


@policy.command(
    epilog=examples(
        "rightsizer policy show",
        "rightsizer policy show --environment production --owner search  # what holds for these endpoints",
    )
)
@order
def show(
    options: StackOptions,
    environment: Annotated[
        Environment | None, typer.Option("--environment", help="What holds for endpoints there.")
    ] = None,
    owner: Annotated[str, typer.Option("--owner", help="What holds for endpoints with this tag owner.")] = "",
) -> None:
    """Show the policy in force, and where each value was said.

    The policy document comes first, then the stack's parameters Limits and Approvers, then the defaults. Without
    --environment and --owner every row is shown that differs somewhere. An endpoint's own tags come before them all.
    """
    stack_policy = _in_force(options)
    wanted = [(_title(environment, owner), Subject(environment, owner))] if environment or owner else None
    rows = list(_rows_to_show(stack_policy, wanted))
    if options.as_json:
        listed = [
            {"subject": name, "key": row.key, "value": row.value, "source": row.source, "problem": row.problem}
            for name, row in rows
        ]
        stored = {
            "parameter": stack_policy.name,
            "parameter_version": stack_policy.stored.version if stack_policy.stored else None,
        }
        print_json({"version": DOCUMENT_VERSION, **stored, "policy": listed, "problems": list(stack_policy.misread)})
        return
    tables.say(_where(stack_policy))
    print_rows(("For", "Key", "Value", "Said by"), [(name, row.key, row.value, row.source) for name, row in rows])
    for problem in stack_policy.misread:
        tables.say(problem)


def print_rows(heads: tuple[str, str, str, str], rows: list[tuple[str, str, str, str]]) -> None:
    """Print a row for each key of each subject. On a narrow console it is a list, so that no key is broken."""
    console, grid = tables.output(), Grid(*(Column(head, overflow="fold") for head in heads), box=None)
    for row in rows:
        grid.add_row(*map(Text, row))
    if tables.fits(console, grid):
        console.print(grid)
        return
    for subject, some in groupby(rows, key=itemgetter(0)):
        console.print(Text(subject, style="bold"))
        for _, key, first, second in some:
            said = f"{key}: {heads[2].lower()} {first}, {heads[3].lower()} {second}"
            console.print(Padding(Text(said), (0, 0, 0, 2), expand=False))


def _title(environment: Environment | None, owner: str) -> str:
    return " in ".join(part for part in (f"owner {owner}" if owner else "", environment or "") if part)


def _rows_to_show(stack_policy: StackPolicy, wanted: list[tuple[str, Subject]] | None) -> list[tuple[str, PolicyRow]]:
    """All rows of what was asked for; else those of every endpoint, and others where they differ from these."""
    shown = list[tuple[str, PolicyRow]]()
    for_all = {row.key: row for row in policy_rows(stack_policy, Subject())}
    for name, subject in wanted or subjects(stack_policy.document):
        everything = bool(wanted) or subject == Subject()
        shown += [(name, row) for row in policy_rows(stack_policy, subject) if everything or row != for_all[row.key]]
    return shown


def _where(stack_policy: StackPolicy) -> str:
    if not stack_policy.name:
        return (
            "This stack has no policy document: its parameters Limits and Approvers hold. To use one: rightsizer "
            "policy put FILE --parameter /rightsizer/policy, and deploy with PolicyParameter=/rightsizer/policy."
        )
    if stack_policy.stored is None:
        return f"The policy document {stack_policy.name} was not read."
    changed = f", changed on {time_text(stack_policy.stored.modified_at)}" if stack_policy.stored.modified_at else ""
    return f"Policy document {stack_policy.name}, version {stack_policy.stored.version}{changed}."


def _in_force(options: StackOptions) -> StackPolicy:
    """The policy of the stack; SettingsError where no stack can be asked."""
    found = options.desk().policy()
    if isinstance(found, str):
        raise SettingsError(f"reading the policy of the stack {options.stack}: {found}")
    return found


@policy.command(
    epilog=examples("rightsizer policy diff policy.yaml  # exit code 0: nothing would change, 10: something would")
)
@order
def diff(options: StackOptions, file: File) -> None:
    """Show what a document would change against what is in force. Nothing is stored."""
    text, stack_policy = read_file(file), _in_force(options)
    then = policy_with(stack_policy, text)
    found = list(differences(stack_policy, then))
    if options.as_json:
        problems = list(then.document.problems)
        print_json(
            {
                "version": DOCUMENT_VERSION,
                "changes": [_difference(difference) for difference in found],
                "problems": problems,
            }
        )
    else:
        _show_differences(found)
        for problem in then.document.problems:
            tables.say(problem)
    if then.document.problems:
        raise typer.Exit(Exit.FAILED)
    if found:
        raise typer.Exit(Exit.SAVINGS_FOUND)


def _difference(difference: PolicyDifference) -> dict[str, str]:
    return {
        "subject": difference.subject,
        "key": difference.key,
        "now": difference.now,
        "then": difference.then,
        "source": difference.source,
    }


def _show_differences(found: list[PolicyDifference]) -> None:
    if not found:
        tables.say(UP_TO_NOW)
        return
    print_rows(("For", "Key", "Now", "Then"), [(each.subject, each.key, each.now, each.then) for each in found])


@policy.command(
    epilog=examples(
        "rightsizer policy put policy.yaml",
        "rightsizer policy put policy.yaml --parameter /rightsizer/policy  # before the stack names one",
    )
)
@order
def put(
    options: StackOptions,
    file: File,
    parameter: Annotated[
        str, typer.Option("--parameter", help="SSM parameter to store it in; else the one that the stack names.")
    ] = "",
) -> None:
    """Check a document, show what it changes, and store it. It is in force within a minute.

    A document in which something cannot be understood is not stored. Who may change the policy is who may call
    ssm:PutParameter on that parameter.
    """
    text = read_file(file)
    problems = read_policy(text).problems
    if problems:
        raise InputError(f"storing {file}: nothing was stored: {problems[0]}" + _more(len(problems), file))
    text = _compact(text)
    stack_policy = options.session_policy() if parameter else _in_force(options)
    name = parameter or stack_policy.name
    if not name.startswith("/"):
        what = f"{name!r} does not begin with /" if name else "the stack names no parameter"
        raise InputError(
            f"storing {file}: {what}; give --parameter /rightsizer/policy, and deploy with PolicyParameter"
        )
    found, tier = list(differences(stack_policy, policy_with(stack_policy, text))), tier_of(text)
    version = put_policy(options.session.client("ssm"), name, text)
    in_force = stack_policy.name == name
    if options.as_json:
        row = {"parameter": name, "parameter_version": version, "tier": tier, "usd_per_month": TIER_USD[tier]}
        row |= {"in_force": in_force}
        print_json(
            {"version": DOCUMENT_VERSION, "stored": row, "changes": [_difference(difference) for difference in found]}
        )
        return
    _show_differences(found)
    tables.say(f"Stored: {name}, version {version} ({tier.lower()} tier, USD {TIER_USD[tier]} a month).")
    after = (
        "It is in force within a minute."
        if in_force
        else f"The stack reads it once deployed with PolicyParameter={name}."
    )
    tables.say(after)


def _more(number: int, file: str) -> str:
    return f" (and {number - 1} more: rightsizer policy check {quote(file)})" if number > 1 else ""
