"""The search for the smallest fleet, and what the replay of the past days is asked about one."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.option import Target
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender import fleet_size
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import (
    FleetShape,
    can_still_carry,
    carries_like_reference,
    find_fleet,
    find_fleet_within_reference,
    find_smallest_fleet,
    fleet_of_option,
    latency_ratio,
    mean_instances,
    replay_if_carried,
    replayed_p95_s,
)
from tests.recommender import plain
from tests.recommender.plain_context import (
    HOURS,
    OTHER,
    SCALED,
    TYPE,
    context,
    fleet,
    late,
    noted,
    ours,
    running,
    serve,
)


def shape(**more: Any) -> FleetShape:
    return replace(FleetShape(TYPE, 1.0, 1, False, False, 10), **more)


# which fleet


def found(monkeypatch: pytest.MonkeyPatch, smallest: Fleet | None, within: Fleet | None = None) -> None:
    monkeypatch.setattr(fleet_size, "find_smallest_fleet", lambda *_: smallest)
    monkeypatch.setattr(fleet_size, "find_fleet_within_reference", lambda _, one: within if one.name == TYPE else None)


def test_as_many_as_today_are_kept_only_where_they_may_be_and_nothing_smaller_carries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = context(HOURS[:12] + (4,) * 12)
    found(monkeypatch, fleet(4))
    assert find_fleet(seen, shape(), may_keep_count=True) == fleet(4)
    found(monkeypatch, fleet(5))
    assert find_fleet(seen, shape(), may_keep_count=False) == fleet(5)
    as_today = Fleet(seen.reference_counts, 2, True, 0.9)
    assert find_fleet(seen, shape(), may_keep_count=True) == replace(
        as_today, workers=1, random_routing=False, slower=1.0
    )
    found(monkeypatch, None)
    assert find_fleet(seen, shape(), may_keep_count=False) is None
    other = shape(workers=2, random_routing=True, slower=0.9)
    assert find_fleet(seen, other, may_keep_count=True) == as_today
    found(monkeypatch, None, within=fleet(1))
    assert find_fleet(seen, other, may_keep_count=True) == fleet(1)


def test_todays_count_is_that_of_the_workers_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four instances of one worker are two of two workers, and of three workers too: none is half an instance."""
    for workers, today in ((2, 2), (3, 2), (4, 1)):
        found(monkeypatch, fleet(today))
        assert find_fleet(context(), shape(workers=workers), may_keep_count=True) == fleet(today)
        found(monkeypatch, fleet(today + 1))
        assert find_fleet(context(), shape(workers=workers), may_keep_count=True) != fleet(today + 1)


def test_after_a_fleet_failed_the_margin_is_raised_four_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(fleet_size, "_search_fleet", lambda seen, _, above: asked.append((seen.extra_margin, above)))
    for failed, margins in ((0.0, [0]), (5.0, [0, 1, 2, 3, 4])):
        monkeypatch.setattr(fleet_size, "failed_instances", lambda *_, failed=failed: failed)
        asked.clear()
        assert find_smallest_fleet(context(), shape()) is None
        assert [margin for margin, _ in asked] == margins
        assert all(above == pytest.approx(1.2 * failed) for _, above in asked)


@pytest.mark.parametrize(
    ("size", "per_slot", "more", "counts"),
    [
        (5, 25.0, {}, (4,) * 24),
        (5, 25.1, {}, (5,) * 24),
        (4, 25.0, {}, (4,) * 24),
        (3, 25.0, {}, (3,) * 24),
        (5, 25.0, {"most": 3}, (3,) * 24),
        (5, 25.0, {"name": OTHER}, (5,) * 24),
    ],
    ids=["as many as the owner's", "a load beyond theirs", "alike", "smaller", "limited", "another type"],
)
def test_our_fleet_grows_beyond_the_owners_only_for_a_load_that_theirs_never_carried(
    monkeypatch: pytest.MonkeyPatch, size: int, per_slot: float, more: dict[str, Any], counts: tuple[int, ...]
) -> None:
    seen = context(past=(ours(),))
    seen = replace(seen, days=[replace(one, requests=(per_slot,) * 288) for one in seen.days])
    monkeypatch.setattr(fleet_size, "_search_fleet", lambda *_: fleet(size))
    answer = find_smallest_fleet(seen, shape(workers=3, random_routing=True, slower=1.5, **more))
    assert answer is not None
    assert answer.counts == counts
    if counts != (size,) * 24:
        assert (answer.workers, answer.random_routing, answer.slower) == (3, True, 1.5)
    alone = find_smallest_fleet(replace(seen, inputs=context().inputs), shape(**more))
    assert alone is not None
    assert alone.counts == (size,) * 24, "without a change of ours the owner's fleet is what runs"


