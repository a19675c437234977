"""A fresh account for each test."""

from collections.abc import Iterator

import pytest

from sandbox.account import Sandbox


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running
