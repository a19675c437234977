"""A proposal that nobody answers is closed in time, and its message says so."""

from rightsizer.domain.proposal import ProposalState
from tests.doors.scene import BIG, PROPOSE, scene


def test_an_unanswered_proposal_expires_and_its_message_follows() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        (asked,) = at.proposals()
        assert asked.state is ProposalState.PENDING
        message = at.message(BIG)
        assert "Approve" in message.buttons()
        at.stack.paused = True
        at.pass_time(days=14, minutes=1)
        at.stack.paused = False
        at.sweep("Hourly")
        (closed,) = at.proposals()
        assert (closed.id, closed.state) == (asked.id, ProposalState.EXPIRED)
        assert message.versions == 3, "posted, shown with its picture, and closed"
        assert "Expired without an answer. It is asked again if the saving is still there." in message.plain()
        assert set(message.buttons()) == {"Details"}
        assert at.refused() == []


def test_a_click_on_an_expired_proposal_changes_nothing() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.paused = True
        at.pass_time(days=14, minutes=1)
        assert at.click(BIG, "Approve")["statusCode"] == 200
        assert [one.state for one in at.proposals()] == [ProposalState.PENDING]
        at.stack.paused = False
        at.sweep("Hourly")
        assert [one.state for one in at.proposals()] == [ProposalState.EXPIRED]
        assert at.writes("sagemaker") == []
