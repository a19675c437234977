"""The channel as a page: what a person would see in Slack, drawn from the same blocks.

Source: Slack API documentation, "Reference: blocks" and "Formatting text for app surfaces". Drawn are the blocks that
rightsizer sends; another one is shown by its type, so that nothing is hidden.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.slack import Message

STYLE = """
body{font:15px/1.45 Lato,"Segoe UI",sans-serif;background:#f4f4f4;color:#1d1c1d;margin:0;padding:24px}
main{max-width:680px;margin:auto}h1{font-size:20px}
article{background:#fff;border:1px solid #ddd;border-radius:8px;padding:12px 18px;margin:0 0 16px}
.who{font-weight:700}.who small{font-weight:400;color:#616061}
h2{font-size:17px;margin:6px 0}p{margin:6px 0}
.fields{display:grid;grid-template-columns:1fr 1fr;gap:6px 18px;margin:6px 0}
.context{color:#616061;font-size:13px}
pre{background:#f8f8f8;border:1px solid #ddd;border-radius:4px;padding:8px;overflow:auto;font-size:13px}
code{background:#f8f8f8;border:1px solid #e3e3e3;border-radius:3px;padding:0 3px;color:#c01343;font-size:13px}
button{font:700 14px Lato,sans-serif;border:1px solid #bbb;border-radius:4px;background:#fff;padding:6px 12px;margin:4px 6px 4px 0}
button.primary{background:#007a5a;border-color:#007a5a;color:#fff}button.danger{color:#e01e5a;border-color:#e01e5a}
"""  # noqa: E501 - one rule of style a line

WHO = '<p class="who">rightsizer <small>app · version '


def page(messages: Sequence[Message]) -> str:
    """One HTML file, self-contained, oldest message first."""
    drawn = "\n".join(f"<article>{WHO}{m.versions}</small></p>{''.join(_blocks(m))}</article>" for m in messages)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f"{head}<title>#ml-costs</title><style>{STYLE}</style><main><h1># ml-costs</h1>\n{drawn}\n</main></html>\n"


def _blocks(message: Message) -> Iterator[str]:
    if not message.blocks:
        yield f"<p>{mrkdwn(message.text)}</p>"
    for block in message.blocks:
        match block["type"]:
            case "header":
                yield f"<h2>{html.escape(block['text']['text'])}</h2>"
            case "section":
                if "text" in block:
                    yield _text(block["text"])
                if "fields" in block:
                    yield f'<div class="fields">{"".join(f"<div>{_text(one)}</div>" for one in block["fields"])}</div>'
            case "context":
                yield f'<div class="context">{"".join(_text(one) for one in block["elements"])}</div>'
            case "actions":
                yield f"<p>{''.join(_button(one) for one in block['elements'])}</p>"
            case "divider":
                yield "<hr>"
            case other:
                yield f"<p>[{html.escape(str(other))}]</p>"


def _text(text: Mapping[str, Any]) -> str:
    said = str(text["text"])
    return f"<p>{mrkdwn(said) if text['type'] == 'mrkdwn' else html.escape(said)}</p>"


def _button(element: Mapping[str, Any]) -> str:
    style = str(element.get("style", ""))
    return f'<button class="{html.escape(style)}">{html.escape(element["text"]["text"])}</button>'


def mrkdwn(text: str) -> str:
    """Slack's markup as HTML. Slack's own escapes (&amp; &lt; &gt;) stay; other HTML is shown, not obeyed."""
    safe = html.escape(html.unescape(text), quote=True)
    parts = re.split(r"```(.*?)```", safe, flags=re.DOTALL)
    return "".join(f"<pre>{part}</pre>" if number % 2 else _spans(part) for number, part in enumerate(parts))


def _spans(text: str) -> str:
    text = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", text)
    text = re.sub(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])", r"<b>\1</b>", text)
    text = re.sub(r"(?<![\w_])_([^_\n]+)_(?![\w_])", r"<i>\1</i>", text)
    return text.replace("\n", "<br>")
