"""What every message says while a setting cannot be understood."""

from collections.abc import Sequence

from rightsizer.render import blocks as kit

LEAD = "A setting of rightsizer cannot be understood; no change begins until it is put right"


def block(misread: Sequence[str]) -> kit.Block:
    """The small print of a Slack message."""
    return kit.context([kit.escaped(line(misread), kit.FIELD)])


def line(misread: Sequence[str]) -> str:
    """The same in plain text."""
    return f"{LEAD}: {'. '.join(misread)}."
