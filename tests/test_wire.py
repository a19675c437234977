"""Nouns travel as JSON and come back equal."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from rightsizer import wire
from rightsizer.errors import InputError
from rightsizer.model.outcome import LedgerEntry

ENTRY = LedgerEntry(
    "e1", "bert", "c1", "team", datetime(2026, 1, 1, tzinfo=UTC), "estimated", Decimal("12.50"), 730, False, ""
)


def test_a_noun_survives_the_round_trip() -> None:
    assert wire.loads(LedgerEntry, wire.dumps(ENTRY)) == ENTRY


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InputError, match="usd"):
        wire.loads(LedgerEntry, wire.dumps(ENTRY).replace('"usd"', '"usx"'))


def test_an_unknown_field_of_a_newer_program_is_ignored() -> None:
    assert wire.revive(LedgerEntry, {**wire.plain(ENTRY), "novel": 1}) == ENTRY
