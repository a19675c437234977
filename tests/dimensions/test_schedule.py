"""Counts by the hour: scheduled actions, and what stands against them."""

from dataclasses import replace

import pytest

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.schedule import Schedule
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from rightsizer.domain.schedule import DayCounts
from rightsizer.terminal.document import option_document
from tests import samples
from tests.changes.test_preflight import TARGET
from tests.dimensions.kit import TYPE, planned, said

HOURS = Target(TYPE, 3, hourly_counts=(1,) * 12 + (3,) * 12)


def test_it_says_the_least_and_the_most() -> None:
    does, back = said(Schedule(), HOURS)
    assert does == "run 1 to 3 instances of ml.g5.xlarge by the hour of the day"
    assert back == "removes the schedule and sets the old count"


WEEK = replace(HOURS, day_counts=(DayCounts((0, 1, 2, 3, 4), (1,) * 12 + (3,) * 12), DayCounts((5, 6), (1,) * 24)))


def test_counts_of_the_week_are_said_by_their_days() -> None:
    does, _ = said(Schedule(), WEEK)
    assert does == "run 1 to 3 instances of ml.g5.xlarge by the hour of the week (Mon-Fri 1 to 3, Sat-Sun 1)"


def test_the_document_has_the_counts_by_the_days_that_they_are_for() -> None:
    shown = [option_document(replace(samples.option(), target=target)) for target in (WEEK, HOURS, Target(TYPE, 3))]
    assert shown[0]["hourly_counts"] == {"Mon-Fri": [1] * 12 + [3] * 12, "Sat-Sun": [1] * 24}
    assert shown[1]["hourly_counts"] == {"every day": [1] * 12 + [3] * 12}
    assert "hourly_counts" not in shown[2]


def test_the_way_back_removes_the_schedule_and_sets_the_old_count() -> None:
    found = planned(Schedule(), HOURS)
    assert isinstance(found, PlannedChange)
    assert [step.kind for step in found.plan.restore] == [StepKind.DEREGISTER_TARGET, StepKind.SET_CAPACITY]
    assert found.plan.turn is None


@pytest.mark.parametrize(
    ("target", "scaling", "code"),
    [
        (Target(TYPE, 3, hourly_counts=(1, 3)), (), Code.NOT_IN_PLACE),
        (Target("ml.g6.xlarge", 3, hourly_counts=HOURS.hourly_counts), (), Code.NOT_IN_PLACE),
        (HOURS, (TARGET,), Code.AUTOSCALED),
    ],
)
def test_there_is_no_plan_for_half_a_day_another_type_or_an_autoscaled_fleet(
    target: Target, scaling: tuple[ScalableTarget, ...], code: Code
) -> None:
    assert planned(Schedule(), target, scaling=scaling) is code
