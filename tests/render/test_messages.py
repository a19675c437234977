"""Each kind of message in plain text and as Slack blocks."""

import json
from dataclasses import replace

import pytest

from rightsizer.domain.message import Message, Notice, ProposalMessage, ReportMessage
from rightsizer.render import messages, slack, text
from rightsizer.render.messages import misread_line
from tests.render.test_pages import told as report_of
from tests.samples import proposal

MISREAD = ("Limits is no JSON", "Approvers is empty")
ALL: list[Message] = [ProposalMessage(proposal(), "s3://b/p"), Notice("a", "b"), ReportMessage(report_of(), "s3://b/r")]


def test_a_message_is_worded_by_the_renderer_of_its_kind() -> None:
    asked, report = proposal(), report_of()
    assert messages.plain(ProposalMessage(asked, "s3://b/p")) == text.proposal(asked, "s3://b/p")
    assert messages.slack_blocks(ProposalMessage(asked, "s3://b/p")) == slack.proposal_blocks(asked, "s3://b/p")
    assert messages.slack_blocks(ReportMessage(report, "s3://b/r")) == slack.report_blocks(report, "s3://b/r")
    assert messages.slack_line(ReportMessage(report)) == text.report(report)[0]


def test_the_text_of_a_report_ends_with_its_notes_and_what_slack_did_not_take() -> None:
    whole = ReportMessage(report_of(), "s3://b/r", ("Table: s3://b/t", "one file is missing"), "Slack did not: no")
    body = text.report(report_of(), "s3://b/r")[1]
    assert messages.plain(whole)[1] == f"{body}\nTable: s3://b/t\none file is missing\n\nSlack did not: no\n"
    assert messages.plain(replace(whole, notes=(), undelivered=""))[1] == f"{body}\n"


@pytest.mark.parametrize("message", ALL, ids=lambda one: type(one).__name__)
def test_settings_that_could_not_be_understood_stand_at_the_end(message: Message) -> None:
    spoilt = replace(message, misread=MISREAD)
    assert messages.plain(spoilt)[1] == f"{messages.plain(message)[1]}\n{misread_line(MISREAD)}\n"
    assert messages.slack_blocks(spoilt)[:-1] == messages.slack_blocks(message)
    assert "Approvers is empty" in json.dumps(messages.slack_blocks(spoilt)[-1])
