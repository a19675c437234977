"""The replay of past days: heavy hours, autoscaling, the guard; and the latency histogram behind it."""

from array import array
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.demand import Fleet, ReplayResult, Stream
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage, MetricStatistic, MetricWindow, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.hourly_counts import concurrency_by_hour, hourly_plan
from rightsizer.recommender.latency import service_time_of, share_of_late_requests
from rightsizer.recommender.replay import replay_requests, roughness, stream_of
from tests.recommender.kit import catalogue
from tests.recommender.test_failed_fleets import index
from tests.recommender.test_few_requests import at_of, sparse

HOUR = 3600.0


def day(requests: list[float], busy: list[float]) -> DailyUsage:
    return DailyUsage(
        date(2026, 11, 1),
        "ml.g6e.xlarge",
        1,
        tuple(requests),
        tuple(busy),
        (1.0,) * 24,
        ((0, 1.0),),
        1.0,
        0.0,
        None,
        None,
        None,
        None,
    )


def flat(count: int, workers: int = 1, maximum: int = 0) -> Fleet:
    return Fleet((count,) * 24, workers, False, 1.0, maximum=maximum)


def crowd(start: float, length_s: float, every_s: float, work_s: float) -> tuple[list[float], list[float]]:
    arrivals = [start + i * every_s for i in range(int(length_s / every_s))]
    return arrivals, [work_s] * len(arrivals)


def test_requests_of_a_heavy_hour_are_served_with_their_own_weight() -> None:
    requests = [20.0] * SLOTS
    busy = [20.0 * (3.0 if 120 <= slot < 132 else 1.0) for slot in range(SLOTS)]
    stream = stream_of([day(requests, busy)], ((1.0, 1.0),), 10_000)
    arrivals, services = stream.days[0]
    heavy = [work for at, work in zip(arrivals, services, strict=True) if 10 * HOUR <= at < 11 * HOUR]
    light = [work for at, work in zip(arrivals, services, strict=True) if at < 10 * HOUR]
    assert sum(heavy) / len(heavy) > 2.5 * sum(light) / len(light)


def test_autoscaling_carries_a_lasting_crowd_that_one_instance_does_not() -> None:
    stream = Stream((crowd(10 * HOUR, 3 * HOUR, 10.0, 15.0),))
    alone, scaled = replay_requests(stream, flat(1), 600.0), replay_requests(stream, flat(1, maximum=4), 600.0)
    assert alone.late > 100
    assert scaled.late == 0
    assert 1.0 < scaled.mean_instances < 2.0


def test_autoscaling_comes_too_late_for_a_crowd_of_minutes() -> None:
    stream = Stream((crowd(10 * HOUR, 480.0, 5.0, 20.0),))
    assert replay_requests(stream, flat(1, maximum=4), 60.0).late > 0
    assert replay_requests(stream, flat(4), 60.0).late == 0


def test_the_guard_rings_for_late_requests_together_and_not_for_the_same_number_over_the_day() -> None:
    together = Stream((crowd(10 * HOUR, 100.0, 10.0, 30.0),))
    apart = Stream(((sorted([i * 3600.0 for i in range(24)] + [i * 3600.0 + 1 for i in range(4)]), [30.0] * 28),))
    assert replay_requests(together, flat(1), 45.0).rings_alarm == 1
    assert replay_requests(apart, flat(1), 45.0).rings_alarm == 0
    assert replay_requests(apart, flat(1), 45.0).late == 4


def test_the_guard_hears_what_is_late_for_its_own_limit_where_that_is_above_the_objective() -> None:
    together = Stream((crowd(10 * HOUR, 100.0, 10.0, 30.0),))
    heard, unheard = (replay_requests(together, flat(1), 45.0, alarm_s=limit) for limit in (45.0, 10_000.0))
    assert (heard.rings_alarm, unheard.rings_alarm) == (1, 0)
    assert heard.late == unheard.late > 0, "what is late for the objective counts as before"
    assert replay_requests(together, flat(1), 45.0, alarm_s=10.0) == heard, "never below the objective"


@given(st.integers(1, 6), st.floats(1.0, 40.0), st.floats(5.0, 60.0))
def test_more_instances_never_make_more_requests_late(count: int, every_s: float, work_s: float) -> None:
    stream = Stream((crowd(8 * HOUR, 1800.0, every_s, work_s),))
    assert replay_requests(stream, flat(count + 1), 60.0).late <= replay_requests(stream, flat(count), 60.0).late
    assert (
        replay_requests(stream, flat(count, maximum=count + 3), 60.0).late
        <= replay_requests(stream, flat(count), 60.0).late
    )


def test_heavy_requests_of_the_same_five_minutes_come_together() -> None:
    worked = [30.0 if slot == 150 else 10.0 for slot in range(SLOTS)]
    arrivals, services = stream_of([day([20.0] * SLOTS, worked)], ((0.5, 1.0),), 100_000).days[0]

    def mean(slot: int) -> float:
        seen = [s for at, s in zip(arrivals, services, strict=True) if slot * 300 <= at < (slot + 1) * 300]
        return sum(seen) / len(seen)

    assert mean(150) == pytest.approx(3 * mean(151))
    sparse = stream_of([day([2.0] * SLOTS, [w / 10 for w in worked])], ((0.5, 1.0),), 100_000).days[0][1]
    assert max(sparse) < 1.3 * min(sparse), "two requests tell nothing of the slot, its hour does"


