"""What `make fast` runs and leaves out is there."""

from pathlib import Path

import pytest

from tests.conftest import PLAYED, QUICK

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_module_that_stays_in_make_fast_is_one_of_a_folder_that_plays_courses(name: str) -> None:
    assert (TESTS / name).is_file()
    assert Path(name).parent.name in PLAYED


def test_a_module_of_a_folder_that_plays_courses_is_left_out_and_this_one_is_not(
    request: pytest.FixtureRequest,
) -> None:
    assert all((TESTS / folder).is_dir() for folder in PLAYED)
    assert request.node.get_closest_marker("slow") is None