def test_our_hours_come_back_as_the_owners_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_size, "_search_fleet", lambda *_: fleet(5))
    seen = context(HOURS, past=(ours(),))
    for hourly, counts in ((True, HOURS), (False, (3,) * 24)):
        answer = find_smallest_fleet(seen, shape(hourly=hourly))
        assert answer is not None
        assert answer.counts == counts


# the search


def needing(need: int) -> Any:
    """Fleets with an hour of fewer instances have half of their requests late."""
    return lambda one: late(0 if min(one.counts) >= need else 500)


@pytest.mark.parametrize("need", [2, 3, 4])
def test_behind_random_routing_the_fewest_instances_that_carry_are_found(
    monkeypatch: pytest.MonkeyPatch, need: int
) -> None:
    seen = context()
    serve(monkeypatch, needing(need))
    answer = find_smallest_fleet(seen, shape(random_routing=True))
    assert answer is not None
    assert answer.counts == (need,) * 24
    assert (answer.random_routing, answer.workers, answer.maximum) == (True, 1, 0)
    assert answer.load == seen.load_margin
    assert find_smallest_fleet(seen, shape(random_routing=True, most=need - 1)) is None


def test_no_fleet_as_small_as_one_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_size, "failed_instances", lambda *_: 2.5)  # 1.2 times are 3
    serve(monkeypatch, needing(1))
    answer = find_smallest_fleet(context(), shape(random_routing=True))
    assert answer is not None
    assert answer.counts == (4,) * 24


def test_the_owners_minimum_is_the_least_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, needing(1))
    seen = context()
    for least, counts in ((None, 1), (3, 3)):
        objective = replace(seen.endpoint.objective, min_instances=least)
        answer = find_smallest_fleet(replace(seen, endpoint=replace(seen.endpoint, objective=objective)), shape())
        assert answer is not None
        assert answer.counts == (counts,) * 24


def test_the_owners_autoscaling_adds_to_what_it_starts_from_but_not_behind_random_routing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve(monkeypatch, needing(1))
    seen = context(scaling=(SCALED,))
    for random_routing, maximum in ((False, 8), (True, 0)):
        answer = find_smallest_fleet(seen, shape(random_routing=random_routing))
        assert answer is not None
        assert (answer.counts, answer.maximum) == ((1,) * 24, maximum)
    lone = context(scaling=(replace(SCALED, minimum=1, maximum=1),))
    answer = find_smallest_fleet(lone, shape())
    assert answer is not None
    assert answer.maximum == 0, "nothing can be added to the maximum"


def test_hours_of_their_own_are_taken_where_one_count_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """By day three are busy, at night nobody is: fewer on average than three at all times, and never at a price."""
    monkeypatch.setattr(fleet_size, "concurrency_by_hour", lambda *_: [[3]] * 12 + [[1]] * 12)
    serve(monkeypatch, lambda one: late(0 if min(one.counts[:12]) >= 3 else 500))
    answer = find_smallest_fleet(context(), shape(hourly=True))
    assert answer is not None
    assert answer.counts == HOURS
    serve(monkeypatch, lambda one: late(0 if len(set(one.counts)) == 1 else 500))
    answer = find_smallest_fleet(context(), shape(hourly=True))
    assert answer is not None
    assert answer.counts == (3,) * 24, "where the replay refuses the hours one count may do"


