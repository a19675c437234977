"""Deletion: two steps, of which the program takes the first, and why an endpoint that is used is not deleted."""

from dataclasses import replace

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.delete import Delete
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.reason import Code
from tests.changes.test_preflight import preflight_input, proposed
from tests.dimensions.kit import TYPE, judged, planned, said, why
from tests.recommender import kit

GONE = Target(TYPE, 0)


def test_nothing_is_written_and_the_file_that_brings_it_back_is_there() -> None:
    found = planned(Delete(), GONE)
    assert isinstance(found, PlannedChange)
    assert found.plan.kind is PlanKind.DELETE
    assert (found.plan.prepare, found.plan.settle, found.plan.turn) == ((), (), None)
    assert any("create-endpoint " in line for line in found.plan.restore_file)


def test_waiting_proves_nothing_where_no_invocations_are_published() -> None:
    assert planned(Delete(), GONE, proposal=proposed(kind=EndpointKind.ASYNC)) is Code.OTHER_KIND
    several = proposed(kind=EndpointKind.MULTI_VARIANT)
    assert isinstance(planned(Delete(), GONE, proposal=several), PlannedChange)
    queue = replace(preflight_input().endpoint, asynchronous=True)
    assert planned(Delete(), GONE, proposal=several, endpoint=queue) is Code.OTHER_KIND, "several variants and a queue"


def test_an_endpoint_that_is_used_says_so() -> None:
    found = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady()))
    assert "it is used (" in why(found, OptionKind.DELETE)


def test_it_says_that_it_is_created_anew() -> None:
    assert said(Delete()) == ("be deleted by its owner", "creates it anew from its kept configuration")
