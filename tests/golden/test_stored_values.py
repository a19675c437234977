"""The values of enumerations that rows hold: earlier releases wrote them as text, and that text is read and written."""

import json
from datetime import UTC, datetime
from enum import StrEnum

import pytest

from rightsizer import wire
from rightsizer.domain.change import Entry, JournalEvent
from rightsizer.domain.history import PastEnd
from rightsizer.domain.plan import Plan, PlanKind

STORED: dict[type[StrEnum], frozenset[str]] = {
    PlanKind: frozenset({"change", "shadow-test", "delete"}),
    JournalEvent: frozenset(
        [
            "plan",
            "preflight",
            "wait",
            "look",
            "moved",
            "steer",
            "applied",
            "finish",
            "left",
            "again",
            "ask-back",
            "ask-test",
            "way-back",
            "owner-edits",
            "met",
            "schedule",
            "images",
            "judgement",
            "incident",
            "incident-over",
            "end",
        ]
    )
    | {"turn back"},
    PastEnd: frozenset(
        {"proven", "applied", "rolled-back", "update-failed", "handed-over", "tested", "running"},
    ),
}


@pytest.mark.parametrize("kind", STORED)
def test_the_values_are_the_texts_that_earlier_releases_stored(kind: type[StrEnum]) -> None:
    assert {one.value for one in kind} == STORED[kind]


@pytest.mark.parametrize("kind", PlanKind)
def test_the_kind_of_a_stored_plan_is_read_as_a_member_and_written_as_its_text(kind: PlanKind) -> None:
    plan = wire.revive(Plan, {"kind": kind.value})
    assert plan.kind is kind
    assert wire.plain(plan)["kind"] == kind.value


@pytest.mark.parametrize("event", JournalEvent)
def test_the_name_of_a_decision_is_stored_as_its_text_and_compares_with_the_text_that_is_read(
    event: JournalEvent,
) -> None:
    entry = Entry(datetime(2026, 11, 1, tzinfo=UTC), event, "noted")
    text = wire.dumps(entry)
    assert json.loads(text)["step"] == event.value
    assert wire.plain(entry)["step"] == event.value
    assert wire.loads(Entry, text).step == event
