"""Find the deployed stack of an account and Region, and who asks: for orders that are given at a terminal."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, reading
from rightsizer.errors import SettingsError

if TYPE_CHECKING:
    from rightsizer.aws.session import Session

OUTPUT = "TableName"
"""The stack output that names the table (template.yaml)."""


def table_of(session: "Session", stack: str) -> str:
    """Name of the table of a deployed stack.

    Raises SettingsError when there is no such stack, or it is another program's; ReadError when nobody may ask.
    """
    missing = SettingsError(
        f"looking for the stack {stack} in {session.region}: nothing of that name is deployed, so nobody would act on "
        "an order; deploy it first (README, Deploy), or name it with --stack or its table with --table"
    )
    with reading("cloudformation:DescribeStacks", f"looking for the stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stacks(StackName=stack)
        except ClientError as error:
            if code_of(error) == "ValidationError":
                raise missing from error
            raise
    outputs = {o["OutputKey"]: o["OutputValue"] for found in answer["Stacks"] for o in found.get("Outputs", [])}
    if OUTPUT not in outputs:
        raise SettingsError(f"the stack {stack} has no output {OUTPUT}; is it the stack of rightsizer?")
    return str(outputs[OUTPUT])


def parameters_of(session: "Session", stack: str) -> dict[str, str] | None:
    """The parameters of a deployed stack; None where no such stack is deployed. ReadError when nobody may ask."""
    with reading("cloudformation:DescribeStacks", f"looking for the stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stacks(StackName=stack)
        except ClientError as error:
            if code_of(error) == "ValidationError":
                return None
            raise
    return {p["ParameterKey"]: p["ParameterValue"] for found in answer["Stacks"] for p in found.get("Parameters", [])}


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
