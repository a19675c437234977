"""From the usage of days to what the load needs: each figure of a demand, from days made by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import Demand
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import BIN, SLOTS, DailyUsage, EachGpu, Fit, Spread
from rightsizer.recommender.demand import demand_of, latency_of
from rightsizer.recommender.usage_days import mark_stopped
from tests.recommender import kit
from tests.recommender.plain import NEED, near

TYPES = kit.catalogue(kit.OTHERS).types
ONE, FOUR = TYPES["ml.g5.xlarge"], TYPES["ml.g5.12xlarge"]
POLICY = Policy()
FAST, SLOW = 0, 300
"""Bins of 1 ms and of 380 ms."""
SLOW_S = BIN**SLOW / 1000


def day(number: int = 0, per_slot: float | None = 10.0, gpu_s: float | None = 0.1, **more: Any) -> DailyUsage:
    """A day with the same requests in each slot, each of which works `gpu_s` seconds on the GPU and takes 0.2 s."""
    count = per_slot or 0.0
    known = {
        "requests": (per_slot,) * SLOTS,
        "busy_s": (None if gpu_s is None else count * gpu_s,) * SLOTS,
        "instances": (1.0,) * 24,
        "latency": ((FAST, 0.5 * count * SLOTS), (SLOW, 0.5 * count * SLOTS)),
        "latency_total_s": 0.2 * count * SLOTS,
        "errors": 0.0,
        "gpu": None,
        "gpu_memory": None,
        "host_memory": None,
        "cpu": None,
        **more,
    }
    return DailyUsage(date(2026, 11, 1) + timedelta(days=number), "ml.g5.xlarge", 1, **known)


def seen(days: Sequence[DailyUsage], same: Sequence[DailyUsage] | None = None, runs: Any = ONE, **more: Any) -> Demand:
    return demand_of(days, same or days, runs, NEED, POLICY, **more)


def test_requests_and_days_are_counted_and_the_least_evidence_counts() -> None:
    found = seen([day(n) for n in range(3)])
    assert (found.requests, found.days, found.valid_share) == (10 * SLOTS * 3, 3.0, 1.0)
    assert found.confidence == 3, "days"
    rare = seen([day(n, 0.02) for n in range(3)])
    assert (rare.confidence, rare.requests) == (3, near(0.02 * SLOTS * 3)), "rare use was seen for three days"
    half = (1.0,) * (SLOTS // 2) + (None,) * (SLOTS // 2)
    assert seen([day(busy_s=half)]).confidence == near(0.5), "hours with datapoints"
    assert seen([day(), day()]).confidence == 1, "two digests of a day are a day"


def test_stopped_slots_are_neither_missing_nor_expected() -> None:
    night = (StoppedTime(datetime(2026, 11, 1, 12, tzinfo=UTC), datetime(2026, 11, 2, 12, tzinfo=UTC)),)
    half = SLOTS // 2
    values, gap = (1.0,) * half, (None,) * half
    evening = day(0, requests=values + gap, busy_s=values + gap)
    morning = day(1, requests=gap + values, busy_s=gap + values)
    found = seen(mark_stopped([evening, day(2), morning], night))
    assert (found.valid_share, found.confidence, found.days) == (1.0, 3, 2.0)
    assert seen([evening, day(2), morning]).confidence == 2
    marked, whole = mark_stopped([evening, day(2)], night)
    assert (marked.instances, marked.stopped) == ((1.0,) * 12 + (None,) * 12, tuple(range(half, SLOTS)))
    assert whole == day(2)
    assert mark_stopped([day()], night) == (day(),), "it published, so it ran"
    holes = (None, *values[1:])
    unknown = day(0, requests=holes + gap, busy_s=holes + gap)
    hole = day(1, requests=gap + holes, busy_s=gap + holes)
    assert seen(mark_stopped([unknown, hole], night)).valid_share < 1, "it ran, and published nothing"


def test_a_day_without_a_request_is_evidence_of_idleness_alone() -> None:
    quiet = [day(0), day(1, 0.0), day(2, 0.0)]
    assert seen(quiet).confidence == 1
    assert seen([day(0), day(1, 0.0)]).silent_days == 1
    idle = seen([day(n, 0.0) for n in range(3)])
    assert (idle.confidence, idle.silent_days) == (0.0, 3)


def test_silent_days_are_the_last_ones_with_utilisation() -> None:
    assert seen([day(0, 0.0), day(1), day(2, 0.0), day(3, 0.0)]).silent_days == 2
    blind = day(3, 0.0, busy_s=(None,) * SLOTS)
    assert seen([day(2, 0.0), blind]).silent_days == 0
    assert seen([day(0)]).silent_days == 0


def test_without_a_gpu_the_hours_are_those_with_known_requests() -> None:
    half = (10.0,) * (SLOTS // 2) + (None,) * (SLOTS // 2)
    blind = [day(requests=half, busy_s=(None,) * SLOTS)]
    assert seen(blind).confidence == 0.0
    assert seen(blind, runs=TYPES["ml.m5.2xlarge"]).confidence == near(0.5)
    assert (seen(blind).days, seen(blind).valid_share) == (0.5, 0.0)


def test_periods_are_expected_from_the_first_to_the_last_datapoint() -> None:
    late = (None,) * 100 + (1.0,) * (SLOTS - 100)
    early = (1.0,) * 200 + (None,) * (SLOTS - 200)
    hole = (1.0,) * 100 + (None,) * 144 + (1.0,) * 44
    assert seen([day(0, busy_s=late), day(1, busy_s=early)]).valid_share == 1.0
    assert seen([day(0, busy_s=hole)]).valid_share == 0.5
    assert seen([day(0, busy_s=hole), day(0, busy_s=hole)]).valid_share == 1.0, "two types on a day share it"


def test_the_latency_of_days_is_added_up() -> None:
    found = latency_of([day(0), day(1, latency=((SLOW, 2880.0),), latency_total_s=0.6 * 2880)])
    assert found is not None
    assert found.mean_s == near(0.4)
    assert (found.p50_s, found.p95_s) == (near(SLOW_S), near(SLOW_S))
    assert found.bins == ((0.001, near(0.25)), (near(SLOW_S), near(0.75)))
    middle = 0.25 * 0.001 + 0.75 * SLOW_S
    variance = 0.25 * (0.001 - middle) ** 2 + 0.75 * (SLOW_S - middle) ** 2
    assert found.squared_variation == near(variance / middle**2)
    assert latency_of([]) is None
    assert latency_of([day(latency=())]) is None


def test_the_quantiles_and_the_spread_of_a_long_tail() -> None:
    bins = ((0, 940.0), (100, 30.0), (200, 20.0), (500, 10.0))
    found = latency_of([day(latency=bins, latency_total_s=100.0)])
    assert found is not None
    assert (found.p50_s, found.p95_s) == (0.001, near(BIN**100 / 1000))
    assert found.p99_s in (near(BIN**200 / 1000), near(BIN**500 / 1000))
    assert found.squared_variation == 4.0, "four is the most that is believed"


def test_gpu_seconds_of_a_request_and_their_share_of_its_latency() -> None:
    found = seen([day()])
    assert (found.gpu_s_per_request, found.gpu_share, found.concurrency) == (near(0.1), near(0.5), 1.0)
    assert seen([day()], unqueued=0.625).gpu_share == near(0.8)
    assert seen([day(gpu_s=0.5)]).gpu_share == 1.0
    hidden = [day(busy_s=(None,) * 144 + (1.0,) * 144, requests=(10.0,) * SLOTS)]
    assert seen(hidden).gpu_s_per_request == near(0.1), "slots in which both are known"


@pytest.mark.parametrize(
    "days",
    [[day(per_slot=199.9 / SLOTS)], [day(gpu_s=0.0)], [day(gpu_s=None)], [day(latency=())]],
    ids=["too few requests", "an idle GPU", "no utilisation", "no latency"],
)
def test_gpu_seconds_are_not_told_by(days: list[DailyUsage]) -> None:
    found = seen(days)
    assert (found.gpu_s_per_request, found.gpu_share, found.concurrency) == (None, 1.0, 1.0)


def test_requests_in_service_at_once_share_the_gpu() -> None:
    """1,800 requests of 0.2 s in 300 s are 1.2 in service at once; 3,000 are two, which is batching."""
    some = seen([day(per_slot=1800.0, gpu_s=0.05)])
    assert (some.concurrency, some.gpu_share) == (near(1.2), near(0.05 * 1.2 / 0.2))
    batched = seen([day(per_slot=3000.0, gpu_s=0.05)])
    assert (batched.concurrency, batched.gpu_share) == (near(2.0), 1.0)
    spread = seen([day(per_slot=3000.0, gpu_s=0.05, instances=(2.0,) * 24)])
    assert spread.concurrency == 1.0
    four = seen([day(per_slot=7200.0, gpu_s=0.05)], runs=FOUR)
    assert four.concurrency == near(1.2)
    silent = replace(day(per_slot=3000.0), requests=(3000.0,) * 144 + (0.0,) * 144, busy_s=(150.0,) * SLOTS)
    assert seen([silent]).concurrency == near(2.0), "only slots with requests count"
    unknown = seen([day(per_slot=1800.0, gpu_s=0.05, instances=(None,) * 24)])
    assert unknown.concurrency == near(1.2), "an unknown count is one"


def test_the_load_is_planned_by_a_high_percentile_and_a_margin_for_few_days() -> None:
    found = seen([day(n) for n in range(4)]).load
    assert found.peak_rate == near(10 / 300 * 1.1)
    assert found.mean_rate == near(10 / 300)
    assert (found.hourly_known, found.hourly_rate) == (True, (near(10 / 300 * 1.1),) * 24)
    assert found.peak_busy_gpus == near(1.0 / 300 * 1.1)
    assert seen([day()]).load.peak_rate == near(10 / 300 * 1.2)


def test_the_hours_of_a_day_are_known_from_three_days_on() -> None:
    busy = (*(10.0,) * 12, *(1.0,) * (SLOTS - 12))
    found = seen([day(n, requests=busy) for n in range(3)]).load
    factor = (1 + 0.2 / math.sqrt(3)) / 300
    assert found.hourly_rate == (near(10 * factor), *(near(1 * factor),) * 23)
    few = seen([day(n, requests=busy) for n in range(2)]).load
    assert not few.hourly_known
    assert few.hourly_rate == (near(10 * (1 + 0.2 / math.sqrt(2)) / 300),) * 24
    gap = (*(None,) * 12, *busy[12:])
    assert not seen([day(n, requests=gap) for n in range(3)]).load.hourly_known
    worked = (*(30.0,) * 12, *(3.0,) * (SLOTS - 12))
    assert seen([day(n, busy_s=worked) for n in range(3)]).load.peak_busy_gpus == near(30 * factor)
    assert seen([day(gpu_s=None)]).load.peak_busy_gpus is None


def spread(p5: float, peak: float, p99: float | None = None, p95: float | None = None) -> Spread:
    return Spread(p5, p5, peak if p95 is None else p95, peak if p99 is None else p99, peak)


def test_the_host_needs_its_peak_memory_and_its_high_cpu_with_a_margin() -> None:
    found = seen(
        [
            day(0, host_memory=spread(0.1, 0.5), cpu=spread(0.1, 0.9, p99=0.5, p95=0.4)),
            day(1, host_memory=spread(0.1, 0.4), cpu=spread(0.1, 0.8, p99=0.3, p95=0.2)),
            day(2),
        ]
    )
    assert found.host_memory_gib == near(0.5 * 16 * 1.15)
    assert (found.vcpu, found.cpu_p95) == (near(0.5 * 4 * 1.2), 0.4)
    blind = seen([day()])
    assert (blind.host_memory_gib, blind.vcpu, blind.cpu_p95) == (None, None, None)


def test_the_gpu_is_busy_by_the_mean_over_slots_with_datapoints() -> None:
    found = seen([day(gpu=spread(0.1, 0.75)), day(1, gpu=spread(0.1, 0.5))])
    assert (found.gpu_mean, found.gpu_peak) == (near(1.0 / 300), 0.75)
    assert seen([day(instances=(2.0,) * 24)]).gpu_mean == near(1.0 / 600)
    assert seen([day()], runs=FOUR).gpu_mean == near(1.0 / 1200)
    half = (1.0,) * 144 + (None,) * 144
    assert seen([day(busy_s=half)]).gpu_mean == near(1.0 / 300)
    assert seen([day(instances=(0.0, *(1.0,) * 23))]).gpu_mean == near(1.0 / 300)
    assert seen([day(instances=(None,) * 24)]).gpu_mean is None


def test_failures_count_over_all_days_and_over_those_since() -> None:
    """Days after the last reference day count for themselves: what fails now is not hidden by what did not."""
    assert seen([day(0, errors=28.8), day(1)]).error_share == near(28.8 / 5760)
    days = [day(0), day(1, errors=28.8), day(2)]
    assert seen(days, days[:1]).error_share == near(28.8 / 5760)
    assert seen(days, days[:2]).error_share == near(28.8 / 5760)
    assert seen([day(0, 0.0, errors=3.0)]).error_share == 3.0


def test_requests_that_a_fleet_of_ours_refuses_count_though_the_reference_days_had_none() -> None:
    shape = (10.0,) * (SLOTS // 2) + (100.0,) * (SLOTS // 2)
    days = [day(0, requests=shape), day(1, requests=shape, refused=(4320.0, 0.0))]
    shares = seen(days, days[:1]).refused
    assert (shares.of_all, shares.busy, shares.quiet) == (near(4320 / 15840), near(0.3), 0.0)
    assert seen(days[:1]).refused.busy == 0


def test_the_largest_known_backlog_counts() -> None:
    assert seen([day(backlog=2.0), day(1, backlog=7.0), day(2)]).backlog == 7.0
    assert seen([day()]).backlog is None


def line(slope: float, level: float, slots: int = 48, noise: float = 0.0) -> Fit:
    points = [(0.1 + 0.01 * (n % 10), noise * (-1) ** (n // 10)) for n in range(slots)]
    pairs = [(x, level + slope * x + off) for x, off in points]
    return Fit(
        slots,
        sum(x for x, _ in pairs),
        sum(y for _, y in pairs),
        sum(x * x for x, _ in pairs),
        sum(x * y for x, y in pairs),
        sum(y * y for _, y in pairs),
    )


def test_the_vcpus_of_a_request_are_the_slope_of_cpu_against_gpu_work() -> None:
    """0.1 s on the GPU of 0.2 s; three vCPU seconds for a GPU second are three vCPUs in the host's own 0.1 s."""
    assert seen([day(host=line(3.0, 1.0))]).host_threads == pytest.approx(1.15 * 3.0, rel=1e-3)
    two = [day(0, host=line(3.0, 1.0, 24)), day(1, host=line(3.0, 1.0, 24))]
    assert seen(two).host_threads == pytest.approx(1.15 * 3.0, rel=1e-3)
    noisy = seen([day(host=line(3.0, 1.0, noise=0.01))]).host_threads
    assert noisy is not None
    assert 1.15 * 3.0 < noisy < 1.15 * 3.0 * 1.2
    assert seen([day(host=line(3.0, 0.0, noise=0.0))]).host_threads == pytest.approx(1.15 * 3.0, rel=1e-3)
    waited = seen([day(host=line(3.0, 1.0))], unqueued=0.75).host_threads
    assert waited == pytest.approx(1.15 * 3.0 * 0.1 / 0.05, rel=1e-3)


