"""Refused requests of Slack; see `wrong`."""

from typing import Any

from tests.sandbox.strictness.accepted import BUTTON, MODAL, SECTION

type Change = dict[str, Any]
GONE = object()
"""The member is left out."""


def blocks(*rows: Change) -> Change:
    """A message of these blocks."""
    return {"blocks": list(rows)}


def button(**members: Any) -> Change:
    """A message with one button that has these members too."""
    return blocks({"type": "actions", "elements": [BUTTON | members]})


def texts(**members: str) -> Change:
    """A button that asks again, with these texts."""
    whole = {"title": "t", "text": "x", "confirm": "Yes", "deny": "No"} | members
    return button(confirm={name: {"type": "plain_text", "text": text} for name, text in whole.items()})


MENU = {
    "type": "static_select",
    "action_id": "s",
    "options": [{"text": {"type": "plain_text", "text": "7 days"}, "value": "7"}],
}
IMAGE = {"type": "image", "alt_text": "two weeks", "slack_file": {"id": "F000000001"}}
_SLACK: dict[str, Change] = {
    "menu": blocks({"type": "actions", "elements": [MENU | {"options": []}]}),
    "image": blocks(IMAGE | {"slack_file": {"id": "f-1"}}),
    "blocks": blocks(*[SECTION] * 51),
    "kinds": blocks({"type": "sektion"}),
    "section": blocks({"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}),
    "header": blocks({"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}),
    "elements": blocks({"type": "actions", "elements": [BUTTON | {"action_id": str(n)} for n in range(26)]}),
    "button": button(text={"type": "plain_text", "text": "x" * 76}),
    "confirm": texts(title="x" * 101),
    "actions": blocks({"type": "actions", "elements": [BUTTON, BUTTON]}),
    "ids": blocks(SECTION | {"block_id": "b"}, SECTION | {"block_id": "b"}),
    "no text": {"text": GONE, "blocks": GONE},
    "long": {"text": "x" * 40_001},
}


def view(**members: Any) -> Change:
    """A modal that has these members too."""
    return {"view": MODAL | members}


_INPUT = {
    "type": "input",
    "label": {"type": "plain_text", "text": "Why"},
    "element": {"type": "plain_text_input", "action_id": "why"},
}
_SUBMIT = {"submit": {"type": "plain_text", "text": "Send"}}
_VIEWS: dict[str, Change] = {
    **{name: view(**change) for name, change in _SLACK.items() if name not in ("blocks", "no text", "long")},
    "blocks": view(blocks=[SECTION] * 101),
    "view": view(title={"type": "plain_text", "text": "x" * 25}),
    "metadata": view(private_metadata="x" * 3001),
    "submit": view(blocks=[_INPUT]),
    "input": view(blocks=[_INPUT | {"label": {"type": "plain_text", "text": "x" * 2001}}], **_SUBMIT),
}
OF_SLACK: dict[tuple[str, str], dict[str, Change]] = {
    ("slack", "chat.postMessage"): _SLACK,
    ("slack", "chat.update"): _SLACK | {"ts": {"ts": GONE}},
    ("slack", "views.open"): _VIEWS | {"trigger": {"trigger_id": ""}},
    ("slack", "views.update"): _VIEWS,
    ("slack", "files.getUploadURLExternal"): {
        "name": {"filename": ""},
        "length": {"length": "many"},
        "text": {"alt_txt": "x" * 1001},
    },
    ("slack", "files.completeUploadExternal"): {"files": {"files": "[]"}},
    ("slack", "response_url"): {name: change for name, change in _SLACK.items() if name != "long"},
}
