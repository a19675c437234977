"""SNS, SQS, EventBridge and Slack."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.strict import Check, Key, Params, moto, shape, state
from sandbox.strict.words import longer, not_exactly_one, outside

SNS, SQS, EVENTS, SLACK = "sns", "sqs", "events", "slack"
_TEXT = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NO_PLACES = (None, "")
_INTERACTION = "handling user interaction"


def _message_size(p: Params) -> int:
    attributes = p.get("MessageAttributes") or {}
    texts = [
        p.get("Message", ""),
        *(f"{name}{a['DataType']}{a.get('StringValue', '')}" for name, a in attributes.items()),
    ]
    return sum(len(text.encode()) for text in texts)


def _no_default(p: Params) -> bool:
    if p.get("MessageStructure") != "json":
        return False
    try:
        return not isinstance(json.loads(p["Message"]).get("default"), str)
    except (ValueError, AttributeError):
        return True


def _entry_sizes(p: Params) -> int:
    """EventBridge guide, "Calculating PutEvents event entry size"."""
    entries = p["Entries"]
    texts = [str(e.get(name, "")) for e in entries for name in ("Source", "DetailType", "Detail")]
    resources = [one for e in entries for one in e.get("Resources") or []]
    return 14 * sum("Time" in e for e in entries) + sum(len(text.encode()) for text in texts + resources)


# Slack: Block Kit reference (blocks, block elements, composition objects) and each method's page

type Rows = list[Mapping[str, Any]]


def blocks_of(p: Params) -> Rows:
    """The blocks of a message."""
    return list(p.get("blocks") or [])


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


def _same_ids(p: Params) -> bool:
    for block in _of(p, "actions"):
        ids = [element["action_id"] for element in block["elements"] if "action_id" in element]
        if len(set(ids)) < len(ids):
            return True
    return False


def _block_ids(p: Params) -> bool:
    ids = [block["block_id"] for block in blocks_of(p) if "block_id" in block]
    return len(set(ids)) < len(ids) or any(len(one) > 255 for one in ids)


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
_BLOCKS = (
    Check("blocks", "more than 50 blocks", "invalid_blocks", longer("blocks", 50), source="Block Kit"),
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
    Check("actions", "an action_id twice in one block", "invalid_blocks", _same_ids, source="button element"),
    Check("ids", "a block_id twice, or longer than 255 characters", "invalid_blocks", _block_ids, source="Block Kit"),
    Check(
        "no text", "a message with neither text nor blocks", "no_text", lambda p: not (p.get("text") or p.get("blocks"))
    ),
    Check("long", "a text of more than 40,000 characters", "msg_too_long", longer("text", 40_000)),
)

_SQS_CODE = "AWS.SimpleQueueService"
CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SNS, "Publish"): (
        Check(
            "place",
            "neither or several of topic, target and phone number",
            "InvalidParameter",
            not_exactly_one("TopicArn", "TargetArn", "PhoneNumber"),
        ),
        Check("empty", "an empty message", "InvalidParameter", lambda p: not p.get("Message")),
        Check(
            "size",
            "a message with attributes of more than 256 KiB",
            "InvalidParameter",
            lambda p: _message_size(p) > 262_144,
        ),
        Check(
            "subject",
            "a subject of 100 characters or more, or with line breaks or control characters",
            "InvalidParameter",
            lambda p: "Subject" in p and (not 0 < len(p["Subject"]) < 100 or _CONTROL.search(p["Subject"])),
        ),
        Check("structure", "a MessageStructure json without a default", "InvalidParameter", _no_default),
        Check(
            "fifo",
            "a deduplication id on a standard topic",
            "InvalidParameter",
            lambda p: "MessageDeduplicationId" in p and not p.get("TopicArn", "").endswith(".fifo"),
        ),
        moto("topic", "a topic that does not exist", "NotFound"),
    ),
    (SNS, "ListSubscriptionsByTopic"): (
        Check("empty", "an empty ARN", "InvalidParameter", lambda p: not p.get("TopicArn")),
        moto("topic", "a topic that does not exist", "NotFound"),
    ),
    (SQS, "GetQueueAttributes"): (
        moto("queue", "a queue that does not exist", "AWS.SimpleQueueService.NonExistentQueue"),
    ),
    (SQS, "SendMessage"): (
        Check("empty", "an empty body", "MissingParameter", lambda p: not p.get("MessageBody")),
        Check(
            "size",
            "a body of more than 1 MiB",
            "InvalidParameterValue",
            lambda p: len(p["MessageBody"].encode()) > 1_048_576,
        ),
        Check(
            "characters",
            "characters that XML has not",
            "InvalidMessageContents",
            lambda p: not _TEXT.fullmatch(p["MessageBody"]),
        ),
        Check("delay", "a delay of other than 0 to 900 s", "InvalidParameterValue", outside("DelaySeconds", 0, 900)),
        Check(
            "attributes",
            "more than 10 attributes",
            "InvalidParameterValue",
            longer("MessageAttributes", 10),
            source="SQS guide, message metadata",
        ),
        moto("queue", "a queue that does not exist", "AWS.SimpleQueueService.NonExistentQueue"),
    ),
    (SQS, "SendMessageBatch"): (
        Check("none", "no entry", f"{_SQS_CODE}.EmptyBatchRequest", lambda p: not p["Entries"]),
        Check("many", "more than 10 entries", f"{_SQS_CODE}.TooManyEntriesInBatchRequest", longer("Entries", 10)),
        Check(
            "ids",
            "two entries with one Id",
            f"{_SQS_CODE}.BatchEntryIdsNotDistinct",
            lambda p: len({entry["Id"] for entry in p["Entries"]}) < len(p["Entries"]),
        ),
        Check(
            "size",
            "entries of more than 1 MiB together",
            f"{_SQS_CODE}.BatchRequestTooLong",
            lambda p: sum(len(entry["MessageBody"].encode()) for entry in p["Entries"]) > 1_048_576,
        ),
    ),
    (EVENTS, "PutEvents"): (
        shape(EVENTS, "none or more than 10 entries"),
        Check(
            "size", "entries of 1 MB or more together", "ValidationException", lambda p: _entry_sizes(p) >= 1_048_576
        ),
        Check(
            "kind",
            "a DetailType of more than 128 characters",
            "ValidationException",
            lambda p: any(len(e.get("DetailType", "")) > 128 for e in p["Entries"]),
        ),
        Check(
            "source",
            "a Source that begins with `aws.` (there the entry fails, here the request)",
            "NotAuthorizedForSourceException",
            lambda p: any(e.get("Source", "").startswith("aws.") for e in p["Entries"]),
            source="API PutEventsResultEntry",
        ),
        moto(
            "entry",
            "an entry without Source, DetailType or Detail (the entry fails, not the request)",
            "InvalidArgument",
        ),
        moto("detail", "a Detail that is no JSON (the entry fails)", "MalformedDetail"),
    ),
    (SLACK, "chat.postMessage"): (
        *_BLOCKS,
        state("token", "another token than the app's", "invalid_auth"),
        state("channel", "a channel that it does not know", "channel_not_found"),
    ),
    (SLACK, "chat.update"): (
        *_BLOCKS,
        Check("ts", "an update without the message's time", "message_not_found", lambda p: p.get("ts") in _NO_PLACES),
        state("token", "another token than the app's", "invalid_auth"),
        state("channel", "a channel that it does not know", "channel_not_found"),
        state("message", "a message that does not exist", "message_not_found"),
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
}
