"""With a memory only new days are read, and the digests are those of a full read."""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.endpoint import Endpoint, EndpointKind, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import (
    EndpointUsage,
    KeptUsage,
    MetricStatistic,
    MetricWindow,
    NoMetrics,
    Series,
    VariantUsage,
)
from rightsizer.flows.read_usage import COUNTED, UsageCache, UsageReader
from rightsizer.ports.evaluation import MetricRequest
from rightsizer.recommender.usage_days import page_of
from tests.recommender.kit import NOW, catalogue, endpoint, judge_digests, prices, steady, window

LATER = NOW + timedelta(days=1, hours=2)


class Metrics:
    """Ten weeks of a steady service; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime, int]] = []
        self.by_day: list[bool] = []
        self.sizes: list[int] = []
        self.counted: list[tuple[bool, bool]] = []
        self.partly = False

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        self.asked.append((start, end, len(requests)))
        self.sizes += [len(request.signals) for request in requests]
        self.by_day += [bool(request.by_day) for request in requests]
        self.counted += [(COUNTED in r.signals, COUNTED in {*r.signals} & r.by_day) for r in requests]
        for request in requests:
            size = int((end - start).total_seconds()) // period_s
            full = window(steady(), days=1)
            series = {s: Series(start, period_s, (v.values * 70)[:size]) for s, v in full.series.items()}
            notes = (Reason(Code.READ_FAILED, "CloudWatch answered PartialData twice"),) if self.partly else ()
            yield MetricWindow(request.endpoint, request.variant, start, end, period_s, series, notes)


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.pages: dict[str, dict[str, KeptUsage]] = {}

    def load(self, page: str) -> Sequence[KeptUsage]:
        return tuple(self.pages.get(page, {}).values())

    def save(self, page: str, kept: Sequence[KeptUsage]) -> None:
        self.pages.setdefault(page, {}).update({f"{one.endpoint}/{one.variant}": one for one in kept})


def reader(metrics: Metrics, kept: Kept | None, *past: PastChange, days: int = 14) -> UsageReader:
    memory = UsageCache(kept, 1, days) if kept else None
    policy = Policy(lookback_days=days)
    return UsageReader(metrics, catalogue(), lambda _: History(endpoint=past), policy, memory)


def named(name: str) -> Endpoint:
    plain = endpoint()
    return replace(plain, ref=replace(plain.ref, name=name))


def complete(found: object, until: datetime) -> list[object]:
    assert isinstance(found, VariantUsage)
    return [d for d in found.days if d.day < until.date()]


@pytest.mark.parametrize(
    ("modified", "by_day"), [(timedelta(days=30), True), (timedelta(days=5), False), (timedelta(hours=30), False)]
)
def test_highest_values_are_read_by_the_day_unless_a_day_is_cut_by_a_change(modified: timedelta, by_day: bool) -> None:
    metrics = Metrics()
    reader(metrics, None).read([replace(endpoint(), modified_at=NOW - modified)], NOW)
    assert metrics.by_day == [by_day]


def test_samples_are_counted_where_the_count_moves_and_by_the_day_of_a_fixed_fleet_of_several() -> None:
    scaled = (ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4),)
    several = endpoint(count=2)
    metrics = Metrics()
    for each in (endpoint(), several, replace(several, scaling=scaled)):
        reader(metrics, None).read([replace(each, modified_at=NOW - timedelta(days=30))], NOW)
    assert metrics.counted == [(False, False), (True, True), (True, False)]


def test_sixteen_statistics_are_read_and_more_where_the_page_on_costs_says_so() -> None:
    metrics, plain = Metrics(), endpoint(p95_s=None)
    scaled = replace(plain, scaling=(ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4),))
    queued = endpoint(p95_s=None, kind=EndpointKind.ASYNC)
    for each in (plain, endpoint(), endpoint(p95_s=None, count=2), scaled, queued):
        reader(metrics, None).read([each], NOW)
    assert metrics.sizes == [16, 17, 17, 17, 22]


def test_the_next_day_reads_only_the_new_day_and_knows_the_same() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    again = reader(metrics, kept).read([endpoint()], LATER)["chat"]
    start, end, _ = metrics.asked[-1]
    assert (end - start) <= timedelta(days=2)
    whole = reader(metrics, None).read([endpoint()], LATER)["chat"]
    first = (LATER - timedelta(days=14)).date()
    known = [d for d in complete(again, end) if d.day > first]  # type: ignore[attr-defined]
    assert known == [d for d in complete(whole, end) if d.day > first]  # type: ignore[attr-defined]
    assert len(known) >= 13


def test_endpoints_read_over_the_same_days_share_their_requests() -> None:
    metrics, kept = Metrics(), Kept()
    fleet = [named(f"e{i}") for i in range(5)]
    reader(metrics, kept).read(fleet, NOW)
    reader(metrics, kept).read([*fleet, named("new")], LATER)
    assert [count for _, _, count in metrics.asked] == [5, 5, 1]


def test_a_modification_by_others_asks_for_a_full_read() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    changed = replace(endpoint(), modified_at=NOW)
    reader(metrics, kept).read([changed], LATER)
    assert metrics.asked[-1][0] == NOW - timedelta(days=13), "fourteen complete days"


def test_after_a_change_of_ours_the_days_before_it_are_still_known() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    moved = replace(endpoint("ml.g6.xlarge"), modified_at=NOW)
    ours = PastChange(NOW, "ml.g6e.xlarge", "ml.g6.xlarge", 1, 1, PastEnd.PROVEN)
    found = reader(metrics, kept, ours).read([moved], LATER)["chat"]
    assert isinstance(found, VariantUsage)
    assert {d.instance_type for d in found.days} == {"ml.g6e.xlarge", "ml.g6.xlarge"}
    assert metrics.asked[-1][1] == LATER - timedelta(hours=1), "the running day tells soonest whether users suffer"


def test_a_longer_look_back_asks_for_a_full_read() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    reader(metrics, kept, days=30).read([endpoint()], LATER)
    assert metrics.asked[-1][0] == NOW - timedelta(days=29)


def test_what_was_read_in_part_is_no_evidence_and_is_not_kept() -> None:
    metrics, kept = Metrics(), Kept()
    metrics.partly = True
    found = reader(metrics, kept).read([endpoint()], NOW)["chat"]
    assert isinstance(found, NoMetrics)
    assert kept.pages == {}


def test_a_running_day_is_never_kept() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW + timedelta(hours=9))
    (one,) = kept.load(page_of("chat", 1))
    assert one.until == NOW.date()
    assert all(d.day < NOW.date() for d in one.days)


def test_a_gap_of_days_is_read_from_where_the_memory_ends() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    reader(metrics, kept).read([endpoint()], NOW + timedelta(days=5, hours=3))
    start, end, _ = metrics.asked[-1]
    assert start.date() == NOW.date() - timedelta(days=1)
    assert end == NOW + timedelta(days=5)


def test_the_longest_look_back_is_remembered_whole_on_pages_of_its_own() -> None:
    old = replace(endpoint(), modified_at=NOW - timedelta(days=200))
    metrics, kept = Metrics(), Kept()
    long = replace(reader(metrics, kept, days=63), memory=UsageCache(kept, 100, 63))
    long.read([old], NOW)
    assert metrics.asked[-1][0] == NOW - timedelta(days=63)
    assert [*kept.pages] == [page_of("chat", 100, 63)] != [page_of("chat", 100)]
    again = long.read([old], LATER)["chat"]
    start, end, _ = metrics.asked[-1]
    assert (end - start) <= timedelta(days=2)
    assert isinstance(again, VariantUsage)
    assert len(complete(again, NOW)) >= 61


SCALING = ScalableTarget("endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", 1, 4)


class Live:
    """CloudWatch at one moment: three instances publish each minute, and the running five minutes are not over."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        end = end + (datetime.min.replace(tzinfo=UTC) - end) % timedelta(seconds=period_s)
        size = int((end - start).total_seconds()) // period_s
        minutes = [
            min(max(int((self.now - start - i * timedelta(seconds=period_s)).total_seconds() // 60), 0), period_s // 60)
            for i in range(size)
        ]
        signals = steady(30.0) | {("CPUUtilization", "SampleCount"): 0.0}
        for request in requests:
            made = dict[MetricStatistic, Series]()
            for (metric, statistic), value in signals.items():
                each = [value(i) if callable(value) else value for i in range(size)]
                if statistic == "Sum":
                    each = [v * m / 5 for v, m in zip(each, minutes, strict=True)]
                if statistic == "SampleCount":
                    each = [3.0 * m for m in minutes]
                told = [v if m else math.nan for v, m in zip(each, minutes, strict=True)]
                made[MetricStatistic(metric, statistic)] = Series(start, period_s, array("d", told))
            yield MetricWindow(request.endpoint, request.variant, start, end, period_s, made)


@cache
def judged_at(now: datetime, modified: timedelta = timedelta(days=60)) -> Recommendation:
    """What is recommended for three autoscaled instances at that moment; when it was judged is left out."""
    there = replace(endpoint(count=3, p95_s=5.0), scaling=(SCALING,), modified_at=NOW - modified)
    usage = UsageReader(Live(now), catalogue(), lambda _: History(), Policy()).read([there], now)["chat"]
    assert isinstance(usage, VariantUsage)
    found = judge_digests(there, usage, prices(), catalogue(), {}, History(), Policy(), now)
    return replace(found, evaluated_at=NOW)


@pytest.mark.parametrize("modified", [timedelta(days=60), timedelta(hours=20)], ids=["long-ago", "lately"])
@given(second=st.integers(1, 3599))
@settings(max_examples=12)
def test_the_recommendation_is_the_same_at_any_second_of_the_hour(modified: timedelta, second: int) -> None:
    hour = NOW + timedelta(hours=4)
    assert judged_at(hour + timedelta(seconds=second), modified) == judged_at(hour, modified)


@given(hours=st.integers(1, 23))
@settings(max_examples=8)
def test_the_recommendation_for_what_nobody_modified_is_the_same_at_any_hour_of_the_day(hours: int) -> None:
    assert judged_at(NOW + timedelta(hours=hours, minutes=17)) == judged_at(NOW + timedelta(hours=1))


def test_the_size_of_a_fleet_in_the_past_does_not_follow_from_its_size_now() -> None:
    now = NOW + timedelta(hours=4)
    grown = replace(endpoint(count=6), scaling=(SCALING,))
    usage = UsageReader(Live(now), catalogue(), lambda _: History(), Policy()).read([grown], now)["chat"]
    assert isinstance(usage, VariantUsage)
    assert {count for day in usage.days for count in day.instances} == {3.0}


def test_hours_that_are_unknown_or_have_not_happened_are_no_hours_without_requests() -> None:
    now = NOW + timedelta(hours=4, minutes=11)
    found = judged_at(now, timedelta(hours=20))
    assert found.evidence is not None
    assert found.evidence.end == NOW + timedelta(hours=3), "the last complete hour"
    assert len(found.hourly_requests) == (NOW + timedelta(hours=3) - found.evidence.start) / timedelta(hours=1)
    assert set(found.hourly_requests) == {360.0}


def two_variants() -> Endpoint:
    made = endpoint()
    second = replace(made.variants[0], name="B", instance_type="ml.g5.12xlarge")
    return replace(made, variants=(*made.variants, second))


def test_each_variant_is_read_with_what_its_own_type_has_and_kept_under_its_own_name() -> None:
    metrics, kept = Metrics(), Kept()
    found = reader(metrics, kept).read([two_variants(), named("other")], NOW)
    both = found["chat"]
    assert isinstance(both, EndpointUsage)
    assert [one.variant for one in both.variants] == ["AllTraffic", "B"]
    second = both.of_variant("B")
    assert isinstance(second, VariantUsage)
    assert {day.gpus for day in second.days} == {4}
    assert [count for _, _, count in metrics.asked] == [3], "variants and endpoints share their requests"
    assert {one.variant for page in kept.pages.values() for one in page.values()} == {"AllTraffic", "B"}
    reader(metrics, kept).read([two_variants()], LATER)
    start, end, count = metrics.asked[-1]
    assert (count, (end - start) <= timedelta(days=2)) == (2, True)


def test_a_page_of_a_release_that_read_the_first_variant_alone_is_read_on() -> None:
    metrics, kept = Metrics(), Kept()
    reader(metrics, kept).read([endpoint()], NOW)
    found = reader(metrics, kept).read([two_variants()], LATER)["chat"]
    assert isinstance(found, EndpointUsage)
    spans = sorted(end - start for start, end, _ in metrics.asked[1:])
    assert len(spans) == 2
    assert spans[0] <= timedelta(days=2) < timedelta(days=13) <= spans[1], "one new day of the first, all of the second"
    assert all(isinstance(one, VariantUsage) and len(one.days) >= 13 for one in found.variants)


def test_what_cannot_be_read_of_one_variant_leaves_the_other() -> None:
    class Half(Metrics):
        def read(
            self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
        ) -> Iterator[MetricWindow | NoMetrics]:
            for request, seen in zip(requests, super().read(requests, start, end, period_s), strict=True):
                refused = Reason(Code.READ_FAILED, "CloudWatch refused")
                yield NoMetrics(request.endpoint, "B", refused) if request.variant == "B" else seen

    found = reader(Half(), None).read([two_variants()], NOW)["chat"]
    assert isinstance(found, EndpointUsage)
    assert isinstance(found.of_variant("AllTraffic"), VariantUsage)
    assert isinstance(found.of_variant("B"), NoMetrics)


def test_a_variant_without_an_accelerator_is_left_out() -> None:
    plain = two_variants()
    cpu = replace(plain, variants=(plain.variants[0], replace(plain.variants[1], instance_type="ml.m5.2xlarge")))
    found = reader(Metrics(), None).read([cpu], NOW)["chat"]
    assert isinstance(found, EndpointUsage)
    assert [one.variant for one in found.variants] == ["AllTraffic"]
