"""Metrics of a component as figures: periods without utilisation are unknown, and copies of before do not count."""

from array import array
from datetime import timedelta

import pytest

from rightsizer.domain.component import COMPONENT_SIGNALS, PER_COPY, ComponentUsage
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentDay
from rightsizer.domain.usage import MetricWindow, NoMetrics, Series
from rightsizer.recommender.component_finding import component_usage
from tests.recommender import kit
from tests.recommender.component_kit import sight

START, SIZE = kit.NOW - timedelta(days=14), 14 * 288
FLAT = {
    "Invocations": 50.0,
    "ConcurrentRequestsPerCopy": 0.5,
    "ModelLatency": 400_000.0,
    "GPUUtilizationNormalized": 20.0,
    "GPUMemoryUtilizationNormalized": 60.0,
    "CPUUtilizationNormalized": 10.0,
    "MemoryUtilizationNormalized": 30.0,
}


def window(**changed: float | None) -> MetricWindow:
    """Two weeks of one value for each metric; None: never published."""
    values = {name: value for name, value in {**FLAT, **changed}.items() if value is not None}
    series = {
        key: Series(START, 300, array("d", [values[key.metric]]) * SIZE)
        for key in (*COMPONENT_SIGNALS, PER_COPY)
        if key.metric in values
    }
    return MetricWindow("e", "chat", START, kit.NOW, 300, series)


def usage(read: MetricWindow | NoMetrics, autoscaled: bool = False, days_ago: float = 60.0) -> ComponentUsage | Reason:
    seen = sight(copies=4, modified_at=kit.NOW - timedelta(days=days_ago))
    return component_usage(seen, autoscaled, read, Policy())


def usage_of_days(days_ago: float) -> tuple[ComponentDay, ...]:
    found = usage(window(), days_ago=days_ago)
    assert isinstance(found, ComponentUsage)
    return found.by_day


def test_figures_are_shares_and_seconds() -> None:
    found = usage(window())
    assert isinstance(found, ComponentUsage)
    assert (found.days, found.valid_share, found.requests) == (14.0, 1.0, 50.0 * SIZE)
    assert found.requests_per_copy == pytest.approx(50 / 4 / 5)
    assert (found.concurrency, found.p95_s, found.without_capacity) == (0.5, 0.4, 0.0)
    assert found.gpu is not None
    assert found.gpu.p99 == 0.2


def test_no_call_is_zero_only_where_utilisation_was_published() -> None:
    silent = usage(window(Invocations=None))
    assert isinstance(silent, ComponentUsage)
    assert silent.requests == 0
    blind = usage(window(GPUUtilizationNormalized=None, CPUUtilizationNormalized=None))
    assert isinstance(blind, Reason)
    assert blind.code is Code.NO_DATAPOINTS


def test_what_was_not_read_whole_is_no_evidence() -> None:
    refused = Reason(Code.THROTTLED, "CloudWatch throttled")
    partly = MetricWindow("e", "chat", START, kit.NOW, 300, window().series, (refused,))
    assert usage(partly) is refused
    assert usage(NoMetrics("e", "chat", refused)) is refused


def test_days_before_its_copies_were_set_do_not_count() -> None:
    late = usage(window(), days_ago=3.0)
    assert isinstance(late, ComponentUsage)
    assert late.days == pytest.approx(3.0, abs=0.03)
    moved = usage(window(), autoscaled=True, days_ago=3.0)
    assert isinstance(moved, ComponentUsage)
    assert moved.days == 14.0


def test_one_that_was_just_changed_has_no_data() -> None:
    found = usage(window(), days_ago=0.0)
    assert isinstance(found, Reason)
    assert found.code is Code.NO_DATAPOINTS


def test_calls_over_calls_of_each_copy_are_the_copies_that_ran() -> None:
    ran = usage(window(InvocationsPerCopy=12.5), autoscaled=True)
    assert isinstance(ran, ComponentUsage)
    assert ran.most_copies == 4.0
    for read in (window(), window(InvocationsPerCopy=0.0), window(Invocations=None, InvocationsPerCopy=12.5)):
        unknown = usage(read, autoscaled=True)
        assert isinstance(unknown, ComponentUsage)
        assert unknown.most_copies is None
    fixed = usage(window(InvocationsPerCopy=12.5))
    assert isinstance(fixed, ComponentUsage)
    assert fixed.most_copies is None


def test_each_day_has_its_own_calls_and_use_of_the_gpu() -> None:
    found = usage(window())
    assert isinstance(found, ComponentUsage)
    assert [one.day for one in found.by_day] == [(START + timedelta(days=n)).date() for n in range(14)]
    assert {(one.requests, one.gpu) for one in found.by_day} == {(50.0 * 288, 0.2)}
    (first, *_), began = usage_of_days(0.9), (kit.NOW - timedelta(days=0.9)).date()
    assert first.day == began
    assert (first.requests or 0) < 50.0 * 288, "a part of a day"


def test_a_day_without_utilisation_is_unknown_and_one_without_calls_is_zero() -> None:
    read = window(Invocations=None)
    for series in (s for key, s in read.series.items() if key.metric.endswith("UtilizationNormalized")):
        series.values[288:864] = array("d", [float("nan")]) * 576
    found = usage(read)
    assert isinstance(found, ComponentUsage)
    lost = [one for one in found.by_day if one.requests is None]
    assert [(one.day, one.gpu) for one in lost] == [((START + timedelta(days=n)).date(), None) for n in (1, 2)]
    assert {one.requests for one in found.by_day if one not in lost} == {0}
