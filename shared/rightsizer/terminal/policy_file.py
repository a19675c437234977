"""Read the policy document from a file or from standard input, as YAML or JSON."""

import json
import math
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml

from rightsizer.errors import InputError


def read_file(name: str) -> str:
    """The document of a file as compact JSON. InputError names the file and the line that is wrong."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"reading the policy document {name}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"reading the policy document {name}: it is no text in UTF-8 ({error.reason}); save it so"
        ) from None
    if name.endswith(".json"):
        return text  # as it is: a key that is given twice shall be seen
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)
        return json.dumps({} if found is None else found, separators=(",", ":"), default=_day, ensure_ascii=False)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"reading the policy document {name}: {_where(error)}") from None


class _Loader(yaml.SafeLoader):
    """YAML without aliases, which can make a small file huge, and without keys that are given twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read; write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            first, second, *_ = (key.start_mark.line + 1 for key, _ in node.value if key.value == twice)
            raise yaml.YAMLError(f"line {second}: {twice} is given twice, first in line {first}; keep one of them")
        return dict(super().construct_mapping(node, deep))

    def construct_yaml_float(self, node: Any) -> Any:
        """A number; what is none of JSON stays a text, which the reader of its key then names with its place."""
        found = super().construct_yaml_float(node)
        return found if math.isfinite(found) else node.value


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def _where(error: Exception) -> str:
    """What is wrong with the YAML, and its line and column."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(str(error).split())[:300]
    if "'\\t'" in str(error.problem):
        return f"line {mark.line + 1}, column {mark.column + 1}: YAML is indented by spaces, and this is a tab"
    return f"line {mark.line + 1}, column {mark.column + 1}: {' '.join(str(error.problem).split())[:240]}"


def _day(value: Any) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} is no value of JSON; write it in quotes")
