"""What a day tells of its queue and of refused or uncounted requests, and the edges of a day's figures."""

from array import array
from dataclasses import replace
from datetime import timedelta

from rightsizer.domain.usage import SLOTS, MetricStatistic, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage, full_slots
from tests.recommender.test_daily_usage import (
    CALLS,
    FOUR,
    GPU,
    LEVELS,
    NAN,
    ONE,
    PLAIN,
    START,
    first,
    gpus,
    one,
    singly,
    window,
)


def test_the_oldest_request_and_those_that_expired_are_kept() -> None:
    age, expired = ("ApproximateAgeOfOldestRequest", "Maximum"), ("ExpiredRequests", "Sum")
    found = one(PLAIN | {age: first(5, 90.0, 7.0), expired: first(285, NAN, 2.0)})
    assert (found.oldest_request_s, found.expired) == (90.0, 6.0)
    assert (one(PLAIN).oldest_request_s, one(PLAIN).expired) == (None, 0.0)


def test_a_period_with_a_latency_and_no_count_has_an_unknown_number_of_requests() -> None:
    found = one({CALLS: first(100, NAN, 4.0), GPU: 10.0, ("ModelLatency", "Average"): first(50, 2e6, NAN)})
    assert found.requests == (None,) * 50 + (0.0,) * 50 + (4.0,) * 188


def test_one_refused_request_in_a_period_counts() -> None:
    refused = ("Invocation4XXErrors", "Sum")
    assert one(PLAIN | {refused: first(3, 1.0, 0.0)}).refused == (3.0, 0.0)
    assert one(PLAIN | {refused: first(3, 0.0, NAN)}).refused == (0.0, 0.0)


def test_half_of_the_busiest_slot_is_full_and_of_a_day_without_a_count_no_slot_is() -> None:
    assert full_slots(one({CALLS: first(3, 4.0, first(9, 2.0, 1.9)(5)), GPU: 50.0})) == frozenset(range(SLOTS))
    assert full_slots(one({CALLS: first(3, 4.0, 1.9), GPU: 50.0})) == frozenset({0, 1, 2})
    assert full_slots(one({GPU: NAN, ("MemoryUtilization", "Average"): 5.0})) == frozenset()


def test_a_day_begins_at_midnight_though_its_window_begins_with_a_fraction_of_a_second() -> None:
    late = START + timedelta(hours=12, seconds=7, microseconds=5)
    known = {MetricStatistic(*CALLS): Series(START + timedelta(hours=13), 300, array("d", [5.0] * 132))}
    (found,) = daily_usage(replace(window({}), start=late, series=known), VariantSetup(ONE, 1))
    assert found.requests == (None,) * 156 + (5.0,) * 132


def test_figures_have_three_decimals() -> None:
    assert one({CALLS: 1.23456, GPU: 50.0}).requests[0] == 1.235


def test_two_gpus_are_told_apart() -> None:
    found = singly(gpus(*LEVELS[:2]), hardware=replace(FOUR, accelerator_count=2)).each_gpu
    assert found is not None
    assert found.peaks == (0.9, 0.3)
