"""What the tests of flows share."""

from collections.abc import Iterator

import pytest

from tests.once import replayed_once


@pytest.fixture(scope="package", autouse=True)
def fold_and_replay_equal_days_once() -> Iterator[None]:
    """A back-test judges the same days on many mornings, and most tests are about the same fortnight."""
    with replayed_once():
        yield
