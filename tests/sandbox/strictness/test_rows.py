"""Every operation that the program calls has a row, every check has a request that it refuses, and the page says so."""

import ast
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

from sandbox.strict import By
from sandbox.strict.page import page
from sandbox.strict.tables import CHECKS
from tests.house.source import nodes
from tests.sandbox.strictness.accepted import ACCEPTED
from tests.sandbox.strictness.states import STATES
from tests.sandbox.strictness.wrong_texts import REQUESTS

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "shared" / "rightsizer"
ADAPTERS = (LIBRARY / "aws", LIBRARY / "channels")
OWN_MODELS = {"query_metrics": "cloudwatch:QueryMetrics"}
"""Calls of a service that botocore has no model of."""
MEANT = {
    "list_tags": "sagemaker",
    "update_endpoint": "sagemaker",
    "describe_endpoint": "sagemaker",
    "list_endpoints": "sagemaker",
    "create_endpoint": "sagemaker",
    "delete_endpoint": "sagemaker",
    "put_scaling_policy": "application-autoscaling",
    "delete_scheduled_action": "application-autoscaling",
    "describe_scheduled_actions": "application-autoscaling",
    "list_tags_for_resource": "application-autoscaling",
    "get_resources": "resourcegroupstaggingapi",
}
"""Which service is called where several of the program's services have an operation of that name."""
SLACK = ("chat.postMessage", "chat.update")


def adapters() -> list[Path]:
    return sorted(path for folder in ADAPTERS for path in folder.rglob("*.py"))


@cache
def services() -> frozenset[str]:
    """Every string of the program that is the name of a service: clients are made by it."""
    known = frozenset(botocore.session.get_session().get_available_services())
    sources = (ROOT / "shared" / "rightsizer").rglob("*.py")
    words = (node.value for path in sources for node in nodes(path) if isinstance(node, ast.Constant))
    return frozenset(word for word in words if isinstance(word, str) and word in known)


@cache
def operations() -> dict[str, dict[str, str]]:
    """By method name: the operation's name by service."""
    found: dict[str, dict[str, str]] = {}
    for service in services():
        for name in botocore.session.get_session().get_service_model(service).operation_names:
            found.setdefault(xform_name(name), {})[service] = name
    return found


@cache
def called() -> dict[tuple[str, str], str]:
    """(service, operation) of every call in the adapters, also by name (paginators, waiters, tables), and where."""
    found = {}
    for path in adapters():
        for node in nodes(path):
            method = node.attr if isinstance(node, ast.Attribute) else getattr(node, "value", None)
            if not isinstance(method, str):
                continue
            where = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if method in OWN_MODELS:
                service, _, operation = OWN_MODELS[method].partition(":")
                found[service, operation] = where
            elif method in operations():
                named = operations()[method]
                service = MEANT[method] if len(named) > 1 and method in MEANT else next(iter(named))
                assert len(named) == 1 or method in MEANT, f"{where}: {method} is an operation of {sorted(named)}"
                found[service, named[service]] = where
    return found


def test_the_program_is_seen_to_call_what_it_calls() -> None:
    calls = called()
    assert ("sagemaker", "UpdateEndpoint") in calls  # by name, in a table of steps
    assert ("cloudwatch", "ListMetrics") in calls  # by a paginator
    assert ("dynamodb", "TransactWriteItems") in calls  # by a method
    assert len(calls) > 60


def test_every_operation_that_the_adapters_call_has_a_row() -> None:
    missing = {
        f"{service}:{name} ({where})" for (service, name), where in called().items() if (service, name) not in CHECKS
    }
    assert not missing, "add a row in sandbox/strict/ for what AWS refuses"


def test_every_method_of_slack_that_is_called_has_a_row() -> None:
    words = {node.value for path in adapters() for node in nodes(path) if isinstance(node, ast.Constant)}
    methods = {
        word
        for word in words
        if isinstance(word, str) and word.startswith(("chat.", "views.", "auth.", "conversations."))
    }
    assert {("slack", method) for method in methods} <= set(CHECKS)
    assert methods >= set(SLACK)


def test_every_check_has_a_request_that_it_refuses() -> None:
    for key, checks in CHECKS.items():
        by_request = {check.id for check in checks if check.by in {By.RULE, By.SHAPE}}
        by_state = {check.id for check in checks if check.by in {By.STATE, By.MOTO}}
        assert set(REQUESTS.get(key, {})) == by_request, key
        assert set(STATES.get(key, {})) == by_state, key
    assert set(ACCEPTED) == set(CHECKS)


def test_ids_are_unique_within_an_operation() -> None:
    for key, checks in CHECKS.items():
        assert len({check.id for check in checks}) == len(checks), key


def test_the_page_is_what_the_tables_say() -> None:
    written = (ROOT / "docs" / "sandbox-operations.md").read_text()
    assert written == page(), "write it again: python -m sandbox.strict.page > docs/sandbox-operations.md"
