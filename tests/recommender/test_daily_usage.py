"""Datapoints of a day become its usage: each figure from a window made by hand."""

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.usage import (
    BIN,
    OF_A_DAY,
    SIGNALS,
    SLOTS,
    DailyUsage,
    Fit,
    GpuSeries,
    MetricStatistic,
    MetricWindow,
    Series,
    Spread,
)
from rightsizer.errors import InputError
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage, full_slots
from rightsizer.recommender.each_gpu import add_each_gpu, add_kv_cache
from tests.recommender import kit
from tests.recommender.plain import near

ONE, FOUR = kit.catalogue().types["ml.g5.xlarge"], kit.catalogue().types["ml.g5.12xlarge"]
START = datetime(2026, 11, 1, tzinfo=UTC)
NAN = math.nan
type Values = Callable[[int], float] | float


def series(value: Values, period_s: int = 300, days: int = 1, start: datetime = START) -> Series:
    size = days * 86400 // period_s
    return Series(start, period_s, array("d", [value(i) if callable(value) else value for i in range(size)]))


def window(values: Mapping[tuple[str, str], Values], period_s: int = 300, days: int = 1, **more: Any) -> MetricWindow:
    known = {MetricStatistic(*key): series(value, period_s, days) for key, value in values.items()}
    return MetricWindow("chat", "AllTraffic", START, START + timedelta(days=days), period_s, known, **more)


CALLS, GPU, CPU = ("Invocations", "Sum"), ("GPUUtilization", "Average"), ("CPUUtilization", "Average")
MEAN, P50, P95 = ("ModelLatency", "Average"), ("ModelLatency", "p50"), ("ModelLatency", "p95")
PLAIN: dict[tuple[str, str], Values] = {CALLS: 6.0, GPU: 50.0}


def one(values: Mapping[tuple[str, str], Values], setup: VariantSetup | None = None, period_s: int = 300) -> DailyUsage:
    (usage,) = daily_usage(window(values, period_s), setup or VariantSetup(ONE, 1))
    return usage


def first(count: int, value: float = NAN, other: float = 1.0) -> Callable[[int], float]:
    """`value` in the first periods, `other` after them."""
    return lambda i: value if i < count else other


@pytest.mark.parametrize("gaps", [0.0, 0.5, 0.999])
def test_one_datapoint_a_day_of_highest_values_and_sums_says_what_all_say(gaps: float) -> None:
    chance, days = Random(7), 2
    known: dict[MetricStatistic, Series] = {}
    for signal in SIGNALS:
        values = [NAN if chance.random() < gaps else float(chance.randint(0, 100)) for _ in range(days * SLOTS)]
        known[signal] = Series(START, 300, array("d", values))
    whole = window({}, days=days)
    parts = (
        (signal, [v for v in each.values[day * SLOTS : (day + 1) * SLOTS] if v == v])
        for signal, each in known.items()
        if signal in OF_A_DAY and signal.metric != "OverheadLatency"
        for day in range(days)
    )
    by_day: dict[MetricStatistic, list[float]] = {}
    for signal, some_values in parts:
        found = (max if signal.statistic == "Maximum" else sum)(some_values) if some_values else NAN
        by_day.setdefault(signal, []).append(found)
    coarse = {signal: Series(START, 86400, array("d", values)) for signal, values in by_day.items()}
    setup = VariantSetup(FOUR, 2)
    assert daily_usage(replace(whole, series=known | coarse), setup) == daily_usage(replace(whole, series=known), setup)


def test_a_day_keeps_its_requests_its_gpu_seconds_and_its_instances() -> None:
    found = one(PLAIN, VariantSetup(FOUR, 2))
    assert (found.day, found.instance_type, found.gpus) == (START.date(), "ml.g5.12xlarge", 4)
    assert found.requests == (6.0,) * SLOTS
    assert found.busy_s == (0.5 * 2 * 300,) * SLOTS
    assert found.instances == (2.0,) * 24
    assert found.gpu == Spread(0.125, 0.125, 0.125, 0.125, 0.125), "50 of 400 percent"
    assert (found.latency, found.latency_total_s, found.errors) == ((), 0.0, 0.0)
    assert (found.gpu_memory, found.host_memory, found.cpu, found.cpu_mean) == (None, None, None, None)
    assert (found.host, found.backlog, found.within) == (None, None, None)


