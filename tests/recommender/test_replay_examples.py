"""The replay by small examples worked out by hand: queues, scaling, guards, thinning and chance."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Fleet, ReplayResult, Stream
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.hourly_counts import concurrency_by_hour, hourly_plan
from rightsizer.recommender.replay import (
    replay_of,
    replay_requests,
    roughness,
    stream_of,
)
from tests.recommender.plain import near

ONE = Fleet((1,) * 24, 1, False, 1.0)


def streamed(*requests: tuple[float, float], **more: Any) -> Stream:
    """One day of requests, (arrival, seconds of service) each."""
    arrivals, services = [at for at, _ in requests], [work for _, work in requests]
    return Stream(((arrivals, services),), **more)


def lates(stream: Stream, fleet: Fleet, limit_s: float) -> int:
    return replay_requests(stream, fleet, limit_s).late


def test_requests_wait_for_a_worker_in_turn() -> None:
    """Three requests of ten seconds at once take 10, 20 and 30 s before one worker, 10, 10 and 20 s before two."""
    three = streamed((0.0, 10.0), (0.0, 10.0), (0.0, 10.0))
    assert [lates(three, ONE, limit) for limit in (9.9, 10.0, 20.0, 30.0)] == [3, 2, 1, 0]
    for two in (replace(ONE, workers=2), replace(ONE, counts=(2,) * 24)):
        assert [lates(three, two, limit) for limit in (9.9, 10.0, 20.0)] == [3, 1, 0]
    apart = streamed((0.0, 10.0), (10.0, 10.0), (19.0, 10.0))
    assert [lates(apart, ONE, limit) for limit in (10.0, 11.0)] == [1, 0]


def test_a_slower_type_takes_longer_and_more_load_only_waits_longer() -> None:
    pair = streamed((0.0, 10.0), (0.0, 10.0))
    assert [lates(pair, replace(ONE, slower=2.0), limit) for limit in (19.9, 20.0, 40.0)] == [2, 1, 0]
    assert [lates(pair, replace(ONE, load=2.0), limit) for limit in (9.9, 10.0, 29.9, 30.0)] == [2, 1, 1, 0]


def test_workers_come_and_leave_with_the_hour() -> None:
    fleet = replace(ONE, counts=(1, 2, *(1,) * 22))
    second = streamed((3600.0, 10.0), (3600.0, 10.0), (7200.0, 10.0), (7200.0, 10.0))
    assert [lates(second, fleet, limit) for limit in (9.9, 10.0, 20.0)] == [4, 1, 0]
    busy = streamed((3599.0, 100.0), (3600.0, 10.0))
    assert lates(busy, fleet, 100.0) == 0
    assert lates(busy, fleet, 10.0) == 1, "the one before the hour alone"
    leaving = streamed((7190.0, 100.0), (7200.0, 10.0))
    assert lates(leaving, fleet, 99.0) == 2, "the idle worker leaves first"


def test_random_routing_lets_a_request_wait_although_another_instance_is_free() -> None:
    pairs = streamed(*((600.0 * n, 100.0) for n in range(40) for _ in (0, 1)))
    two = replace(ONE, counts=(2,) * 24, random_routing=True)
    assert lates(pairs, replace(two, random_routing=False), 100.0) == 0
    assert 10 < lates(pairs, two, 100.0) < 30, "about every second pair meets at one instance"
    assert lates(pairs, two, 200.0) == 0
    assert lates(pairs, replace(two, workers=2), 100.0) == 0
    assert lates(pairs, replace(two, counts=(1,) * 24), 100.0) == 40, "one instance has nothing to choose"
    assert lates(pairs, replace(two, slower=1.5), 150.0) == lates(pairs, two, 100.0)
    assert lates(pairs, replace(two, load=1.5), 250.0) == 0
    assert lates(pairs, replace(two, load=1.5), 200.0) == lates(pairs, two, 100.0)


def test_what_is_served_is_counted() -> None:
    found = replay_requests(streamed((0.0, 10.0), (0.0, 20.0)), ONE, 25.0)
    assert found == ReplayResult(2, 1, 30.0, 0, 1.0, 0, 30.0), "below twenty requests of an hour the slowest one counts"
    many = streamed(*((100.0 * n, 1.0 + n) for n in range(20)))
    assert replay_requests(many, ONE, 99.0).worst_p95_s == 19.0
    early = streamed(*((100.0 * n, 9.0) for n in range(20)), *((36000.0 + 100 * n, 1.0) for n in range(400)))
    served = replay_requests(early, ONE, 99.0)
    assert (served.worst_p95_s, served.p95_s) == (9.0, 1.0), "one hour is slow, one request in twenty-one of the day"
    waiting = streamed(*((100.0 * (n // 2), 10.0) for n in range(40)))
    assert replay_requests(waiting, ONE, 99.0).p95_s == 20.0, "what waits is in it"
    assert replay_requests(Stream(()), ONE, 1.0) == ReplayResult(0, 0, 0.0, 0, 0.0, 0)
    two = Stream((*streamed((0.0, 10.0)).days, *streamed((0.0, 90.0)).days))
    assert replay_requests(two, replace(ONE, counts=(2, *(1,) * 23)), 25.0) == ReplayResult(
        2, 1, 90.0, 0, near(25 / 24), 0, 90.0
    )


def test_target_tracking_adds_instances_ten_minutes_after_a_busy_slot_and_keeps_them_for_three_slots() -> None:
    """400 s of work in a slot of 300 s at 70 % want two instances."""
    busy = streamed((3000.0, 200.0), (3000.0, 200.0))
    found = replay_requests(busy, replace(ONE, maximum=4), 1e9).mean_instances
    assert found == near(1 + 3 / SLOTS)
    assert replay_requests(busy, replace(ONE, maximum=4, slower=2.0), 1e9).mean_instances == near(1 + 3 * 3 / SLOTS)
    assert replay_requests(busy, replace(ONE, maximum=2, slower=2.0), 1e9).mean_instances == near(1 + 3 / SLOTS)
    assert replay_requests(busy, replace(ONE, maximum=4, workers=2), 1e9).mean_instances == 1.0
    assert replay_requests(busy, replace(ONE, maximum=1), 1e9).mean_instances == 1.0
    edge = streamed((3000.0, 210.0))
    assert replay_requests(edge, replace(ONE, maximum=4), 1e9).mean_instances == 1.0, "70 % is the target itself"
    assert replay_requests(streamed((0.0, 400.0)), replace(ONE, maximum=4), 1e9).mean_instances == near(1 + 3 / SLOTS)


def rings(*over: float, fine: tuple[float, ...] = (), baseline: float = 0.0) -> int:
    """Late requests take 25 s today and 50 s then, fine ones two, all on enough workers; 30 s is the limit."""
    requests = sorted([(at, 25.0) for at in over] + [(at, 1.0) for at in fine])
    return replay_requests(streamed(*requests), replace(ONE, workers=100, slower=2.0), 30.0, baseline).rings_alarm


def test_what_is_late_on_any_fleet_does_not_ring_and_hides_nothing_that_does() -> None:
    long = [(at, 50.0) for at in (300.0, 310.0, 320.0)]
    calm = [(at, 1.0) for at in (100.0, 200.0)]
    assert replay_requests(streamed(*calm, *long), replace(ONE, workers=100), 30.0).rings_alarm == 0
    waiting = [(at, 20.0) for at in (330.0, 331.0, 332.0)]
    served = replay_requests(streamed(*calm, *long, *waiting), ONE, 30.0)
    assert (served.late, served.rings_alarm) == (6, 1)


def test_a_few_that_are_late_on_any_fleet_ring_together_with_those_that_wait() -> None:
    """Four of a hundred take too long anyway, and eight more wait: the alarm of the endpoint sees twelve."""
    calm = [(6.0 * n, 1.0) for n in range(88)]
    long = [(6.0 * n + 1, 31.0) for n in (10, 30, 50, 70)]
    slow = [(6.0 * n + 2, 25.0) for n in range(52, 84, 4)]
    fleet = replace(ONE, workers=100)
    both = streamed(*sorted((*calm, *long, *slow)))
    assert replay_requests(both, fleet, 30.0).rings_alarm == 0, "four in a hundred"
    assert replay_requests(both, replace(fleet, slower=1.25), 30.0).rings_alarm == 1
    assert replay_requests(streamed(*sorted((*calm, *slow))), replace(fleet, slower=1.25), 30.0).rings_alarm == 0


def test_the_guard_rings_for_three_late_requests_of_five_in_half_an_hour() -> None:
    calm = (100.0, 200.0)
    assert rings(300.0, 310.0, 320.0, fine=calm) == 1
    assert rings(300.0, 310.0, fine=(*calm, 220.0)) == 0, "two late ones"
    assert rings(300.0, 310.0, 320.0, fine=(100.0,)) == 0, "four requests"
    assert rings(300.0, 1200.0, 2100.0, fine=(400.0, 500.0)) == 1, "half an hour, both ends counted"
    assert rings(299.0, 1200.0, 2100.0, fine=(400.0, 500.0)) == 0
    assert rings(0.0, 9000.0, 9010.0, 9020.0, fine=(8900.0, 8950.0)) == 1, "a later half hour"


def test_the_guard_rings_from_more_than_a_tenth_or_three_times_the_usual_share_on() -> None:
    many = tuple(float(n) for n in range(27))
    assert rings(300.0, 310.0, 320.0, fine=many) == 0, "three of thirty"
    assert rings(300.0, 310.0, 320.0, fine=many[1:]) == 1
    assert rings(300.0, 310.0, 320.0, fine=(1.0, 2.0, 3.0), baseline=0.1) == 1
    assert rings(300.0, 310.0, 320.0, fine=(1.0, 2.0, 3.0), baseline=0.17) == 0


def test_how_many_requests_are_in_service_at_once_by_hour() -> None:
    stream = streamed((3600.0, 10.0), (3605.0, 10.0), (3610.0, 10.0), (3640.0, 1.0))
    levels = concurrency_by_hour(stream, 1.0)
    assert levels[1] == (1, 1, 2, 2), "who leaves as another comes is gone"
    assert concurrency_by_hour(stream, 4.0)[1] == (1, 2, 3, 3)


def test_an_hour_with_enough_requests_has_its_own_level_and_that_of_its_neighbours() -> None:
    full = streamed(*((h * 3600.0 + n * 36.0, 1.0) for h in range(24) for n in range(100)))
    assert [len(hour) for hour in concurrency_by_hour(full, 1.0)] == [300] * 24
    few = streamed(*((h * 3600.0 + n * 360.0, 1.0) for h in range(24) for n in range(10)))
    assert [len(hour) for hour in concurrency_by_hour(few, 1.0)] == [100] * 24, "until there are a hundred"
    assert {len(hour) for hour in concurrency_by_hour(replace(few, copies=2), 1.0)} == {200}
    bare = streamed(*((h * 3600.0, 1.0) for h in range(24)))
    assert {len(hour) for hour in concurrency_by_hour(bare, 1.0)} == {24}


def test_counts_hold_the_share_of_the_concurrency_and_at_most_what_may_be() -> None:
    levels = [(1, 2, 3, 4), (8,), ()] + [()] * 21
    assert hourly_plan(levels, 0.5, 1.0, 1, 99)[:3] == (2, 8, 1)
    assert hourly_plan(levels, 1.0, 1.0, 2, 99)[:3] == (2, 4, 1)
    assert hourly_plan(levels, 1.0, 1.0, 1, 3)[:3] == (3, 3, 1)
    assert hourly_plan([(0,)] * 24, 1.0, 1.0, 1, 9) == (1,) * 24
    four = math.ceil(4 + 0.5 * (math.sqrt(32) - 4))
    assert hourly_plan([(8,), (4,)] + [()] * 22, 1.0, 1.5, 1, 99)[:2] == (8, four)


def day(requests: Sequence[float | None], busy: Sequence[float | None] | None = None, number: int = 0) -> DailyUsage:
    none = (None,) * 4
    when = date(2026, 11, 1) + timedelta(days=number)
    work: Any = tuple(busy or requests)
    return DailyUsage(when, "ml.g5.xlarge", 1, tuple(requests), work, (1.0,) * 24, (), 0.0, 0.0, *none)


def test_the_strain_of_an_option_is_its_load_by_hour_and_what_came_late() -> None:
    """Twelve slots of 300 requests are an hour of 3,600; at half a second each they fill half of one worker."""
    known: list[float | None] = [300.0] * 12 + [600.0] * 12 + [None] * 12 + [480.0] * 252
    then, today = ReplayResult(20, 2, 1.23456, 0, 1.0), ReplayResult(20, 1, 1.0, 0, 1.0)
    found = replay_of([day(known), day(known)], 0.5, ONE, (then, today), 2.00004, 3.456)
    assert found.hourly_load == (0.5, 1.0, None, *(0.8,) * 21) * 2
    assert (found.days, found.hours_above_80, found.hours_above_100) == (1, 2.0, 0.0)
    assert (found.worst_p95_s, found.memory_margin_gib, found.objective_s) == (1.2346, 3.46, 2.0)
    assert (found.requests, found.requests_over_objective, found.over_objective_today) == (20, 2, 1)
    slower = replay_of([day(known)], 0.51, replace(ONE, counts=(2,) * 24), (then, today), 2.0, None)
    assert (slower.hourly_load[1], slower.memory_margin_gib, slower.hours_above_100) == (0.51, None, 0.0)
    assert replay_of([day(known)], 0.51, ONE, (then, today), 2.0, None).hours_above_100 == 1.0
    idle = replace(then, worst_p95_s=0.0)
    assert replay_of([day(known)], 0.5, replace(ONE, workers=2), (idle, today), 2.0, None).worst_p95_s is None
    assert replay_of([day(known)], 0.5, replace(ONE, workers=2), (idle, today), 2.0, None).hourly_load[0] == 0.25
    assert replay_of([day(known)], 0.5, replace(ONE, workers=0), (idle, today), 2.0, None).hourly_load[0] == 0.5


BINS = ((1.0, 0.5), (3.0, 0.5))


def test_the_stream_of_a_day_has_its_requests_in_their_slots_and_their_service_by_the_bins() -> None:
    requests: list[float | None] = [20.0 if slot % 2 else 0.0 for slot in range(SLOTS)]
    stream = stream_of([day(requests)], BINS, 10_000)
    assert (stream.whole, stream.copies, stream.size, stream.requests) == (True, 1, 2880, 2880)
    arrivals, services = stream.days[0]
    assert list(arrivals) == sorted(arrivals)
    assert {int(at // 300) % 2 for at in arrivals} == {1}
    assert set(services) == {1.0, 3.0}
    assert sum(services) / len(services) == pytest.approx(2.0, rel=0.05)
    assert sum(at % 300 for at in arrivals) / len(arrivals) == pytest.approx(150.0, rel=0.05)
    calls, work = stream.slots[0]
    assert list(calls) == requests
    assert sum(work) == near(2.0 * 2880)
    assert stream_of([day(requests)], BINS, 10_000) == stream, "the same days give the same requests"


def test_few_requests_are_served_again_with_other_chance() -> None:
    few = stream_of([day([1.0] * SLOTS)], BINS, 10_000)
    assert (few.copies, len(few.days), len(few.slots)) == (7, 7, 7)
    assert few.days[0] != few.days[1]
    assert stream_of([day([0.1] * SLOTS)], BINS, 10_000).copies == 8
    assert stream_of([day([7.0] * SLOTS)], BINS, 10_000).copies == 1


def test_fractions_of_requests_are_carried_on() -> None:
    stream = stream_of([day([0.25] * SLOTS)], BINS, 10_000)
    assert len(stream.days[0][0]) == 72


def test_unknown_slots_take_the_mean_of_that_slot_on_other_days() -> None:
    hole: Sequence[float | None] = [None] * 12 + [10.0] * 276
    full: Sequence[float | None] = [4.0] * 6 + [None] * 6 + [10.0] * 276
    stream = stream_of([day(hole), day(full, number=1)], BINS, 10_000)
    calls = stream.slots[0][0]
    mean = (4 * 6 + 10 * 552) / 558
    assert list(calls[:13]) == [4.0] * 6 + [near(mean)] * 6 + [10.0]


def test_days_with_less_than_half_of_the_busiest_are_left_out() -> None:
    stream = stream_of([day([10.0] * SLOTS), day([4.9] * SLOTS, number=1)], BINS, 10_000)
    assert len(stream.days) == stream.copies


def test_of_busy_days_about_the_limit_is_kept_and_speaks_for_ten_times_as_many() -> None:
    stream = stream_of([day([100.0] * SLOTS)] * 2, BINS, 2400)
    assert (stream.whole, stream.copies, stream.size) == (False, 1, 2400)
    assert stream.requests == 24_000
    crowded = stream_of([day([1000.0] * SLOTS)], BINS, 2400)
    arrivals = crowded.days[0][0]
    assert crowded.size == 2400
    assert max(at % 300 for at in arrivals) <= 30.0, "a tenth of the slot's requests come in a tenth of its time"


def test_a_backlog_over_whole_slots_makes_requests_late_that_are_not_kept() -> None:
    """200 requests of two seconds in 300 s: 100 s are left over after each slot, on top of a service of two."""
    crowd: Sequence[float | None] = [200.0] * 3 + [0.0] * 285
    stream = stream_of([day(crowd)], ((2.0, 1.0),), 100)
    assert not stream.whole
    assert [replay_requests(stream, ONE, limit).late_in_backlog for limit in (101.0, 103.0, 203.0, 303.0)] == [
        600,
        400,
        200,
        0,
    ]
    assert replay_requests(stream, replace(ONE, workers=2), 101.0).late_in_backlog == 0
    assert replay_requests(stream, replace(ONE, counts=(2,) * 24), 101.0).late_in_backlog == 0
    assert replay_requests(stream, replace(ONE, workers=2, slower=2.0), 103.0).late_in_backlog > 0
    assert replay_requests(stream, replace(ONE, workers=2, load=2.0), 103.0).late_in_backlog > 0


def test_rates_within_slots_are_as_rough_as_half_of_what_neighbouring_slots_show() -> None:
    """10 and 30 in turn: the mean is 20, the variance of twelve is 1200 / 11, and chance is 20."""
    turns: list[float | None] = [10.0, 30.0] * 144
    assert roughness(day(turns)) == near((1200 / 11 - 20) / 400 / 2)
    assert roughness(day([20.0] * SLOTS)) == 0.0
    assert roughness(day([0.0, 40.0] * 144)) == near(1 / 3), "never more than a third"
    assert roughness(replace(day(turns), within=0.2)) == 0.2
    assert roughness(replace(day(turns), within=0.5)) == near(1 / 3)
    assert roughness(day([None] * 7 + [10.0, 30.0, 10.0, 30.0, 10.0] + [0.0] * 276)) == 0.0, "five known slots"
    six: list[float | None] = [None] * 6 + [10.0, 30.0] * 3 + [0.0] * 276
    assert roughness(day(six)) == near((600 / 5 - 20) / 400 / 2)
    assert roughness(day([None] * SLOTS)) == 0.0


@given(calls=some.lists(some.floats(0.0, 50.0), min_size=4, max_size=12), limit=some.integers(500, 5000))
def test_a_replay_is_never_much_larger_than_its_limit_and_serves_all_it_says(calls: list[float], limit: int) -> None:
    requests: list[float | None] = [calls[slot % len(calls)] for slot in range(SLOTS)]
    stream = stream_of([day(requests)], BINS, limit)
    found = replay_requests(stream, ONE, 5.0)
    assert found.requests == stream.requests
    assert found.late >= 0
    if not stream.whole:
        assert stream.size <= limit + 24 * 60


def test_a_backlog_of_two_instances_drains_with_both_and_days_are_added_up() -> None:
    """At half the speed 800 s of work come to 600 s of time: 200 s are left over, 100 s for each of the two."""
    crowd: Sequence[float | None] = [200.0] * 3 + [0.0] * 285
    two = replace(ONE, counts=(2,) * 24, slower=2.0)
    stream = stream_of([day(crowd), day(crowd, number=1)], ((2.0, 1.0),), 100)
    found = [replay_requests(stream, two, limit).late_in_backlog for limit in (103.0, 105.0, 205.0, 305.0)]
    assert found == [1200, 800, 400, 0]


def test_a_slot_without_a_backlog_makes_nothing_late_and_the_limit_itself_is_in_time() -> None:
    crowd: Sequence[float | None] = [200.0] * 3 + [0.0] * 9 + [50.0] * 276
    stream = stream_of([day(crowd)], ((2.0, 1.0),), 100)
    assert replay_requests(stream, ONE, 2.5).late_in_backlog == 600
    assert replay_requests(stream, ONE, 102.0).late_in_backlog == 400


def test_the_guard_looks_at_half_an_hour_however_much_came_before() -> None:
    early = tuple(10.0 * n for n in range(100))
    assert rings(9000.0, 9010.0, 9020.0, fine=(*early, 8900.0, 8950.0)) == 1


def weights(stream: Stream, slot: int) -> list[float]:
    arrivals, services = stream.days[0]
    return [work for at, work in zip(arrivals, services, strict=True) if slot * 300 <= at < (slot + 1) * 300]


def test_ten_requests_of_a_slot_or_of_an_hour_are_believed_and_nine_are_not() -> None:
    one_bin = ((1.0, 1.0),)
    calls: list[float | None] = [10.0] * SLOTS
    heavy: list[float | None] = [30.0 if slot == 150 else 10.0 for slot in range(SLOTS)]
    ten = stream_of([day(calls, heavy)], one_bin, 10**9)
    assert weights(ten, 150)[0] == near(3 * weights(ten, 151)[0])
    assert ten.slots[0][1][150] == near(3 * ten.slots[0][1][151]), "the work of the slot too"
    nine = stream_of([day([9.0] * SLOTS, heavy)], one_bin, 10**9)
    assert weights(nine, 150)[0] == near(weights(nine, 151)[0]), "the hour speaks for its slots"
    rare: list[float | None] = [10.0 if slot % 12 == 0 else 0.0 for slot in range(SLOTS)]
    hours: list[float | None] = [(30.0 if slot == 144 else 10.0) if slot % 12 == 0 else 0.0 for slot in range(SLOTS)]
    spread: list[float | None] = [5.0 if slot % 12 < 2 else 0.0 for slot in range(SLOTS)]
    half: list[float | None] = [v / 2 if v else 0.0 for v in (hours[slot // 12 * 12] for slot in range(SLOTS))]
    for stream in (stream_of([day(*known)], one_bin, 10**9) for known in ((rare, hours), (spread, half))):
        assert weights(stream, 144)[0] == near(3 * weights(stream, 156)[0]), "ten of the hour"


def test_work_that_is_unknown_or_none_weighs_as_the_mean() -> None:
    blind = stream_of([day([20.0] * SLOTS, [None] * SLOTS)], ((1.0, 1.0),), 10**9)
    assert set(blind.days[0][1]) == {1.0}
    lazy = [0.0] * 12 + [10.0] * 276
    stream = stream_of([day([20.0] * SLOTS, lazy)], ((1.0, 1.0),), 10**9)
    assert set(weights(stream, 3)) == {1.0}, "an hour without any work of its GPU"


def test_service_times_come_as_often_as_their_bins_say() -> None:
    bins = ((1.0, 0.2), (2.0, 0.3), (4.0, 0.4), (8.0, 0.1))
    _, services = stream_of([day([30.0] * SLOTS, [1.0] * SLOTS)], bins, 10**9).days[0]
    for value, share in bins:
        assert services.count(value) / len(services) == pytest.approx(share, abs=0.02)


def test_a_day_within_the_limit_is_served_whole_though_one_hour_has_it_all() -> None:
    rush: Sequence[float | None] = [100.0] * 12 + [0.0] * 276
    stream = stream_of([day(rush)], BINS, 1300)
    assert (stream.whole, len(stream.days[0][0])) == (True, 1200)


def test_minutes_vary_as_much_as_is_said_of_them() -> None:
    """Of 100 requests in a slot 20 come in a minute; what is above chance is over the square of that."""
    plain = day([100.0] * SLOTS)
    found = []
    for within in (0.0, 0.1, 0.3):
        arrivals, _ = stream_of([replace(plain, within=within)], BINS, 10**9).days[0]
        counts = [0] * 1440
        for at in arrivals:
            counts[int(at // 60)] += 1
        found.append((sum((n - 20) ** 2 for n in counts) / 1440 - 20) / 400)
    assert found[0] < 0.0, "a slot keeps its count, so that its minutes vary less than by chance"
    assert found[1] == pytest.approx(0.08, abs=0.03)
    assert found[2] == pytest.approx(0.24, abs=0.06)


def test_loads_and_the_objective_have_four_decimals() -> None:
    served = ReplayResult(20, 2, 1.0, 0, 1.0)
    found = replay_of([day([100.0] * SLOTS)], 1 / 3.6, ONE, (served, served), 2.34567, None)
    assert (found.hourly_load[0], found.objective_s) == (0.0926, 2.3457)