def test_within_the_owners_fleet_the_hours_that_need_less_get_less(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(fleet_size, "concurrency_by_hour", lambda *given: noted(asked, given, [[9]] * 12 + [[2]] * 12))
    day_and_night = (4,) * 12 + (3,) * 12
    serve(monkeypatch, lambda one: late(0 if min(one.counts[:12]) >= 4 and min(one.counts) >= 3 else 500))
    seen, hourly = context(), shape(hourly=True, workers=1, random_routing=True, slower=1.25)
    answer = find_fleet_within_reference(seen, hourly)
    assert answer == Fleet(day_and_night, 1, True, 1.25)
    assert asked == [(seen.stream, 1.25 * seen.load_margin)]
    assert find_fleet_within_reference(seen, replace(hourly, hourly=False)) is None
    assert find_fleet_within_reference(context(day_and_night), hourly) is None, "as much as runs is no saving"
    for failed, none in ((2.91, False), (2.92, True)):  # three and a half on average have to be a fifth more
        known = {(TYPE, 1.25, 1): failed}
        monkeypatch.setattr(fleet_size, "failed_instances", lambda _, *on, known=known: known[on])
        assert (find_fleet_within_reference(seen, hourly) is None) is none


def test_a_schedule_of_ours_that_is_too_small_keeps_its_hours_and_takes_none_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hours = replace(SCALED, policies=(), scheduled=({"ScheduledActionName": "rightsizer-c-1-08"},))
    seen = context((2.6, None, *(0.4,) * 22), scaling=(hours,), is_strained=True)
    assert fleet_size._least_by_hour(seen, shape(hourly=True)) == (3, *(1,) * 23)
    assert fleet_size._least_by_hour(seen, shape()) == (1,) * 24
    assert fleet_size._least_by_hour(replace(seen, is_strained=False), shape(hourly=True)) == (1,) * 24
    monkeypatch.setattr(fleet_size, "concurrency_by_hour", lambda *_: [[3]] + [[1]] * 23)
    serve(monkeypatch, lambda one: late(0 if len(set(one.counts)) == 1 or one.load == 1.0 else 500))
    assert find_smallest_fleet(seen, shape(hourly=True)) is None, "one count for all hours takes the place of none"
    assert find_smallest_fleet(seen, shape()) is not None


# what the replay is asked


def table(rows: dict[tuple[int, float], tuple[int, int]]) -> Any:
    """Late requests and rings of the alarm by (instances, load)."""
    return lambda one: late(*rows[max(one.counts), round(one.load, 2)])


@pytest.mark.parametrize(("number", "carried"), [(13, True), (14, False)])
def test_at_the_load_that_is_planned_nobody_may_notice_the_fleet(
    monkeypatch: pytest.MonkeyPatch, number: int, carried: bool
) -> None:
    """Three of a thousand more than today may be late."""
    serve(monkeypatch, table({(2, 1.0): (number, 0), (4, 1.0): (10, 0)}))
    assert (replay_if_carried(context(), fleet(2)) is not None) is carried


@pytest.mark.parametrize(("planned", "seen", "carried"), [(1, 9, True), (2, 1, True), (9, 1, True), (2, 2, False)])
def test_the_guard_rings_on_no_more_days_than_today_at_the_load_that_was_seen(
    monkeypatch: pytest.MonkeyPatch, planned: int, seen: int, carried: bool
) -> None:
    rows = {(2, 1.05): (0, planned), (2, 1.0): (0, seen), (2, 1.2): (0, 0), (4, 1.0): (0, 1)}
    serve(monkeypatch, table(rows))
    assert (replay_if_carried(context(), fleet(2, load=1.05)) is not None) is carried


@pytest.mark.parametrize(
    ("more", "rings", "carried"),
    [
        ({"within_objective": True}, 1, True),
        ({"judges_again": True}, 1, True),
        ({"within_objective": True}, 2, False),
        ({}, 1, False),
    ],
)
def test_what_a_person_decides_may_ring_on_one_busy_day_in_ten(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], rings: int, carried: bool
) -> None:
    """Seven busy days, as often as the requests were given another chance."""
    serve(monkeypatch, table({(2, 1.0): (0, rings), (4, 1.0): (0, 0)}))
    seen = context(**more)
    vars(seen)["stream"] = replace(seen.stream, copies=2)  # 0.1 of 14 are 1.4
    assert (replay_if_carried(seen, fleet(2)) is not None) is carried


@pytest.mark.parametrize(
    ("load", "grown", "carried"), [(1.05, 14, True), (1.05, 15, False), (1.0, 99, True), (1.2, 99, True)]
)
def test_with_the_growth_of_the_policy_one_request_in_a_hundred_more_may_be_late(
    monkeypatch: pytest.MonkeyPatch, load: float, grown: int, carried: bool
) -> None:
    """Only where the plan has less room than that; the load that has grown further is met by the next evaluation."""
    rows = {(2, load): (0, 0), (2, 1.0): (0, 0), (4, 1.0): (4, 0)}
    if load == 1.05:
        rows[2, 1.2] = (grown, 0)
    asked = serve(monkeypatch, table(rows))
    assert (replay_if_carried(context(), fleet(2, load=load)) is not None) is carried
    assert any(round(one.load, 2) == 1.2 for one in asked) is (load != 1.0)