def test_4xx_answers_are_told_apart_by_how_much_else_came() -> None:
    """The 287 slots of ten requests are full, that of four is not."""
    found = one({CALLS: first(287, 10.0, 4.0), GPU: 50.0, ("Invocation4XXErrors", "Sum"): first(287, 1.0, 2.0)})
    assert found.refused == (287.0, 2.0)
    assert len(full_slots(found)) == 287
    assert one(PLAIN).refused == (0.0, 0.0)


def test_peaks_and_means_of_the_other_metrics() -> None:
    metrics = PLAIN | {
        CPU: 200.0,
        ("CPUUtilization", "Maximum"): 300.0,
        ("MemoryUtilization", "Average"): 30.0,
        ("MemoryUtilization", "Maximum"): 40.0,
        ("GPUMemoryUtilization", "Average"): 60.0,
        ("GPUMemoryUtilization", "Maximum"): 70.0,
        ("GPUUtilization", "Maximum"): 90.0,
        ("Invocation5XXErrors", "Sum"): first(287, NAN, 3.0),
        ("ApproximateBacklogSize", "Maximum"): first(5, 7.0, NAN),
    }
    found = one(metrics)
    assert found.cpu == Spread(0.5, 0.5, 0.5, 0.5, 0.75), "of four vCPUs"
    assert (found.cpu_mean, found.errors, found.backlog) == (2.0, 3.0, 7.0)
    assert found.host_memory == Spread(0.3, 0.3, 0.3, 0.3, 0.4)
    assert found.gpu_memory == Spread(0.6, 0.6, 0.6, 0.6, 0.7)
    assert found.gpu == Spread(0.5, 0.5, 0.5, 0.5, 0.9)


def test_the_line_of_cpu_against_gpu_work_has_the_sums_of_both() -> None:
    metrics = PLAIN | {GPU: first(100, 20.0, 40.0), CPU: first(100, 50.0, first(200, 90.0, NAN)(150))}
    x, y = (0.2, 0.4), (0.5, 0.9)
    n = (100, 188)
    sums = [sum(c * f for c, f in zip(n, values, strict=True)) for values in (x, y)]
    squares = [sum(c * a * b for c, a, b in zip(n, p, q, strict=True)) for p, q in ((x, x), (x, y), (y, y))]
    assert one(metrics).host == Fit(288.0, *(near(v) for v in (*sums, *squares)))
    assert one(PLAIN | {CPU: first(287, NAN, 90.0)}).host == Fit(1.0, 0.5, 0.9, 0.25, 0.45, 0.81)


def test_no_requests_are_published_where_none_came_and_that_is_known_only_where_something_ran() -> None:
    found = one({CALLS: first(100, NAN, 4.0), GPU: first(50, NAN, 10.0)})
    assert found.requests == (None,) * 50 + (0.0,) * 50 + (4.0,) * 188
    asleep = VariantSetup(ONE, 1, counts=series(first(20, 0.0, 1.0)))
    found = one({CALLS: first(100, NAN, 4.0), GPU: first(50, NAN, 10.0)}, asleep)
    assert found.requests == (0.0,) * 20 + (None,) * 30 + (0.0,) * 50 + (4.0,) * 188
    for metric in ("GPUMemoryUtilization", "CPUUtilization", "MemoryUtilization"):
        assert one({(metric, "Average"): 5.0}).requests == (0.0,) * SLOTS


def test_a_day_without_a_datapoint_is_left_out() -> None:
    assert daily_usage(window({}), VariantSetup(ONE, 1)) == ()
    two = window({CALLS: first(288, NAN, 4.0)}, days=2)
    assert [d.day.day for d in daily_usage(two, VariantSetup(ONE, 1))] == [2]
    assert [d.day.day for d in daily_usage(window({CALLS: 4.0}, days=3), VariantSetup(ONE, 1))] == [1, 2, 3]


