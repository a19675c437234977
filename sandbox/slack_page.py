"""The channel as a page: what a person would see in Slack, drawn from the same blocks, light or dark as the screen is.

Source: Slack API documentation, "Reference: blocks" and "Formatting text for app surfaces". Drawn are the blocks that
rightsizer sends; another one is shown by its type, so that nothing is hidden.
"""

import base64
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sandbox.slack import Message
from sandbox.slack_parts import File, Modal

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d1c1d;--soft:#616061;--line:#dddddd;--link:#1264a3;--code:#c01343;--wash:#f8f8f8;--hover:#f2f7fb}
@media (prefers-color-scheme:dark){:root{--paper:#1a1d21;--ink:#d1d2d3;--soft:#ababad;--line:#3a3d41;--link:#1d9bd1;--code:#e8912d;--wash:#222529;--hover:#16324a}}
*{box-sizing:border-box}body{font:15px/1.47 Lato,"Noto Sans","Segoe UI",sans-serif;background:var(--paper);color:var(--ink);margin:0}
main{max-width:720px;margin:auto;padding:0 16px 32px}h1{font-size:18px;border-bottom:1px solid var(--line);padding:14px 0;margin:0 0 8px}
article{display:grid;grid-template-columns:36px 1fr;gap:8px;padding:8px 0}
.face{width:36px;height:36px;border-radius:6px;background:#4a154b;color:#fff;font:700 18px/36px sans-serif;text-align:center}
.who{font-weight:900;margin:0}.who small{font-weight:400;color:var(--soft);font-size:12px}.who i{font-style:normal;font-weight:400;font-size:10px;background:var(--line);border-radius:2px;padding:1px 3px;margin:0 4px;color:var(--soft)}
h2{font-size:18px;line-height:1.3;margin:10px 0 4px}p{margin:4px 0;overflow-wrap:anywhere}.at{background:var(--hover);color:var(--link);border-radius:3px;padding:0 2px}
.fields{display:grid;grid-template-columns:1fr 1fr;gap:4px 16px;margin:6px 0}.row{display:flex;gap:12px;justify-content:space-between;align-items:start}
.context{color:var(--soft);font-size:12px}.context p{display:inline;margin-right:8px}img{display:block;width:100%;max-width:360px;border-radius:8px;border:1px solid var(--line);margin:8px 0}
pre{background:var(--wash);border:1px solid var(--line);border-radius:4px;padding:8px;overflow:auto;font-size:12px;white-space:pre-wrap}
code{background:var(--wash);border:1px solid var(--line);border-radius:3px;padding:1px 3px;color:var(--code);font-size:12px}
button{font:700 13px/1 Lato,"Noto Sans",sans-serif;border:1px solid var(--soft);border-radius:4px;background:var(--paper);color:var(--ink);padding:8px 12px;margin:4px 8px 4px 0;white-space:nowrap}
button.primary{background:#007a5a;border-color:#007a5a;color:#fff}button.danger{background:#e01e5a;border-color:#e01e5a;color:#fff}button.menu::after{content:" \\25be"}
.thread{border-left:2px solid var(--line);margin:6px 0 0;padding-left:12px}.thread summary{color:var(--link);font-weight:700;font-size:13px;cursor:pointer}
dialog{display:block;position:static;margin:16px auto;max-width:520px;border:1px solid var(--line);border-radius:8px;background:var(--paper);color:var(--ink);padding:0 20px 16px}
@media (max-width:480px){.fields{grid-template-columns:1fr}main{padding:0 12px 24px}}
"""  # noqa: E501 - one rule of style a line
HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'


def page(messages: Sequence[Message], files: Sequence[File], modals: Sequence[Modal] = ()) -> str:
    """One HTML file, self-contained, oldest message first; each thread below its message, then the open modals."""
    pictures = {one.id: one.content for one in files}
    threads = {one.ts: [each for each in messages if each.thread == one.ts] for one in messages}
    drawn = "\n".join(_message(one, threads[one.ts], pictures) for one in messages if not one.thread)
    views = "\n".join(_modal(one, pictures) for one in modals)
    title = "<h1># ml-costs</h1>"
    return f"{HEAD}<title>#ml-costs</title><style>{STYLE}</style><main>{title}\n{drawn}\n{views}\n</main></html>\n"


def _message(message: Message, thread: Sequence[Message], pictures: Mapping[str, bytes]) -> str:
    at = message.posted_at or datetime.fromtimestamp(float(message.ts), UTC)
    edited = " (edited)" if message.versions > 1 else ""
    who = f'<p class="who">rightsizer<i>APP</i><small>{at:%a} {at.day} {at:%b %H:%M} UTC{edited}</small></p>'
    blocks = message.blocks or [{"type": "section", "text": {"type": "mrkdwn", "text": message.text}}]
    below = ""
    if thread:
        said = "".join(_message(one, [], pictures) for one in thread)
        count = f"{len(thread)} {'reply' if len(thread) == 1 else 'replies'}"
        below = f'<details class="thread"><summary>{count}</summary>{said}</details>'
    body = "".join(_blocks(blocks, pictures))
    return f'<article><div class="face">r</div><div>{who}{body}{below}</div></article>'


def _modal(modal: Modal, pictures: Mapping[str, bytes]) -> str:
    title = html.escape(modal.view["title"]["text"])
    sent = modal.view.get("submit")
    button = f'<button class="primary">{html.escape(sent["text"])}</button>' if sent else ""
    close = f"<button>{html.escape(modal.view['close']['text'])}</button>" if "close" in modal.view else ""
    drawn = "".join(_blocks(modal.view["blocks"], pictures))
    return f"<dialog open><h2>{title}</h2>{drawn}<p>{close}{button}</p></dialog>"


def _input(block: Mapping[str, Any]) -> Iterator[str]:
    """A field of a form: what is asked, an example in it, and the hint below."""
    optional = " (optional)" if block.get("optional") else ""
    example = block["element"].get("placeholder", {"text": ""})["text"]
    yield f"<p><b>{html.escape(block['label']['text'])}</b>{optional}</p><pre>{html.escape(example)}</pre>"
    if "hint" in block:
        yield f'<div class="context"><p>{html.escape(block["hint"]["text"])}</p></div>'


def _blocks(blocks: Sequence[Mapping[str, Any]], pictures: Mapping[str, bytes]) -> Iterator[str]:
    for block in blocks:
        match block["type"]:
            case "header":
                yield f"<h2>{html.escape(block['text']['text'])}</h2>"
            case "section":
                yield from _section(block)
            case "context":
                yield f'<div class="context">{"".join(_text(one) for one in block["elements"])}</div>'
            case "actions":
                yield f"<p>{''.join(_element(one) for one in block['elements'])}</p>"
            case "image":
                content = base64.b64encode(pictures.get(block["slack_file"]["id"], b"")).decode()
                alt = html.escape(block["alt_text"])
                yield f'<img alt="{alt}" src="data:image/png;base64,{content}">'
            case "input":
                yield from _input(block)
            case "divider":
                yield "<hr>"
            case other:
                yield f"<p>[{html.escape(str(other))}]</p>"


def _section(block: Mapping[str, Any]) -> Iterator[str]:
    if "text" in block:
        beside = _element(block["accessory"]) if "accessory" in block else ""
        yield f'<div class="row">{_text(block["text"])}{beside}</div>' if beside else _text(block["text"])
    if "fields" in block:
        yield f'<div class="fields">{"".join(f"<div>{_text(one)}</div>" for one in block["fields"])}</div>'


def _text(text: Mapping[str, Any]) -> str:
    said = str(text["text"])
    return f"<p>{mrkdwn(said) if text['type'] == 'mrkdwn' else html.escape(said)}</p>"


def _element(element: Mapping[str, Any]) -> str:
    if element["type"] == "static_select":
        return f'<button class="menu">{html.escape(element["placeholder"]["text"])}</button>'
    style = str(element.get("style", ""))
    return f'<button class="{html.escape(style)}">{html.escape(element["text"]["text"])}</button>'


def mrkdwn(text: str) -> str:
    """Slack's markup as HTML. Slack's own escapes (&amp; &lt; &gt;) stay; other HTML is shown, not obeyed."""
    named = re.sub(r"<(?:@|!subteam\^)([A-Z0-9]+)>", "\0\\1\1", text)
    safe = html.escape(html.unescape(named), quote=True)
    parts = re.split(r"```(.*?)```", safe, flags=re.DOTALL)
    drawn = "".join(f"<pre>{part}</pre>" if number % 2 else _spans(part) for number, part in enumerate(parts))
    return re.sub("\0([A-Z0-9]+)\1", r'<span class="at">@\1</span>', drawn)


def _spans(text: str) -> str:
    text = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", text)
    text = re.sub(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])", r"<b>\1</b>", text)
    text = re.sub(r"(?<![\w_])_([^_\n]+)_(?![\w_])", r"<i>\1</i>", text)
    return text.replace("\n", "<br>")
