"""Several channels as one Notifier, and messages to the Slack channel that the policy document names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rightsizer.domain.environment import Environment
from rightsizer.domain.message import Digest, Message, ProposalMessage, SleepMessage
from rightsizer.domain.policy_document import PolicyDocument, Subject, channel_for
from rightsizer.errors import WriteRefusedError
from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from rightsizer.channels.slack import Slack
    from rightsizer.domain.message import Message
    from rightsizer.domain.proposal import MessageRef, Proposal
    from rightsizer.ports.evaluation import Notifier


class Channels:
    """Keeps the promises of `ports.evaluation.Notifier`; without a channel nobody is told, on purpose.

    `misread` are the settings that could not be understood: every message ends with them.
    """

    def __init__(self, channels: Sequence[Notifier], misread: tuple[str, ...] = ()) -> None:
        self._channels = tuple(channels)
        self._misread = misread

    def post(self, message: Message) -> MessageRef | None:
        """Send it to each channel, in order; where the first one keeps it that can change it later.

        A channel that fails stops no other. What the first of them raised goes up in the end.
        """
        kept: list[MessageRef] = []
        failed: list[Exception] = []
        for channel in self._channels:
            try:
                posted = channel.post(replace(message, misread=self._misread))
            except Exception as error:  # raised below, when the others were told
                failed.append(error)
            else:
                kept += [posted] if posted is not None else []
        for other in failed[1:]:
            logger.error("another channel did not take the message either", extra={"why": str(other)})
        if failed:
            raise failed[0]
        return kept[0] if kept else None

    def update(self, ref: MessageRef, message: Message) -> None:
        """Let each channel change the message; what one raises goes up at once."""
        for channel in self._channels:
            channel.update(ref, replace(message, misread=self._misread))


REFUSED = frozenset({"channel_not_found", "is_archived", "not_in_channel"})
"""Errors of Slack that another channel does not meet (Slack API documentation, "chat.postMessage", errors)."""


class RoutedSlack:
    """Keeps the promises of `ports.evaluation.Notifier`; what it has no say in goes to the stack's own channel.

    `channel` makes the Slack channel of an id. A channel that Slack refuses is stood in for by the stack's own, so that
    a slip in the document loses no proposal.
    """

    def __init__(self, channel: Callable[[str], Slack], default: str, policy: PolicyDocument) -> None:
        self._make, self._default, self._policy = channel, default, policy
        self._made: dict[str, Slack] = {}

    def post(self, message: Message) -> MessageRef:
        """Post the message in the channel of its owner or environment."""
        wanted = self.channel_of(message)
        if isinstance(message, ProposalMessage) and message.thread:
            wanted = message.thread_channel or wanted  # its digest may have been refused where it belonged
        try:
            return self._channel(wanted).post(message)
        except WriteRefusedError as error:
            if wanted == self._default or error.code not in REFUSED:
                raise
            logger.warning("a channel of the policy document is refused", extra={"channel": wanted, "why": str(error)})
            alone = replace(message, thread="") if isinstance(message, ProposalMessage) else message
            return self._channel(self._default).post(alone)

    def update(self, ref: MessageRef, message: Message) -> None:
        """Replace a message where it was posted."""
        self._channel(self._default).update(ref, message)

    def channel_of(self, message: Message) -> str:
        """Id of the channel that the message belongs to."""
        if isinstance(message, SleepMessage):
            note = message.note
            return channel_for(self._policy, self._policy.subject(note.endpoint, note.tags, note.owner), self._default)
        if isinstance(message, Digest) and message.channel:
            return message.channel
        if not isinstance(message, ProposalMessage):
            return self._common
        recommendation = message.proposal.recommendation
        environment = (
            recommendation.environment.environment if recommendation.environment is not None else Environment.PRODUCTION
        )
        return channel_for(self._policy, Subject(environment, recommendation.owner), self._default)

    def digest_of(self, proposal: Proposal) -> str:
        """Name of the digests that the proposal belongs to: its channel, or empty where that is nobody's own."""
        wanted = self.channel_of(ProposalMessage(proposal))
        return "" if wanted == self._common else wanted

    @property
    def _common(self) -> str:
        """Channel of what is nobody's own, digests among it."""
        return channel_for(self._policy, Subject(), self._default)

    def _channel(self, name: str) -> Slack:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]
