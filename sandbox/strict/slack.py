"""Slack: messages, modals, files, people. Codes are Slack's; a refusal is HTTP 200 with ``ok`` false.

Sources: Block Kit reference (blocks, block elements, composition objects), view object, and each method's page.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.strict import Check, Key, Params, state
from sandbox.strict.words import longer

SLACK = "slack"
FILE_ID = re.compile("F[A-Z0-9]{8,}")
_NO_PLACES = (None, "")
_INTERACTION = "handling user interaction"


type Rows = list[Mapping[str, Any]]


def blocks_of(p: Params) -> Rows:
    """The blocks of a message, or of a view."""
    view = p.get("view")
    return list((view if isinstance(view, Mapping) else p).get("blocks") or [])


def _elements(p: Params, kind: str) -> Iterator[Mapping[str, Any]]:
    for block in blocks_of(p):
        for element in [*(block.get("elements") or []), *filter(None, [block.get("accessory")])]:
            if element.get("type") == kind:
                yield element


def _text(holder: Mapping[str, Any], name: str = "text") -> str:
    held = holder.get(name)
    return str(held.get("text", "")) if isinstance(held, Mapping) else ""


def _of(p: Params, kind: str) -> Rows:
    return [block for block in blocks_of(p) if block.get("type") == kind]


def _bad_section(p: Params) -> bool:
    def broken(block: Mapping[str, Any]) -> bool:
        fields = block.get("fields") or []
        long = len(_text(block)) > 3000 or any(len(field["text"]) > 2000 for field in fields)
        return long or len(fields) > 10 or not (_text(block) or fields)

    return any(map(broken, _of(p, "section")))


def _bad_header(p: Params) -> bool:
    return any(not 0 < len(_text(block)) <= 150 or block["text"]["type"] != "plain_text" for block in _of(p, "header"))


def _bad_button(p: Params) -> bool:
    def broken(button: Mapping[str, Any]) -> bool:
        sizes = (("action_id", 255), ("value", 2000), ("url", 3000))
        style = button.get("style", "primary") not in {"primary", "danger"}
        plain = (button.get("text") or {}).get("type") == "plain_text" and 0 < len(_text(button)) <= 75
        return style or not plain or any(len(button.get(name, "")) > most for name, most in sizes)

    return any(map(broken, _elements(p, "button")))


def _bad_confirm(p: Params) -> bool:
    def broken(confirm: Mapping[str, Any]) -> bool:
        sizes = (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30))
        return any(not 0 < len(_text(confirm, name)) <= most for name, most in sizes)

    return any(broken(button["confirm"]) for button in _elements(p, "button") if "confirm" in button)


def _bad_menu(p: Params) -> bool:
    def broken(menu: Mapping[str, Any]) -> bool:
        options = menu.get("options") or []
        texts = [(_text(one), str(one.get("value", ""))) for one in options]
        long = any(not 0 < len(text) <= 75 or not 0 < len(value) <= 150 for text, value in texts)
        return not 0 < len(options) <= 100 or long or len(_text(menu, "placeholder")) > 150

    return any(map(broken, _elements(p, "static_select")))


def _bad_image(p: Params) -> bool:
    def broken(image: Mapping[str, Any]) -> bool:
        file = (image.get("slack_file") or {}).get("id", "")
        places = [bool(image.get("image_url")), bool(FILE_ID.fullmatch(str(file)))]
        return sum(places) != 1 or not 0 < len(str(image.get("alt_text", ""))) <= 2000

    return any(map(broken, _of(p, "image")))


def _bad_input(p: Params) -> bool:
    def broken(block: Mapping[str, Any]) -> bool:
        element = block.get("element") or {}
        hint = len(_text(block, "hint")) > 2000 or len(_text(element, "placeholder")) > 150
        limit = not 1 <= int(element.get("max_length", 3000)) <= 3000
        return not 0 < len(_text(block, "label")) <= 2000 or not element or hint or limit

    return any(map(broken, _of(p, "input")))


def _bad_view(p: Params) -> bool:
    view = p.get("view") or {}
    labels = any(len(_text(view, name)) > 24 for name in ("title", "submit", "close"))
    return view.get("type") != "modal" or not _text(view, "title") or labels


def _view_ids(p: Params) -> bool:
    view = p.get("view") or {}
    return len(str(view.get("private_metadata", ""))) > 3000 or len(str(view.get("callback_id", ""))) > 255


def _no_submit(p: Params) -> bool:
    view = p.get("view") or {}
    return bool(_of(p, "input")) and not _text(view, "submit")


def _same_ids(p: Params) -> bool:
    for block in _of(p, "actions"):
        ids = [element["action_id"] for element in block["elements"] if "action_id" in element]
        if len(set(ids)) < len(ids):
            return True
    return False


def _block_ids(p: Params) -> bool:
    ids = [block["block_id"] for block in blocks_of(p) if "block_id" in block]
    return len(set(ids)) < len(ids) or any(len(one) > 255 for one in ids)


def _bad_files(p: Params) -> bool:
    try:
        found = json.loads(str(p.get("files", "")))
    except ValueError:
        return True
    return not isinstance(found, list) or not found or any(not FILE_ID.fullmatch(str(one.get("id"))) for one in found)


_KINDS = frozenset(
    {
        "section",
        "header",
        "actions",
        "context",
        "divider",
        "image",
        "input",
        "rich_text",
        "markdown",
        "table",
        "video",
        "file",
    }
)
_MOST_BLOCKS = Check("blocks", "more than 50 blocks", "invalid_blocks", longer("blocks", 50), source="Block Kit")
_PARTS = (
    Check(
        "kinds",
        "a block of an unknown type",
        "invalid_blocks",
        lambda p: any(b.get("type") not in _KINDS for b in blocks_of(p)),
        source="Block Kit",
    ),
    Check(
        "section",
        "a section without text, with more than 3,000 characters, 10 fields, or 2,000 characters in one",
        "invalid_blocks",
        _bad_section,
        source="section block",
    ),
    Check(
        "header",
        "a header that is empty, longer than 150 characters or no plain text",
        "invalid_blocks",
        _bad_header,
        source="header block",
    ),
    Check(
        "elements",
        "more than 25 elements in actions, or 10 in a context",
        "invalid_blocks",
        lambda p: (
            any(len(b["elements"]) > 25 for b in _of(p, "actions"))
            or any(not 0 < len(b["elements"]) <= 10 for b in _of(p, "context"))
        ),
        source="actions block, context block",
    ),
    Check(
        "button",
        "a button with more than 75 characters, a value of more than 2,000, a URL of more than 3,000, another style",
        "invalid_blocks",
        _bad_button,
        source="button element",
    ),
    Check(
        "confirm",
        "a question with a title of more than 100, a text of more than 300, a button of more than 30 characters",
        "invalid_blocks",
        _bad_confirm,
        source="confirmation dialog object",
    ),
    Check(
        "menu",
        "a menu without options, with more than 100, a text of more than 75 or a value of more than 150 characters",
        "invalid_blocks",
        _bad_menu,
        source="select menu element, option object",
    ),
    Check(
        "image",
        "an image with neither or both of URL and file, a wrong id, no text or one of more than 2,000 characters",
        "invalid_blocks",
        _bad_image,
        source="image block, Slack file object",
    ),
    Check("actions", "an action_id twice in one block", "invalid_blocks", _same_ids, source="button element"),
    Check("ids", "a block_id twice, or longer than 255 characters", "invalid_blocks", _block_ids, source="Block Kit"),
)
_BLOCKS = (
    _MOST_BLOCKS,
    *_PARTS,
    Check(
        "no text", "a message with neither text nor blocks", "no_text", lambda p: not (p.get("text") or p.get("blocks"))
    ),
    Check("long", "a text of more than 40,000 characters", "msg_too_long", longer("text", 40_000)),
)
_VIEW = (
    Check(
        "blocks",
        "more than 100 blocks in a view",
        "invalid_arguments",
        lambda p: len(blocks_of(p)) > 100,
        source="view object",
    ),
    *_PARTS,
    Check(
        "view",
        "a view that is no modal, has no title, or one, or a button, of more than 24 characters",
        "invalid_arguments",
        _bad_view,
        source="view object",
    ),
    Check(
        "metadata",
        "more than 3,000 characters of private_metadata, or 255 of a callback_id",
        "invalid_arguments",
        _view_ids,
        source="view object",
    ),
    Check("submit", "an input without a submit button", "invalid_arguments", _no_submit, source="view object"),
    Check(
        "input",
        "an input without label or element, a label or hint of more than 2,000 characters, a length beyond 3,000",
        "invalid_arguments",
        _bad_input,
        source="input block, plain-text input element",
    ),
    state("token", "another token than the app's", "invalid_auth"),
)

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SLACK, "chat.postMessage"): (
        *_BLOCKS,
        state("token", "another token than the app's", "invalid_auth"),
        state("channel", "a channel that it does not know", "channel_not_found"),
        state(
            "file",
            "an image of a file that is not ready, or not there",
            "invalid_blocks",
            source="python-slack-sdk 1658",
        ),
        state("thread", "a thread that does not exist", "thread_not_found"),
    ),
    (SLACK, "chat.update"): (
        *_BLOCKS,
        Check("ts", "an update without the message's time", "message_not_found", lambda p: p.get("ts") in _NO_PLACES),
        state("token", "another token than the app's", "invalid_auth"),
        state("channel", "a channel that it does not know", "channel_not_found"),
        state("message", "a message that does not exist", "message_not_found"),
        state(
            "file",
            "an image of a file that is not ready, or not there",
            "invalid_blocks",
            source="python-slack-sdk 1658",
        ),
    ),
    (SLACK, "auth.test"): (state("token", "another token than the app's", "invalid_auth"),),
    (SLACK, "conversations.info"): (
        state("token", "another token than the app's", "invalid_auth"),
        state("scope", "an app without the scope channels:read", "missing_scope"),
        state("channel", "a channel that it does not know", "channel_not_found"),
    ),
    (SLACK, "response_url"): (
        *(check for check in _BLOCKS if check.id != "long"),
        state("unknown", "an address that it did not give", "invalid_url"),
        state("late", "an answer more than 30 minutes after the click", "expired_url", source=_INTERACTION),
        state("used", "a sixth answer to one click", "used_url", source=_INTERACTION),
    ),
    (SLACK, "views.open"): (
        *_VIEW,
        Check("trigger", "no trigger", "invalid_trigger_id", lambda p: not p.get("trigger_id")),
        state("expired", "a trigger that is more than three seconds old", "expired_trigger_id", source=_INTERACTION),
        state("used", "a trigger a second time", "exchanged_trigger_id", source=_INTERACTION),
    ),
    (SLACK, "views.update"): (*_VIEW, state("gone", "a view that is not open", "not_found")),
    (SLACK, "users.lookupByEmail"): (
        state("token", "another token than the app's", "invalid_auth"),
        state("scope", "an app without the scope users:read.email", "missing_scope"),
        state("unknown", "an e-mail of nobody in the workspace", "users_not_found"),
    ),
    (SLACK, "files.getUploadURLExternal"): (
        Check("name", "no file name", "invalid_arguments", lambda p: not p.get("filename")),
        Check("length", "no length", "invalid_arguments", lambda p: not str(p.get("length", "")).isdecimal()),
        Check(
            "text",
            "a description of more than 1,000 characters",
            "invalid_arguments",
            lambda p: len(str(p.get("alt_txt", ""))) > 1000,
        ),
        state("token", "another token than the app's", "invalid_auth"),
        state("scope", "an app without the scope files:write", "missing_scope"),
    ),
    (SLACK, "files.completeUploadExternal"): (
        Check("files", "no list of files", "invalid_arguments", _bad_files),
        state("token", "another token than the app's", "invalid_auth"),
        state("scope", "an app without the scope files:write", "missing_scope"),
        state("unknown", "a file that was not uploaded", "file_not_found"),
    ),
}
