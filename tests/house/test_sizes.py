"""Nothing grows beyond what a reader can hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("shared", "functions", "scripts")
AROUND = ("tests", "sandbox", "bench")
MODULE_LINES = dict.fromkeys((*PRODUCT, *AROUND), 400)
FUNCTION_LINES = 50
HANDLER_LINES = 15


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function and its lines, without those of functions defined in it: they are counted by themselves."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node]
            yield node.name, _lines(node) - sum(map(_lines, inner))


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("folder", [*PRODUCT, *AROUND])
def test_no_module_is_longer_than_its_floor_allows(folder: str) -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(folder)}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES[folder]} == {}


@pytest.mark.parametrize("folder", [*PRODUCT, *AROUND])
def test_no_function_is_longer_than_its_floor_allows(folder: str) -> None:
    long = {
        f"{path.relative_to(ROOT)}:{name}": lines
        for path in modules(folder)
        for name, lines in functions(path)
        if lines > FUNCTION_LINES
    }
    assert long == {}


def doors() -> list[Path]:
    return sorted((ROOT / "functions").glob("*/app.py"))


@pytest.mark.parametrize("door", doors(), ids=lambda path: path.parent.name)
def test_a_door_parses_calls_one_flow_and_answers(door: Path) -> None:
    lines = dict(functions(door))
    assert lines["lambda_handler"] <= HANDLER_LINES
