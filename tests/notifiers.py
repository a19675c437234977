"""Notifiers for tests, which remember what they were told or refuse it, and a store of files in a folder."""

from collections.abc import Callable
from pathlib import Path

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


class FolderReports:
    """Files below a folder (port `ReportStore`)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, body: bytes, content_type: str) -> str:
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return str(path)

    def read(self, key: str) -> bytes | None:
        path = self._folder / key
        return path.read_bytes() if path.is_file() else None
