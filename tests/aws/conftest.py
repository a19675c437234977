"""A simulated account and the real adapters on it."""

from collections.abc import Iterator

import pytest

from rightsizer.aws.session import Session
from sandbox.account import Sandbox


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """An empty account."""
    with Sandbox() as account:
        yield account


@pytest.fixture
def account(box: Sandbox) -> Session:
    """A session on the account that tries each call once."""
    return Session(box.region, attempts=1)
