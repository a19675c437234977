"""What changes and tests of the past teach about a candidate."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.model.digest import SLOTS, DayDigest
from rightsizer.model.history import History, PastChange
from rightsizer.rules.learn import Link, gpu_ratios, lesson, taken_back
from tests.rules.kit import NOW, catalogue

TYPES = catalogue()


def measured(source: str, to: str, ratio: float, latency: float | None = None) -> PastChange:
    return PastChange(NOW, source, to, 1, 1, "tested", realised_slowdown=ratio, latency_ratio=latency)


def told(candidate: str, *past: PastChange, **more: Any) -> Any:
    reference, hardware = TYPES.types["ml.g6e.xlarge"], TYPES.types[candidate]
    return lesson(History(endpoint=past), reference, hardware, TYPES.find, lambda t: 1.0, **more)


def day(instance_type: str, requests: float, busy: float) -> DayDigest:
    counts, work = (requests,) * SLOTS, (busy,) * SLOTS
    none = (None,) * 4
    return DayDigest(date(2026, 11, 1), instance_type, 1, counts, work, (1.0,) * 24, (), 0.0, 0.0, *none)


def test_a_test_on_the_reference_type_tells_the_ratio() -> None:
    assert told("ml.g6.xlarge", measured("ml.g6e.xlarge", "ml.g6.xlarge", 2.5)).gpu_ratio == 2.5


def test_a_test_on_another_type_counts_through_what_that_type_showed_in_production() -> None:
    past = measured("ml.p5.4xlarge", "ml.g6.xlarge", 6.0, latency=5.0)
    assert told("ml.g6.xlarge", past).gpu_ratio is None
    found = told("ml.g6.xlarge", past, links={"ml.p5.4xlarge": Link(0.5, 0.6)})
    assert found.gpu_ratio == 3.0
    assert found.latency_ratio == 3.0


def test_what_serves_production_counts_more_than_a_test() -> None:
    past = measured("ml.g6e.xlarge", "ml.g6.xlarge", 2.5)
    found = told("ml.g6.2xlarge", past, links={"ml.g6.xlarge": Link(2.2, 2.0)})
    assert found.gpu_ratio == 2.2
    assert found.served


def test_gpu_seconds_of_a_request_are_compared_between_types_that_served_enough() -> None:
    base, there, few = day("ml.g6e.xlarge", 10, 5), day("ml.g6.xlarge", 10, 12), day("ml.g5.xlarge", 0.1, 0.4)
    assert gpu_ratios([base, there, few], [base], 200) == {"ml.g6.xlarge": 2.4}
    assert gpu_ratios([base, there], [few], 200) == {}


def ended(how: Any, failure: str, to: str = "ml.g6.xlarge") -> PastChange:
    return PastChange(NOW, "ml.g6e.xlarge", to, 1, 1, how, failure=failure)


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


def moved(source: str, to: str, days: int, how: Any = "applied", counts: tuple[int, int] = (1, 1)) -> PastChange:
    return PastChange(NOW + timedelta(days=days), source, to, *counts, how, demand=1.0 + days)


DOWN, UP = moved("ml.g6e.xlarge", "ml.g6.xlarge", 0), moved("ml.g6.xlarge", "ml.g6e.xlarge", 4)


def failed(*past: PastChange) -> list[PastChange]:
    return [p for p in taken_back(History(endpoint=past), PRICES.get).endpoint if p.refuted]


def test_a_cheaper_fleet_that_was_left_for_the_type_before_counts_as_failed_on_that_day() -> None:
    (left,) = failed(DOWN, UP)
    assert (left.to_type, left.failure, left.at, left.demand) == ("ml.g6.xlarge", "left", UP.at, UP.demand)


def test_growing_on_the_type_before_it_is_left_changes_nothing() -> None:
    more = moved("ml.g6.xlarge", "ml.g6.xlarge", 2, counts=(1, 2))
    assert [p.to_type for p in failed(DOWN, more, UP)] == ["ml.g6.xlarge"]


def test_a_type_that_was_left_once_failed_once_however_often_it_was_tried() -> None:
    """The owner went back by hand in between, which is no change of ours."""
    assert len(failed(DOWN, moved("ml.g6e.xlarge", "ml.g6.xlarge", 3), UP)) == 1


def test_a_type_that_was_left_had_started_and_served_all_the_same() -> None:
    history = taken_back(History(endpoint=(DOWN, UP)), PRICES.get)
    reference = TYPES.types["ml.g6e.xlarge"]
    found = lesson(history, reference, TYPES.types["ml.g6.xlarge"], TYPES.find, lambda t: 1.0)
    assert found.started
    assert found.refuted is not None


@pytest.mark.parametrize(
    "past",
    [
        pytest.param((DOWN, moved("ml.g6.xlarge", "ml.g5.xlarge", 4)), id="left for another"),
        pytest.param((replace(UP, at=DOWN.at), replace(DOWN, at=UP.at)), id="it had grown"),
        pytest.param((DOWN, replace(UP, ended="rolled-back", failure="capacity")), id="the way up was taken back"),
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
    assert taken_back(History(endpoint=past), PRICES.get).endpoint == past
