"""What `make fast` runs and leaves out is there, and the processes of a run share whole files."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONG, LONGEST, PLAYED, QUICK, longest_first

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_module_that_stays_in_make_fast_is_one_of_a_folder_that_plays_courses(name: str) -> None:
    assert (TESTS / name).is_file()
    assert Path(name).parent.name in PLAYED


@pytest.mark.parametrize("name", sorted(LONG))
def test_a_long_module_is_there_and_in_another_folder(name: str) -> None:
    assert (TESTS / name).is_file()
    assert Path(name).parent.name not in PLAYED


@pytest.mark.parametrize("name", LONGEST)
def test_a_module_that_begins_is_there(name: str) -> None:
    assert (TESTS / name).is_file()


WHOLE = {
    "test_a_change_that_nobody_proves_for_a_fortnight_costs_at_most_forty_invocations": (
        "test_a_change_with_a_day_of_probation_costs_at_most_forty_invocations"
    ),
    "test_the_day_after_is_read_on_top_of_what_is_kept": "test_a_first_evaluation_has_a_factor_of_two_to_spare",
    "test_many_sequences_keep_the_laws": "test_any_sequence_keeps_the_laws",
}
"""Tests that `make faults` alone runs as a whole, and the test that tries a sample of them."""


def speaks_of_a_grid(path: Path) -> bool:
    return path != Path(__file__) and re.search(r"mark\.grid|every_point\(", path.read_text()) is not None


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(TESTS.glob("*/test_*.py")) if speaks_of_a_grid(path)],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_each_grid_has_a_sample_among_all_tests(path: Path) -> None:
    tests = vars(importlib.import_module(f"tests.{path.parent.name}.{path.stem}"))
    marks = [
        (name, mark) for name in tests for mark in getattr(tests[name], "pytestmark", ()) if name.startswith("test_")
    ]
    samples = [WHOLE[name] for name, mark in marks if mark.name == "grid"]
    values = [mark.args[1] for _, mark in marks if mark.name == "parametrize" and any(map(is_in_grid, mark.args[1]))]
    assert samples or values
    assert [name for name in samples if is_in_grid(tests[name])] == []
    assert [some for some in values if all(map(is_in_grid, some))] == []


def is_in_grid(test: object) -> bool:
    """Whether a test, or a value of its parameters, is marked as one of a grid."""
    return any(mark.name == "grid" for mark in (*getattr(test, "marks", ()), *getattr(test, "pytestmark", ())))


def test_a_module_of_a_folder_that_plays_courses_is_left_out_and_this_one_is_not(
    request: pytest.FixtureRequest,
) -> None:
    assert all((TESTS / folder).is_dir() for folder in PLAYED)
    assert request.node.get_closest_marker("slow") is None


def test_the_tests_of_a_file_run_in_one_process(tmp_path: Path) -> None:
    (flags,) = re.findall(r"^SPREAD := \S+ (.*)$", (TESTS.parent / "Makefile").read_text(), re.MULTILINE)
    assert flags.split()[:3] == ["-n", "2", "--dist"]
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    body = "import os, pathlib, pytest\n{mark}@pytest.mark.parametrize('n', range(20))\ndef test_it(n):\n"
    body += "    open(pathlib.Path(__file__).with_suffix('.ran'), 'a').write(f'{{os.getpid()}}\\n')\n"
    for name, mark in (("a", ""), ("b", ""), ("c", ""), ("d", "@pytest.mark.slow\n")):
        (tmp_path / f"test_{name}.py").write_text(body.format(mark=mark))
    command = [sys.executable, "-m", "pytest", *flags.split(), "-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = {name: set((tmp_path / f"test_{name}.ran").read_text().split()) for name in "abcd"}
    assert {name: len(processes) for name, processes in ran.items()} == dict.fromkeys("abcd", 1)


def test_slow_files_come_first_and_then_those_with_many_tests() -> None:
    def item(name: str, *, slow: bool = False) -> Any:
        return SimpleNamespace(path=Path(name), get_closest_marker=lambda marker: slow and marker == "slow")

    items = [item("few"), item("many"), item("long"), item("many"), item("long", slow=True), item(LONGEST[0])]
    longest_first(items)
    assert [each.path.name for each in items] == ["test_tour.py", "long", "long", "many", "many", "few"]
