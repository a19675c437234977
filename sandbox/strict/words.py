"""Predicates that several tables use. Each takes a request and is true where AWS refuses it."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

type Params = Mapping[str, Any]
type Broken = Callable[[Params], object]


def together(one: str, *others: str) -> Broken:
    """`one` is given, and one of the others too. An empty value is given as well."""
    return lambda p: one in p and any(other in p for other in others)


def alone(one: str, *allowed: str) -> Broken:
    """`one` is given with anything but `allowed`."""
    return lambda p: one in p and set(p) - {one, *allowed}


def not_exactly_one(*names: str) -> Broken:
    """None of the members, or several, are given."""
    return lambda p: sum(name in p for name in names) != 1


def longer(name: str, most: int) -> Broken:
    """A list, map or text has more than `most` members or characters."""
    return lambda p: len(p.get(name) or ()) > most


def outside(name: str, low: float, high: float) -> Broken:
    """A number is given and not between both, which are allowed."""
    return lambda p: name in p and not low <= p[name] <= high


def other_than(name: str, *values: object) -> Broken:
    """The member is given and none of the values."""
    return lambda p: name in p and p[name] not in values


def twice(rows: Sequence[Any]) -> bool:
    """Whether something is in the list more than once."""
    return len({str(row) for row in rows}) < len(rows)


def same_tag_twice(p: Params) -> bool:
    """Whether a tag key is given twice."""
    return twice([tag["Key"] for tag in p.get("Tags") or []])


def dimensions_of(metrics: Sequence[Params]) -> list[Params]:
    """The dimensions of several metrics."""
    return [d for metric in metrics for d in metric.get("Dimensions") or []]


def odd_dimension(dimension: Params) -> bool:
    """CloudWatch's rule for dimensions: printable ASCII, not blank, names without a leading colon."""
    texts = (dimension["Name"], dimension.get("Value", "x"))
    return dimension["Name"].startswith(":") or any(not re.fullmatch(r"[ -~]*[!-~][ -~]*", text) for text in texts)
