"""Words for people carry no structure: what the code decides by has a field of its own.

A sentence, a detail of a journal, a fact, an outcome, the name of a step and the name of an alarm are shown, stored and
compared as a whole. None is cut, searched or turned into a number, and no key is made by `repr`.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.source import parsed

LIBRARY = Path(__file__).parents[2] / "shared" / "rightsizer"
WORDS = frozenset({"detail", "text", "sentence", "facts", "outcome", "step", "alarm", "alarm_name", "enable"})
"""Fields that hold words for people, and names of steps and alarms."""
LOCAL = WORDS - {"text", "step", "alarm"}
"""Of these, the names of variables: as such the others hold a piece of input, a step or an alarm."""
SPELLED = frozenset({"AlarmName", "AlarmDescription"})
"""Names of alarms as AWS spells their keys."""
CUTS = frozenset(
    {"startswith", "endswith", "split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix", "find"}
)
NUMBERS = frozenset({"float", "int"})
KEYS = ("key", "_id", "fingerprint", "digest")
"""A function that makes a key has one of these in its name."""

ALLOWED = {
    "domain.of_enable": "the one reader of how a proposal can be enabled, as it is stored",
    "domain.read_failure": "the one reader of what a stored journal says of a write that failed",
    "domain.with_older_facts": "the one reader of what earlier releases stored",
    "flows._faults": "AWS says in words alone why a launch failed",
    "flows._replace": "AWS says in words alone that an instance has left its group",
    "intake._is_about": "the attribute of a key, as DynamoDB writes it",
    "intake._proposal": "the attribute of a version, as DynamoDB writes it",
    "terminal._exclusion_text": "a name that the sentence says already is not said again",
}
"""Functions where the words are no sentence of ours, and what they are."""


def is_words(node: ast.expr) -> bool:
    """Whether the expression is such a field, one of its elements, or a text made of it."""
    match node:
        case ast.Attribute(attr=name):
            return name in WORDS
        case ast.Name(id=name):
            return name in LOCAL
        case ast.Subscript(value=inside, slice=ast.Constant(value=key)) if key in SPELLED:
            return True
        case ast.Subscript(value=inside):
            return is_words(inside)
        case ast.BoolOp(values=values):
            return any(is_words(each) for each in values)
        case ast.Call(func=ast.Name(id="str"), args=[inside]):
            return is_words(inside)
        case ast.Call(
            func=ast.Attribute(value=inside, attr="get" | "lower" | "strip" | "casefold" | "values" | "items")
        ):
            return is_words(inside)
    return False


def readings(tree: ast.AST) -> Iterator[ast.AST]:
    """Every expression that takes words apart, searches them or makes a number of them, or looks a fact up."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call | ast.Compare | ast.Subscript):
            continue
        match node:
            case ast.Call(func=ast.Attribute(value=inside, attr=name)) if name in CUTS and is_words(inside):
                yield node
            case ast.Call(func=ast.Name(id=name), args=[inside, *_]) if name in NUMBERS and is_words(inside):
                yield node
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[inside]) if is_words(inside):
                yield node
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="facts"), attr="get")):
                yield node
            case ast.Subscript(value=ast.Attribute(attr="facts"), ctx=ast.Load()):
                yield node


def written_by_repr(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Every use of Python's own text of a value in a function that makes a key."""
    calls = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    if not (any(word in function.name for word in KEYS) or any(call.startswith("hashlib.") for call in calls)):
        return
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="repr")) | ast.FormattedValue(conversion=114):
                yield node


def functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module; what is defined inside one belongs to it."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Each module with the name of its package; those beside the packages have their own."""
    for path in sorted(LIBRARY.rglob("*.py")):
        yield path.relative_to(LIBRARY).with_suffix("").parts[0], parsed(path)


@cache
def places() -> dict[str, int]:
    """How often words are read, by package and function; by the package alone where no function is around."""
    found: Counter[str] = Counter()
    for package, tree in modules():
        inside = [(f"{package}.{each.name}", len(list(readings(each)))) for each in functions(tree)]
        for place, times in inside:
            found[place] += times
        found[package] += len(list(readings(tree))) - sum(times for _, times in inside)
    return dict(+found)


