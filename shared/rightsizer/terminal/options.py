"""The options that every order to a deployed stack takes, declared once."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any, Concatenate

import typer

from rightsizer.aws.account import stack_of
from rightsizer.aws.session import Session
from rightsizer.bootstrap.bill import AT_TERMINAL_S, bill_reader
from rightsizer.bootstrap.changes import Desk, desk, report_sources
from rightsizer.bootstrap.policy import StackPolicy, policy_of_stack
from rightsizer.errors import SettingsError
from rightsizer.flows.report import ReportSources
from rightsizer.terminal.app import AsJson, EndpointUrl, Profile, Region, Stack, open_session
from rightsizer.terminal.tables import Screen

Table = Annotated[
    str,
    typer.Option(
        "--table", envvar="RIGHTSIZER_TABLE", help="Name of the stack's table, where the stack itself may not be read."
    ),
]
Bill = Annotated[
    str,
    typer.Option(
        "--bill",
        metavar="FILE|s3://EXPORT|cost-explorer[:TAG]",
        help="Compare with AWS's bill: CUR 2.0 or FOCUS as CSV, or Cost Explorer (USD 0.01 a request).",
    ),
]


@dataclass(frozen=True, slots=True)
class StackOptions:
    """Where the stack is and how to answer; each field is an option of the command line, in this order."""

    stack: Stack = "rightsizer"
    table: Table = ""
    region: Region = None
    profile: Profile = None
    endpoint_url: EndpointUrl = None
    as_json: AsJson = False

    def desk(self) -> Desk:
        """The stack's stores; looks for the stack where no table was named."""
        return desk(self.session, self.stack, self.table)

    def desk_for_order(self, doing: str) -> Desk:
        """The stack's stores for an order that the stack's list must let the caller give; NotApproverError."""
        at = self.desk()
        require_approver(at, doing)
        return at

    def session_policy(self) -> StackPolicy:
        """The policy of the stack; the defaults where no such stack is deployed yet."""
        try:
            return policy_of_stack(self.session, stack_of(self.session, self.stack))
        except SettingsError:
            return StackPolicy()

    def report_sources(self, bill: str = "") -> ReportSources:
        """Sources of the stack's report; looks for the stack where no table was named. `bill`: as of `--bill`."""
        account = self.session
        reader = bill_reader(account, bill, AT_TERMINAL_S) if bill else None
        charges = (lambda: reader) if reader else None
        return replace(report_sources(account, self.stack, self.table), charges=charges)

    @property
    def session(self) -> Session:
        """A session for the account and Region that were named."""
        return open_session(self.region, self.profile, self.endpoint_url)


def require_approver(at: Desk, doing: str, *, of_account: bool = False) -> None:
    """Refuse who is not on the stack's list (NotApproverError); warn where no stack can be asked for it."""
    unasked = at.require_approver(doing, of_account=of_account)
    if unasked:
        text = f"warning: {doing}: who may decide (the stack's parameter Approvers) was not checked here: {unasked}"
        Screen(stderr=True).print(text, style="yellow", markup=False)


def order[**P](command: Callable[Concatenate[StackOptions, P], None]) -> Callable[..., None]:
    """The command with the options of `StackOptions` behind its own; they reach it as its first argument."""
    _, *own = inspect.signature(command).parameters.values()
    shared = inspect.signature(StackOptions).parameters

    @wraps(command)
    def with_options(**values: Any) -> None:
        options = StackOptions(**{name: values.pop(name) for name in shared})
        command(options, **values)  # type: ignore[call-arg]

    # typer reads the signature and the annotations; `wraps` left those of the bare command.
    parameters = [*own, *shared.values()]
    with_options.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    return with_options
