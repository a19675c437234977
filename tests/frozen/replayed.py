"""The table of what ships on one thinned account of the referee, without the seconds that it took."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFEREE = Path(os.environ.get("RIGHTSIZER_REFEREE", str(ROOT.parent / "shared" / "referee")))
ARGUMENTS = ("--fast", "--account", "mixed", "--policy", "shipped-auto", "--policy", "shipped-approved")
"""Twelve endpoints, eight days decided by two policies: half a minute of CPU."""
COLUMN = "dec s"
"""The last column: seconds of a machine, no answer."""


def absent() -> str:
    """Why there is nothing to replay with, or an empty text."""
    if (REFEREE / "referee" / "__main__.py").exists():
        return ""
    return f"no referee in {REFEREE}: set RIGHTSIZER_REFEREE to its folder to compare the replay too"


def replayed() -> Iterator[tuple[str, str]]:
    """Each line of the tables under its table and its policy."""
    path = os.pathsep.join((str(ROOT / "shared"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "bench.replay", *ARGUMENTS],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(
            f"python -m bench.replay {' '.join(ARGUMENTS)} ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    yield from rows_of(done.stdout)


def rows_of(printed: str) -> Iterator[tuple[str, str]]:
    """The lines of what the referee prints, without the column of seconds."""
    title, width = "", None
    for line in filter(None, map(str.rstrip, io.StringIO(printed))):
        if ", seed " in line:
            title, width = line.partition(":")[0], None
            yield title, line
            continue
        if line.endswith(COLUMN):
            width = len(line) - len(COLUMN)
        name = line[:36].strip()
        yield f"{title} {name}", line[:width].rstrip()
