"""What is told each week: spent, wasted, saved, and what it cost to run."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rightsizer.model.observation import EndpointRef
from rightsizer.model.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.model.packing import Pack
from rightsizer.model.proposal import Proposal
from rightsizer.model.reason import Reason
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.running import RunningCost
from rightsizer.model.track_record import TrackRecord


@dataclass(frozen=True, slots=True)
class Totals:
    """US dollars per month unless named otherwise."""

    spend: Decimal
    identified: Decimal
    """Estimated monthly savings of every open recommendation."""
    proposed: Decimal
    approved: Decimal
    proven: Decimal
    """Estimated monthly savings of changes that are proven."""
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
    proposals: tuple[Proposal, ...]
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
    unread: tuple[UnreadRow, ...] = ()
    """Stored rows that could not be read and are in no figure."""
    misread: tuple[str, ...] = ()
    """Settings that could not be understood, a sentence each: no change begins while there is one."""
