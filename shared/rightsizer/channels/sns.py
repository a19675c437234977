"""Messages as plain text to an SNS topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.aws.errors import translate_write_errors
from rightsizer.domain.reason import clean_text
from rightsizer.render.messages import plain

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient

    from rightsizer.domain.message import Message
    from rightsizer.domain.proposal import MessageRef

LONGEST_SUBJECT = 99
"""SNS takes fewer than 100 characters, printable ASCII, no line breaks (SNS API reference, Publish)."""
LONGEST_TEXT = 250_000
"""SNS takes 256 KiB; UTF-8 bytes."""


class Topic:
    """Publishes to one topic (port `Notifier`)."""

    def __init__(self, client: SNSClient, arn: str) -> None:
        self._client = client
        self._arn = arn

    def post(self, message: Message) -> MessageRef | None:
        """Publish the message; the subject is made fit for SNS, an overlong text is cut."""
        subject, text = plain(message)
        body = clean_text(text, LONGEST_TEXT).encode()[:LONGEST_TEXT].decode(errors="ignore")
        with translate_write_errors("sns:Publish", f"publishing to the topic {self._arn}"):
            self._client.publish(TopicArn=self._arn, Subject=fit_subject(subject), Message=body)
        return None

    def update(self, ref: MessageRef, message: Message) -> None:
        """Nothing: what was published cannot be changed."""


def fit_subject(subject: str) -> str:
    """The subject as SNS accepts it: ASCII, one line, fewer than 100 characters, never empty."""
    line = " ".join(subject.replace("×", "x").encode("ascii", "replace").decode().split())
    line = "".join(letter for letter in line if letter.isprintable())
    return (line if len(line) <= LONGEST_SUBJECT else line[: LONGEST_SUBJECT - 3] + "...") or "rightsizer"
