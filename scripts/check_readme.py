"""Checks the README and the pages of docs/ against the program: make targets, commands, parameters, files."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"```(?:sh|console|bash)?\n(.*?)```|`([^`\n]+)`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PARAMETER = re.compile(r"^  (\w+):$", re.MULTILINE)


def code(text: str) -> str:
    """Code blocks and code spans of a page; prose may say "make sure"."""
    return "\n".join(block or span for block, span in CODE.findall(text))


def problems(page: Path, targets: set[str], commands: set[str], parameters: set[str]) -> Iterator[str]:
    """What the page promises and the program does not keep."""
    text = page.read_text()
    for target in re.findall(r"^make ((?:[a-z-]+ ?)+)", code(text), re.MULTILINE):
        yield from (f"make {name}: no such target" for name in target.split() if name not in targets)
    for command in re.findall(r"\brightsizer ([a-z]+)\b(?! \|)", code(text)):
        if command not in commands:
            yield f"rightsizer {command}: no such command"
    for name in re.findall(r"\b([A-Z]\w+)=[a-z]", code(text)):
        if any(letter.islower() for letter in name) and name not in parameters:
            yield f"{name}: no such parameter of the template"
    for link in LINK.findall(text):
        target = link.split("#")[0]
        if target and "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
            yield f"{link}: the file does not exist"


def commands_of_the_program() -> set[str]:
    """The commands that `rightsizer --help` lists."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared"), "NO_COLOR": "1", "COLUMNS": "120", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "rightsizer", "--help"], env=environment, capture_output=True, text=True, check=True
    )
    return set(re.findall(r"^[\s│|]*([a-z]+)\s{2,}\S", done.stdout, re.MULTILINE))


def main() -> int:
    """Print what does not hold; the exit code says whether all does."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    head = (ROOT / "template.yaml").read_text().split("\nConditions:")[0].split("\nParameters:")[1]
    commands = commands_of_the_program()
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md")]
    pages = [*top, *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        f"{page.relative_to(ROOT)}: {problem}"
        for page in pages
        for problem in problems(page, targets, commands, set(PARAMETER.findall(head)))
    ]
    print("\n".join(found) or f"{len(pages)} pages agree with the program")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
