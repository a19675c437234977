"""What each kind of past change teaches about a candidate, and what it does not."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.slowdown import (
    LEFT,
    Lesson,
    MeasuredType,
    failures,
    gpu_ratios,
    host_threads,
    learn_about,
    rest_until,
    with_failed_starts,
    with_left_types,
)
from tests.recommender import kit
from tests.recommender.plain import near, past

CATALOGUE = kit.catalogue(kit.OTHERS)
TYPES = CATALOGUE.types
POLICY = Policy()
LARGE = TYPES["ml.g6e.xlarge"]
TESTED, BACK = PastEnd.TESTED, PastEnd.ROLLED_BACK
SLOWER = {"ml.g5.xlarge": 2.0, "ml.g6.xlarge": 3.0, "ml.g4dn.xlarge": 4.0, "ml.p5.4xlarge": 0.25}


def told(
    candidate: str, *pasts: PastChange, links: dict[str, MeasuredType] | None = None, reference: InstanceType = LARGE
) -> Lesson:
    return learn_about(
        History(endpoint=pasts),
        reference,
        TYPES[candidate],
        CATALOGUE.find,
        lambda hardware: SLOWER.get(hardware.name, 0.0),
        links,
    )


def test_without_a_past_nothing_is_known() -> None:
    assert told("ml.g5.xlarge") == Lesson()


def test_a_test_tells_ratios_of_its_card_and_of_its_type() -> None:
    seen = past("ml.g5.xlarge", ended=TESTED, realised_slowdown=2.4, latency_ratio=1.8)
    assert told("ml.g5.xlarge", seen) == Lesson(2.4, 1.8, started=True)
    assert told("ml.g5.2xlarge", seen) == Lesson(2.4, None, started=True), "another size of the same card"
    assert told("ml.g6.xlarge", seen) == Lesson(started=True, other_q=1.2), "another card with as much memory"
    assert told("ml.g4dn.xlarge", seen) == Lesson(other_q=1.2), "a smaller card"
    assert told("ml.m5.2xlarge", seen) == Lesson(other_q=1.2), "no card"


def test_the_last_measurement_counts() -> None:
    first = past("ml.g5.xlarge", 9, ended=TESTED, realised_slowdown=2.4, latency_ratio=1.8)
    last = past("ml.g5.xlarge", 8, ended=TESTED, realised_slowdown=2.6, latency_ratio=1.9)
    blind = past("ml.g5.xlarge", 7)
    assert told("ml.g5.xlarge", first, last, blind) == Lesson(2.6, 1.9, started=True)


def test_what_happened_to_types_that_nobody_knows_is_passed_over() -> None:
    seen = past("ml.g5.xlarge", ended=TESTED, realised_slowdown=2.4)
    for unknown in (
        replace(seen, to_type="ml.gone"),
        replace(seen, from_type="ml.gone"),
        replace(seen, to_type="ml.m5.2xlarge"),
        replace(seen, from_type="ml.m5.2xlarge"),
    ):
        assert told("ml.g5.xlarge", unknown) == Lesson()
        assert told("ml.g5.xlarge", unknown, seen).gpu_ratio == 2.4


def test_a_change_from_another_card_counts_only_through_a_link() -> None:
    seen = past("ml.g5.xlarge", from_type="ml.p5.4xlarge", ended=TESTED, realised_slowdown=6.0, latency_ratio=5.0)
    assert told("ml.g5.xlarge", seen) == Lesson(started=True)
    linked = told("ml.g5.xlarge", seen, links={"ml.p5.4xlarge": MeasuredType(0.5, 0.6)})
    assert linked == Lesson(3.0, near(3.0), started=True)
    other = told("ml.g6.xlarge", seen, links={"ml.p5.4xlarge": MeasuredType(0.5, 0.6)})
    assert other == Lesson(started=True, other_q=1.5)
    bare = replace(LARGE, accelerator=None)
    assert told("ml.g5.xlarge", seen, reference=bare) == Lesson(started=True)


def test_a_type_that_serves_production_counts_by_its_card() -> None:
    assert told("ml.g5.2xlarge", links={"ml.g5.xlarge": MeasuredType(2.2, 2.0)}) == Lesson(2.2, served=True)
    assert told("ml.g6.xlarge", links={"ml.g5.xlarge": MeasuredType(2.2, 2.0)}) == Lesson()
    assert told("ml.m5.2xlarge", links={"ml.t3.2xlarge": MeasuredType(2.2, 2.0)}).gpu_ratio == 2.2, "neither has a card"


def test_a_move_to_a_quicker_card_says_nothing_of_others() -> None:
    seen = past("ml.p5.4xlarge", ended=TESTED, realised_slowdown=0.2)
    assert told("ml.g5.xlarge", seen).other_q is None


def test_a_card_that_is_a_little_slower_tells_of_others_too() -> None:
    seen = past("ml.g4dn.xlarge", from_type="ml.g5.xlarge", ended=TESTED, realised_slowdown=2.0)
    assert told("ml.g6.xlarge", seen, reference=TYPES["ml.g5.xlarge"]).other_q == 0.5


def test_a_card_on_which_the_memory_did_not_suffice_is_remembered() -> None:
    small = past("ml.g4dn.xlarge", 9, ended=BACK, failure="memory")
    larger = past("ml.g5.xlarge", 8, ended=BACK, failure="memory")
    assert told("ml.g6.xlarge", small).too_small_gib == 14.6
    assert told("ml.g6.xlarge", larger, small).too_small_gib == 22.0
    assert told("ml.g6.xlarge", past("ml.g5.xlarge", failure="memory")).too_small_gib == 0.0
    assert told("ml.g6.xlarge", past("ml.g5.xlarge", ended=BACK, failure="alarm")).too_small_gib == 0.0


def test_a_start_is_shown_by_what_served_and_by_what_was_left_again() -> None:
    assert told("ml.g5.xlarge", past()).started
    assert told("ml.g5.xlarge", past(ended=BACK, failure=LEFT)).started
    assert not told("ml.g5.xlarge", past(ended=BACK, failure="alarm")).started
    assert not told("ml.g5.xlarge", past(ended=TESTED)).started, "nobody saw whether it serves"
    both = told("ml.g5.xlarge", past(), past(ended=BACK, failure="alarm"))
    assert both.started
    four = past("ml.g5.12xlarge")
    assert not told("ml.g5.xlarge", four).started, "four GPUs may have held what one cannot"
    assert told("ml.g5.12xlarge", past("ml.g5.xlarge")).started


def test_a_type_is_refuted_by_its_last_change_that_says_something() -> None:
    failed = past("ml.g5.xlarge", 9, ended=BACK, failure="alarm")
    unseen = past("ml.g5.xlarge", 8, ended=TESTED)
    assert told("ml.g5.xlarge", failed).refuted is failed
    assert told("ml.g5.xlarge", failed, unseen).refuted is failed
    assert told("ml.g5.xlarge", failed, past("ml.g5.xlarge", 7)).refuted is None
    assert told("ml.g5.2xlarge", failed).refuted is None


def test_failed_starts_belong_to_a_model_and_a_type() -> None:
    own = past("ml.g5.xlarge", 9, ended=BACK, failure="memory", models=("chat",))
    old = replace(own, models=("older",))
    slow = replace(own, models=("older",), failure="alarm")
    theirs = past("ml.g6.xlarge", 10, ended=BACK, failure="health-check", models=("chat",))
    stranger = replace(theirs, models=("other",))
    history = History(endpoint=(own, old, slow), account=(theirs, stranger, past(models=("chat",))))
    assert with_failed_starts(history, "chat").endpoint == (theirs, own, slow), "in the order of their dates"
    assert with_failed_starts(history, "chat").account == history.account
    assert with_failed_starts(history, "").endpoint == (own, old, slow)


COSTS = {"ml.g6e.xlarge": Decimal("2.6"), "ml.g5.xlarge": Decimal("1.4"), "ml.g6.xlarge": Decimal("1.3")}
DOWN = past("ml.g5.xlarge", 20)
UP = past("ml.g6e.xlarge", 10, from_type="ml.g5.xlarge")


def left(*pasts: PastChange) -> tuple[PastChange, ...]:
    return with_left_types(History(endpoint=pasts), COSTS.get).endpoint


def test_a_cheaper_type_that_was_left_again_failed_on_the_day_on_which_it_was_left() -> None:
    failed = replace(DOWN, at=UP.at, ended=BACK, failure=LEFT)
    assert left(DOWN, UP) == (failed, UP)
    between = past("ml.g5.xlarge", 15, from_type="ml.g5.xlarge", counts=(1, 2))
    assert left(DOWN, between, UP) == (between, failed, UP), "in the order of their dates"
    assert left(replace(DOWN, ended=PastEnd.APPLIED), UP)[0].failure == LEFT


@pytest.mark.parametrize(
    "pasts",
    [
        pytest.param((replace(DOWN, ended=PastEnd.HANDED_OVER), UP), id="nobody knows whether it served"),
        pytest.param((DOWN, replace(UP, ended=PastEnd.RUNNING)), id="it is not left yet"),
        pytest.param((DOWN, replace(UP, to_type="ml.g6.xlarge")), id="left for another type"),
        pytest.param((DOWN, replace(UP, from_type="ml.g6.xlarge")), id="another type was left"),
        pytest.param((replace(DOWN, to_count=2), UP), id="two of them cost more than one"),
        pytest.param((replace(DOWN, mean_instances=1.9), UP), id="so do so many on average"),
        pytest.param((replace(DOWN, to_type="ml.gone"), replace(UP, from_type="ml.gone")), id="no price"),
        pytest.param((replace(DOWN, from_type="ml.gone"), replace(UP, to_type="ml.gone")), id="no price before"),
    ],
)
def test_a_type_did_not_fail_where(pasts: tuple[PastChange, ...]) -> None:
    assert left(*pasts) == pasts


def test_as_dear_as_before_is_no_cheaper() -> None:
    even = {"ml.g6e.xlarge": Decimal("2.8"), "ml.g5.xlarge": Decimal("1.4")}
    twice = (replace(DOWN, to_count=2), UP)
    assert with_left_types(History(endpoint=twice), even.get).endpoint == twice
    fewer = (replace(DOWN, to_count=2, mean_instances=1.9), UP)
    more = (replace(DOWN, from_count=2, to_count=3), UP)
    assert with_left_types(History(endpoint=more), even.get).endpoint[0].failure == LEFT, "three for two"
    assert with_left_types(History(endpoint=fewer), even.get).endpoint[0].failure == LEFT


EIGHT, FOUR = TYPES["ml.g6e.2xlarge"], "ml.g6e.xlarge"


def used(*pasts: PastChange, share: float = 0.5, reference: InstanceType = EIGHT) -> float | None:
    return host_threads(History(endpoint=pasts), reference, CATALOGUE.find, share)


def smaller(ratio: float | None, to: str = FOUR) -> PastChange:
    return past(to, from_type="ml.g6e.2xlarge", ended=TESTED, latency_ratio=ratio)


def test_vcpus_of_a_request_are_told_by_a_test_on_fewer_of_them() -> None:
    """Half of the latency is the host's: 1.25 in all is 1.5 of that half, so six vCPUs were in use."""
    assert used(smaller(1.25)) == near(6.0)
    assert used(smaller(1.0)) == 4.0, "nothing became slower: no more than four are in use"
    assert used(smaller(1.075)) == 4.0, "15 % are the error of such a measurement"
    assert used(smaller(1.08)) == near(4.64)
    assert used(smaller(1.25), smaller(1.5)) == near(8.0), "the last one counts"
    assert used(smaller(1.25), share=0.25) == near(4 * 4 / 3)
    one = replace(EIGHT, vcpu=16)
    assert used(smaller(1.25), reference=one) == near(6.0)


