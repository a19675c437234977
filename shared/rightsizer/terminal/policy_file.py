"""Read the policy document from a file or from standard input, as YAML or JSON."""

import json
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
        raise InputError(f"reading the policy document {name}: {' '.join(str(error).split())[:300]}") from None


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


def _day(value: Any) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} is no value of JSON; write it in quotes")
