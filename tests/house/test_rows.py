"""Rows of the table are read by one module: nothing else in `rightsizer.aws` looks an attribute up by itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

AWS = Path(__file__).parents[2] / "shared" / "rightsizer" / "aws"
READERS = {"rightsizer.aws.table", "rightsizer.aws.documents", "rightsizer.aws.decisions"}
THE_READER = "table.py"
"""The reader, which makes rows of DynamoDB's answers too."""


def imported(tree: ast.AST) -> set[str]:
    """Modules that this one names in an import."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def looked_up(tree: ast.AST) -> Iterator[str]:
    """Reads of one name in something, in small letters: AWS's own answers begin their names with a capital."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            name = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(name, str) and name == name.lower():
                yield f"line {node.lineno}: {ast.unparse(node)}"


def modules_with_rows() -> list[Path]:
    return [p for p in sorted(AWS.glob("*.py")) if imported(ast.parse(p.read_text())) & READERS]


@pytest.mark.parametrize("path", modules_with_rows(), ids=lambda path: str(path.stem))
def test_rows_are_read_by_their_reader_alone(path: Path) -> None:
    found = list(looked_up(ast.parse(path.read_text())))
    assert path.name == THE_READER or found == [], "use rightsizer.aws.table: text, whole, money, moment, document"


def test_the_stores_are_among_the_modules_that_are_looked_at() -> None:
    names = {path.stem for path in modules_with_rows()}
    assert names >= {"journal", "ledger", "recommendations", "proposals", "capacity_changes", "documents"}


def test_a_bare_look_into_a_row_is_found() -> None:
    assert list(looked_up(ast.parse('f(row["usd"])'))) == ["line 1: row['usd']"]
    assert list(looked_up(ast.parse('answer["Items"]'))) == []
