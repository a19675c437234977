"""A role holds what its own door calls, and nothing for later."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.house.source import nodes
from tests.template.stack import DOORS, EVERYTHING, ROOT, stack
from tests.template.test_calls import actions_by_method, calls

BOOTSTRAP = sorted((ROOT / "shared" / "rightsizer" / "bootstrap").glob("*.py"))
LIBRARY = ROOT / "shared" / "rightsizer"
IMPLIED = {
    "application-autoscaling:TagResource": "RegisterScalableTarget with tags",
    "cloudwatch:TagResource": "PutMetricAlarm with tags",
    "dynamodb:DeleteItem": "a Delete in a transaction",
    "dynamodb:UpdateItem": "an Update in a transaction",
    "dynamodb:DescribeStream": "Lambda reads the stream with the function's role",
    "dynamodb:GetRecords": "Lambda reads the stream with the function's role",
    "dynamodb:GetShardIterator": "Lambda reads the stream with the function's role",
    "dynamodb:ListStreams": "Lambda reads the stream with the function's role",
    "ec2:RunInstances": "UpdateAutoScalingGroup of a group with a launch template",
    "iam:CreateServiceLinkedRole": "the first RegisterScalableTarget of an account",
    "kms:CreateGrant": "CreateEndpointConfig with a key of the customer's",
    "kms:Decrypt": "GetSecretValue of a secret under a key of the customer's",
    "s3:GetObject": "a link is opened with the permission of the role that signed it",
    "sqs:ChangeMessageVisibility": "Lambda takes from the queue with the function's role",
    "sqs:DeleteMessage": "Lambda takes from the queue with the function's role",
    "sqs:GetQueueAttributes": "Lambda takes from the queue with the function's role",
    "sqs:ReceiveMessage": "Lambda takes from the queue with the function's role",
    "sqs:SendMessage": "Lambda sends what failed to the dead-letter queue with the function's role",
}
"""Actions that AWS asks for without a call of that name."""


def imported(inside: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in inside:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rightsizer"):
            for name in node.names:
                yield node.module or "", name.name


@cache
def builders() -> Mapping[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for path in BOOTSTRAP:
        found |= {node.name: node for node in nodes(path) if isinstance(node, ast.FunctionDef)}
    return found


def modules(builder: ast.AST, seen: set[str]) -> set[Path]:
    """The adapters that a builder imports, with what it calls of bootstrap and what they import themselves."""
    return _modules(tuple(ast.walk(builder)), seen)


def _modules(inside: tuple[ast.AST, ...], seen: set[str]) -> set[Path]:
    found: set[Path] = set()
    for module, name in imported(inside):
        _, package, *_ = (*module.split("."), "")
        for path in (LIBRARY / f"{'/'.join(module.split('.')[1:])}.py", LIBRARY / package / f"{name}.py"):
            if package in ("aws", "channels") and path.exists() and str(path) not in seen:
                seen.add(str(path))
                found |= {path} | _modules(nodes(path), seen)
    for node in inside:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in builders() and name not in seen:
            seen.add(name)
            found |= modules(builders()[name], seen)
    return found


@pytest.mark.parametrize("door", DOORS)
def test_every_action_of_a_role_is_one_that_its_door_needs(door: str) -> None:
    paths = modules(builders()[door], {door})
    assert paths, "the door's adapters were not found"
    called = {name for path in paths for name in calls(path)}
    needed = {action for name in called & actions_by_method().keys() for action in actions_by_method()[name]}
    spare = stack(**EVERYTHING).actions(door) - needed - IMPLIED.keys()
    assert spare == set()
