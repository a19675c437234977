"""The Notifier: Slack where the stack has it, the SNS topic where it has one, or both."""

from collections.abc import Mapping, Sequence
from typing import Any

from rightsizer.aws.slack import Slack
from rightsizer.aws.topic import Topic
from rightsizer.model.proposal import MessageRef


class Channels:
    """Keeps the promises of `ports.Notifier`. What is not configured is left out, silently and on purpose."""

    def __init__(self, slack: Slack | None, topic: Topic | None) -> None:
        self._slack = slack
        self._topic = topic

    def post(self, blocks: Sequence[Mapping[str, Any]], text: str) -> MessageRef | None:
        """Post a message; None without Slack."""
        return self._slack.post(blocks, text) if self._slack else None

    def update(self, message: MessageRef, blocks: Sequence[Mapping[str, Any]], text: str) -> None:
        """Replace a message that was posted."""
        if self._slack:
            self._slack.update(message, blocks, text)

    def publish(self, subject: str, text: str) -> None:
        """Publish plain text."""
        if self._topic:
            self._topic.publish(subject, text)
