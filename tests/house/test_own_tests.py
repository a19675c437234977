"""Each module of a package that is tested in memory is imported by a test file of its own name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "shared" / "rightsizer"
COMPLETE = ("changes", "reporting")
"""Packages of which every module has such a file; the others come one by one."""


def modules(package: str) -> Iterator[tuple[str, str]]:
    """(name of the test file, dotted name) of each module that holds more than a docstring."""
    for path in sorted((LIBRARY / package).rglob("*.py")):
        parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
        if path.name != "__init__.py":
            yield f"test_{path.stem}.py", ".".join(parts)
        elif len(ast.parse(path.read_text()).body) > 1:
            yield f"test_{path.parent.name}.py", ".".join(parts[:-1])


def imported(path: Path) -> set[str]:
    """What a file imports, modules and names of them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("package", COMPLETE)
def test_each_module_is_imported_by_a_test_file_of_its_own_name(package: str) -> None:
    every = {file: [imported(path) for path in (ROOT / "tests").rglob(file)] for file, _ in modules(package)}
    missing = [
        f"{name}: no {file} imports it" for file, name in modules(package) if not any(name in x for x in every[file])
    ]
    assert missing == []


def test_a_module_without_its_file_would_be_found() -> None:
    names = dict(modules("changes"))
    assert names["test_steps.py"] == "rightsizer.changes.reconcile.steps"
    assert names["test_plan.py"] == "rightsizer.changes.plan"
    assert "rightsizer.changes.reconcile.steps" in imported(ROOT / "tests" / "changes" / "test_steps.py")
    assert "rightsizer.changes.reconcile.drift" not in imported(ROOT / "tests" / "changes" / "test_window.py")
