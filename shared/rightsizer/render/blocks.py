"""The parts of a Slack message, within Slack's limits and escaped, and the answer to a click, which is made of them.

Only the person who clicked sees the answer. Source: Slack API documentation, "Block Kit reference" (section text 3000,
ten fields of 2000, header 150, button text 75, value 2000, ten context elements, a menu's texts 75 and values 150, an
image's text 2000) and "Formatting text" (escape ``&``, ``<`` and ``>``).
"""

import re
from typing import Any

from rightsizer.domain.proposal import SNOOZE_DAYS
from rightsizer.domain.reason import clean_text, one_line, shorten
from rightsizer.domain.trigger import REASON_FORM

SECTION = 2900
FIELD = 1900
HEADER = 150
SHORT_LINK = 3000

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
UNSTYLED = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼"})
"""Slack has no way to escape the letters of its markdown, so that others' text gets letters that look the same."""
ITALIC = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""An underscore that may begin or end italics; one inside a name stays."""
MEMBER = re.compile(r"(?<=by )[UW][A-Z0-9]{3,20}\b|^[UW][A-Z0-9]{3,20}(?= asked )")
"""A Slack id where our sentences name who decided."""
LONGEST = 2000
ALT_TEXT = 1900
VIEW_TITLE, VIEW_BLOCKS = 24, 100
MOST_REASON = 500

type Block = dict[str, Any]


def header(text: str) -> Block:
    """A header, cut to Slack's limit."""
    return {"type": "header", "text": plain(shorten(text, HEADER))}


def plain(text: str) -> Block:
    """Plain text on one line."""
    return {"type": "plain_text", "text": one_line(text), "emoji": False}


def markdown(text: str) -> Block:
    """Text in Slack's markdown; the caller escapes."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def section(text: str) -> Block:
    """A section of markdown."""
    return {"type": "section", "text": markdown(text)}


def fields(facts: list[tuple[str, str]]) -> Block:
    """Names and what belongs to them, ten at most."""
    fields = [markdown(f"*{escape(name, 200)}*\n{escape_lines(text, FIELD - 210)}") for name, text in facts[:10]]
    return {"type": "section", "fields": fields}


def context(parts: list[str]) -> Block:
    """Small print, ten parts at most."""
    return {"type": "context", "elements": [markdown(part) for part in parts[:10]]}


def escape(text: str, most: int) -> str:
    """Text of others as one line without style, mention or link, cut to fit."""
    said = ITALIC.sub("ˍ", one_line(text, most + 1).translate(UNSTYLED))
    return _entities("›" + said[1:] if said.startswith(">") else said, most)


def escape_lines(text: str, most: int) -> str:
    """Several lines of ours, each escaped for Slack, within `most` characters."""
    lines = shorten(text, most).split("\n")
    return _whole("\n".join(escape(line, most) for line in lines), most)


def with_mentions(text: str) -> str:
    """Escaped text with the Slack users that it names as mentions: only whoever clicked sees it, nobody is called."""
    return MEMBER.sub(lambda found: mention(found[0]), text)


def code(text: str, most: int) -> str:
    """A block of code to be copied; nothing in the text ends it."""
    return f"```{_entities(clean_text(text, most + 1).replace('`', 'ˋ'), most)}```"


def _entities(text: str, most: int) -> str:
    """Escaped as Slack asks, cut so that the escaped text fits and no entity is cut in two."""
    return _whole("".join(ENTITIES.get(letter, letter) for letter in text[: most + 1]), most)


def _whole(whole: str, most: int) -> str:
    if len(whole) <= most:
        return whole
    part = whole[: most - 1]
    return (part[: part.rfind("&")] if part.rfind("&") > part.rfind(";") else part) + "…"


def link_button(text: str, url: str, action: str) -> Block:
    """A button that opens a page."""
    return {"type": "button", "text": plain(text), "action_id": action, "url": url}


def button(text: str, verb: str, value: str, style: str = "") -> Block:
    """A button that decides. The value names the proposal and nothing else: what counts is read from the table."""
    made: Block = {"type": "button", "text": plain(text), "action_id": f"rightsizer_{verb}", "value": value}
    return made | ({"style": style} if style else {})


def modal(title: str, blocks: list[Block], *, submit: str = "", callback: str = "", kept: str = "") -> Block:
    """A view: at most 100 blocks and 24 characters of a title; `kept` comes back with what the person sends."""
    made: Block = {"type": "modal", "title": plain(shorten(title, VIEW_TITLE)), "close": plain("Close")}
    made |= {"blocks": blocks[:VIEW_BLOCKS]}
    if submit:
        made |= {"submit": plain(submit), "callback_id": callback}
    return made | ({"private_metadata": kept} if kept else {})


def reason_form(kept: str) -> Block:
    """The form that asks why a proposal is rejected."""
    asked: Block = {
        "type": "input",
        "block_id": "why",
        "optional": True,
        "label": plain("Why not?"),
        "hint": plain("The owner and later readers see it. It is asked again when the demand moved, or in 90 days."),
        "element": {
            "type": "plain_text_input",
            "action_id": "why",
            "multiline": True,
            "max_length": MOST_REASON,
            "placeholder": plain("needed for the launch in May"),
        },
    }
    return modal("Reject", [asked], submit="Reject", callback=REASON_FORM, kept=kept)


def said_view(text: str) -> Block:
    """A modal that only says something."""
    return modal("rightsizer", [section(with_mentions(escape(text, SECTION)))])


def snooze_menu(value: str) -> Block:
    """A menu of days to put something aside for; `value` is that of the buttons beside it."""
    return {
        "type": "static_select",
        "action_id": "rightsizer_snooze",
        "placeholder": plain("Snooze"),
        "options": [{"text": plain(f"Snooze {days} days"), "value": f"{value}~{days}"} for days in SNOOZE_DAYS],
    }


def picture(file: str, says: str) -> Block:
    """An uploaded picture, with what a screen reader says of it."""
    return {"type": "image", "slack_file": {"id": file}, "alt_text": one_line(says, ALT_TEXT)}


def mention(slack_id: str) -> str:
    """Markdown that calls a member or a user group; the id was checked where it was found."""
    return f"<!subteam^{slack_id}>" if slack_id.startswith("S") else f"<@{slack_id}>"


def answer(text: str, link: str = "") -> dict[str, Any]:
    """Body for the `response_url`.

    A link is a button: Slack fetches no preview of what a button leads to.

    A link that is too long for a button, as one signed with a long session token may be, stands in the text.
    """
    said = with_mentions(escape(text, LONGEST))
    made: dict[str, Any] = {"response_type": "ephemeral", "replace_original": False, "text": said}
    if len(link) > SHORT_LINK:
        return made | {"text": f"{said}\n{escape(link, 2 * len(link))}", "unfurl_links": False}
    if link:
        opened = {"type": "actions", "elements": [link_button("Open the page", link, "rightsizer_open")]}
        made["blocks"] = [section(said), opened]
    return made