@pytest.mark.parametrize(
    ("changed", "carried"),
    [
        ({}, True),
        ({(2, 1.0): (4, 0)}, False),
        ({(2, 1.15): (8, 0)}, True),
        ({(2, 1.15): (9, 0)}, False),
        ({(2, 1.15): (0, 1)}, True),
        ({(2, 1.15): (0, 2)}, False),
        ({(2, 1.2): (17, 0)}, True),
        ({(2, 1.2): (18, 0)}, False),
    ],
)
def test_a_smaller_fleet_serves_as_the_owners_does_as_seen_with_margin_and_with_growth(
    monkeypatch: pytest.MonkeyPatch, changed: dict[tuple[int, float], tuple[int, int]], carried: bool
) -> None:
    rows = {
        (4, 1.0): (0, 0),
        (4, 1.15): (5, 1),
        (4, 1.2): (7, 0),
        (2, 1.0): (0, 0),
        (2, 1.15): (0, 0),
        (2, 1.2): (0, 0),
    }
    monkeypatch.setattr(EvaluationContext, "load_margin", 1.15)
    serve(monkeypatch, table(rows | changed))
    assert carries_like_reference(context(), fleet(2)) is carried


def test_what_a_change_of_ours_left_still_carries_where_nobody_notices_it_on_the_last_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = context(past=(ours(),))
    small = replace(small, days=[*small.days[:-1], replace(small.days[-1], instances=(2.4, None, *(0.4,) * 22))])
    asked = serve(monkeypatch, lambda one: late(3 if one.counts[0] == 2 else 0))
    assert can_still_carry(small)
    assert asked[0] == Fleet((2, 4, *(1,) * 22), small.workers, small.is_random_routing, 1.0)
    serve(monkeypatch, lambda one: late(4 if one.counts[0] == 2 else 0))
    assert not can_still_carry(small)
    assert can_still_carry(replace(small, inputs=context().inputs)), "the fleet is the owner's"
    assert can_still_carry(running(small, OTHER)), "another type is judged by its late requests"
    serve(monkeypatch, lambda one: late(4 if one.counts[:3] == (2, 2, 1) else 0))
    pair = [replace(one, instances=(2.0,) * 24) for one in small.base]
    assert not can_still_carry(replace(small, base=pair))
    assert can_still_carry(replace(small, base=[replace(one, instances=(1.0,) * 24) for one in pair]))


# what an option runs


def test_the_mean_of_a_fixed_fleet_is_its_counts_and_of_a_scaled_one_the_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = serve(monkeypatch, lambda _: late(0, mean_instances=2.7))
    assert mean_instances(context(), fleet(counts=HOURS)) == 2.0
    assert mean_instances(context(), fleet(2, maximum=8, load=1.2)) == 2.7
    assert asked == [fleet(2, maximum=8)]


def test_the_p95_of_an_option_is_todays_times_what_both_replays_differ_by(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = context()
    option = plain.option(target=Target(TYPE, 2), promise=Promise(1.0, 1.0, latency_ratio=1.5))
    assert latency_ratio(option) == 1.5
    assert latency_ratio(plain.option()) == latency_ratio(replace(option, promise=Promise(1.0, 1.0))) == 1.0
    serve(
        monkeypatch, lambda one: ReplayResult(9, 0, 0.0, p95_s=3.0 if one.counts[0] == 2 and one.slower == 1.5 else 2.0)
    )
    assert replayed_p95_s(seen, option, seen.runs) == round(1.5 * seen.latency.p95_s, 4)
    serve(monkeypatch, lambda one: ReplayResult(9, 0, 0.0, p95_s=0.25 if one.counts[0] == 2 else 0.5))
    assert replayed_p95_s(seen, option, seen.runs) == round(0.5 * seen.latency.p95_s, 4)
    serve(monkeypatch, lambda _: ReplayResult(0, 0, 0.0))
    assert replayed_p95_s(seen, option, seen.runs) == round(1.5 * seen.latency.p95_s, 4)


def test_the_fleet_of_an_option_is_its_target() -> None:
    seen = context()
    routed = replace(seen, endpoint=replace(seen.endpoint, variants=(replace(seen.variant, routing="RANDOM"),)))
    for option, counts in ((Target(TYPE, 3), (3,) * 24), (Target(TYPE, 3, HOURS), HOURS), (Target(TYPE, 0), (1,) * 24)):
        made = fleet_of_option(seen, plain.option(target=option), seen.runs, 1.25)
        assert made == Fleet(counts, seen.workers, False, 1.25)
    scaled = fleet_of_option(routed, plain.option(target=Target(TYPE, 2, minimum=2, maximum=8)), seen.runs, 1.0)
    assert (scaled.maximum, scaled.random_routing) == (8, True)
    assert not fleet_of_option(
        routed, plain.option(target=Target(TYPE, 2, routing=LEAST)), seen.runs, 1.0
    ).random_routing
