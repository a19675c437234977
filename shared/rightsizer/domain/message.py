"""What people are told, whichever channel tells it: a proposal, a capacity change, a report, or a notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a door that sends notices only does not load the others
    from rightsizer.domain.capacity_change import CapacityChange
    from rightsizer.domain.proposal import Proposal
    from rightsizer.domain.report import Report


@dataclass(frozen=True, slots=True)
class ProposalMessage:
    """A proposal as it stands now."""

    proposal: Proposal
    page: str = ""
    """Where its details page is kept; empty where it is not."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood. They stand at the end of every message, for the operator."""


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


type Message = ProposalMessage | CapacityChangeMessage | ReportMessage | Notice