def test_a_window_that_begins_within_a_day_has_that_day() -> None:
    late = window({})
    noon = START + timedelta(hours=12)
    known = {MetricStatistic(*CALLS): Series(noon, 300, array("d", [5.0] * 144))}
    (found,) = daily_usage(replace(late, start=noon, series=known), VariantSetup(ONE, 1))
    assert found.day == START.date()
    assert found.requests == (None,) * 144 + (5.0,) * 144


def test_datapoints_of_another_configuration_are_left_out() -> None:
    since = START + timedelta(hours=1, seconds=1)
    found = one(PLAIN, VariantSetup(ONE, 1, since=since))
    assert found.requests == (None,) * 13 + (6.0,) * 275
    assert daily_usage(window(PLAIN), VariantSetup(ONE, 1, since=START + timedelta(days=1))) == ()
    assert one(PLAIN, VariantSetup(ONE, 1, since=START - timedelta(days=9))).requests == (6.0,) * SLOTS


def test_a_period_has_to_divide_five_minutes() -> None:
    with pytest.raises(InputError, match="digests need a period that divides 300 s, got 3600 s"):
        daily_usage(window(PLAIN, 3600), VariantSetup(ONE, 1))


def test_the_first_metric_of_requests_with_a_datapoint_counts() -> None:
    processed, misspelt = ("InvocationsProcessed", "Sum"), ("InvocationsProcesssed", "Sum")
    assert one({processed: 3.0, misspelt: 5.0}).requests == (3.0,) * SLOTS
    assert one({CALLS: NAN, misspelt: 5.0}).requests == (5.0,) * SLOTS
    assert one({CALLS: 2.0, processed: 3.0}).requests == (2.0,) * SLOTS


def test_instances_are_told_or_counted_by_their_samples_or_taken_as_now() -> None:
    samples = ("CPUUtilization", "SampleCount")
    assert one(PLAIN | {samples: 15.0}).instances == (3.0,) * 24, "one a minute from each"
    assert one(PLAIN | {samples: 15.0}, VariantSetup(ONE, 1, publish_s=120)).instances == (6.0,) * 24
    assert one(PLAIN | {samples: 1.0}).instances == (1.0,) * 24, "one at least"
    half = one(PLAIN | {samples: first(6, NAN, 10.0)}, VariantSetup(ONE, 4)).instances
    assert half == (3.0, *(2.0,) * 23), "as now where there is no sample"
    assert one(PLAIN | {samples: 15.0}, VariantSetup(ONE, 0)).instances == (0.0,) * 24
    told = one(PLAIN | {samples: 15.0}, VariantSetup(ONE, 1, counts=series(first(12, NAN, 5.0))))
    assert told.instances == (None, *(5.0,) * 23)
    other = VariantSetup(ONE, 1, counts=series(5.0, 60))
    assert one(PLAIN, other).instances == (None,) * 24, "counts of another period are none"


def test_minutes_make_a_slot_where_most_of_it_is_known() -> None:
    found = one({CALLS: lambda i: NAN if i % 5 > 2 else 2.0}, period_s=60)
    assert found.requests == (10.0,) * SLOTS, "three of five minutes stand for all"
    assert one({CALLS: lambda i: NAN if i % 5 > 1 else 2.0}, period_s=60).requests == (None,) * SLOTS
    assert one({CALLS: 1.0, GPU: 50.0}, period_s=60).busy_s == (150.0,) * SLOTS


def test_the_rate_within_slots_varies_by_more_than_chance() -> None:
    """Minutes of 10 and 0 requests in turn: the mean of five is 6, the variance 30, and chance is 6."""
    uneven = one({CALLS: lambda i: 0.0 if i % 5 in (1, 3) else 10.0}, period_s=60)
    assert uneven.within == round((30 - 6) / (36 - 6 / 5), 4)
    assert one({CALLS: 10.0}, period_s=60).within == 0.0
    assert one({CALLS: lambda i: NAN if i % 5 == 0 else 10.0}, period_s=60).within is None
    assert one({CALLS: 0.0, GPU: 1.0}, period_s=60).within is None


