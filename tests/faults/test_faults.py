"""The reduced form of `make faults`: a few kill points of each kind; the whole is run by `make faults`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.faults.courses import COURSES, Course
from tests.faults.drive import (
    DELIVERIES,
    FROZEN,
    FROZEN_HARD,
    READS,
    SECOND,
    Disturbance,
    every_point,
    runs,
    scenario_world,
)

BY_NAME = {course.name: course for course in COURSES}


def laws_hold_at_points(*found: object, ended: str = "") -> None:
    """The laws hold in the whole run and in at least one copy that met its fault."""
    assert len(found) > 1
    laws_hold(*found, ended=ended)


def laws_hold(*found: object, ended: str = "") -> None:
    violations = {row.name: row.violations for row in found if row.violations}  # type: ignore[attr-defined]
    assert violations == {}
    if ended:
        assert {row.ended for row in found} == {ended}  # type: ignore[attr-defined]


def test_a_plain_change_killed_after_a_write_ends_as_the_laws_say() -> None:
    rows = runs(scenarios.PLAIN, BY_NAME["success"], every=12)
    assert len(rows) > 2
    laws_hold(*rows, ended="proven")


def test_an_alarm_and_a_death_end_old() -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["alarm"], every=12), ended="rolled-back")


def test_autoscaling_is_kept_when_a_deployment_fails() -> None:
    laws_hold(*runs(scenarios.AUTOSCALED, BY_NAME["health check"], every=20), ended="rolled-back")


def test_a_lack_of_capacity_and_a_death_end_new_by_the_next_try() -> None:
    laws_hold(*runs(scenarios.POOLS, BY_NAME["capacity"], every=25), ended="proven")


def test_two_invocations_never_both_act() -> None:
    laws_hold(*runs(scenarios.COUNT, BY_NAME["success"], every=25, disturbance=SECOND), ended="proven")


@every_point(120, in_grid=40)
def test_a_death_after_a_read_leaves_what_the_death_after_the_write_before_left(every: int) -> None:
    laws_hold_at_points(*runs(scenarios.PLAIN, BY_NAME["success"], every=every, disturbance=READS), ended="proven")


def test_a_release_after_the_end_is_left_alone_by_a_late_order() -> None:
    laws_hold(*runs(scenarios.AUTOSCALED, BY_NAME["released, then an order under way"], every=40), ended="handed-over")


def test_an_update_of_which_the_answer_is_lost_and_that_is_rolled_back_is_not_deployed_again() -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["answer lost, then an alarm"], every=20), ended="rolled-back")


def test_a_further_try_that_is_refused_ends_beside_the_lock_of_another_change() -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["a further try refused"], every=20), ended="rolled-back")


def test_a_scale_in_policy_killed_after_a_write_ends_as_the_laws_say() -> None:
    laws_hold(*runs(scenarios.SCALE_IN, BY_NAME["success"], every=20), ended="proven")


def test_a_placement_of_which_the_second_roll_fails_ends_old() -> None:
    laws_hold(*runs(scenarios.PLACEMENT, BY_NAME["component timeout"], every=12), ended="rolled-back")


@pytest.mark.parametrize(("course", "ended"), [("success", "proven"), ("asked back", "rolled-back")])
def test_target_tracking_killed_after_a_write_is_there_whole_or_not_at_all(course: str, ended: str) -> None:
    laws_hold_at_points(*runs(scenarios.TRACKED, BY_NAME[course], every=7), ended=ended)


@pytest.mark.parametrize("course", ["image pushed meanwhile", "image pushed, then asked back"])
def test_a_tag_that_moves_under_a_change_and_a_death_end_old(course: str) -> None:
    laws_hold(*runs(scenarios.TAGGED, BY_NAME[course], every=30), ended="rolled-back")


FREEZES = pytest.mark.parametrize("freeze", [FROZEN, FROZEN_HARD], ids=lambda d: d.name)


@FREEZES
@every_point(24, in_grid=16)
def test_a_freeze_in_the_middle_stops_what_goes_forward(freeze: Disturbance, every: int) -> None:
    laws_hold_at_points(*runs(scenarios.AUTOSCALED, BY_NAME["success"], every=every, disturbance=freeze))


def in_grid(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.grid)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "freeze", "every"),
    [
        (scenarios.COUNT, FROZEN_HARD, 11),
        (scenarios.BOUNDS, FROZEN, 11),
        (scenarios.SHADOW, FROZEN_HARD, 11),
        (scenarios.COMPONENTS, FROZEN, 11),
        *(
            in_grid(scenario, freeze, 7)
            for scenario in (scenarios.COUNT, scenarios.BOUNDS, scenarios.SHADOW, scenarios.COMPONENTS)
            for freeze in (FROZEN, FROZEN_HARD)
        ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_freeze_stops_each_kind_of_change(scenario: Scenario, freeze: Disturbance, every: int) -> None:
    laws_hold_at_points(*runs(scenario, BY_NAME["success"], every=every, disturbance=freeze))


@pytest.mark.slow
@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda d: d.name)
def test_events_in_any_shape_end_the_same(delivery: object) -> None:
    laws_hold(*runs(scenarios.PLAIN, BY_NAME["success"], delivery, every=15), ended="proven")  # type: ignore[arg-type]


def _pairs() -> Iterator[tuple[Scenario, Course]]:
    """Each ending once, in the scenario that had the fewest so far; `make faults` has all pairs, with kill points."""
    had = Counter[str]()
    for course in COURSES:
        scenario = min((one for one in scenarios.ALL if course.suits(one)), key=lambda one: had[one.name])
        had[scenario.name] += 1
        yield scenario, course


PAIRS = tuple(_pairs())


@pytest.mark.parametrize(("scenario", "course"), PAIRS, ids=lambda one: one.name)
def test_each_ending_keeps_the_laws_in_a_scenario_of_its_own(scenario: Scenario, course: Course) -> None:
    laws_hold(*runs(scenario, course, every=10_000))


def test_no_scenario_and_no_ending_is_left_out_of_the_pairs() -> None:
    assert {scenario.name for scenario, _ in PAIRS} == {scenario.name for scenario in scenarios.ALL}
    assert [course for _, course in PAIRS] == list(COURSES)


def test_the_schedule_in_the_middle_fires_while_the_targets_are_deregistered() -> None:
    with scenario_world(scenarios.SCHEDULED) as w:
        w.start()
        change = w.run(12)
    cleared, settled = (
        min(entry.at for entry in change.journal if entry.step.startswith(f"{operation} "))
        for operation in ("DeregisterScalableTarget", "RegisterScalableTarget")
    )
    assert cleared < cleared.replace(hour=9, minute=12, second=0) < settled
