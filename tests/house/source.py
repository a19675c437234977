"""Syntax trees of the files of this repository, each parsed once for all tests of the house."""

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, which nobody may change."""
    return ast.parse(path.read_text())
