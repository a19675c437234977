"""Several channels as one Notifier: each is told, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from rightsizer.domain.message import Message
    from rightsizer.domain.proposal import MessageRef
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