QUIET = spread(0.05, 0.5)


@pytest.mark.parametrize("host", [None, line(3.0, 1.0, 40), line(-3.0, 1.0), line(3.0, 1.0, noise=0.5)])
def test_where_no_line_can_be_drawn_all_cpu_above_its_quiet_level_is_the_requests(host: Fit | None) -> None:
    """A mean of one vCPU, of which 0.2 are always busy; 2,880 requests a day of 0.1 s keep 0.0033 busy."""
    found = seen([day(host=host, cpu=QUIET, cpu_mean=1.0)])
    assert found.host_threads == pytest.approx(1.5 * 0.8 / (2880 / 86400 * 0.1))
    loud = seen([day(host=host, cpu=spread(0.2, 0.5), cpu_mean=1.0)])
    assert loud.host_threads == pytest.approx(1.5 * 1.0 / (2880 / 86400 * 0.1)), "a level of 0.8 may be requests"
    two = seen([day(host=host, cpu=QUIET, cpu_mean=1.0, instances=(2.0,) * 23 + (None,))])
    assert two.host_threads == pytest.approx(1.5 * 1.6 / (2880 / 86400 * 0.1))


def test_vcpus_are_not_told_without_cpu_metrics_or_where_the_gpu_makes_all_of_the_latency() -> None:
    assert seen([day()]).host_threads is None
    assert seen([day(cpu=QUIET)]).host_threads is None
    assert seen([day(gpu_s=0.2, host=line(3.0, 1.0))]).host_threads is None
    assert seen([day(gpu_s=None, host=line(3.0, 1.0))]).host_threads is None


