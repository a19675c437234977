"""Messages to people, for every channel: a proposal, a capacity change, a report, an endpoint asleep, or a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from shlex import quote
from typing import TYPE_CHECKING

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.plan import region_option

if TYPE_CHECKING:
    from rightsizer.domain.capacity_change import CapacityChange
    from rightsizer.domain.proposal import Proposal
    from rightsizer.domain.report import Report


type SafeTell = Callable[[str, str], bool]
"""Sends a notice, subject and body; whether a channel took it."""


@dataclass(frozen=True, slots=True)
class ProposalMessage:
    """A proposal as it stands now."""

    proposal: Proposal
    page: str = ""
    """Where its details page is kept; empty where it is not."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood. They stand at the end of every message, for the operator."""
    owner: str = ""
    """Slack id of the owner, who is mentioned; empty where the owner's tag names nobody that Slack knows."""
    picture: str = ""
    """Id of the uploaded picture; empty while there is none."""
    thread: str = ""
    """Time of the message in whose thread it is posted; empty where it stands by itself."""
    thread_channel: str = ""
    """Channel of that message."""


@dataclass(frozen=True, slots=True)
class CapacityChangeMessage:
    """A capacity change as it stands now, from its question to its end."""

    asked: CapacityChange
    page: str = ""
    """Where its details page is kept; empty where it is not."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, as in `ProposalMessage`."""


@dataclass(frozen=True, slots=True)
class ReportMessage:
    """A report that is stored."""

    report: Report
    page: str = ""
    """Where its page is kept; empty where it is not."""
    notes: tuple[str, ...] = ()
    """Lines for a text: where its other files are kept, and which of them are missing."""
    undelivered: str = ""
    """Why Slack did not take the report; empty where Slack did, or was not asked."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, as in `ProposalMessage`."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Plain text: something went wrong, or ended in a way that a person should know of."""

    subject: str
    body: str
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, as in `ProposalMessage`."""


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One proposal of a digest."""

    id: str
    endpoint: str
    saving_usd_per_month: Decimal
    """Of everything that its approval covers; negative for growth, 0 where nothing can be offered."""
    state: str = "pending"
    """State of the proposal (`ProposalState`), as it moves."""
    measured_usd_per_month: Decimal | None = None
    """Measured saving of the proposal's change; None until it was measured."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Many proposals that appeared at once: one message, in whose thread each has its own."""

    lines: tuple[DigestLine, ...]
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, as in `ProposalMessage`."""
    channel: str = ""
    """The channel of the policy document that its proposals go to; empty for the one that is nobody's own."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """New proposals of one half hour and channel, and where their digest stands."""

    began_at: datetime
    lines: tuple[DigestLine, ...] = ()
    channel: str = ""
    ts: str = ""
    """Slack's time stamp of the digest; empty while there is none."""
    claimed_at: datetime | None = None
    """When an invocation set out to post it."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class SleepMessage:
    """An endpoint that its office hours stopped, from the stop to the morning."""

    note: SleepNote
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, as in `ProposalMessage`."""


type Message = ProposalMessage | CapacityChangeMessage | ReportMessage | Notice | Digest | SleepMessage


def wake_command(endpoint: str, region: str, stack: str = "rightsizer", stay: str = "") -> str:
    """The command line that wakes an endpoint, also in a shell that knows neither Region nor stack."""
    named = f" --stack {quote(stack)}" if stack != "rightsizer" else ""
    return f"rightsizer wake {quote(endpoint)}{f' --for {stay}' if stay else ''}{region_option(region)}{named}"


WAKE_MINUTES = (60, 120, 240, 480)
"""Stays that the button offers; those beyond the longest wake of the stack are left out."""


@dataclass(frozen=True, slots=True)
class SleepNote:
    """An endpoint with office hours took another state."""

    endpoint: str
    state: HoursState
    at: datetime
    version: int
    """Of the record that it was taken from: an older note tells nothing new."""
    hours: str = ""
    """The tag's value."""
    serves_at: datetime | None = None
    """When it has to serve next; None where nobody said."""
    why: str = ""
    longest_minutes: int = 0
    """The longest wake that is allowed."""
    region: str = ""
    owner: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of the endpoint before it was stopped: they say whose channel it belongs to."""

    @property
    def can_wake(self) -> bool:
        """Whether an order to wake it has something to wake."""
        return self.state is HoursState.STOPPED


@dataclass(frozen=True, slots=True)
class SleepMoved:
    """A record of the table's stream: an endpoint fell asleep, is being started, or serves again."""

    sequence: str
    note: SleepNote
