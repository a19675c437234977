"""Find the deployed stack of an account and Region, and who asks: for orders that are given at a terminal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, reading
from rightsizer.domain.approvers import Approvers
from rightsizer.errors import SettingsError

if TYPE_CHECKING:
    from rightsizer.aws.session import Session

OUTPUT = "TableName"
"""The stack output that names the table (template.yaml)."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """What orders need to know of a deployed stack."""

    table: str
    approvers: Approvers


def stack_of(session: "Session", stack: str) -> Deployed:
    """The deployed stack of that name.

    Raises SettingsError when there is no such stack, or it is another program's; ReadError when nobody may ask.
    """
    found = _described(session, stack)
    if found is None:
        raise SettingsError(
            f"looking for the stack {stack} in {session.region}: nothing of that name is deployed, so nobody would act "
            "on an order; deploy it first (README, Deploy), or name it with --stack or its table with --table"
        )
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
    if OUTPUT not in outputs:
        raise SettingsError(f"the stack {stack} has no output {OUTPUT}; is it the stack of rightsizer?")
    _, partition, _, _, account, _ = str(found["StackId"]).split(":", 5)
    approvers = Approvers.listed(_parameters(found).get("Approvers", ""), f"{partition}:{account}")
    return Deployed(str(outputs[OUTPUT]), approvers)


def table_of(session: "Session", stack: str) -> str:
    """Name of the table of a deployed stack; raises what `stack_of` raises."""
    return stack_of(session, stack).table


def parameters_of(session: "Session", stack: str) -> dict[str, str] | None:
    """The parameters of a deployed stack; None where no such stack is deployed. ReadError when nobody may ask."""
    found = _described(session, stack)
    return None if found is None else _parameters(found)


def _described(session: "Session", stack: str) -> dict[str, Any] | None:
    with reading("cloudformation:DescribeStacks", f"looking for the stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stacks(StackName=stack)
        except ClientError as error:
            if code_of(error) == "ValidationError":
                return None
            raise
    return next(iter(answer["Stacks"]), None)


def _parameters(found: dict[str, Any]) -> dict[str, str]:
    return {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])}


def limits_of(session: "Session", stack: str) -> str | None:
    """The parameter Limits of a deployed stack, as JSON; None where no such stack is deployed.

    Raises ReadError when nobody may ask.
    """
    given = parameters_of(session, stack)
    return None if given is None else str(given.get("Limits", "{}"))


def caller(session: "Session") -> str:
    """``cli:`` and the ARN of the credentials in use, as decisions record it."""
    with reading("sts:GetCallerIdentity", "asking who decides"):
        return f"cli:{session.client('sts').get_caller_identity()['Arn']}"
