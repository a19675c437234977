"""The values of enumerations that rows hold: earlier releases wrote them as text, and that text is read and written."""

from enum import StrEnum

import pytest

from rightsizer import wire
from rightsizer.domain.history import PastEnd
from rightsizer.domain.plan import Plan, PlanKind

STORED: dict[type[StrEnum], frozenset[str]] = {
    PlanKind: frozenset({"change", "shadow-test", "delete"}),
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
