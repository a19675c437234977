"""A simulated account and the real adapters on it, and the stack's table alone."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from sandbox.account import Sandbox
from tests.samples import NOW
from tests.table import create_table


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """An empty account."""
    with Sandbox() as account:
        yield account


@pytest.fixture
def account(box: Sandbox) -> Session:
    """A session on the account that tries each call once."""
    return Session(box.region, attempts=1)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """The stack's table, empty, in an account of moto's own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1")
        create_table(client)
        yield Table(client, "t")


@pytest.fixture
def store(table: Table) -> Recommendations:
    """What is recommended, in that table."""
    return Recommendations(table, lambda: NOW)
