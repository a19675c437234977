"""Nothing grows beyond what a reader can hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import parsed, statements

ROOT = Path(__file__).parents[2]
PRODUCT = ("shared", "functions", "scripts")
AROUND = ("tests", "sandbox", "bench")
MODULE_LINES = dict.fromkeys((*PRODUCT, *AROUND), 400)
FUNCTION_LINES = 50
PARAMETERS = 6
COMMAND_DECORATORS = ("app.command", "order")
"""A terminal command has a parameter for each flag of its command line, so commands are not counted."""
KNOWN_WIDE = {
    "domain/option.py:new_option": 16,
    "recommender/pricing.py:cost_of": 9,
    "recommender/pricing.py:scale_to_zero_option": 8,
}
"""Functions of the library above the limit. The list only gets shorter: a function that is mended leaves it."""
HANDLER_LINES = 15


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function and its lines, without those of functions defined in it: they are counted by themselves."""
    for node in statements(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [n for n in statements(node) if isinstance(n, ast.FunctionDef)]
            yield node.name, _lines(node) - sum(map(_lines, inner))


def parameters(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each function and its parameters, without `self` and `cls`; `*args` and `**kwargs` count as one each."""
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_command(node):
            taken = node.args
            named = [each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
            yield (
                node.name,
                len([n for n in named if n not in ("self", "cls")])
                + sum(each is not None for each in (taken.vararg, taken.kwarg)),
            )


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        ast.unparse(each.func if isinstance(each, ast.Call) else each) in COMMAND_DECORATORS
        for each in node.decorator_list
    )


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("folder", [*PRODUCT, *AROUND])
def test_no_module_is_longer_than_the_limit_of_its_package(folder: str) -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(folder)}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES[folder]} == {}


@pytest.mark.parametrize("folder", [*PRODUCT, *AROUND])
def test_no_function_is_longer_than_the_limit_of_its_package(folder: str) -> None:
    long = {
        f"{path.relative_to(ROOT)}:{name}": lines
        for path in modules(folder)
        for name, lines in functions(path)
        if lines > FUNCTION_LINES
    }
    assert long == {}


def test_no_function_takes_more_parameters_than_a_reader_can_hold() -> None:
    library = ROOT / "shared" / "rightsizer"
    wide = {
        f"{path.relative_to(library)}:{name}": count
        for path in modules("shared")
        for name, count in parameters(parsed(path))
        if count > PARAMETERS
    }
    assert wide == KNOWN_WIDE, "group parameters in a frozen dataclass; a mended function leaves KNOWN_WIDE"


def test_parameters_are_counted_without_self_and_commands_are_left_out() -> None:
    code = """
class Planner:
    def plan(self, a, b, /, c, *rest, d=1, **more): ...

@app.command(epilog="x")
def scan(a, b, c, d, e, f, g): ...
"""
    assert dict(parameters(ast.parse(code))) == {"plan": 6}


def doors() -> list[Path]:
    return sorted((ROOT / "functions").glob("*/app.py"))


@pytest.mark.parametrize("door", doors(), ids=lambda path: path.parent.name)
def test_a_door_parses_calls_one_flow_and_answers(door: Path) -> None:
    lines = dict(functions(door))
    assert lines["lambda_handler"] <= HANDLER_LINES
