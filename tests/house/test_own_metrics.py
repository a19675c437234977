"""docs/own-metrics.md lists each metric that the program counts, and no other."""

import ast
import re
from pathlib import Path

from tests.house.source import parsed

ROOT = Path(__file__).parents[2]
LIBRARY, FUNCTIONS = ROOT / "shared" / "rightsizer", ROOT / "functions"
TELEMETRY = LIBRARY / "telemetry.py"
ROW = re.compile(r"^\| `(\w+)` \| ([a-z, ]+) \| (.+) \| (.+) \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "own-metrics.md").read_text()


def modules() -> list[Path]:
    return sorted([*LIBRARY.rglob("*.py"), *FUNCTIONS.rglob("*.py")])


def names_of_count(tree: ast.AST) -> set[str]:
    """By what names a module calls `rightsizer.telemetry.count` and `measure`."""
    found = {"telemetry.count", "telemetry.measure"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "rightsizer.telemetry":
            found |= {each.asname or each.name for each in node.names if each.name in ("count", "measure")}
    return found


def counted(tree: ast.AST, names: set[str]) -> set[str]:
    """The metrics of every call of `count`; `**` where a call hides their names."""
    last = {name.rpartition(".")[2] for name in names}
    every = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    calls = (node for node in every if _last(node.func) in last and ast.unparse(node.func) in names)
    return {keyword.arg or "**" for call in calls for keyword in call.keywords}


def _last(called: ast.expr) -> str:
    """The last part of the name of what is called."""
    return getattr(called, "attr", getattr(called, "id", ""))


def all_counted() -> set[str]:
    found: set[str] = set()
    for path in modules():
        tree = parsed(path)
        own = counted(tree, {"count"}) if path == TELEMETRY else set()
        found |= counted(tree, names_of_count(tree)) | own
    return found


def doors() -> set[str]:
    """What the functions give the decorator `door`."""
    text = "\n".join(path.read_text() for path in FUNCTIONS.rglob("app.py"))
    return set(re.findall(r'^@door\("(\w+)"\)$', text, re.MULTILINE))


def test_the_page_lists_what_is_counted_and_nothing_else() -> None:
    listed = [name for name, *_ in ROW.findall(PAGE)]
    assert listed == sorted(set(listed)), "once each, by the alphabet"
    assert set(listed) == all_counted()


def test_every_row_of_the_page_is_read() -> None:
    assert len(ROW.findall(PAGE)) == len([line for line in PAGE.splitlines() if line.startswith("| `")]) > 20


def test_the_page_names_functions_that_exist() -> None:
    assert len(doors()) == 9
    for metric, where, *_ in ROW.findall(PAGE):
        assert where == "all" or set(where.split(", ")) <= doors(), metric


def test_metrics_are_added_by_count_alone() -> None:
    """A metric that is added in another way would be in no table."""
    assert [path.name for path in modules() if "add_metric(" in path.read_text()] == [TELEMETRY.name]


def test_a_call_under_another_name_is_found_and_one_of_another_count_is_not() -> None:
    tree = ast.parse("from rightsizer.telemetry import count as add\nadd(A=1, B=2)\nadd(**more)\ncount(C=3)")
    assert counted(tree, names_of_count(tree)) == {"A", "B", "**"}
    tree = ast.parse("from rightsizer import telemetry\ntelemetry.count(D=1)")
    assert counted(tree, names_of_count(tree)) == {"D"}
