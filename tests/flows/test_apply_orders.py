"""A fault of rightsizer at one record of the stream is that record's alone: it comes again, and the others start."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec, patch

import pytest

from rightsizer import telemetry
from rightsizer.domain.proposal import Decision, ProposalMoved, ProposalState
from rightsizer.flows.apply import Apply
from rightsizer.flows.apply_orders import start_approved
from tests.samples import NOW, proposal

THREE = ("p-1", "p-2", "p-3")


def approved(name: str) -> ProposalMoved:
    """The record of an approval; its sequence number is not the proposal's id."""
    decision = Decision(ProposalState.APPROVED, "slack:U1", NOW)
    asked = proposal(name, f"endpoint-{name}", state=ProposalState.APPROVED, decision=decision)
    return ProposalMoved(f"sequence of {name}", asked, ProposalState.PENDING)


@pytest.mark.parametrize("spoilt", THREE)
def test_an_unforeseen_error_at_one_of_three_approvals_fails_that_record_and_the_others_start(spoilt: str) -> None:
    started: list[str] = []

    def start(name: str, now: datetime) -> Any:
        if name == spoilt:
            raise ValueError("a case that nobody foresaw")
        started.append(name)
        return SimpleNamespace(id=f"change of {name}", state="preflight", outcome="")

    apply = create_autospec(Apply, instance=True)
    apply.stage_hold.return_value = None
    apply.start.side_effect = start
    with patch.object(telemetry, "count") as counted:
        assert start_approved(apply, [approved(name) for name in THREE], NOW) == [f"sequence of {spoilt}"]
    assert started == [name for name in THREE if name != spoilt]
    counted.assert_called_once_with(UnforeseenErrors=1)
