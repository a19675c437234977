"""Messages to people, for every channel: a proposal, a capacity change, a report, an endpoint asleep, or a notice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a door that sends notices only does not load the others
    from rightsizer.domain.capacity_change import CapacityChange
    from rightsizer.domain.proposal import Proposal
    from rightsizer.domain.report import Report
    from rightsizer.domain.sleep import SleepNote


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
    """As in `ProposalMessage`."""


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
    """As in `ProposalMessage`."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Plain text: something went wrong, or ended in a way that a person should know of."""

    subject: str
    body: str
    misread: tuple[str, ...] = ()
    """As in `ProposalMessage`."""


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One proposal of a digest."""

    id: str
    endpoint: str
    saving_usd_per_month: Decimal
    """Of everything that its approval covers; negative for growth, 0 where nothing can be offered."""
    state: str = "pending"
    """Of the proposal (`ProposalState`), as it moves."""
    measured_usd_per_month: Decimal | None = None
    """What its change saves as it was measured; None until it was."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Many proposals that appeared at once: one message, in whose thread each has its own."""

    lines: tuple[DigestLine, ...]
    misread: tuple[str, ...] = ()
    """As in `ProposalMessage`."""
    channel: str = ""
    """The channel of the policy document that its proposals go to; empty for the one that is nobody's own."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """New proposals of one half hour and channel, and where their digest stands."""

    began_at: datetime
    lines: tuple[DigestLine, ...] = ()
    channel: str = ""
    ts: str = ""
    """Of the digest; empty while there is none."""
    claimed_at: datetime | None = None
    """When an invocation set out to post it."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class SleepMessage:
    """An endpoint that its office hours stopped, from the stop to the morning."""

    note: SleepNote
    misread: tuple[str, ...] = ()
    """As in `ProposalMessage`."""


type Message = ProposalMessage | CapacityChangeMessage | ReportMessage | Notice | Digest | SleepMessage