@pytest.mark.parametrize(
    "other",
    [
        smaller(None),
        smaller(1.25, "ml.gone"),
        smaller(1.25, "ml.m5.2xlarge"),
        smaller(1.25, "ml.g5.xlarge"),
        smaller(1.25, "ml.g6e.2xlarge"),
    ],
    ids=["nothing measured", "an unknown type", "no card", "another card", "as many vCPUs"],
)
def test_other_changes_tell_no_vcpus(other: PastChange) -> None:
    assert used(other) is None
    assert used(smaller(1.25), other) == near(6.0), "they hide no earlier one"


def test_where_the_gpu_makes_nearly_all_of_the_latency_no_vcpus_can_be_told() -> None:
    assert used(smaller(1.25), share=0.95) is None
    assert used(smaller(1.25), share=0.94) is not None
    assert used(smaller(1.25), reference=replace(EIGHT, accelerator=None)) is None


def day(name: str, requests: Any, busy: Any) -> DailyUsage:
    none = (None,) * 4
    slots, work = (requests, *(None,) * (SLOTS - 1)), (busy, *(None,) * (SLOTS - 1))
    return DailyUsage(date(2026, 11, 1), name, 1, slots, work, (1.0,) * 24, (), 0.0, 0.0, *none)


def test_gpu_seconds_are_compared_over_slots_in_which_both_are_known() -> None:
    base, there = day("a", 200.0, 100.0), day("b", 200.0, 300.0)
    assert gpu_ratios([base, there], [base], 200) == {"b": 3.0}
    assert gpu_ratios([base, day("b", 199.0, 300.0)], [base], 200) == {}
    assert gpu_ratios([there], [day("a", 199.0, 100.0)], 200) == {}
    assert gpu_ratios([day("b", None, 300.0), day("b", 300.0, None), there], [base], 200) == {"b": 3.0}
    assert gpu_ratios([day("b", 200.0, 0.0)], [base], 200) == {}
    assert gpu_ratios([day("b", 400.0, 600.0)], [base], 200) == {"b": 3.0}, "by the request, however many came"
    assert gpu_ratios([there, day("b", 200.0, 100.0)], [base, base], 200) == {"b": 2.0}


