"""From what is stored to a report: the totals, and what belongs into the window."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalState
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import (
    APPROVED,
    IDENTIFIED,
    IN_FORCE,
    OPEN,
    PROPOSED,
    Report,
    RunningCost,
    Saving,
    Stage,
    Totals,
)

ENDED = {
    ProposalState.APPLIED: Stage.APPLIED,
    ProposalState.PROVEN: Stage.PROVEN,
    ProposalState.ROLLED_BACK: Stage.WENT_BACK,
    ProposalState.HANDED_OVER: Stage.WENT_BACK,
}
"""Where the saving of an approved proposal stands once its change has ended."""
LAPSED = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
"""Nobody will answer these any more; what is still there to be saved is in the latest recommendation."""
STANDING = frozenset({Stage.WAITING, Stage.DECLINED, Stage.UNDER_WAY})
"""Stages that belong into each window until something moves."""
CENT = Decimal("0.01")
MOMENT = timedelta(microseconds=1)
RENEWED = timedelta(days=14)
"""A judgement of an endpoint that was made so long after a window says nothing about what ran in it."""


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
    ended: Mapping[str, datetime] = field(default_factory=dict)
    """When each change ended, by its id, those after the window too."""


def tally(records: Records, start: datetime, end: datetime, made_at: datetime) -> Report:
    """The report of one window, `start` included and `end` not. Nothing of another window is in any figure."""
    found = [one for one in records.recommendations if judged_in(one, start, end)]
    records = replace(records, recommendations=found)
    stages = {one.id: stage_of(one, records.ended, start, end) for one in records.proposals}
    funnel = _funnel(records, stages)
    return Report(
        account=records.account,
        region=records.region,
        start=start,
        end=end,
        made_at=made_at,
        totals=totals(records, funnel, start, end),
        recommendations=tuple(found),
        funnel=funnel,
        proposals=tuple(one for one in records.proposals if stages[one.id] or _lapsed_in(one, start, end)),
        ledger=tuple(records.ledger),
        occurrences=tuple(records.occurrences),
        unobserved=tuple(records.unobserved),
        running_cost=records.running_cost,
        price_sources=price_sources(found),
    )


def judged_in(one: Recommendation, start: datetime, end: datetime) -> bool:
    """Whether days of the window are among those that it was judged by; one without evidence counts by its time."""
    begin = one.evidence.start if one.evidence else min(one.evaluated_at, end - MOMENT)
    return begin < end and one.evaluated_at >= start and one.evaluated_at - end < RENEWED


def stage_of(one: Proposal, ended: Mapping[str, datetime], start: datetime, end: datetime) -> Stage | None:
    """Where the proposal stood at the end of the window; None where it is of another window, or lapsed.

    `ended` has the time at which each change ended. An end that is not known is taken to be the approval.
    """
    if one.created_at >= end or (one.state in LAPSED and _lapsed_at(one, ended) < end):
        return None
    decision = one.decision
    if decision is None or decision.at >= end:
        return Stage.WAITING
    if decision.state is not ProposalState.APPROVED:
        return Stage.DECLINED
    at = ended.get(one.change_id, decision.at)
    stage = ENDED.get(one.state) if at < end else None
    if stage is None:
        return Stage.UNDER_WAY
    return stage if max(at, decision.at, one.created_at) >= start else None


def _lapsed_at(one: Proposal, ended: Mapping[str, datetime]) -> datetime:
    """When it lapsed: an unanswered one at its end, an approval when its change ended, or could begin no more.

    When one was withdrawn is not stored: it counts in no window.
    """
    if one.state is ProposalState.WITHDRAWN:
        return one.created_at
    if one.decision is None:
        return one.expires_at
    return ended.get(one.change_id, one.decision.at + PATIENCE)


def _funnel(records: Records, stages: Mapping[str, Stage | None]) -> tuple[Saving, ...]:
    """The savings that were asked about, and those of the latest judgements that were not. None is in it twice."""
    asked = [(one.recommendation, one.id, stage) for one in records.proposals if (stage := stages[one.id]) is not None]
    found = [
        Saving(stage, one.identified_usd_per_month, one.ref.name, one.owner, name)
        for one, name, stage in asked
        if one.identified_usd_per_month > 0
    ]
    judged = {(one.ref.name, one.fingerprint) for one, _, _ in asked}
    standing = {one.ref.name for one, _, stage in asked if stage in STANDING}
    found += [
        Saving(Stage.NOT_ASKED, one.identified_usd_per_month, one.ref.name, one.owner)
        for one in records.recommendations
        if one.identified_usd_per_month > 0
        and one.ref.name not in standing
        and (one.ref.name, one.fingerprint) not in judged
    ]
    return tuple(sorted(found, key=lambda one: (-one.usd_per_month, one.endpoint, one.proposal_id)))


def totals(records: Records, funnel: Sequence[Saving], start: datetime, end: datetime) -> Totals:
    """The sums. A switch cost in the window lowers what was realised; an unknown price is counted, never guessed."""
    found = records.recommendations
    billed = [entry for entry in records.ledger if start <= entry.at < end]

    def of(stages: Collection[Stage]) -> Decimal:
        return _sum(one.usd_per_month for one in funnel if one.stage in stages)

    return Totals(
        spend=_sum(one.usd_per_month for one in found if one.usd_per_month is not None),
        identified=of(IDENTIFIED),
        proposed=of(PROPOSED),
        approved=of(APPROVED),
        applied=of(IN_FORCE),
        proven=of({Stage.PROVEN}),
        open=of(OPEN),
        went_back=of({Stage.WENT_BACK}),
        declined=of({Stage.DECLINED}),
        realised=_sum(entry.usd for entry in billed if entry.kind == "realised")
        - _sum(abs(entry.usd) for entry in billed if entry.kind == "switch-cost"),
        endpoints=len(found),
        unpriced=sum(one.usd_per_month is None for one in found),
    )


def price_sources(found: Sequence[Recommendation]) -> tuple[str, ...]:
    """Where the prices came from and their dates, each once: law 8."""
    prices = [price for one in found for price in (one.price, one.chosen.price if one.chosen else None) if price]
    return tuple(sorted({f"{price.source} ({price.basis}, {price.as_of})" for price in prices}))


def _lapsed_in(one: Proposal, start: datetime, end: datetime) -> bool:
    """Whether it was asked in the window and nobody will answer it any more: it is listed, and in no sum."""
    return one.state in LAPSED and start <= one.created_at < end


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    """The sum in whole cents."""
    return sum(amounts, Decimal(0)).quantize(CENT)
