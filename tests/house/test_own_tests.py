"""Each tested module is imported by a test file of its own name, and each test file holds a test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import parsed

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "shared" / "rightsizer"
COMPLETE = ("changes", "dimensions", "reporting")
"""Packages of which every module has such a file; the others come one by one."""


def modules(package: str) -> Iterator[tuple[str, str]]:
    """(name of the test file, dotted name) of each module that holds more than a docstring."""
    for path in sorted((LIBRARY / package).rglob("*.py")):
        parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
        if path.name != "__init__.py":
            yield f"test_{path.stem}.py", ".".join(parts)
        elif len(parsed(path).body) > 1:
            yield f"test_{path.parent.name}.py", ".".join(parts[:-1])


def imported(path: Path) -> set[str]:
    """What a file imports, modules and names of them."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
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
    assert "rightsizer.changes.reconcile.drift" not in imported(ROOT / "tests" / "changes" / "test_start_limits.py")


def names_of_tests(tree: ast.Module) -> list[str]:
    """Names that pytest takes as tests, as a function, as a method of a class or as hypothesis's machine."""
    body = tree.body
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    defined = [*body, *(node for one in classes for node in one.body)]
    names = [
        node.name
        for node in defined
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    machines = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return names + [one.id for one in machines if isinstance(one, ast.Name) and one.id.startswith("Test")]


def test_each_test_file_holds_a_test() -> None:
    """A file that an accident emptied passes otherwise, as nothing that fails is left in it."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    assert files
    assert [str(path.relative_to(ROOT)) for path in files if not names_of_tests(parsed(path))] == []


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("", []),
        ('"""Only a docstring."""\nimport ast\n', []),
        ("def helper(): pass\nclass Other:\n    def test_of_no_test_class(self): pass\n", []),
        ("def test_a(): pass\n", ["test_a"]),
        ("class TestB:\n    def test_b(self): pass\n", ["test_b"]),
        ("TestC = Machine.TestCase\n", ["TestC"]),
    ],
)
def test_a_file_without_a_test_would_be_found(source: str, held: list[str]) -> None:
    assert names_of_tests(ast.parse(source)) == held
