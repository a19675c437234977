"""Each threshold is a setting, or a constant with its reason that nothing of the product replaces."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from rightsizer.bootstrap.evaluation import policy_of
from rightsizer.domain import policy
from rightsizer.domain.policy import BY_ENVIRONMENT, BY_QUESTION, SETTINGS, Policy
from rightsizer.settings import from_environment
from tests.house.source import nodes

ROOT = Path(__file__).parents[2]
FIELDS = frozenset(field.name for field in fields(Policy))
KEYS = {"by_itself": "dimensions"}
"""Keys of Limits that are not called as their fields."""


def reasons() -> dict[str, str]:
    """The sentence below each field of the class."""
    (found,) = (n for n in ast.parse(Path(policy.__file__).read_text()).body if getattr(n, "name", "") == "Policy")
    assert isinstance(found, ast.ClassDef)
    said = {}
    for field, below in zip(found.body, found.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value if isinstance(below, ast.Expr) else None
            said[field.target.id] = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
    return said


def replaced(path: Path) -> Iterator[str]:
    """Fields that a module gives a value of its own: `Policy(field=...)` or `replace(policy, field=...)`."""
    for node in nodes(path):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        of_policy = bool(node.args) and ast.unparse(node.args[0]).split(".")[-1] in ("policy", "Policy()")
        if name == "Policy" or (name == "replace" and of_policy):
            yield from (word.arg for word in node.keywords if word.arg in FIELDS)


def test_each_threshold_says_what_it_is_and_why() -> None:
    assert set(reasons()) == FIELDS
    assert [name for name, reason in reasons().items() if len(reason) < 25] == []


def test_what_is_a_setting_says_so_and_nothing_else_does() -> None:
    assert {name for name, reason in reasons().items() if "setting" in reason} == SETTINGS


def test_nothing_of_the_product_or_the_bench_replaces_a_constant() -> None:
    paths = [path for folder in ("shared/rightsizer", "functions", "bench") for path in (ROOT / folder).rglob("*.py")]
    found = {(path.name, name) for path in paths for name in replaced(path)}
    assert {name for _, name in found} >= SETTINGS | {"risk_apply"}, "the search finds what is there"
    assert [one for one in sorted(found) if one[1] not in SETTINGS | BY_ENVIRONMENT | BY_QUESTION] == []


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_each_setting_is_one_key_of_limits_and_is_documented(name: str) -> None:
    key = KEYS.get(name, name)
    given = {"dimensions": "[]", "lookback_days": "21", "minimum_saving_usd": "7", "tests_per_month": "0"}[key]
    known = from_environment({"RIGHTSIZER_LIMITS": f'{{"{key}": {given}}}'})
    assert known.misread == ()
    assert getattr(policy_of(known), name) != getattr(Policy(), name)
    assert f"`{key}`" in (ROOT / "docs" / "policy.md").read_text()
