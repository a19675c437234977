"""Looks for known vulnerabilities in what is pinned: `make audit`.

pip-audit asks a public database. Where that cannot be reached, as behind a firewall, nothing was checked: the command
says so and does not fail, so that a check without a network still means something.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMMAND = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json", "--timeout", "10")


@dataclass(frozen=True, slots=True)
class Audit:
    """What the database said of one requirement file."""

    checked: int
    """Packages that the database knows."""
    skipped: int
    """Packages of which it gave no answer."""
    vulnerable: tuple[str, ...]
    """One line for each vulnerability."""


def requirement_files(root: Path) -> list[Path]:
    """Every compiled requirement file of the project."""
    return sorted([*root.glob("requirements/*.txt"), *root.glob("shared/requirements*.txt")])


def read(answer: Mapping[str, Any]) -> Audit:
    """What pip-audit's JSON says (documented in pip-audit's README)."""
    rows: Sequence[Mapping[str, Any]] = answer.get("dependencies", ())
    skipped = [row for row in rows if "skip_reason" in row]
    lines = (
        f"{row['name']} {row['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}"
        for row in rows
        for found in row.get("vulns", ())
    )
    return Audit(len(rows) - len(skipped), len(skipped), tuple(lines))


def ask(path: Path) -> Audit | str:
    """The audit of one file, or why there is none."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(path), *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return read(json.loads(done.stdout))
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return lines[-1][:200] if lines else f"pip-audit ended with {done.returncode} and said nothing"


def tell(audits: Iterable[tuple[str, Audit | str]]) -> tuple[list[str], int]:
    """The lines to print, and the exit code: 1 where a vulnerability is known."""
    said, code = [], 0
    for name, found in audits:
        if isinstance(found, str):
            said.append(f"{name}: not checked, the database could not be asked: {found}")
        elif found.vulnerable:
            code = 1
            said += [f"{name}: {line}" for line in found.vulnerable]
        elif not found.checked:
            said.append(f"{name}: not checked, the database knows none of its {found.skipped} packages from here")
        else:
            rest = f", {found.skipped} not checked" if found.skipped else ""
            said.append(f"{name}: {found.checked} packages without a known vulnerability{rest}")
    return said, code


def main() -> int:
    """Audit every requirement file; 1 where a vulnerability is known."""
    said, code = tell((str(path.relative_to(ROOT)), ask(path)) for path in requirement_files(ROOT))
    print("\n".join(said))
    return code


if __name__ == "__main__":
    sys.exit(main())
