"""Whether our own role could give autoscaling back: IAM is asked before anything is taken away.

A target tracking policy makes its alarms in the name of who puts it (Application Auto Scaling, "Permissions to work
with Application Auto Scaling": cloudwatch:PutMetricAlarm). A boundary or an organisation's policy may forbid it.
Source: IAM SimulatePrincipalPolicy.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import raise_transient
from rightsizer.aws.role_pass import Identity, principal
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.preflight import caller

if TYPE_CHECKING:
    from types_boto3_iam import IAMClient

SERVICE = "application-autoscaling"
SIMULATE = "iam:SimulatePrincipalPolicy"


def cannot_restore(
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
    us, found = principal(arn, caller(arn)), list[str]()
    for resource, actions in _asked(ref, targets):
        found += _denied(iam, us, resource, actions)
    return tuple(found)


def _asked(ref: EndpointRef, targets: Sequence[ScalableTarget]) -> Iterator[tuple[str, list[str]]]:
    """The actions on each resource."""
    policies = [policy for target in targets for policy in target.policies]
    wanted = ["RegisterScalableTarget"]
    wanted += ["PutScalingPolicy"] if policies else []
    wanted += ["PutScheduledAction"] if any(target.scheduled for target in targets) else []
    where = f"{ref.region}:{ref.account}"
    yield f"arn:{ref.partition}:{SERVICE}:{where}:scalable-target/any", [f"{SERVICE}:{name}" for name in wanted]
    if any(policy.get("PolicyType") == "TargetTrackingScaling" for policy in policies):
        name = f"TargetTracking-{targets[0].resource_id}-AlarmHigh-any"
        yield f"arn:{ref.partition}:cloudwatch:{where}:alarm:{name}", ["cloudwatch:PutMetricAlarm"]


def _denied(iam: "IAMClient", us: str, resource: str, actions: list[str]) -> list[str]:
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
