"""Whether our own role may pass an execution role to SageMaker: IAM is asked about the identity in use.

Source: IAM SimulatePrincipalPolicy; STS GetCallerIdentity, which needs no permission. The ARN of an assumed role has no
path, so a role with one is not found, and the answer is "nobody could ask".
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import raise_transient
from rightsizer.domain.preflight import ACTION, SERVICE, RolePass, caller

if TYPE_CHECKING:
    from types_boto3_iam import IAMClient


class Identity(Protocol):
    """The one operation of STS that is called; its answer is of the same shape in every version."""

    def get_caller_identity(self) -> Mapping[str, Any]:
        """Who calls."""
        ...


def may_pass(sts: Identity, iam: "IAMClient", role: str) -> RolePass:
    """What IAM says about us and `role`; not knowing is an answer. Raises ReadError where another may still come."""
    try:
        arn = sts.get_caller_identity()["Arn"]
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "sts:GetCallerIdentity", "asking who we are")
        return RolePass(role, "", None)
    by = caller(arn)
    return RolePass(role, by, simulated(iam, principal(arn, by), role))


def simulated(iam: "IAMClient", principal: str, role: str) -> bool | None:
    """Whether the policies of `principal` let it pass `role` to SageMaker; None where that could not be asked."""
    service = {"ContextKeyName": "iam:PassedToService", "ContextKeyType": "string", "ContextKeyValues": [SERVICE]}
    try:
        answer = iam.simulate_principal_policy(
            PolicySourceArn=principal,
            ActionNames=[ACTION],
            ResourceArns=[role],
            ContextEntries=[service],  # type: ignore[list-item]
        )
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "iam:SimulatePrincipalPolicy", f"asking whether {principal} may pass {role}")
        return None
    results = answer.get("EvaluationResults", [])
    return all(r["EvalDecision"] == "allowed" for r in results) if results else None


def principal(arn: str, by: str) -> str:
    """The ARN that IAM knows: of the role where one is assumed, of the user otherwise."""
    _, partition, _, _, account, _ = arn.split(":", 5)
    return f"arn:{partition}:iam::{account}:role/{by}" if by else arn
