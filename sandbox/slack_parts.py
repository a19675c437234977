"""What a Slack workspace holds: messages, answers, modals, files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(slots=True)
class Message:
    """A message of the channel."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]]
    versions: int = 1
    thread: str = ""
    """Time of the message in whose thread it stands; empty in the channel."""
    posted_at: datetime | None = None
    """When it was posted by the workspace's clock; `ts` only tells messages apart."""

    def buttons(self) -> dict[str, dict[str, Any]]:
        """The buttons, and the choices of the menus, by the text on them."""
        return buttons_of(self.blocks)

    def plain(self) -> str:
        """Everything that a person reads."""
        return "\n".join([self.text, *_texts(self.blocks)])


def buttons_of(blocks: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What can be pressed in a message or a modal, by its text; of several with one text the first.

    A choice of a menu is the action that Slack sends for it.
    """
    found: dict[str, dict[str, Any]] = {}
    for block in blocks:
        for element in [*block.get("elements", []), *filter(None, [block.get("accessory")])]:
            if element["type"] == "button":
                found.setdefault(element["text"]["text"], element)
            for option in element.get("options", []) if element["type"] == "static_select" else []:
                chosen = {"type": "static_select", "action_id": element["action_id"], "selected_option": option}
                found.setdefault(option["text"]["text"], chosen)
    return found


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if node.get("type") in {"mrkdwn", "plain_text"}:
            yield str(node["text"])
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for item in node:
            yield from _texts(item)


@dataclass(slots=True)
class Reply:
    """Where one click may be answered, and what was posted there: only the person who clicked sees it."""

    user: str
    made_at: datetime
    said: list[dict[str, Any]] = field(default_factory=list)

    def plain(self) -> str:
        """Everything that the person reads."""
        return "\n".join(part for one in self.said for part in [str(one["text"]), *_texts(one.get("blocks") or [])])

    def links(self) -> list[str]:
        """The addresses that the buttons of the answers open."""
        blocks = [block for one in self.said for block in one.get("blocks") or []]
        return [str(e["url"]) for block in blocks for e in block.get("elements", []) if "url" in e]


@dataclass(slots=True)
class Modal:
    """A view that somebody has open."""

    id: str
    user: str
    view: dict[str, Any]

    def plain(self) -> str:
        """Everything that the person reads."""
        return "\n".join(_texts(self.view))


@dataclass(slots=True)
class File:
    """An upload."""

    id: str
    name: str
    says: str
    content: bytes = b""
    is_complete: bool = False
    looks: int = 0
    """Messages that named it before it was ready."""