def rests(failed: PastChange, times: int = 1, load: float | None = None) -> int | None:
    """Days from the failure until the end of its rest."""
    until = rest_until(failed, times, load, POLICY, kit.NOW)
    return None if until is None else (until - failed.at).days


def test_a_refuted_type_rests_for_thirty_days_and_twice_as_long_after_each_further_failure() -> None:
    failed = past(ended=BACK, failure="alarm", demand=1.0)
    assert [rests(failed, times) for times in (1, 2, 3)] == [30, 60, 120]
    assert rests(replace(failed, at=kit.NOW - timedelta(days=29))) == 30
    assert rests(replace(failed, at=kit.NOW - timedelta(days=30))) is None
    assert rests(replace(failed, at=kit.NOW - timedelta(days=59)), 2) == 60


def test_a_quarter_less_demand_lifts_the_rest_but_not_that_of_a_failed_start() -> None:
    failed = past(ended=BACK, failure="alarm", demand=1.0)
    assert rests(failed, load=0.75) == 30
    assert rests(failed, load=0.74) is None
    assert rests(replace(failed, failure="memory"), load=0.1) == 30


def test_refuted_changes_of_a_type_are_counted() -> None:
    failed = past(ended=BACK, failure="alarm")
    assert failures([failed, past(), replace(failed, to_type="ml.g6.xlarge"), failed], "ml.g5.xlarge") == 2
    assert failures([], "ml.g5.xlarge") == 0
