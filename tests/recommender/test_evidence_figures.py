"""The figures behind a judgement, as people read them, and the requests of each hour."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import Demand, KvPool, MemoryClass
from rightsizer.domain.history import PastEnd
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.evidence import evidence_of, gpus_text, hourly_requests, peak_of, requests_by_hour
from tests.recommender import kit
from tests.recommender.plain import NEED, demand, past

FIRST = date(2026, 11, 2)
"""A Monday."""
MIDNIGHT = datetime(2026, 11, 2, tzinfo=UTC)
FOUR, ONE = kit.catalogue().types["ml.g5.12xlarge"], kit.catalogue().types["ml.g5.xlarge"]
LATER = MIDNIGHT + timedelta(days=30)


def day(number: int, slots: dict[int, float], busy: dict[int, float] | None = None) -> DailyUsage:
    """Requests and GPU seconds by slot; the others are unknown."""
    requests, work = (tuple(some.get(slot) for slot in range(SLOTS)) for some in (slots, busy or {}))
    none = (None,) * 4
    when = FIRST + timedelta(days=number)
    return DailyUsage(when, "ml.g5.xlarge", 1, requests, work, (1.0,) * 24, (), 0.0, 0.0, *none)


PLAIN = {
    "peak rate planned": "2.000 requests/s",
    "GPU memory": "static, peak 9.0 GiB per GPU",
    "GPU memory needed": "10.0 GiB per GPU with margin",
    "GPU utilisation": "mean 10.0 %, peak 30.0 % per GPU",
    "model latency": "p50 0.400 s, p95 1.000 s, p99 2.000 s",
    "GPU seconds per request": "0.1000 s",
    "GPU share of latency": "100 %",
    "host memory needed": "10.0 of 16 GiB with margin",
    "vCPU needed": "4.0 of 4 with margin",
}


def figures(load: Demand, runs: Any = ONE) -> dict[str, str]:
    return dict(evidence_of([day(0, {0: 1.0})], load, runs, (), LATER).figures)


def test_every_figure_has_its_unit() -> None:
    assert figures(demand()) == PLAIN
    assert figures(demand(gpu_share=0.25))["GPU share of latency"] == "25 %"
    two = replace(FOUR, accelerator_count=2)
    assert figures(demand(), two)["GPUs"] == "uses perhaps all of the 2 GPUs of ml.g5.12xlarge"


@pytest.mark.parametrize(
    ("unknown", "gone"),
    [
        ({"gpu_mean": None}, {"GPU utilisation"}),
        ({"gpu_peak": None}, {"GPU utilisation"}),
        ({"latency": None}, {"model latency"}),
        ({"gpu_s_per_request": None}, {"GPU seconds per request", "GPU share of latency"}),
        ({"host_memory_gib": None}, {"host memory needed"}),
        ({"vcpu": None}, {"vCPU needed"}),
        ({"memory": replace(NEED, need_gib=None)}, {"GPU memory needed"}),
    ],
    ids=lambda value: str(sorted(value)),
)
def test_what_is_not_known_has_no_figure(unknown: dict[str, Any], gone: set[str]) -> None:
    assert figures(demand(**unknown)) == {name: text for name, text in PLAIN.items() if name not in gone}


def test_several_gpus_are_named_and_how_unevenly_they_work() -> None:
    found = figures(demand(gpu_skew=(0.5, 0.125)), FOUR)
    assert found["GPUs"] == "uses perhaps all of the 4 GPUs of ml.g5.12xlarge"
    assert found["GPU skew"] == "busiest 50.0 %, least busy 12.5 % on average"


@pytest.mark.parametrize(
    ("used", "seen", "text"),
    [(None, False, "perhaps all"), (2, False, "at most 2"), (2, True, "2"), (None, True, "all")],
)
def test_gpus_that_worked_are_a_bound_unless_they_were_seen_singly(used: int | None, seen: bool, text: str) -> None:
    assert gpus_text(demand(gpus_used=used, gpus_seen=seen), FOUR) == f"{text} of the 4 GPUs of ml.g5.12xlarge"


def test_the_pool_of_a_server_is_shown_beside_its_weights() -> None:
    pooled = replace(NEED, kind=MemoryClass.PREALLOCATED, need_gib=15.04, pool=KvPool(20.0, 0.375, 1.1))
    found = figures(demand(memory=pooled))
    assert found["GPU memory"] == "pre-allocated, peak 29.0 GiB per GPU"
    assert found["GPU memory needed"] == "15.0 GiB per GPU with margin"
    assert found["KV cache"] == "at most 38 % of 20.0 GiB in use"
    assert found["model weights"] == "9.0 GiB"


def test_the_window_runs_from_the_first_datapoint_to_the_end_of_the_last_one() -> None:
    days = [day(1, {5: 1.0}), day(0, {100: 0.0}, {99: 0.0})]
    found = evidence_of(days, demand(days=1.2345, valid_share=0.123456, requests=6.6), ONE, (), LATER)
    assert found.start == MIDNIGHT + timedelta(minutes=5 * 99)
    assert found.end == MIDNIGHT + timedelta(days=1, minutes=30)
    assert (found.days, found.valid_share, found.requests) == (1.23, 0.1235, 7)
    over = evidence_of(days, demand(valid_share=1.2), ONE, (), LATER)
    assert over.valid_share == 1.0
    cut = evidence_of(days, demand(), ONE, (), MIDNIGHT + timedelta(days=1))
    assert cut.end == MIDNIGHT + timedelta(days=1)


def test_without_a_datapoint_the_window_is_whole_days() -> None:
    found = evidence_of([day(1, {}), day(0, {})], demand(), ONE, (), LATER)
    assert (found.start, found.end) == (MIDNIGHT, MIDNIGHT + timedelta(days=2))


TESTED = past(ended=PastEnd.TESTED, latency_ratio=2.0)
SERVED = past(realised_slowdown=2.0)


@pytest.mark.parametrize(
    ("load", "pasts", "rung"),
    [
        (demand(gpu_mean=None, latency=None), (SERVED,), "L0"),
        (demand(gpu_mean=None), (), "L1"),
        (demand(latency=None), (), "L1"),
        (demand(), (), "L1"),
        (demand(gpus_seen=True), (), "L2"),
        (demand(gpus_seen=True, memory=replace(NEED, pool=KvPool(1.0, 0.5, 1.1))), (), "L3"),
        (demand(memory=replace(NEED, pool=KvPool(1.0, 0.5, 1.1))), (TESTED,), "L4"),
        (demand(), (TESTED,), "L4"),
        (demand(), (TESTED, SERVED), "L5"),
        (demand(), (past(latency_ratio=2.0),), "L5"),
        (demand(), (past(),), "L1"),
    ],
)
def test_the_rung_of_the_evidence_is_the_best_that_was_reached(load: Demand, pasts: Any, rung: str) -> None:
    assert evidence_of([day(0, {0: 1.0})], load, ONE, pasts, LATER).rung == rung


def test_requests_of_each_hour_have_their_place_and_unknown_hours_are_unknown() -> None:
    days = [day(2, {0: 1.04, 1: 2.0, 287: 4.0}), day(0, {12: 5.0, 23: 1.0}), day(0, {13: 0.5})]
    hours = hourly_requests(days)
    assert len(hours) == 72
    assert {hour: count for hour, count in enumerate(hours) if count is not None} == {1: 6.5, 48: 3.0, 71: 4.0}
    assert hourly_requests(days, MIDNIGHT + timedelta(hours=2, minutes=30)) == hours[:2]
    assert hourly_requests(days, MIDNIGHT - timedelta(hours=2)) == ()
    assert hourly_requests([]) == ()
    assert hourly_requests([day(0, {12: 0.0})])[1] == 0.0, "known and nothing"


def test_the_sums_of_a_days_hours_take_what_is_unknown_as_nothing() -> None:
    found = requests_by_hour([day(0, {12: 5.0}), day(0, {13: 2.0, 24: 1.0}), day(3, {287: 3.0})])
    assert found == ((0.0, 7.0, 1.0, *(0.0,) * 21), (*(0.0,) * 23, 3.0))
    assert requests_by_hour([]) == ()


def test_an_hour_is_a_peak_from_a_fifth_above_the_mean_hour_on() -> None:
    """Of 24 hours with 10 requests one with 12.08 is 1.2 times the mean."""

    def busiest(count: float) -> Any:
        return peak_of([day(0, {slot: count / 12 if slot // 12 == 5 else 10 / 12 for slot in range(SLOTS)})])

    assert busiest(12.05) is None
    found = busiest(12.2)
    assert (found.hour, found.weekdays) == (5, (0, 1, 2, 3, 4, 5, 6))


def test_a_weekday_belongs_to_the_peak_from_half_of_the_hours_mean_on() -> None:
    """Monday has 100, Tuesday 30 and Wednesday 26 or 27 requests in the hour: the half of the mean is about 26."""
    for third, weekdays in ((26.0, (0, 1, 2, 3, 4, 5, 6)), (25.9, (0, 1, 3, 4, 5, 6))):
        found = peak_of([day(0, {0: 100.0}), day(1, {0: 30.0}), day(2, {0: third})])
        assert found is not None
        assert found.weekdays == weekdays


def test_of_hours_with_equal_medians_the_one_with_more_requests_is_the_peak() -> None:
    found = peak_of([day(0, {0: 1.0, 12: 1.0}), day(1, {0: 1.0, 12: 1.0}), day(2, {0: 1.0, 12: 5.0})])
    assert found is not None
    assert found.hour == 1
