"""The changed traces are traces of the same form: same pools, same length, another order."""

import random

import pytest

from bench.interruption import percentile
from bench.spot_perturb import VARIANTS, apart, backwards, played, room_at, scarcer, shuffled, thinned, turned
from bench.spot_traces import PLENTY, Scenario
from rightsizer.domain.spot import Pool

A, B = Pool("p3", "us-east-1a"), Pool("p3", "us-east-1b")
DAY = 86400.0
TRACE = Scenario("t", {A: ((0.0, PLENTY), (DAY, 0), (2 * DAY, PLENTY)), B: ((DAY / 2, PLENTY),)}, 4 * DAY)


def hours_with_room(scenario: Scenario, pool: Pool) -> int:
    return sum(1 for hour in range(int(scenario.end // 3600)) if room_at(scenario.changes[pool], hour * 3600 + 1))


@pytest.mark.parametrize("make", [turned, shuffled, backwards])
def test_another_order_has_the_same_hours_and_the_same_length(make: object) -> None:
    assert callable(make)
    made = make(TRACE, random.Random(5))
    assert made.end == TRACE.end
    assert [hours_with_room(made, pool) for pool in (A, B)] == [72, 84]
    assert made.changes != TRACE.changes


def test_backwards_twice_is_the_trace() -> None:
    again = backwards(backwards(TRACE, random.Random(1)), random.Random(1))
    for hour in range(96):
        for pool in (A, B):
            assert room_at(again.changes[pool], hour * 3600 + 1) == room_at(TRACE.changes[pool], hour * 3600 + 1)


def test_all_pools_are_reordered_together_unless_it_is_said_otherwise() -> None:
    same = Scenario("t", {A: TRACE.changes[A], B: TRACE.changes[A]}, TRACE.end)
    made, alone = shuffled(same, random.Random(2)), apart(same, random.Random(2))
    assert alone is not None
    assert made.changes[A] == made.changes[B]
    assert alone.changes[A] != alone.changes[B]


def test_half_of_one_pool_is_no_trace() -> None:
    one = Scenario("t", {A: TRACE.changes[A]}, TRACE.end)
    assert thinned(one, random.Random(1)) is None
    assert apart(one, random.Random(1)) is None
    halved = thinned(TRACE, random.Random(1))
    assert halved is not None
    assert len(halved.changes) == 1


def test_scarcer_only_ever_takes_room_away() -> None:
    made = scarcer(TRACE, random.Random(1))
    assert hours_with_room(made, A) < hours_with_room(TRACE, A)
    for hour in range(96):
        assert room_at(made.changes[A], hour * 3600 + 1) <= room_at(TRACE.changes[A], hour * 3600 + 1)


def test_a_variant_is_the_same_for_the_same_seed_and_named_so() -> None:
    short = Scenario("t", {A: ((0.0, PLENTY),), B: ((0.0, PLENTY), (3600.0, 0))}, DAY / 4, 2)
    first, second = (list(played(VARIANTS[0], [short], [7])) for _ in range(2))
    assert first == second
    assert first[0][0].name == "t, begun elsewhere, coming round, seed 7"


@pytest.mark.parametrize(("share", "found"), [(0.5, 5.0), (0.99, 10.0), (0.0, 1.0)])
def test_a_percentile_is_a_value_that_was_measured(share: float, found: float) -> None:
    assert percentile([float(n) for n in range(10, 0, -1)], share) == found
