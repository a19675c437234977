"""How many requests a limit cuts off, how much slower they may become, and which words name the goal."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Latency
from rightsizer.domain.endpoint import Objective, ScalableTarget
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import BIN
from rightsizer.recommender.latency import (
    Bins,
    allowed_latency_factor,
    allowed_slowdown,
    latency_objective,
    share_of_late_requests,
)
from tests.recommender import kit
from tests.recommender.plain import LATENCY

EDGE = math.sqrt(BIN)
THREE = ((0.1, 0.90), (1.0, 0.07), (4.0, 0.03))


def goal(objective: Objective, latency: Latency = LATENCY, policy: Policy | None = None) -> LatencyObjective:
    return latency_objective(replace(kit.endpoint(), objective=objective), latency, policy or Policy())


def test_the_owners_tag_is_the_goal() -> None:
    assert goal(Objective(0.7, error_share=0.02)) == LatencyObjective(0.7, True, "tag rightsizer:p95-ms", 0.02)


def test_as_today_is_the_larger_of_the_p99_and_a_tenth_more_than_the_p95_and_at_most_a_quarter_more() -> None:
    source = "as today: max(1.1 x p95, p99), at most 1.25 x p95"
    assert goal(Objective(None, error_share=0.02)) == LatencyObjective(1.25, False, source, 0.02)
    assert goal(Objective(None), replace(LATENCY, p99_s=1.2)).p95_s == pytest.approx(1.2)
    assert goal(Objective(None), replace(LATENCY, p99_s=1.05)).p95_s == pytest.approx(1.1)
    assert goal(Objective(None), replace(LATENCY, p95_s=2.0)).p95_s == pytest.approx(2.2)


def test_what_the_scaling_holds_carries_the_errors_that_the_owner_allows() -> None:
    metric = {"Namespace": "AWS/SageMaker", "MetricName": "ModelLatency"}
    specification = {"Metrics": [{"Id": "m", "MetricStat": {"Metric": metric, "Stat": "p95"}}]}
    configuration = {"TargetValue": 1_500_000.0, "CustomizedMetricSpecification": specification}
    tracking = {"PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": configuration}
    scaling = (ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4, policies=(tracking,)),)
    scaled = replace(kit.endpoint(), scaling=scaling, objective=Objective(None, error_share=0.03))
    held = "its scaling policy holds the p95 of ModelLatency at 1500 ms"
    assert latency_objective(scaled, LATENCY, Policy()) == LatencyObjective(1.5, False, held, 0.03)


@pytest.mark.parametrize(
    ("limit_s", "share"),
    [
        (5.0, 0.0),
        (4.0 * EDGE, 0.0),
        (4.0 / EDGE, 0.03),
        (2.0, 0.03),
        (1.0 / EDGE, 0.10),
        (0.5, 0.10),
        (0.01, 1.0),
    ],
)
def test_whole_bins_above_a_limit_are_late(limit_s: float, share: float) -> None:
    assert share_of_late_requests(THREE, limit_s) == pytest.approx(share)


def test_of_the_bin_that_a_limit_falls_into_the_part_above_it_is_late() -> None:
    low, high = 1.0 / EDGE, 1.0 * EDGE
    quarter = low + 0.75 * (high - low)
    assert share_of_late_requests(THREE, quarter) == pytest.approx(0.03 + 0.25 * 0.07)
    assert share_of_late_requests((), 1.0) == 0.0


def test_the_latency_may_grow_until_the_first_bin_that_is_one_too_many_reaches_the_limit() -> None:
    assert allowed_latency_factor(THREE, 8.0, 0.0) == pytest.approx(8.0 / (4.0 * EDGE))
    assert allowed_latency_factor(THREE, 8.0, 0.029) == pytest.approx(8.0 / (4.0 * EDGE))
    assert allowed_latency_factor(THREE, 8.0, 0.031) == pytest.approx(8.0 / (1.0 * EDGE))
    assert allowed_latency_factor(THREE, 8.0, 0.11) == pytest.approx(8.0 / (0.1 * EDGE))
    assert allowed_latency_factor(THREE, 2.0, 0.0) == pytest.approx(2.0 / (1.0 * EDGE)), "what is late today stays late"
    assert allowed_latency_factor(THREE, 2.0, 0.0699) == pytest.approx(2.0 / (1.0 * EDGE))
    assert allowed_latency_factor(THREE, 2.0, 0.0701) == pytest.approx(2.0 / (0.1 * EDGE))


def test_where_all_may_be_late_the_quickest_bin_bounds_the_growth() -> None:
    assert allowed_latency_factor(THREE, 8.0, 1.0) == pytest.approx(80.0)
    assert allowed_latency_factor((), 8.0, 0.0) == 1.0


def test_requests_that_are_late_because_they_waited_are_no_reason_against_a_slower_type() -> None:
    """3 % are late today, none of them by its service: three in a hundred may be late by their service then."""
    service = ((0.1, 0.95), (1.0, 0.05))
    assert allowed_slowdown(THREE, service, 2.0, 0.0) == pytest.approx(2.0 / EDGE), "5 % may not be late"
    assert allowed_slowdown(THREE, service, 2.0, 0.019) == pytest.approx(2.0 / EDGE)
    assert allowed_slowdown(THREE, service, 2.0, 0.021) == pytest.approx(20.0 / EDGE)
    assert allowed_slowdown(service, THREE, 2.0, 0.0) == pytest.approx(2.0 / EDGE), (
        "no less than nothing is due to waiting"
    )


def test_what_is_late_by_its_service_already_is_no_waiting() -> None:
    """10 % are late and 5 % of them by their service: 5 % waited, so a tenth may be late by its service then."""
    service = ((0.1, 0.85), (0.3, 0.10), (1.0, 0.05))
    assert allowed_slowdown(THREE, service, 0.5, 0.0) == pytest.approx(0.5 / (0.3 * EDGE))


def test_there_is_never_less_room_than_today() -> None:
    assert allowed_slowdown(THREE, THREE, 0.01, 0.0) == 1.0


FEW = some.lists(some.tuples(some.floats(0.01, 50.0), some.floats(0.001, 1.0)), min_size=1, max_size=8)


@given(bins=FEW, limit_s=some.floats(0.01, 60.0), excess=some.floats(0.0, 0.2))
def test_after_the_allowed_growth_no_more_are_late_than_allowed(
    bins: list[tuple[float, float]], limit_s: float, excess: float
) -> None:
    total = sum(weight for _, weight in bins)
    latency: Bins = sorted((value, weight / total) for value, weight in bins)
    grown = [(value * allowed_latency_factor(latency, limit_s, excess) * 0.999, weight) for value, weight in latency]
    assert share_of_late_requests(grown, limit_s) <= share_of_late_requests(latency, limit_s) + excess + 1e-9
    assert 0.0 <= share_of_late_requests(latency, limit_s) <= 1.0 + 1e-9