def latencies(metrics: Mapping[tuple[str, str], Values]) -> dict[float, float]:
    """Milliseconds, to 2 %, and the share of the requests."""
    found = one(metrics)
    total = sum(weight for _, weight in found.latency)
    return {round(BIN**index, 1): round(weight / total, 3) for index, weight in found.latency}


def bin_ms(milliseconds: float) -> float:
    return round(BIN ** round(math.log(milliseconds) / math.log(BIN)), 1)


def test_without_quantiles_all_requests_take_the_mean() -> None:
    found = one({CALLS: 6.0, MEAN: 2e6})
    assert latencies({CALLS: 6.0, MEAN: 2e6}) == {bin_ms(2000): 1.0}
    assert found.latency_total_s == near(6 * 2.0 * SLOTS)
    assert sum(weight for _, weight in found.latency) == near(6.0 * SLOTS)
    assert latencies({CALLS: 1.0, MEAN: 2e6, P50: 1e6}) == {bin_ms(2000): 1.0}, "one request has no quantiles"
    assert one({CALLS: 6.0, MEAN: 0.0}).latency == ()
    assert one({CALLS: 0.0, GPU: 1.0, MEAN: 2e6}).latency == ()
    assert one({CALLS: 6.0, MEAN: first(287, NAN, 2e6)}).latency_total_s == near(12.0)


def test_between_two_quantiles_half_of_the_requests_lie_at_either() -> None:
    """Of 100 requests half are below 1 s, 45 % between that and 2 s, the rest at 2 s; the mean places the lowest."""
    mean = (0.5 * 0.4 + 0.225 * 1 + 0.275 * 2) * 1e6
    found = latencies({CALLS: 100.0, MEAN: mean, P50: 1e6, P95: 2e6})
    assert found == {bin_ms(400): 0.5, bin_ms(1000): 0.225, bin_ms(2000): 0.275}


def test_few_requests_above_a_quantile_lie_at_the_next_one() -> None:
    """Of two requests one is above the median: it is nearly the slowest."""
    found = latencies({CALLS: 2.0, MEAN: 1.2e6, P50: 1e6, P95: 2e6})
    assert found == {bin_ms(400): 0.5, bin_ms(2000): 0.5}


SHARES_OF_FOUR = {
    50: (0.2, 0.225, 0.045, 0.03),
    15: (0.2, 0.225, 0.025, 0.05),
    5: (0.2, 0.2, 0.05, 0.05),
    2: (0.0, 0.4, 0.05, 0.05),
}
"""Of the requests, at p50, p90, p95 and p99: 40, 5, 4 and 1 % lie between and above them."""


@pytest.mark.parametrize("calls", SHARES_OF_FOUR)
@pytest.mark.parametrize(("lowest", "mean"), [(400, 400), (50, 0), (1000, 90_000)], ids=["told", "least", "most"])
def test_all_four_quantiles_place_the_requests_whatever_their_number(calls: int, lowest: int, mean: int) -> None:
    """The lower half lies where the mean asks for it, between a twentieth of the median and the median."""
    at, shares = (1000, 2000, 3000, 8000), SHARES_OF_FOUR[calls]
    whole = 0.5 * mean + sum(share * ms for share, ms in zip(shares, at, strict=True)) if mean else 500
    names = [("ModelLatency", name) for name in ("p50", "p90", "p95", "p99")]
    found = latencies({CALLS: float(calls), MEAN: whole * 1e3} | {n: ms * 1e3 for n, ms in zip(names, at, strict=True)})
    expected = dict.fromkeys(map(bin_ms, (lowest, *at)), 0.0)
    for ms, share in zip((lowest, *at), (0.5, *shares), strict=True):
        expected[bin_ms(ms)] += share
    assert found == {ms: near(share) for ms, share in expected.items() if share}


