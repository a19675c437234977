"""What `make fast` runs and leaves out is there, and the processes of a run share whole files."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONG, PLAYED, QUICK, longest_first

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_module_that_stays_in_make_fast_is_one_of_a_folder_that_plays_courses(name: str) -> None:
    assert (TESTS / name).is_file()
    assert Path(name).parent.name in PLAYED


@pytest.mark.parametrize("name", sorted(LONG))
def test_a_long_module_is_there_and_in_another_folder(name: str) -> None:
    assert (TESTS / name).is_file()
    assert Path(name).parent.name not in PLAYED


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

    items = [item("few"), item("many"), item("long"), item("many"), item("long", slow=True)]
    longest_first(items)
    assert [each.path.name for each in items] == ["long", "long", "many", "many", "few"]