def test_no_further_place_reads_words() -> None:
    assert [place for place in places() if place not in ALLOWED] == [], "give what is decided by a field of its own"


def test_each_place_that_may_read_words_does() -> None:
    assert [place for place in ALLOWED if place not in places()] == [], "take it off ALLOWED"


def test_no_key_is_made_of_what_python_writes_of_a_value() -> None:
    found = [
        f"{package}.{each.name}: {ast.unparse(node)}"
        for package, tree in modules()
        for each in functions(tree)
        for node in written_by_repr(each)
    ]
    assert found == [], "name each field: a class or a field that is renamed would change every id"


NAMED = frozenset({"plan.kind", "ended", "decision.by", "entry.step", "e.step", "line.step"})
"""Values that have an enumeration, as the library spells them: an attribute, or one of a name."""


def spelled_out(tree: ast.AST) -> Iterator[ast.AST]:
    """Every comparison of such a value with a text that is written there, alone or in a group."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [ast.unparse(each) for each in (node.left, *node.comparators) if isinstance(each, ast.Attribute)]
        named = any(side == name or side.endswith(f".{name}") for side in sides for name in NAMED)
        inside = (each for side in (node.left, *node.comparators) for each in ast.walk(side))
        if named and any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in inside):
            yield node


def test_values_that_have_an_enumeration_are_compared_with_its_members() -> None:
    found = [f"{package}: {ast.unparse(node)}" for package, tree in modules() for node in spelled_out(tree)]
    assert found == [], "use PlanKind, PastEnd, JournalEvent, or Decision.is_automatic"


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ('change.plan.kind == "delete"', 1),
        ('past.ended not in ("tested", "update-failed")', 1),
        ('entry.step == "plan"', 1),
        ('proposal.decision.by != "policy"', 1),
        ("change.plan.kind is PlanKind.DELETE", 0),
        ("entry.step == step.key", 0),
        ('ledger.kind == "realised"', 0),
    ],
)
def test_a_value_that_is_compared_with_a_text_is_found(line: str, times: int) -> None:
    assert len(list(spelled_out(ast.parse(line)))) == times


@pytest.mark.parametrize(
    "line",
    [
        'entry.detail.startswith("refused")',
        'reason.sentence.endswith(".")',
        "change.outcome.split(':')",
        'found.text.lower().partition(" ")',
        "str(entry.detail).removeprefix('again:')",
        'float(option.facts["test hours"])',
        'float(option.facts.get("test hours", 2.0))',
        'option.facts["test hours"]',
        '"GPU" in recommendation.reason.text',
        '"GPU" not in option.facts',
        'alarm["AlarmName"].removesuffix("-p95")',
        "event.alarm_name.split('-')",
        '(proposal.enable or "ask").partition("\\n")',
        'detail.partition(":")',
        "self.journal[-1].detail.split(':', 2)",
    ],
)
def test_a_place_that_reads_words_is_found(line: str) -> None:
    assert len(list(readings(ast.parse(line)))) >= 1


@pytest.mark.parametrize(
    "line",
    [
        'text.split(",")',
        'entry.detail == ""',
        "shown(entry.detail)",
        "{**option.facts, **more}",
        'name.startswith("aws:")',
        'f"{change.outcome}: over"',
        "facts[name] = said",
    ],
)
def test_words_that_are_shown_stored_or_compared_whole_are_no_finding(line: str) -> None:
    assert list(readings(ast.parse(line))) == []


@pytest.mark.parametrize(
    ("function", "times"),
    [
        ("def proposal_key(target):\n    return repr(target)", 1),
        ("def change_id(target):\n    return f'{target!r}'", 1),
        ("def made(target):\n    return hashlib.sha256(repr(target).encode()).hexdigest()", 1),
        ("def problem(value):\n    return f'it is {value!r}'", 0),
    ],
)
def test_a_key_made_by_repr_is_found(function: str, times: int) -> None:
    (made,) = functions(ast.parse(function))
    assert len(list(written_by_repr(made))) == times
