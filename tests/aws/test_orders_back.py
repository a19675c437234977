"""The order to go back in the table: shown while it is carried out, and not in the way of the next one."""

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.errors import ConflictError
from tests.samples import NOW, proposal
from tests.table import decide


def approved(store: Recommendations) -> str:
    one = proposal()
    store.save(one.recommendation, one)
    decide(store, one.id, Decision(ProposalState.APPROVED, "slack:U1", NOW), NOW)
    return one.id


def ordered_back(store: Recommendations, table: Table) -> str:
    """A proven change of which somebody ordered the way back."""
    pid = approved(store)
    store.follow(pid, ProposalState.PROVEN, "c-2", "proven")
    decisions.request_rollback(table, pid, "slack:U1", NOW)
    return pid


def shown(store: Recommendations, pid: str) -> Proposal:
    found = store.proposal(pid)
    assert found is not None
    return found


def test_an_order_that_is_not_taken_yet_outlives_a_proof(store: Recommendations, table: Table) -> None:
    pid = ordered_back(store, table)
    store.follow(pid, ProposalState.PROVEN, "c-2", "proven, told again")
    assert shown(store, pid).asked_back_by == "slack:U1"
    assert [one.id for one in store.rollback_requests()] == [pid]


def test_while_the_endpoint_goes_back_the_order_is_shown_and_a_second_one_refused(
    store: Recommendations, table: Table
) -> None:
    pid = ordered_back(store, table)
    store.settle_rollback_request(pid)
    assert shown(store, pid).asked_back_by == "slack:U1"
    with pytest.raises(ConflictError, match="U1 asked for the rollback of"):
        decisions.request_rollback(table, pid, "slack:U2", NOW)


def test_after_the_last_stage_went_back_the_one_before_it_may_be_asked_back(
    store: Recommendations, table: Table
) -> None:
    pid = ordered_back(store, table)
    store.settle_rollback_request(pid)
    store.follow(pid, ProposalState.PROVEN, "c-1", "stage 1 stands")
    assert (shown(store, pid).asked_back_by, shown(store, pid).asked_back_at) == ("", None)
    decisions.request_rollback(table, pid, "slack:U2", NOW)
    assert shown(store, pid).asked_back_by == "slack:U2"


def test_an_order_that_was_refused_may_be_given_again(store: Recommendations, table: Table) -> None:
    pid = ordered_back(store, table)
    store.settle_rollback_request(pid, is_over=True)
    assert (shown(store, pid).asked_back_by, shown(store, pid).asked_back_at) == ("", None)
    decisions.request_rollback(table, pid, "slack:U2", NOW)


def test_what_was_stopped_keeps_who_stopped_it(store: Recommendations, table: Table) -> None:
    pid = approved(store)
    decisions.request_rollback(table, pid, "slack:U1", NOW)
    store.follow(pid, ProposalState.REJECTED, "", "stopped")
    store.settle_rollback_request(pid, is_over=True)
    assert shown(store, pid).asked_back_by == "slack:U1"
