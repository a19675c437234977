"""Permissions in IAM, read before any write: of the execution roles of models, and of our own role.

SageMaker reads the roll-back alarms with the model's role. Source: developer guide, deployment-guardrails-configuration
("cloudwatch:DescribeAlarms").

Our own role may pass an execution role to SageMaker only where it is allowed to. The ARN of an assumed role has no
path, so a role with one is not found, and the answer is "nobody could ask".

A target tracking policy makes its alarms in the name of who puts it (Application Auto Scaling, "Permissions to work
with Application Auto Scaling": cloudwatch:PutMetricAlarm). A boundary or an organisation's policy may forbid it.

Sources: IAM SimulatePrincipalPolicy; STS GetCallerIdentity, which needs no permission.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import raise_transient, translate_read_errors
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.preflight import ACTION, SERVICE, RolePass, role_of_caller

if TYPE_CHECKING:
    from types_boto3_iam import IAMClient
    from types_boto3_sagemaker import SageMakerClient

NEEDED = "cloudwatch:DescribeAlarms"
AUTOSCALING = "application-autoscaling"
SIMULATE = "iam:SimulatePrincipalPolicy"


def alarm_visibility(
    sagemaker: "SageMakerClient", iam: "IAMClient", models: Sequence[str], roles: Sequence[str] = ()
) -> Mapping[str, bool | None]:
    """Whether each role, by ARN, may call DescribeAlarms; None where that could not be asked. Raises ReadError."""
    found = set(roles)
    for model in models:
        with translate_read_errors("sagemaker:DescribeModel", f"reading the execution role of model {model}"):
            found.add(sagemaker.describe_model(ModelName=model).get("ExecutionRoleArn", ""))
    return {role: _is_allowed(iam, role) for role in sorted(found - {""})}


def _is_allowed(iam: "IAMClient", role: str) -> bool | None:
    """Whether the role may; None where nobody may ask, so that the owner confirms it. ReadError: ask again."""
    try:
        answer = iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=[NEEDED])
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "iam:SimulatePrincipalPolicy", f"asking whether {role} may see alarms")
        return None
    results = answer.get("EvaluationResults", [])
    return bool(results) and all(r["EvalDecision"] == "allowed" for r in results)


class Identity(Protocol):
    """The one operation of STS that is called; its answer is of the same shape in every version."""

    def get_caller_identity(self) -> Mapping[str, Any]:
        """Identity of the caller."""
        ...


def role_pass(sts: Identity, iam: "IAMClient", role: str) -> RolePass:
    """Answer of IAM about us and `role`; an unknown answer is an answer too.

    Raises ReadError where another may still come.
    """
    try:
        arn = sts.get_caller_identity()["Arn"]
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "sts:GetCallerIdentity", "asking who we are")
        return RolePass(role, "", None)
    by = role_of_caller(arn)
    return RolePass(role, by, simulate_role_pass(iam, principal(arn, by), role))


def simulate_role_pass(iam: "IAMClient", principal: str, role: str) -> bool | None:
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


def denied_restore_actions(
    sts: Identity, iam: "IAMClient", ref: EndpointRef, targets: Sequence[ScalableTarget]
) -> tuple[str, ...]:
    """Actions that giving these targets back needs, and that IAM denies us; () where all are allowed, or nobody knows.

    Raises ReadError where the answer may still come.
    """
    try:
        arn = sts.get_caller_identity()["Arn"]
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "sts:GetCallerIdentity", "asking who we are")
        return ()
    us, found = principal(arn, role_of_caller(arn)), list[str]()
    for resource, actions in _restore_actions(ref, targets):
        found += _denied_actions(iam, us, resource, actions)
    return tuple(found)


def _restore_actions(ref: EndpointRef, targets: Sequence[ScalableTarget]) -> Iterator[tuple[str, list[str]]]:
    """The actions on each resource."""
    policies = [policy for target in targets for policy in target.policies]
    wanted = ["RegisterScalableTarget"]
    wanted += ["PutScalingPolicy"] if policies else []
    wanted += ["PutScheduledAction"] if any(target.scheduled for target in targets) else []
    where = f"{ref.region}:{ref.account}"
    yield f"arn:{ref.partition}:{AUTOSCALING}:{where}:scalable-target/any", [f"{AUTOSCALING}:{name}" for name in wanted]
    if any(policy.get("PolicyType") == "TargetTrackingScaling" for policy in policies):
        name = f"TargetTracking-{targets[0].resource_id}-AlarmHigh-any"
        yield f"arn:{ref.partition}:cloudwatch:{where}:alarm:{name}", ["cloudwatch:PutMetricAlarm"]


def _denied_actions(iam: "IAMClient", us: str, resource: str, actions: list[str]) -> list[str]:
    context = {
        "ContextKeyName": "application-autoscaling:service-namespace",
        "ContextKeyType": "string",
        "ContextKeyValues": ["sagemaker"],
    }
    try:
        answer = iam.simulate_principal_policy(
            PolicySourceArn=us,
            ActionNames=actions,
            ResourceArns=[resource],
            ContextEntries=[context],  # type: ignore[list-item]
        )
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, SIMULATE, "asking whether autoscaling can be given back")
        return []
    rows = answer.get("EvaluationResults", [])
    return [str(row["EvalActionName"]) for row in rows if row["EvalDecision"] != "allowed"]
