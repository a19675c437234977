"""Days of one fleet differ by bursts; what is held against a change is what such days do not explain."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Finding
from rightsizer.domain.usage import VariantUsage
from rightsizer.recommender.finding import SEVERE, latency_degradation
from tests.recommender import kit
from tests.recommender.kit import judge_digests
from tests.recommender.test_failed_fleets import GOAL, changed, day, judged

BEFORE = "ml.g6e.2xlarge"
EVEN = (0.03,) * 14
UNEVEN = (0.01, 0.02, 0.06, 0.03, 0.01, 0.04, 0.05, 0.01, 0.02, 0.06, 0.03, 0.01, 0.04, 0.03)
"""The same share of late requests over all of them, from one to six per cent of a day."""


def is_taken_back(before: Sequence[float], late: float) -> bool:
    """Whether the type before comes back three days after our change, of which each had that share of late requests."""
    was = [replace(day(i, 2.0, share), instance_type=BEFORE) for i, share in enumerate(before)]
    since = [day(14 + i, 2.0, late) for i in range(3)]
    past = replace(
        changed(3, 40, "proven"), from_type=BEFORE, at=datetime.combine(since[0].day, time(0, 5), tzinfo=UTC)
    )
    found = judge_digests(
        kit.endpoint(count=40, p95_s=GOAL.p95_s),
        VariantUsage("chat", "AllTraffic", (*was, *since)),
        kit.prices(),
        kit.catalogue(),
        {},
        History((past,)),
        Policy(),
        past.at + timedelta(days=3),
    )
    return found.finding is Finding.UNDER_PROVISIONED and found.reason.sentence.startswith("since the last change")


def test_days_that_differ_no_more_than_the_owners_did_are_not_held_against_a_change() -> None:
    assert sum(EVEN) == pytest.approx(sum(UNEVEN))
    assert not is_taken_back(UNEVEN, 0.045)


def test_the_same_days_after_even_ones_bring_the_type_before_back() -> None:
    assert is_taken_back(EVEN, 0.045)


def test_one_incident_is_no_measure_of_ordinary_days() -> None:
    assert is_taken_back((*EVEN[:-1], 0.3), 0.07)


def test_what_is_severe_counts_however_much_days_differ() -> None:
    assert is_taken_back(UNEVEN, 0.03 + SEVERE + 0.01)
    assert latency_degradation([day(0, 1.0, 0.09)], GOAL, 0.03, Policy(), 1e9) is not None
    assert latency_degradation([day(0, 1.0, 0.07)], GOAL, 0.03, Policy(), 1e9) is None


def budget_spent(before: Sequence[float], late: float) -> bool:
    """Whether late requests since our smaller count keep it from getting smaller, or have it grow."""
    days = [day(i, 40.0, share) for i, share in enumerate(before)] + [day(14 + i, 30.0, late) for i in range(3)]
    found = judged(days, 30, [changed(3, 30, "proven")])
    return "as many requests as allowed came later" in found.reason.sentence + found.gate_reason.sentence


def test_what_uneven_days_explain_uses_up_no_allowance() -> None:
    assert budget_spent(EVEN, 0.034)
    assert not budget_spent(UNEVEN, 0.034)
