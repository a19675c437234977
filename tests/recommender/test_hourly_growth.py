"""Counts by the hour of ours that grow: larger ones take their place, and no hour loses what it runs."""

from dataclasses import replace

import pytest

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import History, PastEnd
from rightsizer.domain.option import Target
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import FleetShape, find_smallest_fleet
from rightsizer.recommender.late_requests import failed_instances
from tests import samples
from tests.recommender.test_late_requests import context, day

RESOURCE = ("endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount")
OURS = ScalableTarget(*RESOURCE, 2, 8, scheduled=({"ScheduledActionName": "rightsizer-c-1-08"},))
THEIRS = ScalableTarget(*RESOURCE, 2, 8, scheduled=({"ScheduledActionName": "day"},))
BUSY = tuple(8.0 if 8 <= hour < 20 else 5.0 for hour in range(24))
BUSY_HOURS = tuple(map(int, BUSY))


def strained(scaling: ScalableTarget, *, is_strained: bool = True) -> EvaluationContext:
    """Sixteen instances became a schedule of eight by day and five at night."""
    found = context([replace(day(7, 0.04, 8.0), instances=BUSY)])
    return replace(found, endpoint=replace(found.endpoint, scaling=(scaling,)), is_strained=is_strained)


@pytest.mark.parametrize(
    ("scaling", "too_small", "may"),
    [(OURS, True, True), (OURS, False, False), (THEIRS, True, False)],
    ids=["ours grow", "ours serve", "the owner's"],
)
def test_hours_of_ours_alone_get_larger_ones_in_their_place(
    scaling: ScalableTarget, too_small: bool, may: bool
) -> None:
    found = strained(scaling, is_strained=too_small)
    assert found.may_set_hourly_counts(found.runs.name, rerouted=False) is may


def test_no_hour_that_grows_has_fewer_than_it_runs() -> None:
    found = strained(OURS)
    shape = FleetShape(found.runs.name, 1.0, found.workers, False, True, 32)
    fleet = find_smallest_fleet(found, shape)
    free = find_smallest_fleet(replace(found, endpoint=replace(found.endpoint, scaling=())), shape)
    assert fleet is not None
    assert free is not None
    assert min(free.counts) < 5, "no request comes at night, so that the load alone asks for one instance"
    assert all(now >= before for now, before in zip(fleet.counts, BUSY, strict=True))


def test_hours_that_failed_get_a_fifth_more_where_the_replay_finds_each_of_them_large_enough() -> None:
    found = context([replace(day(7, 0.07, 8.0, crowd=2.0), instances=BUSY)])
    found = replace(found, endpoint=replace(found.endpoint, scaling=(OURS,)), is_strained=True)
    failed = failed_instances(found, found.runs.name, 1.0, found.workers)
    fleet = find_smallest_fleet(found, FleetShape(found.runs.name, 1.0, found.workers, False, True, 32))
    assert failed == sum(BUSY) / 24
    assert fleet is not None
    assert 1.2 * failed < fleet.mean_count < 16
    assert all(now >= before for now, before in zip(fleet.counts, BUSY, strict=True))


@pytest.mark.parametrize(
    ("scaling", "ended", "larger"),
    [(OURS, PastEnd.PROVEN, False), (OURS, PastEnd.ROLLED_BACK, True), (THEIRS, PastEnd.PROVEN, True)],
    ids=["ours", "ours came back", "the owner's"],
)
def test_the_hours_that_are_set_are_not_larger_because_instances_take_minutes_to_start(
    scaling: ScalableTarget, ended: PastEnd, larger: bool
) -> None:
    """Else the fleet that has to grow is given, after an approval and a day, the counts that it has."""
    found = strained(scaling)
    (past,) = found.inputs.history.endpoint
    set_hours = replace(past, ended=ended, mean_instances=sum(BUSY) / 24)
    found = replace(found, inputs=replace(found.inputs, history=History((set_hours,))), instances=0.98 * sum(BUSY) / 24)
    option = samples.option(target=Target(found.runs.name, 8, BUSY_HOURS), mean_instances=sum(BUSY) / 24)
    assert found.is_larger(option) is larger
    assert found.is_larger(replace(option, mean_instances=1.1 * sum(BUSY) / 24))
    tested = replace(past, ended=PastEnd.ROLLED_BACK, mean_instances=99.0)
    later = replace(found, inputs=replace(found.inputs, history=History((set_hours, tested))))
    assert later.is_larger(option) is larger, "what came back after the schedule hides it not"
