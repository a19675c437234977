"""What the tests of the deployed stack share."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from rightsizer.render import two_weeks
from rightsizer.render.pictures import TwoWeeks, two_weeks_png


@pytest.fixture(scope="package", autouse=True)
def draw_equal_pictures_once() -> Iterator[None]:
    """Accounts of many tests begin with the same two weeks, and drawing them took an eighth of these tests' time."""
    drawn: dict[str, bytes] = {}

    def draw(picture: TwoWeeks) -> bytes:
        if (key := repr(picture)) not in drawn:
            drawn[key] = two_weeks_png(picture)
        return drawn[key]

    with patch.object(two_weeks, "two_weeks_png", draw):
        yield
