"""Messages to an SNS topic: plain text, and where it is asked for a chat's form for subscribers over HTTPS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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
LONGEST_WITH_CHAT = 90_000
"""With the chat's form beside it, and both as texts in JSON, where a line break takes two bytes and a quote two."""


class Topic:
    """Publishes to one topic (port `Notifier`)."""

    def __init__(self, client: SNSClient, arn: str, *, for_chat: bool = False) -> None:
        self._client = client
        self._arn = arn
        self._for_chat = for_chat
        """Whether HTTPS subscribers, of which Amazon Q Developer is one, get a custom notification; others the text."""

    def post(self, message: Message) -> MessageRef | None:
        """Publish the message; the subject is made fit for SNS, an overlong text is cut."""
        subject, text = plain(message)
        most = LONGEST_WITH_CHAT if self._for_chat else LONGEST_TEXT
        body = clean_text(text, most).encode()[:most].decode(errors="ignore")
        request: Any = {"TopicArn": self._arn, "Subject": fit_subject(subject), "Message": body}
        if self._for_chat:
            from rightsizer.render.chat import custom_notification

            chat = json.dumps(custom_notification(message, subject, text))
            forms = {"default": body, "https": chat}
            request |= {"MessageStructure": "json", "Message": json.dumps(forms, ensure_ascii=False)}
        with translate_write_errors("sns:Publish", f"publishing to the topic {self._arn}"):
            self._client.publish(**request)
        return None

    def update(self, ref: MessageRef, message: Message) -> None:
        """Nothing: what was published cannot be changed."""


def fit_subject(subject: str) -> str:
    """The subject as SNS accepts it: ASCII, one line, fewer than 100 characters, never empty."""
    line = " ".join(subject.replace("×", "x").encode("ascii", "replace").decode().split())
    line = "".join(letter for letter in line if letter.isprintable())
    return (line if len(line) <= LONGEST_SUBJECT else line[: LONGEST_SUBJECT - 3] + "...") or "rightsizer"