def four(number: int = 0, busy: float | None = 0.2, held: float | None = 0.2, each: Any = None) -> DailyUsage:
    return day(
        number,
        gpu=None if busy is None else spread(0.0, busy),
        gpu_memory=None if held is None else spread(0.0, held),
        each_gpu=each,
    )


def used(*days: DailyUsage) -> tuple[int | None, bool]:
    found = seen(days, runs=FOUR)
    return found.gpus_used, found.gpus_seen


def test_gpus_that_worked_are_bounded_by_utilisation_and_by_memory() -> None:
    assert used(four()) == (1, False)
    assert used(four(busy=0.26)) == (2, False)
    assert used(four(busy=0.255)) == (1, False), "2 % of a GPU are an error of the mean"
    assert used(four(held=0.51)) == (3, False)
    assert used(four(0), four(1, held=0.6)) == (3, False)
    assert used(four(busy=0.9)) == (None, False)
    assert used(four(held=None)) == (None, False)
    assert used(four(busy=None)) == (None, False)
    assert used(four(busy=0.0, held=0.0)) == (1, False)
    assert seen([four()]).gpus_used is None, "one GPU"


def test_gpus_that_were_seen_singly_are_counted() -> None:
    one = EachGpu((0.5, 0.009, 0.0, 0.0), (0.3, 0.001, 0.0, 0.0))
    two = EachGpu((0.5, 0.01, 0.0, 0.0), (0.1, 0.005, 0.0, 0.0))
    assert used(four(held=0.9, each=one)) == (1, True)
    assert used(four(held=0.9, each=one), four(1, held=0.9, each=two)) == (2, True)
    assert used(four(held=0.9, each=one), four(1)) == (1, False), "on one of the days they were not"
    faint = EachGpu((0.006, 0.002, 0.001, 0.0), (0.001,) * 4)
    assert used(four(busy=0.002, each=faint)) == (2, True), "within three times of the busiest"
    dead = EachGpu((0.0,) * 4, (0.0,) * 4)
    assert used(four(busy=0.0, held=0.6, each=dead)) == (3, False)
    skew = seen([four(each=one), four(1, each=two), four(2)], runs=FOUR).gpu_skew
    assert skew == (near(0.2), 0.0)
    assert seen([four()], runs=FOUR).gpu_skew is None


