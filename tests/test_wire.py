"""Nouns travel as JSON and come back equal."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from rightsizer import wire
from rightsizer.domain.change import Change, Entry
from rightsizer.domain.checks import SCHEMA, SCHEMA_TEST_FIRST
from rightsizer.domain.option import Option, Risk, RiskResource
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.policy import Switch
from rightsizer.errors import InputError, UnreadableError
from tests import samples

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


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CHANGE = samples.change(BEGAN, journal=(Entry(BEGAN, "a", "done"),))


def newer(**fields: Any) -> str:
    """The change as a newer program stores it."""
    return json.dumps(json.loads(wire.dump_stored(CHANGE)) | fields)


def test_what_is_stored_has_a_number_and_comes_back() -> None:
    assert json.loads(wire.dump_stored(CHANGE))["schema"] == SCHEMA
    assert wire.load_stored(Change, wire.dump_stored(CHANGE)) == CHANGE
    assert wire.load_stored(Change, wire.dumps(CHANGE)) == CHANGE, "as the first release wrote it, without a number"


def test_unknown_fields_come_back_with_what_they_belong_to_and_go_with_it() -> None:
    line = {"at": "2026-01-01T00:00:00Z", "step": "a", "status": "done", "detail": "", "novel": 1}
    read = wire.load_stored(Change, newer(novel=[1], journal=[line]))
    assert read.journal == CHANGE.journal
    longer = replace(read, journal=(*read.journal, Entry(CHANGE.created_at, "b", "noted")))
    again = json.loads(wire.dump_stored(longer))
    assert (again["novel"], again["journal"][0]["novel"], "novel" in again["journal"][1]) == ([1], 1, False)
    gone = json.loads(wire.dump_stored(replace(read, journal=())))
    assert (gone["novel"], gone["journal"]) == ([1], [])


def test_a_document_that_is_replaced_leaves_what_only_a_newer_program_knows() -> None:
    old = json.dumps(json.loads(wire.dump_stored(Switch(True, by="ada"))) | {"scope": "training"})
    assert json.loads(wire.dump_rewritten(Switch(False, by="bob"), old)) == {
        "schema": SCHEMA, "frozen": False, "hard": False, "by": "bob", "at": None, "scope": "training"
    }  # fmt: skip
    assert json.loads(wire.dump_rewritten(Switch(True), "no JSON"))["frozen"] is True


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            newer(schema=SCHEMA_TEST_FIRST + 1),
            "its schema number is 3 and this release knows numbers up to 2; deploy the",
        ),
        (newer(schema="later"), "its schema number is later"),
        (newer(state="paused"), "reading a Change: state: 'paused' is no value that this release knows"),
        (newer(created_at="2026-01-01T00:00:00"), "created_at"),
        ("", "it holds no JSON"),
        ("[]", "reading a Change"),
        ("[" * 100_000, "it holds no JSON"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, cause: str) -> None:
    with pytest.raises(UnreadableError, match=cause):
        wire.load_stored(Change, text)


def test_risks_are_stored_by_the_values_of_their_resources_and_read_as_such() -> None:
    option = samples.option(risks={resource: Risk.LOW for resource in RiskResource})
    text = wire.dump_stored(option)
    assert json.loads(text)["risks"] == {
        "gpu-memory": 1,
        "host-memory": 1,
        "vcpu": 1,
        "latency": 1,
        "capacity": 1,
        "availability": 1,
        "compilation": 1,
    }
    read = wire.load_stored(Option, text)
    assert read == option
    assert [type(resource) for resource in read.risks] == [RiskResource] * 7


def test_a_field_under_its_old_name_is_read_and_stored_under_the_new_one() -> None:
    given = datetime(2026, 11, 20, 6, 20, tzinfo=UTC)
    change = samples.change(given, approval_given_at=given)
    row = json.loads(wire.dump_stored(change))
    row["said_at"] = row.pop("approval_given_at")
    old = json.dumps(row)
    assert wire.load_stored(Change, old) == change
    for text in (wire.dump_stored(wire.load_stored(Change, old)), wire.dump_rewritten(change, old)):
        assert json.loads(text)["approval_given_at"] == "2026-11-20T06:20:00Z"
        assert "said_at" not in json.loads(text)
