"""The batch that Lambda reads from the evaluation queue (Lambda Developer Guide, "Using Lambda with SQS")."""

from dataclasses import dataclass
from typing import Any

from rightsizer.errors import InputError
from rightsizer.intake.fields import mapping, named


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Its body is parsed by itself, so that a poisoned one fails alone."""

    id: str
    body: str
    attempt: int
    """How often it was received, this time included."""
    problem: str = ""
    """Why there is no body to read; empty when there is one."""


def records(event: Any) -> tuple[Message, ...]:
    """The messages of the batch in their order; InputError when the event is no SQS batch.

    A record without an id cannot be named as failed: it is logged and passed over where others have one.
    """
    found = mapping(event, "an SQS batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading an SQS batch: Records: a list is expected; is this function invoked by a queue?")
    return tuple(_message(identity, record) for identity, record in named(found, "an SQS batch", "messageId"))


def _message(identity: str, record: dict[str, Any]) -> Message:
    body, attributes = record.get("body"), record.get("attributes")
    received = str(attributes.get("ApproximateReceiveCount", "1")) if isinstance(attributes, dict) else "1"
    attempt = int(received) if received.isascii() and received.isdecimal() and len(received) < 10 else 1
    if not isinstance(body, str):
        return Message(identity, "", attempt, f"reading a message: body: a text is expected, not {type(body).__name__}")
    return Message(identity, body, attempt)
