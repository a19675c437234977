"""Syntax trees of the files of this repository, each parsed and walked once for all tests of a process."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, which nobody may change."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's tree, in the order of `ast.walk`."""
    return tuple(ast.walk(parsed(path)))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node, those of inner functions too, without the expressions, most of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        inner = [each for kind in _BODIES for each in getattr(node, kind, ())]
        yield from inner
        waiting += inner


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of a statement that hold further ones."""
