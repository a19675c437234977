"""What is told each week: spent, wasted, saved, and what it cost to run."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.funnel import Saving
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.domain.packing import Pack
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.running import RunningCost
from rightsizer.domain.track_record import TrackRecord

SHOWN = 200
"""Rows of one kind in the page and in the JSON: the largest by money. All endpoints are in the CSV and JSON lines."""


@dataclass(frozen=True, slots=True)
class Totals:
    """US dollars per month unless named otherwise."""

    spend: Decimal
    """Of the endpoints that were judged by days of the window."""
    identified: Decimal
    """Estimated monthly savings: all of `funnel`. Each of the next four is a part of the one before."""
    proposed: Decimal
    approved: Decimal
    applied: Decimal
    """In force at the end of the window, proven or not."""
    proven: Decimal
    open: Decimal
    """What could still be saved: not asked, waiting for an answer, or approved and not in force yet."""
    went_back: Decimal
    """Approved, and rolled back or handed over. With `open`, `declined` and `applied` it makes up `identified`."""
    declined: Decimal
    realised: Decimal
    """US dollars really saved in the reported window, at the hours billed."""
    endpoints: int
    unpriced: int
    """Endpoints whose spend is unknown for lack of a price; they are not in `spend`."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report of one account and Region over one window."""

    account: str
    region: str
    start: datetime
    end: datetime
    made_at: datetime
    totals: Totals
    recommendations: tuple[Recommendation, ...]
    funnel: tuple[Saving, ...]
    """Every saving of the window at its stage, the largest first."""
    proposals: tuple[Proposal, ...]
    """Asked, decided or ended in the window, or open at its end."""
    ledger: tuple[LedgerEntry, ...]
    occurrences: tuple[Occurrence, ...]
    unobserved: tuple[tuple[EndpointRef, Reason], ...] = ()
    running_cost: RunningCost | None = None
    """What rightsizer itself cost in the window, as an estimate; None when it is not known."""
    price_sources: tuple[str, ...] = ()
    packs: tuple[Pack, ...] = ()
    """Small endpoints that would fit on one card together; instead of their own options, not on top of them."""
    track_record: TrackRecord | None = None
    """Slowdowns and risks as promised and as they turned out, over half a year; None in reports older than it."""
    not_shown: int = 0
    """Judgements and proposals that are left out here."""
    unread: tuple[UnreadRow, ...] = ()
    """Stored rows that could not be read and are in no figure."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, a sentence each: no change begins while there is one."""
