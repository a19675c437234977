"""The one serialiser: nouns to JSON and back, by pydantic over the plain dataclasses.

Decimals travel as strings, times as ISO 8601, enums as their values. Extra keys are ignored, so that an older program
reads what a newer one wrote; a missing or malformed field is an InputError that names the path.

What is kept between releases goes through `dump_stored` and `load_stored`: it carries a schema number, and a noun
with a field
``unknown`` takes along what a newer program wrote (docs/decisions/0056-rows-outlive-releases.md).
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rightsizer.domain.checks import SCHEMA, newer_than_known
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError, UnreadableError

UNKNOWN = "unknown"
"""The field of a noun that holds what a newer program stored and this one does not know; it is never stored itself."""

RENAMED: Mapping[str, Mapping[str, str]] = {"Change": {"said_at": "approval_given_at"}}
"""Of each noun, the fields that have another name now, by the name under which rows may still hold them."""

_PARTS = (dict, list)
"""What JSON is read into that may hold something beyond the noun."""
_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(noun: Any) -> TypeAdapter[Any]:
    if noun not in _adapters:
        _adapters[noun] = TypeAdapter(noun)
    return _adapters[noun]


def dumps(value: object, noun: Any = None, left_out: Mapping[str, Any] | None = None) -> str:
    """JSON text of a noun. `left_out` names fields that stay out, as pydantic's `exclude` does."""
    exclude: Any = {**dict.fromkeys(_unset_fields(value) or (), True), **(left_out or {})}
    return _adapter(noun or type(value)).dump_json(value, exclude=exclude or None).decode()


def plain(value: object, noun: Any = None) -> Any:
    """The noun as plain JSON values (dicts, lists, strings, numbers)."""
    return _adapter(noun or type(value)).dump_python(value, mode="json", exclude=_unset_fields(value))


def loads[T](noun: type[T], text: str | bytes) -> T:
    """A noun from JSON text; InputError names the path of the first thing wrong."""
    try:
        result: T = _adapter(noun).validate_json(text)
    except ValidationError as error:
        raise InputError(f"reading a {noun.__name__}: {_first_error(error)}") from None
    return result


def revive[T](noun: type[T], value: Any) -> T:
    """A noun from plain JSON values; InputError names the path of the first thing wrong."""
    return loads(noun, json.dumps(value))


def dump_stored(value: Any) -> str:
    """JSON text of a noun to be kept: its schema number, its fields, and the unknown fields that it carries."""
    return _with_schema_number(value, getattr(value, UNKNOWN, {}))


def dump_rewritten(value: Any, text: str | bytes) -> str:
    """`dump_stored`, with what the document that it replaces holds beyond the noun; nothing of one that cannot be
    read.
    """
    try:
        before = load_stored(type(value), text)
    except UnreadableError:
        return dump_stored(value)
    return _with_schema_number(value, _unknown_parts(before, _body(_with_new_names(type(value), json.loads(text)))))


def load_stored[T](noun: type[T], text: str | bytes) -> T:
    """A noun as `dump_stored` wrote it, in this release or another one; UnreadableError says what is wrong with it."""
    try:
        raw = json.loads(text)
        if newer := newer_than_known(raw):
            raise UnreadableError(f"reading a {noun.__name__}: {newer}")
        named = _with_new_names(noun, raw)
        value = loads(noun, text) if named is raw else revive(noun, named)
    except UnreadableError:
        raise
    except InputError as error:
        raise UnreadableError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"reading a {noun.__name__}: it holds no JSON: {error!s:.100}") from error
    return _with_unknown_fields(value, named)


def _with_new_names(noun: type, raw: Any) -> Any:
    """The stored JSON with each field under its present name; itself where no field has an old one."""
    names = RENAMED.get(noun.__name__, {})
    if not isinstance(raw, dict) or not names.keys() & raw.keys():
        return raw
    return {names[key]: raw[key] for key in names.keys() & raw.keys()} | {
        k: v for k, v in raw.items() if k not in names
    }


def _with_schema_number(value: Any, kept: Any) -> str:
    """JSON text with the schema number first; without anything to carry it costs no second pass."""
    text = dumps(value)
    if kept:
        text = json.dumps(_put_back(json.loads(text), kept), separators=(",", ":"), ensure_ascii=False)
    return f'{{"schema":{SCHEMA},{text[1:]}'


def _unset_fields(value: object) -> set[str] | None:
    return {UNKNOWN} if hasattr(value, UNKNOWN) else None


def _with_unknown_fields[T](value: T, raw: Any) -> T:
    """The noun with the fields that only the stored JSON has, where it can carry them."""
    if not is_dataclass(value) or isinstance(value, type) or not hasattr(value, UNKNOWN):
        return value
    kept = _unknown_parts(value, _body(raw))
    carrying: T = replace(value, **{UNKNOWN: kept or {}})
    return carrying


def _body(raw: Any) -> Any:
    return {key: found for key, found in raw.items() if key not in ("schema", UNKNOWN)}


def _unknown_parts(value: Any, raw: Any) -> Any:
    """What `raw` holds beyond the noun that was read from it: None for nothing, else for `_put_back` to put back.

    A mapping of fields for an object; for a list, pairs of an element's known value and what it holds beyond.
    """
    if isinstance(raw, dict) and is_dataclass(value):
        noun: Any = type(value)
        ours = _known_fields(noun)
        found = {key: {"is": one} for key, one in raw.items() if key not in ours}
        nested = [(key, one) for key, one in raw.items() if one and isinstance(one, _PARTS) and key in ours]
        deeper = {key: _unknown_parts(getattr(value, key), one) for key, one in nested}
        return found | {key: {"in": one} for key, one in deeper.items() if one}
    if isinstance(raw, dict) and isinstance(value, Mapping):
        if raw == value:  # as a rule it is a document of AWS, which a field keeps as it came
            return None
        deeper = {key: _unknown_parts(value[key], one) for key, one in raw.items() if key in value}
        return {key: {"in": one} for key, one in deeper.items() if one}
    if isinstance(raw, list) and isinstance(value, tuple | list) and len(value) == len(raw):
        both = [(one, text) for one, text in zip(value, raw, strict=True) if isinstance(text, _PARTS)]
        pairs = [(one, _unknown_parts(one, text)) for one, text in both]
        return [[json.loads(dumps(one)), kept] for one, kept in pairs if kept]
    return None


@cache
def _known_fields(noun: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(noun)) - {UNKNOWN}


def _put_back(known: Any, kept: Any) -> Any:
    """The plain value with what it held beyond; what belonged to a part that is gone goes with it."""
    if isinstance(known, dict) and isinstance(kept, Mapping):
        added = {
            key: one["is"] for key, one in kept.items() if "is" in one and key not in known and not key.startswith("@")
        }
        return {key: _put_back(one, kept.get(key, {}).get("in")) for key, one in known.items()} | added
    if isinstance(known, list) and isinstance(kept, list):
        return [next((_put_back(one, more) for was, more in kept if was == one), one) for one in known]
    return known


def _first_error(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    path = ".".join(one_line(str(part), 60) for part in problem["loc"][:12])
    more = len(error.errors()) - 1
    novel = problem["type"] == "enum"  # the message would list every value that there is
    text = f"{str(problem['input'])[:40]!r} is no value that this release knows" if novel else problem["msg"]
    return f"{path or 'the value'}: {one_line(text, 300)}" + (f" (and {more} more)" if more else "")
