"""Whether the execution roles of models may see alarms: SageMaker reads the roll-back alarms with the model's role.

Source: developer guide, deployment-guardrails-configuration ("cloudwatch:DescribeAlarms"); IAM SimulatePrincipalPolicy.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import reading

if TYPE_CHECKING:
    from types_boto3_iam import IAMClient
    from types_boto3_sagemaker import SageMakerClient

NEEDED = "cloudwatch:DescribeAlarms"


def sees_alarms(
    sagemaker: "SageMakerClient", iam: "IAMClient", models: Sequence[str], roles: Sequence[str] = ()
) -> Mapping[str, bool | None]:
    """By role ARN: whether its policies allow DescribeAlarms; None where that could not be asked. Raises ReadError."""
    found = set(roles)
    for model in models:
        with reading("sagemaker:DescribeModel", f"reading the execution role of model {model}"):
            found.add(sagemaker.describe_model(ModelName=model).get("ExecutionRoleArn", ""))
    return {role: _allowed(iam, role) for role in sorted(found - {""})}


def _allowed(iam: "IAMClient", role: str) -> bool | None:
    try:
        answer = iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=[NEEDED])
    except (ClientError, BotoCoreError):
        return None  # not knowing is an answer here: the owner confirms it instead
    results = answer.get("EvaluationResults", [])
    return bool(results) and all(r["EvalDecision"] == "allowed" for r in results)
