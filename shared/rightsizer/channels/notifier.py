"""The Notifier: Slack where the stack has it, the SNS topic where it has one, or both."""

from collections.abc import Mapping, Sequence
from typing import Any

from rightsizer.channels.slack import Slack
from rightsizer.channels.sns import Topic
from rightsizer.domain.proposal import MessageRef


class Channels:
    """Keeps the promises of `ports.evaluation.Notifier`. What is not configured is left out, silently and on purpose.

    `notice` and `line` stand at the end of every message and text: what the operator has to put right.
    """

    def __init__(
        self, slack: Slack | None, topic: Topic | None, notice: Sequence[Mapping[str, Any]] = (), line: str = ""
    ) -> None:
        self._slack = slack
        self._topic = topic
        self._notice = notice
        self._line = line

    def post(self, blocks: Sequence[Mapping[str, Any]], text: str) -> MessageRef | None:
        """Post a message; None without Slack."""
        return self._slack.post([*blocks, *self._notice], text) if self._slack else None

    def update(self, message: MessageRef, blocks: Sequence[Mapping[str, Any]], text: str) -> None:
        """Replace a message that was posted."""
        if self._slack:
            self._slack.update(message, [*blocks, *self._notice], text)

    def publish(self, subject: str, text: str) -> None:
        """Publish plain text."""
        if self._topic:
            self._topic.publish(subject, f"{text}\n{self._line}\n" if self._line else text)
