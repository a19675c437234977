"""The reduced form of `make faults`: a few kill points of each kind; the whole is run by `make faults`."""

import pytest

from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.faults.courses import COURSES, Course
from tests.faults.drive import DELIVERIES, runs

BY_NAME = {course.name: course for course in COURSES}


def laws_hold(*found: object, ended: str = "") -> None:
    violations = {row.name: row.violations for row in found if row.violations}  # type: ignore[attr-defined]
    assert violations == {}
    if ended:
        assert {row.ended for row in found} == {ended}  # type: ignore[attr-defined]


def test_a_plain_change_killed_after_a_write_ends_as_the_laws_say() -> None:
    rows = runs(scenarios.PLAIN, BY_NAME["success"], every=9)
    assert len(rows) > 3
    laws_hold(*rows, ended="proven")


def test_an_alarm_and_a_death_end_old() -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["alarm"], every=12), ended="rolled-back")


def test_autoscaling_is_kept_when_a_deployment_fails() -> None:
    laws_hold(*runs(scenarios.AUTOSCALED, BY_NAME["health check"], every=20), ended="rolled-back")


def test_a_lack_of_capacity_and_a_death_end_new_by_the_next_try() -> None:
    laws_hold(*runs(scenarios.POOLS, BY_NAME["capacity"], every=25), ended="proven")


def test_two_invocations_never_both_act() -> None:
    laws_hold(*runs(scenarios.COUNT, BY_NAME["success"], every=25, concurrent=True), ended="proven")


@pytest.mark.slow
@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda d: d.name)
def test_events_in_any_shape_end_the_same(delivery: object) -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["success"], delivery, every=15), ended="proven")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("course", COURSES, ids=lambda c: c.name)
@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda s: s.name)
def test_every_scenario_with_every_ending_keeps_the_laws(scenario: Scenario, course: Course) -> None:
    if course.deploys and not scenario.deploys:
        pytest.skip("nothing is deployed in this scenario")
    laws_hold(*runs(scenario, course, every=10_000))
