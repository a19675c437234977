"""The answer to a click, that only the person who clicked sees."""

from typing import Any

from rightsizer.render import blocks as kit

LONGEST = 2000


def body(text: str, link: str = "") -> dict[str, Any]:
    """What goes to the `response_url`. A link is a button: Slack fetches no preview of what a button leads to.

    A link that is too long for a button, as one signed with a long session token may be, stands in the text.
    """
    said = kit.escaped(text, LONGEST)
    made: dict[str, Any] = {"response_type": "ephemeral", "replace_original": False, "text": said}
    if len(link) > kit.SHORT_LINK:
        return made | {"text": f"{said}\n{kit.escaped(link, 2 * len(link))}", "unfurl_links": False}
    if link:
        opened = {"type": "actions", "elements": [kit.link("Open the page", link, "rightsizer_open")]}
        made["blocks"] = [kit.section(said), opened]
    return made
