"""Who decided: read from the stored text, and written as that text."""

from datetime import UTC, datetime

import pytest

from rightsizer.domain.proposal import DecidedBy, Decision, DecisionSource, ProposalState

ARN = "arn:aws:sts::111122223333:assumed-role/ops/anna"


@pytest.mark.parametrize(
    ("text", "decider"),
    [
        ("policy", DecidedBy(DecisionSource.POLICY)),
        ("slack:U123", DecidedBy(DecisionSource.SLACK, "U123")),
        (f"cli:{ARN}", DecidedBy(DecisionSource.CLI, ARN)),
        ("anna", DecidedBy(DecisionSource.OTHER, "anna")),
        ("", DecidedBy(DecisionSource.OTHER)),
    ],
)
def test_a_decider_is_read_from_the_stored_text_and_written_as_it(text: str, decider: DecidedBy) -> None:
    assert DecidedBy.read(text) == decider
    assert decider.text == text


@pytest.mark.parametrize("text", ["policy:U1", "policy:", "Policy", "web:U1", "slack", ""])
def test_nobody_but_automatic_mode_is_automatic(text: str) -> None:
    decision = Decision(ProposalState.APPROVED, text, datetime(2026, 11, 1, tzinfo=UTC))
    assert not decision.is_automatic
    assert decision.decider.source is DecisionSource.OTHER


def test_the_person_of_an_unknown_source_is_what_follows_the_colon() -> None:
    assert DecidedBy.read("web:anna").person == "anna"
