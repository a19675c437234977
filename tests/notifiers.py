"""Notifiers for tests: they remember what they were told, or refuse it."""

from collections.abc import Callable

from rightsizer.domain.message import Message
from rightsizer.domain.proposal import MessageRef, Proposal
from rightsizer.render.blocks import Block
from rightsizer.render.details_view import details_blocks
from rightsizer.render.messages import plain
from rightsizer.render.slack import proposal_blocks


class Told:
    """A notifier that hands on subject and body of each message as plain text, and cannot change any."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell

    def post(self, message: Message) -> MessageRef | None:
        self._tell(*plain(message))
        return None

    def update(self, ref: MessageRef, message: Message) -> None:
        raise AssertionError("a text cannot be changed")


def said_in_slack(asked: Proposal) -> list[Block]:
    """The message of a proposal, and what its button Details opens."""
    return [*proposal_blocks(asked), *details_blocks(asked)]