def test_quantiles_of_microseconds_have_the_lowest_bin_too() -> None:
    fast = {("ModelLatency", name): 3.0 for name in ("p50", "p90", "p95", "p99")}
    assert (
        min(index for index, _ in one({CALLS: 1000.0, MEAN: 1.0, **fast}).latency)
        == one({CALLS: 2.0, MEAN: 1.0}).latency[0][0]
    )


def test_the_lowest_requests_lie_between_nothing_and_the_lowest_quantile() -> None:
    low = latencies({CALLS: 100.0, MEAN: 0.1e6, P50: 1e6})
    assert low == {bin_ms(50): 0.5, bin_ms(1000): 0.5}
    high = latencies({CALLS: 100.0, MEAN: 9e6, P50: 1e6})
    assert high == {bin_ms(1000): 1.0}


def test_a_latency_below_a_microsecond_has_the_lowest_bin() -> None:
    assert one({CALLS: 2.0, MEAN: 0.5}).latency == one({CALLS: 2.0, MEAN: 1.0}).latency


@given(calls=some.integers(2, 10_000), p50=some.floats(1e3, 1e7), p95=some.floats(1.0, 9.0), mean=some.floats(0.3, 3.0))
def test_the_histogram_keeps_all_requests_and_its_mean_where_quantiles_allow_it(
    calls: int, p50: float, p95: float, mean: float
) -> None:
    found = one({CALLS: float(calls), MEAN: mean * p50, P50: p50, P95: p95 * p50})
    total = sum(weight for _, weight in found.latency)
    assert total == pytest.approx(calls * SLOTS, rel=1e-3)
    kept = sum(BIN**index / 1000 * weight for index, weight in found.latency) / total
    tops = 0.5 * p50 + 0.5 * p95 * p50
    if 0.5 * 0.05 * p50 + tops <= mean * p50 <= p50 * 0.5 + 0.225 * p50 + 0.275 * p95 * p50:
        assert kept == pytest.approx(mean * p50 / 1e6, rel=0.03)


def gpus(*levels: tuple[Values, Values | None], instance: str = "i-0") -> tuple[GpuSeries, ...]:
    return tuple(
        GpuSeries(instance, str(n), series(busy), None if held is None else series(held))
        for n, (busy, held) in enumerate(levels)
    )


QUAD: dict[tuple[str, str], Values] = {CALLS: 6.0, GPU: 60.0, ("GPUMemoryUtilization", "Average"): 80.0}


def singly(each: Sequence[GpuSeries], since: datetime | None = None, hardware: Any = FOUR) -> DailyUsage:
    seen = window(QUAD, gpus=tuple(each))
    (usage,) = daily_usage(seen, VariantSetup(hardware, 1))
    return add_each_gpu(usage, seen, since)


LEVELS: list[tuple[Values, Values | None]] = [(30.0, 20.0), (first(1, 90.0, 10.0), 50.0), (0.0, 5.0), (20.0, 5.0)]


def test_the_gpus_of_an_instance_are_ranked_by_what_they_did() -> None:
    found = singly(gpus(*LEVELS))
    assert found.each_gpu is not None
    assert found.each_gpu.peaks == (0.9, 0.3, 0.2, 0.0)
    assert found.each_gpu.means == (0.3, 0.2, near(round((90 + 287 * 10) / 28800, 5)), 0.0)
    assert found.gpu_memory == Spread(0.5, 0.5, 0.5, 0.5, 0.5), "of the fullest one"
    lean = singly(gpus(*((busy, 10.0) for busy, _ in LEVELS)))
    assert lean.gpu_memory == Spread(0.2, 0.2, 0.2, 0.2, 0.2), "where that is more than the mean of all"


def test_of_several_instances_the_higher_peak_at_each_rank_and_the_busier_means_count() -> None:
    other = gpus((40.0, 20.0), (40.0, 20.0), (40.0, 20.0), (40.0, 20.0), instance="i-1")
    found = singly((*gpus(*LEVELS), *other)).each_gpu
    assert found is not None
    assert (found.peaks, found.means) == ((0.9, 0.4, 0.4, 0.4), (0.4,) * 4)


