"""SNS, SQS and EventBridge."""

import json
import re
from collections.abc import Mapping

from sandbox.strict import Check, Key, Params, moto, shape
from sandbox.strict.words import longer, not_exactly_one, outside

SNS, SQS, EVENTS = "sns", "sqs", "events"
_TEXT = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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
}
