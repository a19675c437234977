"""A message as a custom notification of Amazon Q Developer in chat applications (formerly AWS Chatbot). Pure.

Its schema (admin guide, "Custom notifications"): version, source and content.description are required, and a message
that breaks it is dropped without a word. The guide names no lengths that could be checked, so these here are careful.
"""

from collections.abc import Iterator
from typing import Any

from rightsizer.domain.message import (
    CapacityChangeMessage,
    Digest,
    Message,
    Notice,
    ProposalMessage,
    ReportMessage,
    SleepMessage,
)
from rightsizer.domain.plan import order_command
from rightsizer.render import blocks

LONGEST_TITLE, LONGEST_DESCRIPTION, LONGEST_STEP, LONGEST_KEYWORD = 250, 8_000, 350, 75


def custom_notification(message: Message, subject: str, body: str) -> dict[str, Any]:
    """The notification of a message whose subject and plain text are given; nothing in it mentions anybody.

    Slack's control signs are escaped, since the chat renders the text as markdown.
    """
    content: dict[str, Any] = {
        "textType": "client-markdown",
        "title": blocks.escape(subject, LONGEST_TITLE) or "rightsizer",
        "description": blocks.escape_lines(body, LONGEST_DESCRIPTION) or "rightsizer",
    }
    if steps := [blocks.escape(step, LONGEST_STEP) for step in _next_steps(message)]:
        content["nextSteps"] = steps
    if words := [blocks.escape(word, LONGEST_KEYWORD) for word in _keywords(message) if word]:
        content["keywords"] = words
    metadata = {"summary": content["title"], "eventType": f"rightsizer.{_event_type(message)}"}
    if thread := _thread(message):
        metadata["threadId"] = thread
    return {"version": "1.0", "source": "custom", "content": content, "metadata": metadata}


def _event_type(message: Message) -> str:
    """What filters of the chat may rely on: these names do not change with the code (docs/slack.md)."""
    match message:
        case ProposalMessage():
            return "proposal"
        case CapacityChangeMessage():
            return "capacity-change"
        case ReportMessage():
            return "report"
        case Digest():
            return "digest"
        case SleepMessage():
            return "office-hours"
        case Notice():
            return "notice"


def _thread(message: Message) -> str:
    """What a message belongs to, so that the chat keeps what follows in one thread."""
    match message:
        case ProposalMessage(proposal):
            return proposal.id
        case CapacityChangeMessage(capacity_change):
            return capacity_change.id
        case _:
            return ""


def _next_steps(message: Message) -> Iterator[str]:
    """The commands that answer a proposal."""
    if isinstance(message, ProposalMessage) and message.proposal.state == "pending":
        if message.proposal.approvable:
            yield order_command("approve", message.proposal.id, message.proposal.ref.region)
        yield order_command("reject", message.proposal.id, message.proposal.ref.region)


def _keywords(message: Message) -> Iterator[str]:
    match message:
        case ProposalMessage(proposal):
            yield from (proposal.ref.name, proposal.recommendation.owner, str(proposal.state))
        case ReportMessage(report):
            yield from (report.account, report.region)
        case _:
            return
