"""Checks requests against botocore's shapes, as the service does and botocore on the client does not.

botocore validates types, required members and minima only. The services also refuse maxima, patterns and enum values
that their model names, with ``1 validation error detected: Value '...' at '...' failed to satisfy constraint: ...``.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, Shape

from sandbox.refusals import AwsRefusal


@cache
def operation(service: str, name: str) -> OperationModel:
    """The model of an operation in the installed botocore."""
    return botocore.session.get_session().get_service_model(service).operation_model(name)


@cache
def enum(service: str, shape: str) -> frozenset[str]:
    """The values of an enum shape, such as ProductionVariantInstanceType."""
    values = botocore.session.get_session().get_service_model(service).shape_for(shape).enum  # type: ignore[attr-defined]
    return frozenset(values)


def check(service: str, name: str, params: dict[str, Any], code: str = "ValidationException") -> None:
    """Refuse parameters that the operation's input shape forbids."""
    shape = operation(service, name).input_shape
    if shape is None:
        return
    errors = list(_errors(shape, params, ""))
    if errors:
        noun = "error" if len(errors) == 1 else "errors"
        raise AwsRefusal(code, f"{len(errors)} validation {noun} detected: {'; '.join(errors)}")


def _errors(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if not _has_limits(shape):
        return
    match shape.type_name:
        case "structure":
            yield from _structure_errors(shape, value, path)
        case "list":
            yield from _size_errors(shape, len(value), value, path, "length")
            for index, item in enumerate(value, start=1):
                yield from _errors(shape.member, item, f"{path}.{index}.member")  # type: ignore[attr-defined]
        case "map":
            for key, item in value.items():
                yield from _errors(shape.value, item, f"{path}.{key}")  # type: ignore[attr-defined]
        case "string":
            yield from _string_errors(shape, str(value), path)
        case "integer" | "long" | "float" | "double":
            yield from _size_errors(shape, value, value, path, "value")


@cache
def _has_limits(shape: Shape) -> bool:
    """Whether a model limits anything of a shape; a value of a table, which is in most requests, has no limit."""
    seen, left = set(), [shape]
    while left:
        one: Any = left.pop()
        if any(one.metadata.get(limit) is not None for limit in ("min", "max", "pattern", "enum", "required")):
            return True
        seen.add(one.name)
        parts = (*getattr(one, "members", {}).values(), getattr(one, "member", None), getattr(one, "value", None))
        left += [part for part in parts if part is not None and part.name not in seen]
    return False


def _structure_errors(shape: Shape, value: dict[str, Any], path: str) -> Iterator[str]:
    members = shape.members  # type: ignore[attr-defined]
    for name in shape.required_members:
        if value.get(name) is None:
            yield _error("null", _join(path, name), "Member must not be null")
    for name, item in value.items():
        if name in members and item is not None:
            yield from _errors(members[name], item, _join(path, name))


def _string_errors(shape: Shape, value: str, path: str) -> Iterator[str]:
    allowed = getattr(shape, "enum", None)
    if allowed and value not in allowed:
        yield _error(value, path, f"Member must satisfy enum value set: [{', '.join(allowed)}]")
    yield from _size_errors(shape, len(value), value, path, "length")
    pattern = shape.metadata.get("pattern")
    if pattern and not _matches(pattern, value):
        yield _error(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(_java(pattern), value, re.DOTALL) is not None
    except re.error:  # a pattern in a dialect that Python does not speak (POSIX classes) cannot be checked
        return True


@cache
def _java(pattern: str) -> str:
    """A pattern of Java's dialect as far as Python has the same classes; what is left is not checked."""
    for theirs, ours in _CLASSES:
        pattern = pattern.replace(theirs, ours)
    return pattern


_CLASSES = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", "\U00010000-\U0010ffff"),
    (r"\p{Print}", r"[\x20-\x7e]"),
    (r"\p{L}", r"\w"),
    (r"\p{N}", r"\d"),
    (r"\p{Z}", r"\s"),
)


def _size_errors(shape: Shape, size: float, value: Any, path: str, what: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield _error(value, path, f"Member must have {what} greater than or equal to {low}")
    if high is not None and size > high:
        yield _error(value, path, f"Member must have {what} less than or equal to {high}")


def _error(value: Any, path: str, constraint: str) -> str:
    return f"Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"


def _join(path: str, name: str) -> str:
    name = name[:1].lower() + name[1:]
    return f"{path}.{name}" if path else name
