"""Whether our role may hand an execution role to SageMaker, and the one command that allows it.

CreateEndpointConfig with an ExecutionRoleArn needs iam:PassRole on exactly that role (SageMaker API permissions; IAM,
`iam:PassedToService`). No role of the stack holds it: the operator gives it, role by role.
"""

import json
import re
from dataclasses import dataclass
from shlex import quote

ACTION = "iam:PassRole"
SERVICE = "sagemaker.amazonaws.com"
ASSUMED = re.compile(r":assumed-role/([^/\s]+)/")


@dataclass(frozen=True, slots=True)
class RolePass:
    """What IAM says about passing one execution role."""

    role: str
    """ARN of the execution role."""
    by: str
    """Name of our own role; empty when it is not known."""
    allowed: bool | None
    """None: nobody could ask."""

    @property
    def command(self) -> str:
        """The AWS CLI line that allows it."""
        return grant(self.by, self.role)


def grant(by: str, role: str) -> str:
    """The line by which an operator lets the role named `by` pass `role` to SageMaker, and nothing else."""
    statement = {
        "Effect": "Allow",
        "Action": ACTION,
        "Resource": role,
        "Condition": {"StringEquals": {"iam:PassedToService": SERVICE}},
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    name = f"rightsizer-pass-{role.rpartition('/')[2]}"[:128]
    ours = quote(by) if by else "ROLE_OF_THE_APPLY_FUNCTION"
    return f"aws iam put-role-policy --role-name {ours} --policy-name {quote(name)} --policy-document {quote(document)}"


def caller(text: str) -> str:
    """Name of the role that an ARN of STS, or AWS's text of a refusal, speaks about; empty when there is none."""
    found = ASSUMED.search(text)
    return found.group(1) if found else ""
