"""What IAM statements allow: one action on one resource in one context (IAM policy evaluation)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True)
class Ask:
    """One action on one resource, with the context keys that conditions may test."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def allowed(statements: Iterable[Mapping[str, Any]], ask: Ask) -> bool:
    """Whether a statement allows it, and none denies it."""
    effects = {s["Effect"] for s in statements if _is_about(s, ask)}
    return "Allow" in effects and "Deny" not in effects


def _is_about(statement: Mapping[str, Any], ask: Ask) -> bool:
    return (
        ask.action in _listed(statement["Action"])
        and any(fnmatchcase(ask.resource, pattern) for pattern in _listed(statement["Resource"]))
        and _holds(statement.get("Condition", {}), ask.context)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _holds(condition: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    """Every operator of a condition, on every key of it (IAM policy evaluation)."""
    return all(
        _OPERATORS[operator](context.get(key), [str(v) for v in _listed(wanted)])
        for operator, tests in condition.items()
        for key, wanted in tests.items()
    )


_OPERATORS: Mapping[str, Callable[[str | None, list[str]], bool]] = {
    "StringEquals": lambda value, wanted: value in wanted,
    "StringEqualsIfExists": lambda value, wanted: value is None or value in wanted,
    "StringLike": lambda value, wanted: value is not None and any(fnmatchcase(value, w) for w in wanted),
    "ForAllValues:StringLike": lambda value, wanted: value is None or any(fnmatchcase(value, w) for w in wanted),
    "ArnLike": lambda value, wanted: value is not None and any(fnmatchcase(value, w) for w in wanted),
    "Null": lambda value, wanted: (value is None) == (wanted == ["true"]),
    "Bool": lambda value, wanted: value in wanted,
}
