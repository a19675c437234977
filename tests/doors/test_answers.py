"""Whoever clicks in Slack sees an answer: what was recorded, or why not and what to do."""

import pytest

from rightsizer.domain.proposal import ProposalState
from sandbox.links import opened
from tests.doors.scene import BIG, PROPOSE, scene, states


def test_everybody_who_clicks_sees_an_answer_and_nobody_a_triangle() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.click(BIG, "Approve", "U0BOB")
        assert states(at.proposals())[BIG] is ProposalState.PENDING
        at.box.fail("dynamodb", "PutItem", "InternalServerError", times=9)
        at.click(BIG, "Reject")
        at.pass_time(minutes=1)
        at.box.fail("dynamodb", "PutItem", "InternalServerError", times=0)
        stranger, failed = at.slack.answers
        assert "U0BOB" in stranger.plain()
        assert "Approvers" in stranger.plain()
        assert "try again in a minute" in failed.plain()
        assert at.slack.triangles == 0


def test_with_the_default_of_no_approvers_the_answer_says_who_adds_one() -> None:
    with scene(Approvers="") as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        assert at.click(BIG, "Approve") == {"statusCode": 200, "body": ""}
        assert "nobody is on the list of approvers yet" in at.slack.answers[0].plain()


def test_a_decision_is_recorded_once_though_its_answer_is_lost() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        request = at.slack.click(at.message(BIG), "Reject", "U0ADA", at.box.clock.now)
        at.slack.answers.clear()  # its response_url is not known any more
        assert at.stack.invoke("respond", request, "url")["statusCode"] == 200
        assert states(at.proposals())[BIG] is ProposalState.REJECTED


@pytest.mark.parametrize("days", [0, 13])
def test_the_details_button_opens_the_page_however_long_the_proposal_waited(days: int) -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.quiet |= {schedule.name for schedule in at.stack.parts.schedules}
        at.pass_time(days=days)
        at.click(BIG, "Details", "U0BOB")
        (link,) = at.slack.answers[-1].links()
        assert "at most 15 minutes" in at.slack.answers[-1].plain()
        assert BIG.encode() in opened(at.box, link, at.stack.roles.role("respond"))
        assert at.refused() == []
        assert not [e for m in at.slack.messages for e in m.buttons().values() if "url" in e]


def test_the_button_of_the_report_opens_it() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.fire("Report.Weekly")
        message = next(one for one in at.slack.messages if "Open the report" in one.buttons())
        at.slack.acknowledge(
            at.stack.invoke("respond", at.slack.click(message, "Open the report", "U0BOB", at.box.clock.now), "url")
        )
        (link,) = at.slack.answers[-1].links()
        assert BIG.encode() in opened(at.box, link, at.stack.roles.role("respond"))
        assert at.slack.triangles == 0


def test_an_app_that_nobody_invited_is_told_by_the_topic_and_leaves_no_dead_letters() -> None:
    with scene() as at:
        at.slack.members = False
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.pass_time(hours=1)
        said = [call.params for call in at.box.calls.of("sns", "Publish")]
        assert [one["Subject"] for one in said if "refuses" in one["Subject"]] == [
            "rightsizer: Slack refuses its messages"
        ]
        assert any("/invite @rightsizer" in one["Message"] for one in said)
        assert any(f"rightsizer approve {at.proposals()[0].id}" in one["Message"] for one in said)
        assert at.stack.dead_letters() == []
