"""Whether the execution roles of models may see alarms: SageMaker reads the roll-back alarms with the model's role.

Source: developer guide, deployment-guardrails-configuration ("cloudwatch:DescribeAlarms"); IAM SimulatePrincipalPolicy.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import raise_transient, reading

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
    """None where nobody may ask: the owner confirms it instead. Raises ReadError where the answer may still come."""
    try:
        answer = iam.simulate_principal_policy(PolicySourceArn=role, ActionNames=[NEEDED])
    except (ClientError, BotoCoreError) as error:
        raise_transient(error, "iam:SimulatePrincipalPolicy", f"asking whether {role} may see alarms")
        return None
    results = answer.get("EvaluationResults", [])
    return bool(results) and all(r["EvalDecision"] == "allowed" for r in results)
