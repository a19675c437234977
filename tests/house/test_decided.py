"""Each decision that docs/architecture.md names is made by that function, in one place."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "shared" / "rightsizer"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROW = re.compile(r"^\| (.+\?) \| `(\S+\.py):(\w+)` \|$", re.MULTILINE)
OWNERSHIP = re.compile(r"aws:cloudformation:|aws:servicecatalog:|managed-by|provisioned-by")
"""Tags by which a stack or a tool is known."""


def section() -> str:
    """The part of the page about decisions."""
    return PAGE.partition("## Where it is decided\n")[2].partition("\n## ")[0]


def functions(path: Path) -> set[str]:
    """Names of the functions of a module."""
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_table_is_read() -> None:
    rows = [line for line in section().splitlines() if line.startswith("| ")]
    assert len(ROW.findall(section())) == len(rows) - 1 >= 10, "all but the head"


@pytest.mark.parametrize(("question", "path", "name"), ROW.findall(section()), ids=lambda one: str(one))
def test_the_function_that_decides_is_where_the_page_says(question: str, path: str, name: str) -> None:
    assert name in functions(LIBRARY / path), question


def test_ownership_is_told_by_tags_in_one_module() -> None:
    readers = {str(path.relative_to(LIBRARY)) for path in LIBRARY.rglob("*.py") if OWNERSHIP.search(path.read_text())}
    assert readers == {"domain/ownership.py"}
