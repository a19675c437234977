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
        at.box.gate.fail("dynamodb", "PutItem", "InternalServerError", times=9)
        refused = at.click(BIG, "Reject")["body"]
        at.pass_time(minutes=1)
        at.box.gate.fail("dynamodb", "PutItem", "InternalServerError", times=0)
        stranger, failed = at.slack.answers
        assert "U0BOB" in stranger.plain()
        assert "Approvers" in stranger.plain()
        assert failed.plain() == ""
        assert "try again in a minute" in str(refused)
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
        assert "Recorded: rejected." in at.answered(request)["body"]
        assert states(at.proposals())[BIG] is ProposalState.REJECTED


@pytest.mark.parametrize("days", [0, 13])
def test_details_open_as_a_modal_however_long_the_proposal_waited_and_lead_to_the_page(days: int) -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.quiet |= {schedule.name for schedule in at.stack.parts.schedules}
        at.pass_time(days=days)
        at.click(BIG, "Details", "U0BOB")
        (modal,) = at.slack.modals
        assert modal.user == "U0BOB"
        for part in ("Options, best first", "Why not the same GPU in another size?", "Periods with data"):
            assert part in modal.plain()
        (link,) = [e["url"] for b in modal.view["blocks"] for e in b.get("elements", []) if "url" in e]
        assert BIG.encode() in opened(at.box, link, at.stack.roles.role("respond"))
        assert at.slack.answers[-1].said == []
        assert at.refused() == []
        assert not [e for m in at.slack.messages for e in m.buttons().values() if "url" in e]


def test_where_slack_opens_no_modal_the_details_are_a_link() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        request = at.slack.click(at.message(BIG), "Details", "U0BOB", at.box.clock.now, trigger_id="")
        at.answered(request)
        (link,) = at.slack.answers[-1].links()
        assert "at most 15 minutes" in at.slack.answers[-1].plain()
        assert BIG.encode() in opened(at.box, link, at.stack.roles.role("respond"))


def test_another_option_is_taken_from_the_details_and_an_answer_to_the_old_one_counts_no_more() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        before = at.message(BIG)
        old = before.text
        stale = at.slack.click(before, "Approve", "U0ADA", at.box.clock.now)
        at.click(BIG, "Details")
        modal = at.slack.modals[-1]
        press = at.slack.press(modal, "Take this", at.box.clock.now)
        at.slack.acknowledge(at.stack.invoke("respond", press, "url"))
        at.pass_time(minutes=1)
        assert "waits for Approve" in modal.plain()
        (taken,) = at.proposals()
        assert (taken.state, taken.revision) == (ProposalState.PENDING, 1)
        assert at.message(BIG) is before
        assert before.text != old
        at.answered(stale)
        assert "asks for something else now" in at.slack.answers[0].plain()
        assert at.proposals()[0].state is ProposalState.PENDING
        at.click(BIG, "Approve")
        assert at.proposals()[0].state is not ProposalState.PENDING
        assert at.slack.triangles == 0


def test_why_somebody_said_no_stands_in_the_message_and_its_thread() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.click(BIG, "Reject", why="needed for the launch in May")
        at.pass_time(minutes=1)
        assert at.proposals()[0].decision is not None
        assert "needed for the launch in May" in at.message(BIG).plain()
        replies = [one for one in at.slack.messages if one.thread]
        assert [one.thread for one in replies] == [at.message(BIG).ts]
        assert "Rejected by <@U0ADA>" in replies[0].text


@pytest.mark.parametrize("days", [7, 30, 90])
def test_a_snooze_is_over_when_it_says(days: int) -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.click(BIG, f"Snooze {days} days")
        at.pass_time(minutes=1)
        assert f"comes back after {days} days" in at.message(BIG).plain()


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
