"""From what is stored to a report: the totals, and what belongs into the window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rightsizer.model.observation import EndpointRef
from rightsizer.model.outcome import LedgerEntry, Occurrence
from rightsizer.model.proposal import Proposal, ProposalState
from rightsizer.model.reason import Reason
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.report import Report, Totals
from rightsizer.model.running import RunningCost

CARRIED_OUT = frozenset(
    {
        ProposalState.APPROVED,
        ProposalState.APPLYING,
        ProposalState.APPLIED,
        ProposalState.PROVEN,
        ProposalState.ROLLED_BACK,
        ProposalState.HANDED_OVER,
    }
)
"""States that an approval leads to."""
UNASKED = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
"""Proposals that nobody will answer any more; they are listed, and not counted as proposed."""


@dataclass(frozen=True, slots=True)
class Records:
    """Everything that a report is made from."""

    account: str
    region: str
    recommendations: Sequence[Recommendation]
    proposals: Sequence[Proposal]
    ledger: Sequence[LedgerEntry]
    """Entries of the window, and the `estimated` ones before it that they are measured against."""
    occurrences: Sequence[Occurrence]
    unobserved: Sequence[tuple[EndpointRef, Reason]] = ()
    running_cost: RunningCost | None = None


def tally(records: Records, start: datetime, end: datetime, made_at: datetime) -> Report:
    """The report of one window, `start` included and `end` not."""
    proposals = tuple(one for one in records.proposals if _in_window(one, start, end))
    return Report(
        account=records.account,
        region=records.region,
        start=start,
        end=end,
        made_at=made_at,
        totals=totals(records, start, end),
        recommendations=tuple(records.recommendations),
        proposals=proposals,
        ledger=tuple(records.ledger),
        occurrences=tuple(records.occurrences),
        unobserved=tuple(records.unobserved),
        running_cost=records.running_cost,
        price_sources=price_sources(records.recommendations),
    )


def totals(records: Records, start: datetime, end: datetime) -> Totals:
    """The sums. A switch cost in the window lowers what was realised; an unknown price is counted, never guessed."""
    found, asked = records.recommendations, [one for one in records.proposals if one.state not in UNASKED]
    billed = [entry for entry in records.ledger if start <= entry.at < end]
    return Totals(
        spend=_sum(one.usd_per_month for one in found if one.usd_per_month is not None),
        identified=_sum(one.identified_usd_per_month for one in found),
        proposed=_sum(_saving(one) for one in asked),
        approved=_sum(_saving(one) for one in asked if one.state in CARRIED_OUT),
        proven=_sum(_saving(one) for one in asked if one.state is ProposalState.PROVEN),
        realised=_sum(entry.usd for entry in billed if entry.kind == "realised")
        - _sum(abs(entry.usd) for entry in billed if entry.kind == "switch-cost"),
        endpoints=len(found),
        unpriced=sum(one.usd_per_month is None for one in found),
    )


def price_sources(found: Sequence[Recommendation]) -> tuple[str, ...]:
    """Where the prices came from and their dates, each once: law 8."""
    prices = [price for one in found for price in (one.price, one.chosen.price if one.chosen else None) if price]
    return tuple(sorted({f"{price.source} ({price.basis}, {price.as_of})" for price in prices}))


def _in_window(one: Proposal, start: datetime, end: datetime) -> bool:
    """Asked or decided in the window, or still open: what is waiting belongs into every report."""
    open_still = one.state in (ProposalState.PENDING, ProposalState.APPROVED, ProposalState.APPLYING)
    decided = one.decision is not None and start <= one.decision.at < end
    return start <= one.created_at < end or decided or open_still


def _saving(one: Proposal) -> Decimal:
    return one.recommendation.saving_usd_per_month


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))
