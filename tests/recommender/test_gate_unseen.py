"""What automatic mode asks about because it sees too little, sees other work, or saw failures of late; and queues."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.endpoint import EndpointKind, Objective
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from rightsizer.domain.schedule import DayCounts
from rightsizer.recommender.queued_sleep import NOT_SEEN
from tests.recommender.plain import LATENCY, demand, option
from tests.recommender.test_gate_verdicts import ASKS, case, endpoint, failure, small_fleet, verdict

BUSY = demand(gpu_mean=0.6, gpu_s_per_request=2.0, latency=replace(LATENCY, mean_s=0.5))
"""A request takes half a second, and the GPU works two for each: a quarter of that is its requests."""


def test_a_gpu_that_works_at_something_else_is_looked_into_first() -> None:
    assert verdict(case(demand=BUSY)) == (
        Gate.PROPOSE,
        Code.NEEDS_APPROVAL,
        f"{ASKS}its GPU works 60 % of the time, and its requests explain at most 15.0 %: find out what else works there"
        " before it is changed",
    )


@pytest.mark.parametrize(
    ("of", "gpus"),
    [
        pytest.param(replace(BUSY, gpu_s_per_request=1.0), (0, 0), id="half of it is explained"),
        pytest.param(replace(BUSY, gpu_s_per_request=4.0), (4, 4), id="four GPUs at work for a request"),
        pytest.param(replace(BUSY, gpu_mean=0.33), (0, 0), id="a quarter of the time for other work is little"),
        pytest.param(replace(BUSY, gpu_s_per_request=0.0), (0, 0), id="the work of a request is unknown"),
        pytest.param(replace(BUSY, latency=None), (0, 0), id="no latency is known"),
        pytest.param(replace(BUSY, gpu_mean=None), (0, 0), id="the use of the GPU is unknown"),
    ],
)
def test_other_work_is_no_question_where(of: Any, gpus: tuple[int, int]) -> None:
    assert verdict(case(demand=of, gpus=gpus))[0] is Gate.APPLY


def test_other_work_of_more_than_a_quarter_of_the_time_is_a_question() -> None:
    assert verdict(case(demand=replace(BUSY, gpu_mean=0.34)))[1] is Code.NEEDS_APPROVAL


def test_what_was_not_seen_for_three_hours_is_not_changed_unasked() -> None:
    assert verdict(case(demand=demand(unseen_hours=2.9)))[0] is Gate.APPLY
    assert verdict(case(demand=demand(unseen_hours=3.0))) == (
        Gate.PROPOSE,
        Code.TOO_MANY_GAPS,
        f"{ASKS}CloudWatch has no GPU datapoint of its last 3 complete hours; find out why before it is changed",
    )


def test_failures_of_the_last_two_days_are_asked_about_though_the_fortnight_had_few() -> None:
    recent = verdict(case(demand=demand(error_share=0.005, failed_lately=0.02)))
    assert recent[:2] == (Gate.PROPOSE, Code.TOO_MANY_ERRORS)
    assert recent[2].startswith(f"{ASKS}2.00 % of its requests of the last two days fail, and 0.5 % may (")
    whole = verdict(case(demand=demand(error_share=0.03, failed_lately=0.02)))
    assert whole[2].startswith(f"{ASKS}3.00 % of its requests fail, and 0.5 % may (")
    loose = endpoint(objective=Objective(60.0, error_share=0.02))
    assert verdict(case(endpoint=loose, demand=demand(error_share=0.0, failed_lately=0.02)))[0] is Gate.APPLY


QUEUE = endpoint(kind=EndpointKind.ASYNC, kinds=(EndpointKind.ASYNC,))
SLEEP = option(kind=OptionKind.SCALE_TO_ZERO, target=Target("ml.g6e.xlarge", 1, minimum=0))


def test_a_queue_sleeps_by_itself_where_it_is_seen_to_keep_its_requests() -> None:
    kept = demand(oldest_request_s=60.0)
    assert verdict(case(endpoint=QUEUE, option=SLEEP, demand=kept))[0] is Gate.APPLY
    assert verdict(case(endpoint=QUEUE, option=SLEEP)) == (Gate.PROPOSE, Code.NEEDS_APPROVAL, NOT_SEEN)
    assert verdict(case(endpoint=QUEUE, demand=kept))[1] is Code.OTHER_KIND, "another type of it is asked about"


def test_a_queue_sleeps_by_the_days_that_were_seen_however_few_its_requests() -> None:
    few = demand(oldest_request_s=60.0, confidence=1.0, requests=3.0)
    assert verdict(case(endpoint=QUEUE, option=SLEEP, demand=few))[0] is Gate.APPLY
    young = verdict(case(endpoint=QUEUE, option=SLEEP, demand=replace(few, days=2.04)))
    assert young[1] is Code.TOO_LITTLE_CONFIDENCE
    assert young[2].startswith(f"{ASKS}2 days' worth of evidence")


def test_days_of_evidence_are_told_to_a_tenth() -> None:
    assert "13.2 days' worth of evidence" in verdict(case(demand=demand(confidence=13.16)))[2]


def week(weekdays: int, weekend: int) -> tuple[DayCounts, ...]:
    return DayCounts((0, 1, 2, 3, 4), (weekdays,) * 24), DayCounts((5, 6), (weekend,) * 24)


@pytest.mark.parametrize(
    ("failed", "answer"),
    [
        (week(3, 1), Gate.APPLY),  # the weekend had fewer
        (week(2, 2), Gate.SILENT),
        (week(3, 2), Gate.SILENT),
    ],
)
def test_a_week_that_failed_forbids_what_has_no_more_in_any_hour(failed: tuple[DayCounts, ...], answer: Gate) -> None:
    assert verdict(small_fleet(), failure(day_counts=failed))[0] is answer


def test_tracked_fleets_are_compared_by_their_minimum_and_others_by_their_mean() -> None:
    busy = failure(mean_instances=3.5, counts=(4, 1), tracked=True)
    tracked = option(
        kind=OptionKind.AUTOSCALING, target=Target("ml.g6e.xlarge", 2, minimum=2, maximum=4, metric="m", target_value=1)
    )
    assert verdict(small_fleet(), busy)[0] is Gate.SILENT, "two at all times are fewer than 3.5"
    assert verdict(replace(small_fleet(), option=tracked), busy)[0] is not Gate.SILENT, "a minimum of two is above one"
