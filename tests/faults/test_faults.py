"""The reduced form of `make faults`: a few kill points of each kind; the whole is run by `make faults`."""

import pytest

from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.faults.drive import COURSES, Course, run

BY_NAME = {course.name: course for course in COURSES}


@pytest.mark.parametrize("kill_at", [48, 72])
def test_a_plain_change_killed_after_a_call_ends_as_the_laws_say(kill_at: int) -> None:
    made = run(scenarios.PLAIN, BY_NAME["success"], kill_at)
    assert made.violations == []
    assert made.ended == "proven"


@pytest.mark.parametrize("course", ["alarm", "deleted by somebody"])
def test_an_ending_keeps_the_laws(course: str) -> None:
    assert run(scenarios.PLAIN, BY_NAME[course]).violations == []


@pytest.mark.parametrize("course", ["capacity"])
def test_autoscaling_is_kept_on_every_path(course: str) -> None:
    assert run(scenarios.AUTOSCALED, BY_NAME[course], 90).violations == []


@pytest.mark.slow
def test_every_event_delivered_five_times_is_one_change() -> None:
    assert run(scenarios.PLAIN, BY_NAME["success"], twice=5).violations == []


@pytest.mark.slow
@pytest.mark.parametrize("course", COURSES, ids=lambda c: c.name)
@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda s: s.name)
def test_every_scenario_with_every_ending_keeps_the_laws(scenario: Scenario, course: Course) -> None:
    if course.deploys and not scenario.deploys:
        pytest.skip("nothing is deployed in this scenario")
    assert run(scenario, course, 60).violations == []
