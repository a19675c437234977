"""Slowdowns, chances and worker counts at their bounds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Demand
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender.slowdown import (
    QUANTILES,
    allowed_gpu_slowdown,
    chance_within,
    expected_slowdown,
    host_factor,
    measured_outcomes,
    measured_slowdown,
    outcome_weight,
    ratio_of,
    slowdown_at,
    slowdown_bound,
    slowdown_middle,
    workers_of,
)
from tests.recommender import kit
from tests.recommender.plain import LATENCY, card, demand, near, past

POLICY = Policy()
TYPES, OTHERS = kit.catalogue(), kit.catalogue(kit.OTHERS)
A10G, T4 = card("ml.g5.xlarge"), card("ml.g4dn.xlarge")
PHI = 600 / 320
"""An A10G has 600 GB/s and a T4 has 320: that ratio is larger than the one of their FLOPS."""


def test_the_same_chip_is_as_fast() -> None:
    assert expected_slowdown(A10G, replace(A10G, memory_gib=1), POLICY) == Slowdown(
        1.0, 1.0, 1.0, 1.0, SlowdownSource.SAME
    )


def test_another_chip_is_bounded_by_its_datasheet_and_what_the_account_learnt() -> None:
    found = expected_slowdown(A10G, T4, POLICY)
    assert found.phi == near(PHI)
    assert (found.bound, found.mid) == (near(PHI * 1.25), near(PHI * 0.71))
    assert (found.hopeful, found.source) == (near(PHI * 0.33), SlowdownSource.DATASHEET)
    learnt = expected_slowdown(A10G, T4, POLICY, width=1.1, middle=0.9)
    assert (learnt.bound, learnt.mid) == (near(PHI * 1.1), near(PHI * 0.9))
    tight = expected_slowdown(A10G, T4, POLICY, width=0.2, middle=0.9)
    assert tight.bound == tight.mid == tight.hopeful == near(PHI * 0.2)


def test_a_chip_that_is_faster_in_both_respects_is_bounded_by_today_and_five_percent() -> None:
    even = replace(A10G, model="B")
    assert expected_slowdown(A10G, even, POLICY).bound == 1.05
    quick = replace(A10G, model="C", fp16_tflops=140, memory_bandwidth_gbps=1200)
    assert expected_slowdown(A10G, quick, POLICY).bound == near(0.5 * 1.25)


def test_a_measurement_has_its_error_on_both_sides() -> None:
    assert measured_slowdown(A10G, T4, 2.0, 0.1) == Slowdown(
        near(2.2), 2.0, near(1.8), near(PHI), SlowdownSource.TESTED
    )


@pytest.mark.parametrize(("q", "share"), QUANTILES)
def test_the_chance_follows_the_measured_moves(q: float, share: float) -> None:
    assert chance_within(2 * q, 2.0) == near(share)


@pytest.mark.parametrize(
    ("q", "share"), [(0.1, 0.0), (0.265, 0.025), (0.45, 0.15), (0.64, 0.375), (1.445, 0.995), (1.7, 1.0)]
)
def test_between_two_quantiles_the_chance_is_a_straight_line(q: float, share: float) -> None:
    assert chance_within(q, 1.0) == near(share)


def test_what_the_account_saw_counts_with_its_weight() -> None:
    assert chance_within(0.71, 1.0, (0.5, 0.71, 0.72, 0.9), 0.4) == near(0.4 * 0.5 + 0.6 * 0.5)
    assert chance_within(1.42, 2.0, (0.5, 0.6, 0.7, 0.9), 0.4) == near(0.4 * 0.75 + 0.6 * 0.5)
    assert chance_within(0.71, 1.0, (), 0.4) == near(0.3)
    assert chance_within(0.71, 0.0) == 0.0
    assert chance_within(0.71, 0.5) > 0.5


@given(limit=some.floats(0.0, 4.0), more=some.floats(0.0, 1.0), ratio=some.floats(0.1, 4.0))
def test_more_room_is_never_less_likely(limit: float, more: float, ratio: float) -> None:
    assert 0.0 <= chance_within(limit, ratio) <= chance_within(limit + more, ratio) <= 1.0


def sized(vcpu: int, gpus: int = 1) -> InstanceType:
    return replace(TYPES.types["ml.g5.xlarge"], vcpu=vcpu, accelerator_count=gpus)


@pytest.mark.parametrize(
    ("now", "then", "threads", "shown", "factor"),
    [
        (8, 8, None, None, 1.0),
        (8, 16, 30.0, None, 1.0),
        (8, 4, None, None, 2.0),
        (8, 4, 2.0, None, 1.0),
        (8, 4, 6.0, None, 1.5),
        (8, 4, 30.0, None, 2.0),
        (8, 4, None, 6.0, 1.5),
        (8, 4, 2.0, 6.0, 1.0),
        (8, 4, 0.1, None, 1.0),
        (8, 4, 0.0, 6.0, 1.0),
        (8, 1, 1.5, None, 1.5),
        (8, 1, 0.5, None, 1.0),
    ],
)
def test_the_host_slows_by_the_vcpus_that_it_can_use(
    now: int, then: int, threads: float | None, shown: float | None, factor: float
) -> None:
    found = host_factor(sized(now), sized(then), demand(host_threads=threads), shown)
    assert found == near(factor)


GUESS = Slowdown(3.0, 2.0, 1.0, 2.4, SlowdownSource.DATASHEET)
TESTED = replace(GUESS, source=SlowdownSource.TESTED)


def test_the_latency_is_slower_by_its_gpu_share_and_by_its_host_share() -> None:
    found = ratio_of(demand(gpu_share=0.75), GUESS, 2.0, None, POLICY)
    assert (found.mid, found.bound) == (near(0.25 * 2 + 0.75 * 2), near(0.25 * 2 + 0.75 * 3))


def test_a_measured_latency_goes_before_a_guess_and_is_averaged_with_a_measured_slowdown() -> None:
    load = demand(gpu_share=0.75)
    plain = ratio_of(load, GUESS, 1.0, 1.5, POLICY)
    assert (plain.mid, plain.bound) == (1.5, near(1.5 * 1.08))
    both = ratio_of(load, TESTED, 1.0, 1.25, POLICY)
    assert (both.mid, both.bound) == (near(1.5), near(1.5 * 1.08))
    fewer = ratio_of(load, TESTED, 1.01, 1.25, POLICY)
    assert (fewer.mid, fewer.bound) == (1.25, near(1.25 * 1.08))


def test_the_room_of_the_gpu_is_what_the_host_leaves_of_the_stretch() -> None:
    assert allowed_gpu_slowdown(demand(gpu_share=0.5), 1.0, 1.5) == near(2.0)
    assert allowed_gpu_slowdown(demand(gpu_share=0.5), 2.0, 1.5) == near(1.0)
    assert allowed_gpu_slowdown(demand(gpu_share=0.5), 4.0, 1.5) == 0.0
    assert allowed_gpu_slowdown(demand(gpu_share=1.0), 4.0, 1.5) == near(1.5)
    assert allowed_gpu_slowdown(demand(gpu_share=0.0), 1.0, 1.5) == float("inf")


@pytest.mark.parametrize(
    ("gpus", "load", "workers"),
    [
        (4, demand(), 4),
        (4, demand(gpus_used=2), 2),
        (1, demand(gpus_used=2), 1),
        (4, demand(gpu_s_per_request=0.6), 4),
        (4, demand(gpu_s_per_request=0.61), 4),
        (4, demand(gpu_s_per_request=1.0), 2),
        (4, demand(gpu_s_per_request=99.0), 1),
        (1, demand(gpu_s_per_request=1.0), 1),
        (0, demand(), 1),
        (4, demand(gpu_s_per_request=None), 4),
    ],
)
def test_an_instance_serves_as_many_requests_as_it_has_groups_of_gpus(gpus: int, load: Demand, workers: int) -> None:
    """A request takes half a second; where it works on the GPUs for longer, it works on several at once."""
    assert workers_of(sized(4, gpus), sized(4, 4), load, LATENCY) == workers


def moved(to: str = "ml.g4dn.xlarge", ratio: float | None = PHI, **more: Any) -> PastChange:
    return past(to, from_type="ml.g5.xlarge", framework="vllm", realised_slowdown=ratio, **more)


def taught(*account: PastChange, framework: str = "vllm") -> tuple[float, ...]:
    return measured_outcomes(History(account=account), TYPES.find, framework, POLICY)


def test_the_account_teaches_by_framework_how_moves_to_slower_chips_went() -> None:
    assert taught(moved(ratio=2 * PHI), moved()) == near((1.0, 2.0)), "ascending"
    assert taught(moved(), framework="") == ()
    assert taught(replace(moved(), framework="")) == ()
    assert taught(moved(), framework="lmi") == ()
    assert taught(moved("ml.g5.2xlarge")) == ()
    assert taught(moved("ml.g6e.xlarge")) == ()
    assert taught(moved("ml.unknown.xlarge")) == ()
    assert (
        measured_outcomes(History(account=(replace(moved(), to_type="ml.m5.2xlarge"),)), OTHERS.find, "vllm", POLICY)
        == ()
    )
    assert measured_outcomes(History(account=(replace(moved(), framework=""),)), TYPES.find, "", POLICY) == ()
    assert taught(replace(moved(), from_type="ml.unknown.xlarge"), moved()) == near((1.0,))


def test_a_move_that_went_back_for_its_speed_counts_as_no_quicker_than_the_bound() -> None:
    back = {"ratio": None, "ended": PastEnd.ROLLED_BACK}
    for failure, wanted in (("alarm", (1.25,)), ("performance", (1.25,)), ("memory", ())):
        assert taught(moved(failure=failure, **back)) == wanted  # type: ignore[arg-type]
    assert taught(moved(ratio=None, failure="alarm")) == ()
    assert taught(moved(ended=PastEnd.ROLLED_BACK, failure="alarm")) == near((1.0,))


def test_twenty_outcomes_weigh_as_much_as_the_prior() -> None:
    assert outcome_weight((1.0,) * 20, POLICY) == 0.5
    assert outcome_weight((), POLICY) == 0.0
    assert outcome_weight((1.0,) * 60, POLICY) == 0.75


def test_the_bound_is_shrunk_to_the_prior() -> None:
    assert slowdown_bound((), POLICY) == 1.25
    assert slowdown_bound((1.5, 2.0), POLICY) == near(2 / 22 * 2.0 + 20 / 22 * 1.25)
    assert slowdown_bound((9.0,), POLICY) == near(1 / 21 * 2.5 + 20 / 21 * 1.25), "one is at most twice the prior"
    quick = (0.5,) * 39
    assert slowdown_bound(quick, POLICY) == near(39 / 59 * 1.0 + 20 / 59 * 1.25)
    assert slowdown_bound((0.5,) * 78, POLICY) < slowdown_bound((0.5,) * 60, POLICY) < slowdown_bound(quick, POLICY)
    assert slowdown_bound((0.5,) * 78, POLICY) == pytest.approx(78 / 98 * 0.5 + 20 / 98 * 1.25, abs=0.02)
    later = (*(0.5,) * 98, 2.0, 3.0)
    assert slowdown_bound(later, POLICY) == near(100 / 120 * 2.0 + 20 / 120 * 1.25), "the 99th of a hundred"
    assert slowdown_bound((1.0,) * 38 + (3.0,), POLICY) == near(39 / 59 * 3.0 + 20 / 59 * 1.25), "the 97.5 % quantile"


def test_the_middle_is_the_median_shrunk_to_the_prior() -> None:
    assert slowdown_middle((), POLICY) == 0.71
    assert slowdown_middle((0.9,) * 20, POLICY) == near(0.5 * 0.9 + 0.5 * 0.71)
    assert slowdown_middle((0.5, 0.9, 1.3), POLICY) == near(3 / 23 * 0.9 + 20 / 23 * 0.71)


def test_the_slowdown_of_a_chance_is_the_one_within_which_the_true_one_is_that_often() -> None:
    assert slowdown_at(0.9, 2.0) == near(2 * 1.03)
    seen = (0.5, 0.6, 0.7, 2.0)
    assert chance_within(slowdown_at(0.8, 3.0, seen, 0.4), 3.0, seen, 0.4) == near(0.8)
