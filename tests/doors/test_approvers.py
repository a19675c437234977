"""An approval at a terminal: the stack asks the list `Approvers` once more, and Slack reads its own part of it."""

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.doors.scene import BIG, PROPOSE, Scene, scene

DEV = "arn:aws:sts::111122223333:assumed-role/dev/ml-oncall"
ONCALL = "arn:aws:sts::111122223333:assumed-role/ml-oncall/ada"


def one(at: Scene) -> Proposal:
    (found,) = at.proposals()
    return found


def asked(at: Scene) -> str:
    """The id of a proposal that waits."""
    at.add(BIG, tags=PROPOSE | {"rightsizer:p95-ms": "900"})
    at.drive(BIG)
    at.sweep()
    return one(at).id


def approved(at: Scene, by: str, *options: str) -> None:
    """An approval at a terminal, and what the stack makes of it."""
    proposal = asked(at)
    at.box.world.sts.arn = by
    with at.box.gate.unrecorded():
        assert run(["approve", proposal, *options]) == Exit.NOTHING_TO_DO
    at.stack.settle()


def test_an_approval_at_a_terminal_by_a_role_of_the_list_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with scene(slack=False, Approvers="U1,role/ml-*") as at:
        monkeypatch.delenv("RIGHTSIZER_TABLE")
        approved(at, ONCALL)
        found = one(at)
        assert found.state is ProposalState.APPLYING
        assert found.decision is not None
        assert found.decision.by == f"cli:{ONCALL}"
        assert at.refused() == []


def test_where_no_stack_can_be_asked_the_terminal_warns_and_apply_withdraws_the_approval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    with scene(Approvers="U1,role/ml-*") as at:
        approved(at, DEV, "--table", bootstrap.settings().table, "--stack", "absent")
        said = " ".join(capsys.readouterr().err.split())
        assert (
            "who may decide (the stack's parameter Approvers) was not checked here: looking for the stack absent"
            in said
        )
        found = one(at)
        assert found.state is ProposalState.WITHDRAWN
        assert f"({DEV}) is not on the list Approvers" in found.outcome
        assert "is not on the list Approvers" in at.message(BIG).plain()
        assert at.writes("sagemaker") == []
        assert at.refused() == []


def test_entries_for_the_terminal_let_nobody_click() -> None:
    with scene(Approvers="role/ml-*,user/U0BOB") as at:
        asked(at)
        at.click(BIG, "Approve", "U0BOB")
        assert one(at).state is ProposalState.PENDING
        assert "nobody is on the list of approvers yet" in at.slack.answers[0].plain()
