"""What a recommendation says is understood at the first reading: each sentence as a whole, and no inside words."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.evidence import unused_text
from tests.frozen.library import read_case, recommendation_of
from tests.recommender import kit
from tests.recommender.kit import judge

CASES = Path(__file__).parents[1] / "cases"
INSIDE = re.compile(
    r"so a person decides|opts in\b|wakes into|\bas it was\b|\brung\b|signal ladder|geometric mean|in force"
    r"|time\(s\)|no count up to|likely fast\b|\bit rests\b"
)
"""Words that only those who wrote the program understand."""
READ = (
    "mode-propose", "money-saving-seven-per-cent", "plain-cheapest-already", "plain-g5-already-small",
    "policy-risk-zero", "history-changed-yesterday", "history-type-failed-twice", "test-needs-opt-in",
    "test-possible", "cold-not-tolerated", "count-two-to-one", "errors-many", "few-requests", "missing-everything",
    "kind-multi-model", "money-payback", "objective-tight", "count-autoscaled", "young-one-day", "schedule-closed",
)  # fmt: skip
"""Labelled cases that between them give each kind of answer."""


@cache
def found(case: str) -> Recommendation:
    return recommendation_of(read_case(CASES / f"{case}.yaml"))


def sentences_of(one: Recommendation) -> Iterator[str]:
    yield one.reason.sentence
    yield one.gate_reason.sentence
    yield from (out.reason.sentence for out in one.excluded)
    yield from (note.sentence for note in one.notes)


@pytest.mark.parametrize("case", READ)
def test_no_inside_word_is_said(case: str) -> None:
    assert [said for said in sentences_of(found(case)) if INSIDE.search(said)] == []


def test_who_has_to_approve_is_told_how_to_have_it_done_by_itself() -> None:
    said = found("mode-propose").gate_reason
    assert said.code is Code.NOT_OPTED_IN
    assert said.sentence == "needs your approval (the tag rightsizer:mode=auto applies such changes by itself)"


def test_an_endpoint_that_is_right_names_the_next_cheaper_type_and_why_it_does_not_do() -> None:
    said = found("cold-not-tolerated").reason
    assert said.code is Code.ALREADY_RIGHT
    assert said.sentence.startswith("already right: no cheaper type serves this load; no request came in 92 % of its")
    assert re.search(r" a month\. The next type that costs less an hour: \S", said.sentence)


def test_hours_without_a_request_are_told_with_their_cost_where_they_are_half_or_more() -> None:
    nights, never = (0.0,) * 18 + (5.0,) * 6, (1.0,) * 24
    assert unused_text([nights], Decimal(4000)) == ("; no request came in 75 % of its hours, which cost $3,000 a month")
    assert unused_text([nights, never], Decimal(4000)) == ""
    assert unused_text([], Decimal(4000)) == ""


def test_an_endpoint_that_was_just_changed_is_said_to_have_been_changed_when_it_was() -> None:
    """Not half an hour later: the metrics of that time mix both configurations, and are left out."""
    endpoint = replace(kit.endpoint(), modified_at=kit.NOW - timedelta(minutes=40))
    found = judge(endpoint, [kit.window({})], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.reason.code is Code.NO_DATAPOINTS
    assert found.reason.sentence.startswith("it was changed on Thu 19 Nov 2026, 23:20 UTC")


def test_of_a_type_that_hardly_fits_no_shadow_test_is_spoken_of() -> None:
    hardly = found("memory-prealloc-undeclared").reason.sentence
    perhaps = found("test-needs-idempotent-requests").reason.sentence
    assert hardly == (
        "no cheaper type fits: ml.g6.xlarge, which comes closest, is 3 % likely to be fast and large enough"
    )
    assert "the tag rightsizer:shadow-ok=false forbids that" in perhaps


def test_of_a_deletion_it_is_said_what_an_approval_does() -> None:
    idle = found("idle-fortnight")
    assert idle.gate_reason.code is Code.NOT_IN_PLACE
    assert "rightsizer then watches it" in idle.gate_reason.sentence
    assert "its owner gets the command" in idle.gate_reason.sentence
