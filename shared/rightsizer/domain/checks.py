"""Checks that nouns make of their own fields, so that nonsense is refused where it enters.

The schema number says which stored documents this release may act on. No pydantic: `respond` uses it too.
"""

import math
from datetime import datetime
from decimal import Decimal

from rightsizer.errors import InputError

SCHEMA = 1
"""The number of most documents that this release writes. One without a number is 1.

A new field with a default needs no new number. A document that an older release must not act on has a higher one.
"""
SCHEMA_TEST_FIRST = 2
"""The number of a proposal that was decided as "test first": an older release would make the change without the test.

It is the highest number that this release reads.
"""


def finite(name: str, value: float) -> float:
    """`value` itself, if it is a real number; InputError for NaN and infinities."""
    if not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, not {value!r}")
    return value


def not_negative(name: str, value: float) -> float:
    """`value` itself, if it is finite and at least zero."""
    if finite(name, value) < 0:
        raise InputError(f"{name} must not be negative, got {value!r}")
    return value


def money(name: str, value: Decimal) -> Decimal:
    """`value` itself, if it is a finite amount of US dollars (negative allowed: a saving may be a loss)."""
    if not value.is_finite():
        raise InputError(f"{name} must be an amount of money, not {value!r}")
    return value


def aware(name: str, value: datetime) -> datetime:
    """`value` itself, if it carries a time zone."""
    if value.tzinfo is None:
        raise InputError(f"{name} must carry a time zone, got {value.isoformat()}")
    return value


def not_empty(name: str, value: str) -> str:
    """`value` itself, if it is not empty."""
    if not value:
        raise InputError(f"{name} must not be empty")
    return value


def newer_than_known(document: object) -> str:
    """Why this release must not act on a stored document; empty when it may."""
    number = document.get("schema", SCHEMA) if isinstance(document, dict) else SCHEMA
    if isinstance(number, int) and number <= SCHEMA_TEST_FIRST:
        return ""
    return (
        f"its schema number is {number!s:.20} and this release knows numbers up to {SCHEMA_TEST_FIRST}; deploy the"
        " release that wrote it, or a later one"
    )