def test_of_very_busy_days_the_heaviest_slots_of_each_hour_are_replayed() -> None:
    rush = [400.0 if slot == 150 else 100.0 for slot in range(SLOTS)]
    worked = [count / 2 for count in rush]
    stream = stream_of([day(rush, worked), day([100.0] * SLOTS, [50.0] * SLOTS)], ((0.5, 1.0),), 5000)
    assert not stream.whole
    assert stream.size <= 9000
    crowded = [at for at in stream.days[0][0] if 150 * 300 <= at < 151 * 300]
    assert len(crowded) > 200
    assert {int(at // HOUR) for arrivals, _ in stream.days for at in arrivals} == set(range(24))


def test_the_replay_of_an_endpoint_with_millions_of_requests_stays_small() -> None:
    stream = stream_of([day([6500.0] * SLOTS, [200.0] * SLOTS)] * 14, ((0.05, 1.0),), 5000)
    assert stream.size <= 5100
    assert replay_requests(stream, flat(2, workers=2), 0.25).late == 0


def test_a_slot_with_more_work_than_time_counts_as_late_whatever_its_first_seconds_show() -> None:
    stream = stream_of([day([6500.0] * SLOTS, [200.0] * SLOTS)], ((0.05, 1.0),), 5000)
    assert replay_requests(stream, flat(1), 60.0).late >= 6500 * (SLOTS - 4)


def test_autoscaling_of_a_thinned_day_follows_all_of_its_requests() -> None:
    stream = stream_of([day([600.0] * SLOTS, [400.0] * SLOTS)], ((1.0, 1.0),), 5000)
    assert replay_requests(stream, flat(1, maximum=9), 10.0).mean_instances > 2.5


def test_minutes_are_rougher_where_neighbouring_slots_differ() -> None:
    calm, rough = [40.0] * SLOTS, [10.0 if slot % 2 else 70.0 for slot in range(SLOTS)]
    assert roughness(day(calm, calm)) == 0.0
    assert roughness(day(rough, rough)) > 0.1
    known = replace(day(rough, rough), within=0.01)
    assert roughness(known) == 0.01


def test_the_rate_inside_a_slot_is_read_from_one_minute_counts() -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    even = array("d", [20.0] * 1440)
    bursts = array("d", [100.0 if minute % 5 == 0 else 0.0 for minute in range(1440)])
    found = []
    for values in (even, bursts):
        series = {MetricStatistic("Invocations", "Sum"): Series(start, 60, values)}
        window = MetricWindow("chat", "AllTraffic", start, start + timedelta(days=1), 60, series)
        found.append(daily_usage(window, VariantSetup(catalogue().types["ml.g6e.xlarge"], 1))[0].within)
    assert found[0] == 0.0
    assert found[1] is not None
    assert found[1] > 2.0


def test_with_few_requests_an_hour_borrows_from_more_of_the_day() -> None:
    sparse = Stream((([30000.0, 30001.0, 30002.0], [60.0] * 3),))
    levels = concurrency_by_hour(sparse, 1.0)
    assert levels[15][-1] == 3
    busy = Stream((crowd(8 * HOUR, HOUR, 1.0, 3.0),))
    assert concurrency_by_hour(busy, 1.0)[15] == ()


def test_a_quiet_hour_borrows_from_the_quieter_side_so_that_the_night_does_not_take_the_mornings_count() -> None:
    morning = crowd(0.0, HOUR, 20.0, 200.0)  # ten at once
    evening = crowd(19 * HOUR, HOUR, 30.0, 80.0)  # three at once
    levels = concurrency_by_hour(Stream((([*morning[0], *evening[0]], [*morning[1], *evening[1]]),)), 1.0)
    assert levels[21][-1] == 3
    assert levels[22][-1] == 3
    assert levels[23][-1] == 10
    assert levels[12] == ()


def test_an_hour_of_few_requests_keeps_relatively_more_room_than_the_busiest() -> None:
    levels = ((16,), (4,), (1,), *((),) * 21)
    assert hourly_plan(levels, 1.0, 1.0, 1, 99)[:4] == (16, 4, 1, 1)
    assert hourly_plan(levels, 1.0, 1.5, 1, 99)[:4] == (16, 6, 1, 1), "one instance holds a need of one with its margin"
    assert max(hourly_plan(levels, 1.0, 1.5, 1, 5)) == 5


def test_what_autoscaling_adds_is_what_the_load_that_was_seen_would_add() -> None:
    stream = Stream((crowd(10 * HOUR, 3 * HOUR, 10.0, 15.0),))
    seen = replay_requests(stream, flat(1, maximum=9), 600.0)
    grown = replay_requests(stream, replace(flat(1, maximum=9), load=1.5), 600.0)
    assert grown.mean_instances == seen.mean_instances


def test_a_tail_of_many_requests_is_spread_between_its_quantiles_and_one_of_few_is_not() -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    figures = {"Average": 2.8e6, "p50": 3.0e6, "p90": 6.0e6, "p95": 8.0e6, "p99": 12.0e6}
    found = []
    for calls in (8.0, 400.0):
        series = {
            MetricStatistic("ModelLatency", n): Series(start, 300, array("d", [v] * 288)) for n, v in figures.items()
        }
        series[MetricStatistic("Invocations", "Sum")] = Series(start, 300, array("d", [calls] * 288))
        window = MetricWindow("chat", "AllTraffic", start, start + timedelta(days=1), 300, series)
        found.append(latency_of(daily_usage(window, VariantSetup(catalogue().types["ml.g6e.xlarge"], 1))))
    few, many = found
    assert few is not None
    assert many is not None
    assert abs(share_of_late_requests(few.bins, 10.0) - 0.05) < 0.001
    assert abs(share_of_late_requests(many.bins, 10.0) - 0.03) < 0.001


def test_the_histogram_keeps_the_mean_of_skewed_latencies() -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    figures = {"Average": 2.8e6, "p50": 3.0e6, "p90": 6.0e6, "p95": 8.0e6, "p99": 9.0e6}
    series = {
        MetricStatistic("ModelLatency", name): Series(start, 300, array("d", [v] * 288)) for name, v in figures.items()
    }
    series[MetricStatistic("Invocations", "Sum")] = Series(start, 300, array("d", [40.0] * 288))
    window = MetricWindow("chat", "AllTraffic", start, start + timedelta(days=1), 300, series)
    found = latency_of(daily_usage(window, VariantSetup(catalogue().types["ml.g6e.xlarge"], 1)))
    assert found is not None
    mean = sum(value * share for value, share in found.bins)
    assert abs(mean / 2.8 - 1) < 0.02
    assert found.p99_s > 8.5


def test_the_service_of_a_worker_that_was_overrun_is_unknown() -> None:
    assert service_time_of(300.0, 0.2, 1.0) is None
    quiet = service_time_of(2.0, 0.001, 1.0)
    assert quiet is not None
    assert abs(quiet - 2.0) < 0.01


def test_a_plan_at_a_higher_load_waits_longer() -> None:
    stream = Stream((crowd(10 * HOUR, 2 * HOUR, 10.0, 9.0),))
    assert replay_requests(stream, replace(flat(1), load=1.3), 60.0).late > replay_requests(stream, flat(1), 60.0).late


@given(st.lists(st.integers(4, 8), min_size=3, max_size=5), st.integers(0, 100))
def test_a_look_back_that_moves_on_by_a_day_serves_its_days_as_before(loads: list[int], first: int) -> None:
    """Otherwise another chance each morning tips what is near a limit, and the same endpoint is told something else."""
    start = date(2026, 10, 1) + timedelta(days=first)
    days = [
        replace(day([float(1 + load)] * SLOTS, [1.0] * SLOTS), day=start + timedelta(days=number))
        for number, load in enumerate(loads)
    ]
    bins = ((0.5, 0.7), (2.0, 0.3))
    before, after = (stream_of(some, bins, 10**9) for some in (days[:-1], days[1:]))
    kept = min(before.copies, after.copies)
    for copy in range(kept):
        old = before.days[copy * (len(days) - 1) : (copy + 1) * (len(days) - 1)]
        new = after.days[copy * (len(days) - 1) : (copy + 1) * (len(days) - 1)]
        assert old[1:] == new[:-1]


def test_two_days_of_a_look_back_have_chances_of_their_own() -> None:
    days = [replace(day([3.0] * SLOTS, [1.0] * SLOTS), day=date(2026, 10, 1) + timedelta(days=n)) for n in range(63)]
    stream = stream_of(days, ((0.5, 1.0),), 10**9)
    assert len({tuple(arrivals) for arrivals, _ in stream.days}) == 63


def test_the_alarm_at_twice_the_usual_p95_compares_with_what_was_so_late_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four of a hundred take longer than the objective today, and none as long as rings: three times four is no bar."""
    bins = ((index(1.0), 960.0), (index(1.6), 40.0))
    days = [replace(sparse(n, 12), latency=bins) for n in range(5, 19)]
    context, given = at_of(days, None, Policy()), list[float]()

    def replayed(stream: Stream, fleet: Fleet, limit_s: float, baseline: float, alarm_s: float) -> ReplayResult:
        given.append(baseline)
        return replay_requests(stream, fleet, limit_s, baseline, alarm_s)

    monkeypatch.setattr("rightsizer.recommender.context.replay_requests", replayed)
    context.replay(flat(1))
    assert given == [0.0]
    assert context.baseline_late_share == pytest.approx(0.04)
    declared = at_of(days, 1.2, Policy())
    declared.replay(flat(1))
    assert given[1:] == [declared.baseline_late_share], "both at the objective"
