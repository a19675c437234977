"""The decision "test first" in the table: one conditional write, which an older release leaves alone."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table, text
from rightsizer.domain import checks
from rightsizer.domain.option import Risk
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Gate
from rightsizer.errors import ConflictError, UnreadableError
from tests.samples import NOW, option, proposal, recommendation
from tests.table import decide

APPROVAL = Decision(ProposalState.APPROVED, "slack:U1", NOW)
TEST_FIRST = replace(APPROVAL, test_first=True)
TESTED = option(test_usd=Decimal("9.10"), test_hours=2.0, untested_risk=Risk.HIGH)


def asked(chosen: Any = TESTED, gate: Gate = Gate.PROPOSE) -> Proposal:
    return proposal(recommendation=recommendation(options=(chosen,), gate=gate))


def opened(store: Recommendations, asked_about: Proposal) -> str:
    store.save(asked_about.recommendation, asked_about)
    return asked_about.id


def test_the_decision_is_kept_with_who_took_it_and_counts_once(store: Recommendations) -> None:
    pid = opened(store, asked())
    decided = decide(store, pid, TEST_FIRST, NOW)
    found = store.proposal(pid)
    assert found == decided
    assert found is not None
    assert (found.state, found.decision, found.is_test_first) == (ProposalState.APPROVED, TEST_FIRST, True)
    with pytest.raises(ConflictError, match="approved already by U1"):
        decide(store, pid, replace(APPROVAL, by="slack:U2"), NOW)


def test_a_plain_approval_is_stored_as_before(table: Table, store: Recommendations) -> None:
    pid = opened(store, asked())
    decide(store, pid, APPROVAL, NOW)
    row = table.get(f"PROPOSAL#{pid}", "PROPOSAL") or {}
    stored = json.loads(text(row, "doc"))
    assert (stored["schema"], stored["decision"]) == (1, {**stored["decision"], "by": "slack:U1"})
    assert "test_first" not in stored["decision"]


def test_an_older_release_reads_no_such_proposal_and_so_makes_no_change_without_the_test(
    store: Recommendations, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = opened(store, asked())
    decide(store, pid, TEST_FIRST, NOW)
    store.follow(pid, ProposalState.APPLYING, "c-1", "the shadow test runs")
    monkeypatch.setattr(checks, "SCHEMA_TEST_FIRST", checks.SCHEMA)
    with pytest.raises(UnreadableError, match="its schema number is 2 and this release knows numbers up to 1"):
        store.proposal(pid)


def test_a_row_of_an_older_release_reads_on_as_decided_without_a_test(table: Table, store: Recommendations) -> None:
    pid = opened(store, asked())
    decide(store, pid, APPROVAL, NOW)
    row = table.get(f"PROPOSAL#{pid}", "PROPOSAL") or {}
    stored = json.loads(text(row, "doc"))
    for name in ("test_tells", "untested_risk", "test_needed"):
        del stored["recommendation"]["options"][0][name]
    table.put({**row, "doc": json.dumps(stored)})
    found = store.proposal(pid)
    assert found is not None
    assert (found.is_test_first, found.runs_test, found.may_skip_test) == (False, False, True)


def test_without_a_test_there_is_none_to_run_first(store: Recommendations) -> None:
    pid = opened(store, asked(option()))
    with pytest.raises(ConflictError, match="has no shadow test to run"):
        decide(store, pid, TEST_FIRST, NOW)
    assert decide(store, pid, APPROVAL, NOW).state is ProposalState.APPROVED


def test_above_the_risk_that_may_be_approved_only_the_test_is(store: Recommendations) -> None:
    needed = replace(TESTED, untested_risk=Risk.VERY_HIGH, test_needed=True)
    pid = opened(store, asked(needed))
    with pytest.raises(ConflictError, match=f"is 4 of 4, above .* run it with: rightsizer test {pid} --region "):
        decide(store, pid, APPROVAL, NOW)
    assert decide(store, pid, replace(APPROVAL, state=ProposalState.SNOOZED), NOW).state is ProposalState.SNOOZED


@pytest.mark.parametrize("decision", [APPROVAL, TEST_FIRST])
def test_a_proposal_of_the_gate_test_takes_both_as_its_test(store: Recommendations, decision: Decision) -> None:
    """Rows of earlier releases have no price of the test, and an approval of one has always been its test."""
    pid = opened(store, asked(option(test_needed=True), gate=Gate.TEST))
    decided = decide(store, pid, decision, NOW)
    assert decided.runs_test
    assert decided.is_test_first is decision.test_first


def test_after_its_test_the_proposal_is_approved_again_and_keeps_its_decision(store: Recommendations) -> None:
    pid = opened(store, asked())
    decide(store, pid, TEST_FIRST, NOW)
    store.follow(pid, ProposalState.APPLYING, "c-1", "the shadow test runs")
    store.follow(pid, ProposalState.APPROVED, "c-1", "tested", NOW + timedelta(hours=3))
    (found,) = store.proposals([ProposalState.APPROVED])
    assert (found.decision, found.change_id, found.outcome) == (TEST_FIRST, "c-1", "tested")
