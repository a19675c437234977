"""What the tests of judging share."""

from collections.abc import Iterator

import pytest

from tests.once import replayed_once


@pytest.fixture(scope="package", autouse=True)
def fold_and_replay_equal_days_once() -> Iterator[None]:
    """Most tests ask about one fortnight in many ways."""
    with replayed_once():
        yield
