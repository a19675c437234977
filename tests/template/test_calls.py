"""Each AWS call of an adapter is allowed to some role; too little would fail on a real account only."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from rightsizer.aws.session import OWN_MODELS
from tests.house.source import nodes
from tests.template.stack import DOORS, EVERYTHING, ROOT, stack

LIBRARY = ROOT / "shared" / "rightsizer"
ADAPTERS = sorted(path for folder in ("aws", "channels") for path in (LIBRARY / folder).rglob("*.py"))
SERVICES = {
    "application-autoscaling": "application-autoscaling",
    "autoscaling": "autoscaling",
    "ce": "ce",
    "cloudwatch": "cloudwatch",
    "cloudwatch-promql": "cloudwatch",
    "dynamodb": "dynamodb",
    "ec2": "ec2",
    "ecr": "ecr",
    "events": "events",
    "iam": "iam",
    "lambda": "lambda",
    "pricing": "pricing",
    "resourcegroupstaggingapi": "tag",
    "s3": "s3",
    "sagemaker": "sagemaker",
    "savingsplans": "savingsplans",
    "secretsmanager": "secretsmanager",
    "service-quotas": "servicequotas",
    "sns": "sns",
    "sqs": "sqs",
    "ssm": "ssm",
}
"""Service names of botocore, and what IAM calls them."""
ONE_ACTION = {
    "cloudwatch:QueryMetrics": "cloudwatch:GetMetricData",
    "dynamodb:TransactWriteItems": "dynamodb:PutItem",
    "dynamodb:TransactGetItems": "dynamodb:GetItem",
    "events:PutEvents": "events:PutEvents",
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
"""Calls that IAM knows by another action (Service Authorization Reference)."""


AT_A_TERMINAL = frozenset(
    {
        "dynamodb:DescribeContinuousBackups",
        "dynamodb:DescribeTimeToLive",
        "lambda:GetEventSourceMapping",
        "lambda:GetFunctionConfiguration",
        "sns:ListSubscriptionsByTopic",
        "ssm:PutParameter",
    }
)
"""What no function calls: whoever runs `rightsizer doctor`, `components` or `policy put` needs it."""


@cache
def actions_by_method() -> Mapping[str, set[str]]:
    """The IAM actions that a Python method name can mean."""
    session = botocore.session.get_session()
    session.get_component("data_loader").search_paths.append(str(OWN_MODELS))
    found: dict[str, set[str]] = defaultdict(set)
    for service, prefix in SERVICES.items():
        for operation in session.get_service_model(service).operation_names:
            action = f"{prefix}:{operation}"
            found[xform_name(operation)].add(ONE_ACTION.get(action, action))
    return found


@cache
def calls(path: Path) -> frozenset[str]:
    """Attributes and strings: a method may be looked up by its name, a paginator always is."""
    names = [node.attr for node in nodes(path) if isinstance(node, ast.Attribute)]
    words = [node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return frozenset((*names, *words))


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_every_call_is_allowed_to_some_role(path: Path) -> None:
    deployed = stack(**EVERYTHING)
    allowed = {action for door in DOORS for action in deployed.actions(door)} | AT_A_TERMINAL
    missing = {
        method: sorted(actions_by_method()[method])
        for method in sorted(calls(path))
        if method in actions_by_method() and "_" in method and not actions_by_method()[method] & allowed
    }
    assert missing == {}
