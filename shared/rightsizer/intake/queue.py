"""The batch that Lambda reads from the evaluation queue (Lambda Developer Guide, "Using Lambda with SQS")."""

from dataclasses import dataclass
from typing import Any

from rightsizer.errors import InputError
from rightsizer.intake.edge import mapping


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Its body is parsed by itself, so that a poisoned one fails alone."""

    id: str
    body: str
    attempt: int
    """How often it was received, this time included."""


def records(event: Any) -> tuple[Message, ...]:
    """The messages of the batch in their order; InputError when the event is no SQS batch."""
    found = mapping(event, "an SQS batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading an SQS batch: Records: a list is expected; is this function invoked by a queue?")
    return tuple(_message(record, index) for index, record in enumerate(found))


def _message(record: object, index: int) -> Message:
    fields = mapping(record, f"record {index} of an SQS batch")
    identity, body = fields.get("messageId"), fields.get("body")
    if not isinstance(identity, str) or not isinstance(body, str):
        raise InputError(f"reading record {index} of an SQS batch: messageId and body must be texts")
    attributes = fields.get("attributes")
    received = attributes.get("ApproximateReceiveCount", "1") if isinstance(attributes, dict) else "1"
    return Message(identity, body, int(received) if str(received).isdecimal() else 1)
