"""The one serialiser: nouns to JSON and back, by pydantic over the plain dataclasses.

Decimals travel as strings, times as ISO 8601, enums as their values. Extra keys are ignored, so that an older program
reads what a newer one wrote; a missing or malformed field is an InputError that names the path.
"""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rightsizer.errors import InputError
from rightsizer.model.cleaned import one_line

_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(noun: Any) -> TypeAdapter[Any]:
    if noun not in _adapters:
        _adapters[noun] = TypeAdapter(noun)
    return _adapters[noun]


def dumps(value: object, noun: Any = None) -> str:
    """JSON text of a noun."""
    return _adapter(noun or type(value)).dump_json(value).decode()


def plain(value: object, noun: Any = None) -> Any:
    """The noun as plain JSON values (dicts, lists, strings, numbers)."""
    return _adapter(noun or type(value)).dump_python(value, mode="json")


def loads[T](noun: type[T], text: str | bytes) -> T:
    """A noun from JSON text; InputError names the path of the first thing wrong."""
    try:
        result: T = _adapter(noun).validate_json(text)
    except ValidationError as error:
        raise InputError(f"reading a {noun.__name__}: {_first(error)}") from None
    return result


def revive[T](noun: type[T], value: Any) -> T:
    """A noun from plain JSON values; InputError names the path of the first thing wrong."""
    return loads(noun, json.dumps(value))


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(one_line(str(part), 60) for part in problem["loc"][:12])
    more = len(error.errors()) - 1
    return f"{path or 'the value'}: {one_line(problem['msg'], 300)}" + (f" (and {more} more)" if more else "")
