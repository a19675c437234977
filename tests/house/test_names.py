"""Docstrings name modules and attributes that exist."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared" / "rightsizer"
MODULES = sorted(SHARED.rglob("*.py"))
PACKAGES = frozenset(path.parent.name for path in SHARED.glob("*/__init__.py"))
NAME = re.compile(r"`(?:rightsizer\.)?([a-z_]+(?:\.\w+)+)`")


def named(source: str) -> Iterator[str]:
    """Dotted names in backticks that begin with a package of rightsizer, in the docstrings of a module.

    The texts below constants and fields are docstrings too.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from (name for name in NAME.findall(text) if name.partition(".")[0] in PACKAGES)


def exists(name: str) -> bool:
    """Whether a module of rightsizer, or an attribute of one, has this name."""
    parts = name.split(".")
    found: object = importlib.import_module(f"rightsizer.{parts[0]}")
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(f"rightsizer.{'.'.join(parts[:number])}")
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SHARED)))
def test_docstrings_name_what_exists(path: Path) -> None:
    assert [name for name in named(path.read_text()) if not exists(name)] == []


def test_a_name_that_is_gone_is_found() -> None:
    source = '"""`ports.Journal`, `rightsizer.ports.changes.Journal`, `config.json`"""\nA = 1\n"""`aws.rows`"""'
    assert [(name, exists(name)) for name in named(source)] == [
        ("ports.Journal", False),
        ("ports.changes.Journal", True),
        ("aws.rows", False),
    ]
