"""The parts of a Slack message, within Slack's limits and escaped.

Source: Slack API documentation, "Block Kit reference" (section text 3000, ten fields of 2000, header 150, button text
75, value 2000, ten context elements) and "Formatting text" (escape ``&``, ``<`` and ``>``).
"""

from typing import Any

SECTION = 2900
FIELD = 1900
HEADER = 150
SHORT_LINK = 3000

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

type Block = dict[str, Any]


def header(text: str) -> Block:
    """A header, cut to Slack's limit."""
    return {"type": "header", "text": plain(cut(text, HEADER))}


def plain(text: str) -> Block:
    """Plain text."""
    return {"type": "plain_text", "text": text, "emoji": False}


def markdown(text: str) -> Block:
    """Text in Slack's markdown; the caller escapes."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def section(text: str) -> Block:
    """A section of markdown."""
    return {"type": "section", "text": markdown(text)}


def fields(facts: list[tuple[str, str]]) -> Block:
    """Names and what belongs to them, ten at most."""
    fields = [markdown(f"*{escaped(name, 200)}*\n{escaped(said, FIELD - 210)}") for name, said in facts[:10]]
    return {"type": "section", "fields": fields}


def context(parts: list[str]) -> Block:
    """Small print, ten parts at most."""
    return {"type": "context", "elements": [markdown(part) for part in parts[:10]]}


def escaped(text: str, most: int) -> str:
    """Escaped as Slack asks, cut so that the escaped text fits and no entity is cut in two."""
    whole = "".join(ENTITIES.get(letter, letter) for letter in text[: most + 1])
    if len(whole) <= most:
        return whole
    cut = whole[: most - 1]
    return (cut[: cut.rfind("&")] if cut.rfind("&") > cut.rfind(";") else cut) + "…"


def cut(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def link(text: str, url: str, action: str) -> Block:
    """A button that opens a page."""
    return {"type": "button", "text": plain(text), "action_id": action, "url": url}


def button(text: str, verb: str, value: str, style: str = "") -> Block:
    """A button that decides. The value is the opaque id and nothing else: what counts is read from the table."""
    made: Block = {"type": "button", "text": plain(text), "action_id": f"rightsizer_{verb}", "value": value}
    return made | ({"style": style} if style else {})
