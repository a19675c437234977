"""Names: docstrings name what exists, a function says what it does, and one word is one class."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import parsed, statements

SHARED = Path(__file__).parents[2] / "shared" / "rightsizer"
MODULES = sorted(SHARED.rglob("*.py"))
PACKAGES = frozenset(path.parent.name for path in SHARED.glob("*/__init__.py"))
NAME = re.compile(r"`(?:rightsizer\.)?([a-z_]+(?:\.\w+)+)`")


def named(tree: ast.Module) -> Iterator[str]:
    """Dotted names in backticks that begin with a package of rightsizer, in the docstrings of a module.

    The texts below constants and fields are docstrings too.
    """
    for node in statements(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from (name for name in NAME.findall(text) if name.partition(".")[0] in PACKAGES)


def exists(name: str) -> bool:
    """Whether a module of rightsizer, or an attribute of one, has this name."""
    parts = name.split(".")
    found: object = importlib.import_module(f"rightsizer.{parts[0]}")
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(f"rightsizer.{'.'.join(parts[:number])}")
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
    return True


def test_docstrings_name_what_exists() -> None:
    gone = {
        str(path.relative_to(SHARED)): [name for name in named(parsed(path)) if not exists(name)] for path in MODULES
    }
    assert {module: names for module, names in gone.items() if names} == {}


def test_a_name_that_is_gone_is_found() -> None:
    source = '"""`ports.Journal`, `rightsizer.ports.changes.Journal`, `config.json`"""\nA = 1\n"""`aws.rows`"""'
    assert [(name, exists(name)) for name in named(ast.parse(source))] == [
        ("ports.Journal", False),
        ("ports.changes.Journal", True),
        ("aws.rows", False),
    ]


_PRONOUNS = """
mine ours theirs it its they them these those this who whom whose what which where when why how one ones
"""
_PARTICIPLES = """
asked asleep begun booked copied decided done edited expired failed found given gone grown held hurt idled judged kept
known left listed lost made measured met missed moved named needed noted ordered outgrown overruled paid raised refused
restored returned seen sent settled shown sold stored stopped taken taught tested told touched turned undone used wanted
waiting watched
"""
PRONOUNS, PARTICIPLES = frozenset(_PRONOUNS.split()), frozenset(_PARTICIPLES.split())
"""Words that alone name no act and no thing: a function says what it does, or what it returns."""
KNOWN_FUNCTIONS = {"known": 3, "shown": 1}
"""Functions with such a name and how often there is one; the list shrinks only. `known`: of price sources."""
FIRST_WORDS = frozenset(
    {"it", "its", "they", "them", "their", "these", "those", "this", "that", "what", "whom", "which"}
)
FIRST_LINE = 20
VAGUE = frozenset({"found", "one", "each", "made", "known", "seen", "asked", "given", "said", "told", "some"})
"""Names that say nothing of what a parameter is."""
NOUNS = frozenset({"Recommendation", "Proposal", "Option", "Report", "Change", "Endpoint", "Component", "Survey"})
"""Types of the domain whose own name is the plain name of a parameter."""
KNOWN_PARAMETERS = {"recommender": 1, "render": 7, "terminal": 14}
"""Parameters with such a name, by package; the list shrinks only: their modules and functions have no line to spare."""


def functions(tree: ast.AST) -> Iterator[str]:
    """Public functions and methods of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name


def is_bad_name(name: str) -> bool:
    """Whether a function's name is a pronoun, a question word or a bare participle."""
    return name in PRONOUNS | PARTICIPLES or any(word in PRONOUNS - {"one"} for word in name.split("_"))


def types(tree: ast.Module) -> Iterator[str]:
    """Classes and type aliases at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.TypeAlias):
            yield node.name.id


def first_sentence(text: str) -> str:
    """The first sentence of a docstring: up to a full stop that a capital, a quote or the end follows."""
    paragraph = re.sub(r"\s+", " ", text.split("\n\n")[0].strip())
    found = re.match(r"(.*?\.)(?=\s+[A-Z`\"]|$)", paragraph)
    return found[1] if found else paragraph


def breaks_a_rule(text: str) -> bool:
    """Whether the first sentence is too long, or begins with a pronoun."""
    words = first_sentence(text).split()
    return len(words) > FIRST_LINE or words[0].lower().strip("`,.:") in FIRST_WORDS


def promises(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Public classes, functions and methods with their docstrings; what is inside a private class is private."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            if text := ast.get_docstring(node):
                yield node.name, text
            if isinstance(node, ast.ClassDef):
                yield from promises(node)


def test_a_function_is_named_by_what_it_does_or_returns() -> None:
    names = Counter(name for path in MODULES for name in functions(parsed(path)) if is_bad_name(name))
    assert names == KNOWN_FUNCTIONS


def test_one_word_is_one_class() -> None:
    names = Counter(name for path in MODULES for name in types(parsed(path)))
    assert {name: number for name, number in names.items() if number > 1} == {}


def test_a_docstring_begins_with_one_plain_sentence() -> None:
    broken = [
        f"{path.relative_to(SHARED)}: {name}"
        for path in MODULES
        for name, text in promises(parsed(path))
        if breaks_a_rule(text)
    ]
    assert broken == []


def test_a_parameter_of_the_domain_is_named_by_its_type() -> None:
    found = Counter(
        path.relative_to(SHARED).parts[0]
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.arg)
        and node.arg in VAGUE
        and isinstance(node.annotation, ast.Name)
        and node.annotation.id in NOUNS
    )
    assert found == KNOWN_PARAMETERS


def test_broken_rules_are_found() -> None:
    assert [name for name in ("told", "why_kept", "choose_option", "monthly_cost") if is_bad_name(name)] == [
        "told",
        "why_kept",
    ]
    source = 'class A:\n    """It is one."""\n    def b(self):\n        """' + "word " * 21 + '."""\ntype C = int\n'
    assert [name for name, text in promises(ast.parse(source)) if breaks_a_rule(text)] == ["A", "b"]
    assert list(types(ast.parse(source))) == ["A", "C"]
