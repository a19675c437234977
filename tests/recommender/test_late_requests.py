"""Late requests since our own changes, held against days that were as hard for the owner's fleet."""

import math
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from rightsizer.domain.endpoint import EndpointKind, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.late_requests import find_degradation, hardness, late_budget_used
from rightsizer.recommender.workload import evaluation_context
from tests.recommender import kit

FIRST = date(2026, 11, 6)


def bin_of(seconds: float) -> int:
    return round(math.log(1000 * seconds) / math.log(1.02))


def day(number: int, late: float, instances: float, crowd: float = 1.0) -> DailyUsage:
    """A day of 5,760 requests, twelve busy hours, with that share of them at nine seconds in place of six."""
    calls = tuple((40.0 if 96 <= slot < 240 else 0.0) * crowd for slot in range(SLOTS))
    total = sum(calls)
    return DailyUsage(
        FIRST + timedelta(days=number),
        "ml.g6e.xlarge",
        1,
        calls,
        tuple(n * 5.0 for n in calls),
        (instances,) * 24,
        ((bin_of(6.0), total * (1 - late)), (bin_of(9.0), total * late)),
        total * 6.0,
        0.0,
        None,
        None,
        None,
        None,
    )


def context(after: list[DailyUsage]) -> EvaluationContext:
    """Seven days of sixteen instances with 4 % late, then ours with eight."""
    days = [day(number, 0.04, 16.0) for number in range(7)] + after
    changed = PastChange(_morning(7), "ml.g6e.xlarge", "ml.g6e.xlarge", 16, 8, PastEnd.PROVEN)
    inputs = AccountInputs(
        kit.prices(),
        kit.catalogue(),
        {},
        History((changed,)),
        Policy(),
        _morning(7 + len(after)),
    )
    found = evaluation_context(kit.endpoint(count=8, p95_s=8.0), days, inputs)
    assert found is not None
    return found


def _morning(number: int) -> datetime:
    return kit.NOW.replace(year=FIRST.year, month=FIRST.month, day=FIRST.day, hour=0) + timedelta(days=number)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_days_like_all_others_are_no_harder_however_few_they_are(count: int) -> None:
    found = context([day(7 + number, 0.04, 8.0) for number in range(count)])
    assert hardness(found, found.days[-count:]) == 1.0


def test_days_that_crowd_the_old_fleet_too_are_harder() -> None:
    found = context([day(7, 0.04, 8.0, crowd=25.0)])
    assert hardness(found, found.days[-1:]) > 1.3


def test_late_requests_of_one_usual_day_use_the_budget() -> None:
    found = context([day(7, 0.06, 8.0)])
    assert (late_budget_used(found) or 0.0) > 1.0, "two per cent more of them are late than before, and 0.2 % may be"


@pytest.mark.parametrize(
    ("ended", "used"),
    [(PastEnd.ROLLED_BACK, False), (PastEnd.PROVEN, True)],
    ids=["taken back on its day", "standing"],
)
def test_days_on_the_owners_own_fleet_use_up_nothing_of_ours(ended: PastEnd, used: bool) -> None:
    """A change that was taken back leaves the owner's fleet: what is late there is not ours."""
    found = context([day(7, 0.06, 8.0), day(8, 0.06, 16.0), day(9, 0.06, 16.0)])
    changes = tuple(replace(past, ended=ended, failure="alarm") for past in found.inputs.history.endpoint)
    found = replace(found, inputs=replace(found.inputs, history=History(changes)))
    assert (late_budget_used(found) is not None) is used


def test_who_wakes_a_queue_waits_as_was_said_and_brings_no_fleet_back() -> None:
    found = context([day(7, 0.3, 0.5), day(8, 0.3, 0.5)])
    asleep = ScalableTarget("endpoint/e/variant/v", "d", 0, 8)
    queued = replace(found.endpoint, kind=EndpointKind.ASYNC, kinds=(EndpointKind.ASYNC,), scaling=(asleep,))
    other = replace(found.reference, name="ml.g6.xlarge")
    assert find_degradation(found) is not None
    assert find_degradation(replace(found, endpoint=queued)) is None
    assert find_degradation(replace(found, endpoint=queued, reference=other)) is not None, "another type is no waiting"
