"""Whether the deployed stack may pass the execution roles of endpoints with inference components.

It is only needed to change their scale-in policy, so lacking it is told and is no fault.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, reading
from rightsizer.aws.role_pass import simulated
from rightsizer.aws.session import Session
from rightsizer.domain.preflight import ACTION, RolePass
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import RightsizerError

APPLY_ROLE = "ApplyRole"
"""Logical id of the role of the function that changes endpoints (template.yaml, translated by SAM)."""
PURPOSE = "changing the scale-in policy of inference components"


def execution_roles(session: Session, stack: str) -> Iterator[Check]:
    """A check for each execution role; none where no stack is deployed, or no endpoint has components."""
    try:
        ours = _apply_role(session, stack)
        found = _roles(session) if ours else {}
    except RightsizerError as error:
        yield Check(
            ACTION, PURPOSE, Outcome.NOT_CHECKED, str(error), "allow to these credentials what the message names"
        )
        return
    for role, endpoints in sorted(found.items()):
        partition, account = role.split(":")[1], role.split(":")[4]
        held = _held(session, f"arn:{partition}:iam::{account}:role/{ours}", role)
        passes = RolePass(role, ours, held)
        outcome = Outcome.OK if passes.allowed else Outcome.NOT_CHECKED
        yield Check(ACTION, PURPOSE, outcome, _said(passes, endpoints), "" if passes.allowed else passes.command)


def _held(session: Session, principal: str, role: str) -> bool | None:
    try:
        return simulated(session.client("iam"), principal, role)
    except RightsizerError:
        return None  # throttled: the line says that IAM could not be asked


def _said(passes: RolePass, endpoints: list[str]) -> str:
    what = f"{passes.role} of {', '.join(sorted(endpoints))}"
    if passes.allowed:
        return f"{passes.by} may pass {what}"
    said = "may not pass" if passes.allowed is False else "may or may not pass (IAM could not be asked)"
    return f"{passes.by} {said} {what}; an operator allows it with: {passes.command}"


def _apply_role(session: Session, stack: str) -> str:
    """Name of the stack's role, empty where there is no such stack."""
    with reading("cloudformation:DescribeStackResource", f"finding the role of stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stack_resource(
                StackName=stack, LogicalResourceId=APPLY_ROLE
            )
        except ClientError as error:
            if code_of(error) == "ValidationError":
                return ""
            raise
    return str(answer["StackResourceDetail"]["PhysicalResourceId"])


def _roles(session: Session) -> dict[str, list[str]]:
    """Endpoints by the execution role of their configuration, of those that have components."""
    sagemaker: Any = session.client("sagemaker")
    found: dict[str, list[str]] = defaultdict(list)
    with reading("sagemaker:ListInferenceComponents", PURPOSE):
        pages = sagemaker.get_paginator("list_inference_components").paginate()
        names = {row["EndpointName"] for page in pages for row in page["InferenceComponents"]}
    for name in sorted(names):
        with reading("sagemaker:DescribeEndpoint", PURPOSE):
            config = sagemaker.describe_endpoint(EndpointName=name).get("EndpointConfigName", "")
        with reading("sagemaker:DescribeEndpointConfig", PURPOSE):
            role = sagemaker.describe_endpoint_config(EndpointConfigName=config).get("ExecutionRoleArn", "")
        if role:
            found[role].append(name)
    return found
