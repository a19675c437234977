"""What changes and tests of the past teach about a candidate."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.slowdown import (
    MeasuredType,
    chance_within,
    gpu_ratios,
    learn_about,
    measured_outcomes,
    outcome_weight,
    slowdown_bound,
    slowdown_middle,
    with_left_types,
)
from tests.recommender.kit import NOW, catalogue, endpoint, judge, prices, steady, window

TYPES = catalogue()


def measured(source: str, to: str, ratio: float, latency: float | None = None) -> PastChange:
    return PastChange(NOW, source, to, 1, 1, PastEnd.TESTED, realised_slowdown=ratio, latency_ratio=latency)


def told(candidate: str, *past: PastChange, **more: Any) -> Any:
    reference, hardware = TYPES.types["ml.g6e.xlarge"], TYPES.types[candidate]
    return learn_about(History(endpoint=past), reference, hardware, TYPES.find, lambda t: 1.0, **more)


def day(instance_type: str, requests: float, busy: float) -> DailyUsage:
    counts, work = (requests,) * SLOTS, (busy,) * SLOTS
    none = (None,) * 4
    return DailyUsage(date(2026, 11, 1), instance_type, 1, counts, work, (1.0,) * 24, (), 0.0, 0.0, *none)


def test_a_test_on_the_reference_type_tells_the_ratio() -> None:
    assert told("ml.g6.xlarge", measured("ml.g6e.xlarge", "ml.g6.xlarge", 2.5)).gpu_ratio == 2.5


def test_a_test_on_another_type_counts_through_what_that_type_showed_in_production() -> None:
    past = measured("ml.p5.4xlarge", "ml.g6.xlarge", 6.0, latency=5.0)
    assert told("ml.g6.xlarge", past).gpu_ratio is None
    found = told("ml.g6.xlarge", past, links={"ml.p5.4xlarge": MeasuredType(0.5, 0.6)})
    assert found.gpu_ratio == 3.0
    assert found.latency_ratio == 3.0


def test_what_serves_production_counts_more_than_a_test() -> None:
    past = measured("ml.g6e.xlarge", "ml.g6.xlarge", 2.5)
    found = told("ml.g6.2xlarge", past, links={"ml.g6.xlarge": MeasuredType(2.2, 2.0)})
    assert found.gpu_ratio == 2.2
    assert found.served


def test_gpu_seconds_of_a_request_are_compared_between_types_that_served_enough() -> None:
    base, there, few = day("ml.g6e.xlarge", 10, 5), day("ml.g6.xlarge", 10, 12), day("ml.g5.xlarge", 0.1, 0.4)
    assert gpu_ratios([base, there, few], [base], 200) == {"ml.g6.xlarge": 2.4}
    assert gpu_ratios([base, there], [few], 200) == {}


def ended(how: str, failure: str, to: str = "ml.g6.xlarge") -> PastChange:
    return PastChange(NOW, "ml.g6e.xlarge", to, 1, 1, PastEnd(how), failure=failure)


NOTHING = [
    ("update-failed", "capacity"),
    ("update-failed", "quota"),
    ("handed-over", "permission"),
    ("handed-over", "health-check"),
    ("handed-over", "outside"),
]
"""Ends that say nothing about the type: it was never there, or nobody knows what became of it."""


@pytest.mark.parametrize(("how", "failure"), NOTHING)
def test_a_change_of_which_the_type_never_ran_shows_no_start(how: str, failure: str) -> None:
    found = told("ml.g6.xlarge", ended(how, failure))
    assert (found.started, found.refuted) == (False, None)


@pytest.mark.parametrize(("how", "failure"), NOTHING)
def test_a_change_of_which_the_type_never_ran_clears_it_of_no_earlier_failure(how: str, failure: str) -> None:
    before = ended("update-failed", "health-check")
    assert told("ml.g6.xlarge", before, ended(how, failure)).refuted == before


def test_a_change_that_served_clears_the_type_of_an_earlier_failure() -> None:
    found = told("ml.g6.xlarge", ended("update-failed", "health-check"), ended("proven", ""))
    assert (found.started, found.refuted) == (True, None)


PRICES = {"ml.g6e.xlarge": Decimal("2.6"), "ml.g6.xlarge": Decimal("1.1"), "ml.g5.xlarge": Decimal("1.4")}


def moved(source: str, to: str, days: int, how: str = "applied", counts: tuple[int, int] = (1, 1)) -> PastChange:
    return PastChange(NOW + timedelta(days=days), source, to, *counts, PastEnd(how), demand=1.0 + days)


DOWN, UP = moved("ml.g6e.xlarge", "ml.g6.xlarge", 0), moved("ml.g6.xlarge", "ml.g6e.xlarge", 4)


def failed(*past: PastChange) -> list[PastChange]:
    return [p for p in with_left_types(History(endpoint=past), PRICES.get).endpoint if p.is_refuted]


def test_a_cheaper_fleet_that_was_left_for_the_type_before_counts_as_failed_on_that_day() -> None:
    (left,) = failed(DOWN, UP)
    assert (left.to_type, left.failure, left.at, left.demand) == ("ml.g6.xlarge", "left", UP.at, DOWN.demand)


def test_growing_on_the_type_before_it_is_left_changes_nothing() -> None:
    more = moved("ml.g6.xlarge", "ml.g6.xlarge", 2, counts=(1, 2))
    assert [p.to_type for p in failed(DOWN, more, UP)] == ["ml.g6.xlarge"]


def test_a_type_that_was_left_once_failed_once_however_often_it_was_tried() -> None:
    """The owner went back by hand in between, which is no change of ours."""
    assert len(failed(DOWN, moved("ml.g6e.xlarge", "ml.g6.xlarge", 3), UP)) == 1


def test_a_type_that_was_left_had_started_and_served_all_the_same() -> None:
    history = with_left_types(History(endpoint=(DOWN, UP)), PRICES.get)
    reference = TYPES.types["ml.g6e.xlarge"]
    found = learn_about(history, reference, TYPES.types["ml.g6.xlarge"], TYPES.find, lambda t: 1.0)
    assert found.started
    assert found.refuted is not None


@pytest.mark.parametrize(
    "past",
    [
        pytest.param((DOWN, moved("ml.g6.xlarge", "ml.g5.xlarge", 4)), id="left for another"),
        pytest.param((replace(UP, at=DOWN.at), replace(DOWN, at=UP.at)), id="it had grown"),
        pytest.param(
            (DOWN, replace(UP, ended=PastEnd.ROLLED_BACK, failure="capacity")), id="the way up was taken back"
        ),
        pytest.param(
            (moved("ml.g6e.xlarge", "ml.trn1.2xlarge", 0), moved("ml.trn1.2xlarge", "ml.g6e.xlarge", 4)),
            id="no price is known",
        ),
        pytest.param(
            (replace(DOWN, to_count=6), replace(UP, from_count=6)), id="a cheaper type, of which so many cost more"
        ),
        pytest.param((DOWN,), id="it stands"),
    ],
)
def test_other_changes_stay_what_they_were(past: tuple[PastChange, ...]) -> None:
    assert with_left_types(History(endpoint=past), PRICES.get).endpoint == past


def elsewhere(ratio: float | None, framework: str = "vllm", to: str = "ml.g6.xlarge") -> PastChange:
    """An outcome of another endpoint; by the datasheets an L4 is 2.99 times slower than an L40S."""
    return PastChange(NOW, "ml.g6e.xlarge", to, 1, 1, PastEnd.TESTED, realised_slowdown=ratio, framework=framework)


def test_what_other_endpoints_of_the_framework_measured_is_held_against_the_datasheet() -> None:
    phi = 362 / 121
    some = (elsewhere(phi), elsewhere(0.5 * phi), elsewhere(None), elsewhere(phi, "triton"), elsewhere(phi, to="gone"))
    same = elsewhere(1.0, to="ml.g6e.2xlarge")
    faster = elsewhere(0.9, to="ml.p5.4xlarge")
    history = History(account=(*some, same, faster))
    assert measured_outcomes(history, TYPES.find, "vllm", Policy()) == pytest.approx((0.5, 1.0))
    assert measured_outcomes(replace(history, account=(elsewhere(phi, ""),)), TYPES.find, "", Policy()) == ()


def test_a_move_that_went_back_unmeasured_counts_as_the_bound_and_one_absurd_one_as_twice_that() -> None:
    back = replace(elsewhere(None), ended=PastEnd.ROLLED_BACK, failure="alarm")
    absurd, full = elsewhere(99.0), replace(back, failure="capacity")
    found = measured_outcomes(History(account=(back, absurd, full)), TYPES.find, "vllm", Policy())
    assert found == pytest.approx((1.25, 99.0 / (362 / 121)))
    assert (
        slowdown_bound((99.0,), Policy()) == slowdown_bound((2.5,), Policy()) < slowdown_bound((99.0,) * 39, Policy())
    )


def test_a_change_of_count_or_to_a_faster_chip_says_nothing_of_slower_ones() -> None:
    for to in ("ml.g6e.xlarge", "ml.g6e.2xlarge", "ml.p5.4xlarge"):
        assert told("ml.g6.xlarge", measured("ml.g6e.xlarge", to, 0.3)).other_q is None
    assert told("ml.g6.xlarge", measured("ml.g6e.xlarge", "ml.g4dn.xlarge", 4.0)).other_q is not None


def test_without_outcomes_the_bound_is_the_prior() -> None:
    assert slowdown_bound((), Policy()) == Policy().slowdown_bound
    assert slowdown_middle((), Policy()) == Policy().slowdown_mid


def test_bounds_tighten_with_outcomes_and_never_below_them() -> None:
    few, many = (0.6,) * 5, (0.6,) * 200
    assert Policy().slowdown_bound > slowdown_bound(few, Policy()) > slowdown_bound(many, Policy()) >= 0.6
    assert slowdown_middle(few, Policy()) == pytest.approx(0.2 * 0.6 + 0.8 * 0.71)
    assert outcome_weight((1.0,) * 20, Policy()) == 0.5


def test_outcomes_that_were_worse_than_the_prior_widen_the_bound() -> None:
    assert slowdown_bound((2.0,) * 20, Policy()) == pytest.approx(0.5 * 2.0 + 0.5 * 1.25)


def test_a_few_quick_outcomes_prove_no_type_quicker_than_its_datasheet() -> None:
    assert slowdown_bound((0.3,) * 38, Policy()) >= 38 / 58


@pytest.mark.parametrize("value", [0.3, 0.6, 0.9])
def test_one_more_quick_outcome_never_loosens_the_bound_at_once(value: float) -> None:
    bounds = [slowdown_bound((value,) * n, Policy()) for n in range(1, 400)]
    steps = [before - after for before, after in pairwise(bounds)]
    assert max(steps) < 0.025, f"at {2 + steps.index(max(steps))} outcomes"
    assert bounds[-1] == pytest.approx(value, abs=0.06), "many outcomes are believed"


def test_the_chance_of_a_type_follows_what_the_account_saw() -> None:
    prior = chance_within(0.71, 1.0)
    assert prior == pytest.approx(0.5)
    assert chance_within(0.71, 1.0, (0.9,) * 20, 0.5) == pytest.approx(0.25)
    assert chance_within(0.71, 1.0, (0.5,) * 20, 0.5) == pytest.approx(0.75)
    assert chance_within(0.71, 0.0, (0.5,), 0.5) == 0.0


def test_a_test_that_measured_nothing_proves_no_start() -> None:
    unseen = PastChange(NOW, "ml.g6e.xlarge", "ml.g6.xlarge", 1, 1, PastEnd.TESTED)
    assert not told("ml.g6.xlarge", unseen).started
    assert told("ml.g6.xlarge", replace(unseen, latency_ratio=2.0)).started


def test_a_test_that_measured_nothing_lifts_no_failure() -> None:
    failed = ended("rolled-back", "alarm")
    unseen = PastChange(NOW + timedelta(days=1), "ml.g6e.xlarge", "ml.g6.xlarge", 1, 1, PastEnd.TESTED)
    assert told("ml.g6.xlarge", failed, unseen).refuted is failed


def test_a_shadow_that_failed_its_requests_refutes_the_type() -> None:
    failed = ended("tested", "errors")
    found = told("ml.g6.xlarge", failed)
    assert found.refuted is failed
    assert not found.started
    assert not failed.has_failed_start  # it started: other endpoints with the model may try it


def test_the_account_learns_for_an_endpoint_of_the_same_framework_and_says_so() -> None:
    """A type that the datasheet refuses is taken once forty outcomes showed how little slower such moves are."""

    def decided(framework: str, *others: PastChange) -> Any:
        at, load = endpoint(p95_s=1.7, framework=framework), [window(steady(latency_s=0.5, gpu=10.0))]
        return judge(at, load, prices(), TYPES, {}, History(account=others), Policy(tests_per_month=0), NOW)

    quick = tuple(elsewhere(0.45 * 362 / 121, "pytorch") for _ in range(200))
    plain, taught, others = decided("pytorch"), decided("pytorch", *quick), decided("vllm", *quick)
    assert plain.chosen_option is None or plain.chosen_option.target.instance_type != "ml.g6.xlarge"
    assert taught.chosen_option is not None
    assert taught.chosen_option.target.instance_type == "ml.g6.xlarge"
    assert "200 outcomes of pytorch" in taught.chosen_option.facts["learnt from the account"]
    assert others.options == plain.options
