"""Rows that hold a noun as their document, read and written again with what this release does not know."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rightsizer import wire
from rightsizer.aws.table import Row, beyond, read_row, text, whole

BESIDE = "@row"
"""Among the unknown fields of a noun: attributes of its row that this program does not write."""


def noun_of[T](noun: type[T], row: Row) -> T:
    """The noun of the row's document; UnreadableError when there is none, or this release cannot read it."""
    return read_row(row, lambda found: wire.restored(noun, text(found, "doc")))


def versioned[T](noun: type[T], row: Row, ours: Iterable[str]) -> T:
    """The noun with the row's version, and with the attributes that are not `ours` among its unknown fields.

    The noun is a dataclass with the fields `version` and `unknown`. The row's version counts: a decision raises it
    without touching the document's.
    """
    found: Any = noun_of(noun, row)
    added = beyond(row, ours)
    unknown = {**found.unknown, BESIDE: {"is": added}} if added else found.unknown
    made: T = replace(found, version=whole(row, "version"), unknown=unknown)
    return made


def beside(noun: Any) -> Row:
    """The attributes that the row of a `versioned` noun had beside ours."""
    added: Row = noun.unknown.get(BESIDE, {}).get("is", {})
    return added
