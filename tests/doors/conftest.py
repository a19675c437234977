"""What the tests of the deployed stack share."""

from collections.abc import Iterator

import pytest

from tests.once import drawn_once, judged_once, replayed_once


@pytest.fixture(scope="package", autouse=True)
def compute_equal_things_once() -> Iterator[None]:
    """Accounts of many tests begin with the same two weeks."""
    with drawn_once(), judged_once(), replayed_once():
        yield
