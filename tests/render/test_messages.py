"""Each kind of message in plain text and as Slack blocks."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.message import Message, Notice, ProposalMessage, ReportMessage
from rightsizer.domain.money import OwnerWait
from rightsizer.render import messages, report_tables, slack, text
from rightsizer.render.messages import misread_line
from tests.render.test_pages import told as report_of
from tests.samples import NOW, proposal

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


def test_what_the_policy_says_wrong_beyond_a_few_is_found_by_a_command_that_names_its_region() -> None:
    many = tuple(f"policy document: line {number} is wrong" for number in range(5))
    said = messages.plain(ProposalMessage(proposal(), misread=many))[1]
    assert "2 more: rightsizer policy check --region eu-west-1" in said


def test_owners_beyond_the_few_that_are_named_are_counted_and_summed() -> None:
    waits = tuple(OwnerWait(f"team-{number}", 2, Decimal(73), NOW) for number in range(7))
    whole = report_of()
    lines = report_tables.wait_lines(replace(whole, money=replace(whole.money, waits=waits)))
    assert len(lines) == report_tables.MOST_WAITS + 1
    assert lines[-1] == "Waits for 2 more: 4 proposals, $146.00 a month, $4.80 a day"
