"""Every public name of the pure packages and of the ports makes a promise."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import parsed

SHARED = Path(__file__).parents[2] / "shared" / "rightsizer"
PURE = ("domain", "autoscaling", "recommender", "changes", "spot", "reporting", "backtest", "advice")
PROMISING = sorted(
    [*(path for name in PURE for path in SHARED.glob(f"{name}/**/*.py")), SHARED / "ports" / "evaluation.py"]
)


def silent(path: Path) -> Iterator[str]:
    """Public functions, classes and methods of a module that have no docstring, and the module itself."""
    tree = parsed(path)
    if tree.body and not ast.get_docstring(tree):
        yield "the module"
    yield from _silent(tree.body, "")


def _silent(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from _silent(node.body, f"{node.name}.")


def test_every_public_name_has_a_docstring() -> None:
    found = {str(path.relative_to(SHARED)): list(silent(path)) for path in PROMISING}
    assert {module: names for module, names in found.items() if names} == {}
