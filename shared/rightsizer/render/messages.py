"""A message in the two forms that channels take: plain text, and Slack blocks with one line for the notification.

The module that words a kind of message is imported with the first of that kind. A door that sends only notices does
not load the rest.
"""

from collections.abc import Sequence
from typing import assert_never

from rightsizer.domain.message import (
    CapacityChangeMessage,
    Digest,
    Message,
    Notice,
    ProposalMessage,
    ReportMessage,
    SleepMessage,
)
from rightsizer.domain.policy_key import POLICY_DOCUMENT
from rightsizer.render import blocks

SHOWN = 3
"""Problems of the policy document that a message names; the terminal names them all."""
LEAD_OF_DOCUMENT = "A value of rightsizer's policy cannot be understood"
LEAD = "A setting of rightsizer cannot be understood; no change begins until it is put right"


def plain(message: Message) -> tuple[str, str]:
    """Subject and body of the plain text.

    Example:
        >>> plain(Notice("rank: approval expired", "It is asked again."))
        ('rank: approval expired', 'It is asked again.')
    """
    subject, body = _plain(message)
    return subject, f"{body}\n{misread_line(message.misread, _region_of(message))}\n" if message.misread else body


def slack_blocks(message: Message) -> list[blocks.Block]:
    """The message as Slack blocks, with buttons where something can be decided."""
    made = _blocks(message)
    return [*made, misread_block(message.misread, _region_of(message))] if message.misread else made


def slack_line(message: Message) -> str:
    """Notification text of a Slack message, on one line."""
    match message:
        case ProposalMessage(proposal):
            from rightsizer.render import slack

            return slack.proposal_text(proposal)
        case CapacityChangeMessage(asked):
            from rightsizer.render import capacity_change

            return capacity_change.line(asked)
        case ReportMessage(report):
            from rightsizer.render import text

            return text.report_subject(report)
        case Notice(subject):
            return blocks.escape(subject, blocks.SECTION)
        case Digest():
            from rightsizer.render import slack

            return slack.digest_line(message)
        case SleepMessage(note):
            from rightsizer.render import sleep

            return blocks.escape(sleep.line(note), blocks.SECTION)
        case _:
            assert_never(message)


def thread_line(message: ProposalMessage) -> str:
    """Where a proposal stands, as a line of Slack's markdown for the thread of its message."""
    from rightsizer.render import slack

    return slack.standing_line(message.proposal)


def _plain(message: Message) -> tuple[str, str]:
    match message:
        case ProposalMessage(proposal, page):
            from rightsizer.render import text

            return text.proposal(proposal, page)
        case CapacityChangeMessage(asked, page):
            from rightsizer.render import capacity_change

            return capacity_change.plain(asked, page)
        case ReportMessage(report, page, notes, undelivered):
            from rightsizer.render import text

            subject, body = text.report(report, page)
            body = "\n".join((body, *notes, ""))
            return subject, f"{body}\n{undelivered}\n" if undelivered else body
        case Notice(subject, body):
            return subject, body
        case Digest(lines):
            from rightsizer.render import slack

            return f"rightsizer: {slack.digest_line(message)}", "\n".join((*map(slack.digest_item, lines), ""))
        case SleepMessage(note):
            from rightsizer.render import sleep

            return f"rightsizer: {note.endpoint}", f"{sleep.line(note)}.\n"
        case _:
            assert_never(message)


def _blocks(message: Message) -> list[blocks.Block]:
    match message:
        case ProposalMessage(proposal, page, _, owner, file):
            from rightsizer.render import slack

            return slack.proposal_blocks(proposal, page, owner, file)
        case CapacityChangeMessage(asked, page):
            from rightsizer.render import capacity_change

            return capacity_change.blocks(asked, page)
        case ReportMessage(report, page):
            from rightsizer.render import slack

            return slack.report_blocks(report, page)
        case Digest():
            from rightsizer.render import slack

            return slack.digest_blocks(message)
        case SleepMessage(note):
            from rightsizer.render import sleep

            return sleep.blocks(note)
        case Notice(subject, body):
            return [blocks.header(subject), blocks.section(blocks.escape_lines(body, blocks.SECTION))]
        case _:
            assert_never(message)


def _region_of(message: Message) -> str:
    """The Region that a message is about; empty where it names none."""
    match message:
        case ProposalMessage(proposal):
            return proposal.ref.region
        case CapacityChangeMessage(asked):
            return asked.region
        case ReportMessage(report):
            return report.region
        case SleepMessage(note):
            return note.region
        case _:
            return ""


def misread_block(misread: Sequence[str], region: str = "") -> blocks.Block:
    """The small print of a Slack message."""
    return blocks.context([blocks.escape(misread_line(misread, region), blocks.FIELD)])


def misread_line(misread: Sequence[str], region: str = "") -> str:
    """The same in plain text. Sentences about the policy document say themselves what holds until then."""
    of_document = [each for each in misread if each.startswith(POLICY_DOCUMENT)]
    of_stack = [each for each in misread if not each.startswith(POLICY_DOCUMENT)]
    parts = [f"{LEAD}: {'. '.join(of_stack)}."] if of_stack else []
    if of_document:
        from rightsizer.domain.plan import terminal_command

        unsaid = len(of_document) - SHOWN
        more = f". {unsaid} more: {terminal_command('policy check', region)}" if unsaid > 0 else ""
        parts.append(f"{LEAD_OF_DOCUMENT}: {'. '.join(of_document[:SHOWN])}{more}.")
    return " ".join(parts)