def by_residuals(slope: float, level: float, noise: float, slots: int = 48) -> tuple[float, float, float]:
    """Slope, its standard error and the mean ratio of the points of `line`, by their residuals."""
    points = [(0.1 + 0.01 * (n % 10), noise * (-1) ** (n // 10)) for n in range(slots)]
    xs, ys = [x for x, _ in points], [level + slope * x + off for x, off in points]
    middle, height = sum(xs) / slots, sum(ys) / slots
    spread_x = sum((x - middle) ** 2 for x in xs)
    found = sum((x - middle) * (y - height) for x, y in zip(xs, ys, strict=True)) / spread_x
    left = sum((y - height - found * (x - middle)) ** 2 for x, y in zip(xs, ys, strict=True))
    return found, math.sqrt(left / (slots - 2) / spread_x), sum(ys) / sum(xs)


@pytest.mark.parametrize(("level", "noise"), [(1.0, 0.01), (1.0, 0.05), (0.0, 0.01), (1.0, 0.07)])
def test_the_line_is_taken_two_standard_errors_up_at_most_at_the_mean_and_only_where_it_is_known_to_a_fifth(
    level: float, noise: float
) -> None:
    slope, error, mean = by_residuals(3.0, level, noise)
    known = 2 * error <= 0.2 * slope
    assert known is (noise < 0.06), "the last one is too rough"
    found = seen([day(host=line(3.0, level, noise=noise), cpu=QUIET, cpu_mean=1.0)]).host_threads
    by_level = 1.5 * 0.8 / (2880 / 86400 * 0.1)
    assert found == pytest.approx(1.15 * min(slope + 2 * error, mean) if known else by_level)


def test_cpu_above_its_quiet_level_is_added_up_over_days() -> None:
    """Means of two and of one vCPU, of which 0.2 and nothing are always busy; a day without CPU metrics is left out."""
    days = [
        day(0, cpu=QUIET, cpu_mean=2.0),
        day(1, per_slot=20.0, cpu=spread(0.0, 0.5), cpu_mean=1.0, instances=(None,) * 24),
        day(2, cpu=None, cpu_mean=1.0),
    ]
    calls = (10 + 20) * SLOTS / 86400
    assert seen(days).host_threads == pytest.approx(1.5 * (1.8 + 1.0) / (calls * 0.1))
    half = seen([day(cpu=spread(0.2, 0.5), cpu_mean=2.0)]).host_threads
    assert half == pytest.approx(1.5 * 1.2 / (2880 / 86400 * 0.1)), "0.8 of two are less than half"


def test_a_demand_carries_its_latency_and_its_memory_and_counts_what_is_known() -> None:
    found = seen([day()])
    assert (found.latency, found.memory) == (latency_of([day()]), NEED)
    third = (10.0,) * 96 + (None,) * 192
    assert seen([day(requests=third, busy_s=(None,) * SLOTS)]).days == near(1 / 3)


def test_the_load_is_that_of_all_days_and_not_of_the_last_one() -> None:
    found = seen([day(0, 30.0), day(1, 10.0)]).load
    factor = (1 + 0.2 / math.sqrt(2)) / 300
    assert (found.peak_rate, found.peak_busy_gpus) == (near(30 * factor), near(3 * factor))
    assert found.mean_rate == near(20 / 300)


def test_two_gpus_of_which_one_works() -> None:
    two = replace(ONE, accelerator_count=2)
    assert seen([four(busy=0.3, held=0.3)], runs=two).gpus_used == 1
    assert seen([four(busy=0.3, held=0.495)], runs=two).gpus_used == 1
    both = EachGpu((0.5, 0.4, 0.3, 0.2), (0.5, 0.4, 0.3, 0.2))
    again = EachGpu((0.3, 0.2, 0.2, 0.1), (0.3, 0.2, 0.2, 0.1))
    assert seen([four(each=both), four(1, each=again)], runs=FOUR).gpu_skew == (near(0.4), near(0.15))
    assert seen([four(held=None), four(1)], runs=FOUR).gpus_used == 1


def test_one_request_in_a_hundred_tells_the_p99() -> None:
    bins = ((0, 985.0), (100, 10.0), (300, 5.0))
    found = latency_of([day(latency=bins, latency_total_s=10.0)])
    assert found is not None
    assert found.p99_s == near(BIN**100 / 1000)
