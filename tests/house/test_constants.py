"""A constant has one home: no name stands with the same value in two modules of the library."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "shared" / "rightsizer"
MEANINGS_DIFFER = {
    "DAY": "a unit of time, which nobody tunes",
    "FRESH": "how long ledger rows are reused for a sweep, and how long a Slack key is kept for clicks",
    "HOUR": "a unit of time, which nobody tunes",
    "LATE": "what a shadow test may miss of the busiest hour, and the delay after which a person hears of a stream",
    "PERIOD_S": "the period of the account's own metrics, and that of training jobs, which are kept for 455 days",
    "VERSION": "each command's JSON document has its own version, and one may be raised alone",
}
"""Names that stand with one value in two modules because they mean two things, each with the reason."""


def constants(code: str) -> Iterator[tuple[str, str]]:
    """Each name in capitals that a module defines at its top level, with the value as the syntax tree prints it."""
    for node in ast.parse(code).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if name.isupper():
            yield name, ast.unparse(value)


def doubled(sources: dict[str, str]) -> dict[str, list[str]]:
    """Names that two modules define with one value, and those modules."""
    homes = defaultdict(list)
    for module, code in sources.items():
        for name, value in constants(code):
            homes[name, value].append(module)
    return {name: modules for (name, _), modules in sorted(homes.items()) if len(modules) > 1}


def test_a_constant_has_one_home() -> None:
    found = doubled({str(path.relative_to(LIBRARY)): path.read_text() for path in sorted(LIBRARY.rglob("*.py"))})
    assert {name: modules for name, modules in found.items() if name not in MEANINGS_DIFFER} == {}
    assert set(found) == set(MEANINGS_DIFFER), "an exception that is needed no longer goes"


def test_a_double_is_found_by_name_and_value() -> None:
    one, same, other = "LIMIT = 0.10", "LIMIT: float = 0.1", "LIMIT = 0.2"
    assert doubled({"a.py": one, "b.py": same, "c.py": other}) == {"LIMIT": ["a.py", "b.py"]}
    assert doubled({"a.py": one, "c.py": other}) == {}
