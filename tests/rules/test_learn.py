"""What changes and tests of the past teach about a candidate."""

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


def moved(source: str, to: str, days: int, how: Any = "applied", demand: float = 1.0) -> PastChange:
    return PastChange(NOW + timedelta(days=days), source, to, 1, 1, how, demand=demand)


def test_a_cheaper_type_that_was_left_for_the_one_before_counts_as_failed_on_that_day() -> None:
    there, back = moved("ml.g6e.xlarge", "ml.g6.xlarge", 0), moved("ml.g6.xlarge", "ml.g6e.xlarge", 4, demand=1.5)
    failed, last = taken_back(History(endpoint=(there, back)), PRICES.get).endpoint
    assert (failed.refuted, failed.failure, failed.at, failed.demand) == (True, "alarm", back.at, 1.5)
    assert last == back


@pytest.mark.parametrize(
    "past",
    [
        pytest.param(
            (moved("ml.g6e.xlarge", "ml.g6.xlarge", 0), moved("ml.g6.xlarge", "ml.g5.xlarge", 4)), id="left for another"
        ),
        pytest.param(
            (moved("ml.g6.xlarge", "ml.g6e.xlarge", 0), moved("ml.g6e.xlarge", "ml.g6.xlarge", 4)), id="it had grown"
        ),
        pytest.param(
            (moved("ml.g6e.xlarge", "ml.g6.xlarge", 0), moved("ml.g6.xlarge", "ml.g6e.xlarge", 4, "rolled-back")),
            id="the way up was taken back",
        ),
        pytest.param(
            (moved("ml.g6e.xlarge", "ml.trn1.2xlarge", 0), moved("ml.trn1.2xlarge", "ml.g6e.xlarge", 4)),
            id="no price is known",
        ),
        pytest.param((moved("ml.g6e.xlarge", "ml.g6.xlarge", 0),), id="it stands"),
    ],
)
def test_other_changes_stay_what_they_were(past: tuple[PastChange, ...]) -> None:
    assert taken_back(History(endpoint=past), PRICES.get).endpoint == past
