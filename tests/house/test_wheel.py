"""The wheel that a release ships: every data file is in it, and its command runs in another folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from rightsizer import __version__

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "shared" / "rightsizer"
ADDED = f"rightsizer-{__version__}.dist-info/"


@dataclass(frozen=True)
class Built:
    """A wheel, and the folder that it is installed in."""

    wheel: Path
    site: Path

    def run(self, *command: str) -> str:
        """What a program prints in an empty folder, with the wheel's library and none of this clone."""
        elsewhere = self.site.parent / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": str(self.site), "COLUMNS": "100", "TERM": "dumb"}
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> Iterator[str]:
        """The names in the wheel."""
        with ZipFile(self.wheel) as archive:
            yield from archive.namelist()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The wheel of this tree, built and installed without a network."""
    pytest.importorskip("hatchling", reason="the build backend is not installed: run make install")
    out = tmp_path_factory.mktemp("wheel")
    for command in (
        ("hatchling", "build", "-t", "wheel", "-d", str(out)),
        ("pip", "install", "-q", "--no-index", "--no-deps", "--target", str(out / "site"), str(out / _name())),
    ):
        subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True, capture_output=True)
    return Built(out / _name(), out / "site")


def _name() -> str:
    return f"rightsizer-{__version__}-py3-none-any.whl"


def test_the_wheel_holds_every_file_of_the_library_and_nothing_else(built: Built) -> None:
    """Tables, prices and service models are read at run time: a file that is left out fails with a user."""
    shipped = {name.removeprefix("rightsizer/") for name in built.files() if not name.startswith(ADDED)}
    there = {str(path.relative_to(LIBRARY)) for path in LIBRARY.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert shipped == there
    assert {"catalog/instance_types.csv", "catalog/prices/eu-west-1.csv"} <= shipped


def test_the_command_of_the_wheel_runs_in_another_folder(built: Built) -> None:
    command = str(built.site / "bin" / "rightsizer")
    assert built.run(command, "--version").startswith(f"rightsizer {__version__} (Python 3.")
    assert "Commands:" in built.run(command, "--help")
    assert built.run(command, "scan", "--help").startswith("Usage: rightsizer scan")


def test_the_library_of_the_wheel_reads_its_tables_in_another_folder(built: Built) -> None:
    said = built.run(
        sys.executable,
        "-c",
        "import rightsizer; from rightsizer import catalog;"
        " print(rightsizer.__file__); print(len(catalog.instances()))",
    )
    where, number = said.split()
    assert Path(where).is_relative_to(built.site)
    assert int(number) > 40


def test_the_wheel_asks_for_the_terminal_only_in_its_extra(built: Built) -> None:
    with ZipFile(built.wheel) as archive:
        about = HeaderParser().parsestr(archive.read(f"{ADDED}METADATA").decode())
    asked = about.get_all("Requires-Dist", [])
    extra = {re.split(r"\W", line)[0] for line in asked if "extra == 'cli'" in line}
    assert extra == {"boto3", "pyyaml", "rich", "typer"}
    assert not [line for line in asked if line.startswith(("boto3", "pyyaml", "rich", "typer")) and "extra" not in line]
    assert (about["Version"], about["License-Expression"]) == (__version__, "Apache-2.0")
