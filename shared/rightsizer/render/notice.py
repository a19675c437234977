"""What is said of a setting that cannot be understood, and of a stored row that cannot be read."""

from collections.abc import Sequence

from rightsizer.domain.outcome import UnreadRow
from rightsizer.render import blocks

LEAD = "A setting of rightsizer cannot be understood; no change begins until it is put right"


READ_AGAIN = "use the release that wrote it, or restore it from a backup: docs/upgrade.md"
"""What to do about a stored row that this release cannot read."""


def unread(row: UnreadRow) -> str:
    """A stored row that was passed over, with its cause and the remedy."""
    return f"{row.key} cannot be read and is left as it is: {row.cause}; {READ_AGAIN}."


def block(misread: Sequence[str]) -> blocks.Block:
    """The small print of a Slack message."""
    return blocks.context([blocks.escaped(line(misread), blocks.FIELD)])


def line(misread: Sequence[str]) -> str:
    """The same in plain text."""
    return f"{LEAD}: {'. '.join(misread)}."