def test_two_series_of_one_gpu_are_one_gpu() -> None:
    again = GpuSeries("i-0", "0", series(first(100, NAN, 70.0)), series(20.0))
    found = singly((*gpus(*LEVELS), again)).each_gpu
    assert found is not None
    assert found.peaks == (0.9, 0.7, 0.2, 0.0)


@pytest.mark.parametrize(
    "each",
    [
        pytest.param((), id="nothing published"),
        pytest.param(gpus(*LEVELS[:3]), id="a GPU is missing"),
        pytest.param(gpus(*LEVELS[:3], (20.0, None)), id="a GPU without memory"),
        pytest.param(gpus(*LEVELS[:3], (first(58, NAN, 20.0), 5.0)), id="seen for less than four fifths"),
    ],
)
def test_single_gpus_are_unknown_where(each: tuple[GpuSeries, ...]) -> None:
    assert singly(each).each_gpu is None
    assert singly(each).gpu_memory == Spread(0.2, 0.2, 0.2, 0.2, 0.2)


def test_four_fifths_of_the_day_are_enough_and_only_those_since_the_last_change_count() -> None:
    assert singly(gpus(*LEVELS[:3], (first(57, NAN, 20.0), 5.0))).each_gpu is not None
    late = singly(gpus(*LEVELS), since=START + timedelta(minutes=4)).each_gpu
    assert late is not None
    assert late.peaks == (0.3, 0.2, 0.1, 0.0)
    assert singly(gpus(*LEVELS), since=START + timedelta(days=2)).each_gpu is None
    assert singly(gpus(*LEVELS), since=START - timedelta(days=2)).each_gpu is not None
    assert singly(gpus((30.0, 20.0)), hardware=ONE).each_gpu is None, "one GPU is what all do"


def cached(cache: Series | None, since: datetime | None = None, **metrics: Values) -> Spread | None:
    seen = window(QUAD | {("GPUMemoryUtilization", "Average"): metrics.get("held", 80.0)}, kv_cache=cache)
    (usage,) = daily_usage(seen, VariantSetup(ONE, 1))
    return add_kv_cache(usage, seen, since).kv_cache


def test_the_use_of_the_kv_cache_is_known_where_most_of_the_day_was_seen() -> None:
    assert cached(None) is None
    assert cached(series(0.4)) == Spread(0.4, 0.4, 0.4, 0.4, 0.4)
    assert cached(series(first(57, NAN, 0.4))) == Spread(0.4, 0.4, 0.4, 0.4, 0.4)
    assert cached(series(first(58, NAN, 0.4))) is None
    assert cached(series(first(100, NAN, 0.4)), held=first(100, NAN, 80.0)) is not None, "nothing ran before"
    later = cached(series(first(12, 0.9, 0.4)), since=START + timedelta(hours=1))
    assert later == Spread(0.4, 0.4, 0.4, 0.4, 0.4)
    assert cached(series(first(12, 0.9, 0.4)), since=START + timedelta(minutes=54)) == Spread(0.4, 0.4, 0.4, 0.4, 0.9)
    blind = window(PLAIN, kv_cache=series(0.4))
    (usage,) = daily_usage(blind, VariantSetup(ONE, 1))
    assert add_kv_cache(usage, blind, None).kv_cache is None


def test_a_period_with_a_backlog_has_a_request_that_nobody_counted() -> None:
    """AWS counts what is being processed in the backlog too, so that only an empty one is silence."""
    window = kit.window({("GPUUtilization", "Average"): 0.0, ("Invocations", "Sum"): 0.0}, days=1)
    held = array("d", [0.0] * 10 + [2.0] + [0.0] * 277)
    backlog = {MetricStatistic("ApproximateBacklogSize", "Maximum"): Series(window.start, 300, held)}
    (day,) = daily_usage(
        replace(window, series={**window.series, **backlog}), VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1)
    )
    assert [slot for slot, calls in enumerate(day.requests) if calls is None] == [10]
    assert day.backlog == 2
