"""The savings of one proposal, one for each stage of its plan, and where each stood at the end of a window.

A stage that is proven saves while the next one is under way. One that went back saves nothing, and takes nothing from
the stages before it. A stage that will not begin any more is of no window: the latest recommendation finds it anew.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rightsizer.changes.stages import stages_approved
from rightsizer.domain.money import Stage
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalState, stage_change_ids
from rightsizer.domain.recommendation import Recommendation

ENDED = {
    ProposalState.APPLIED: Stage.APPLIED,
    ProposalState.PROVEN: Stage.PROVEN,
    ProposalState.ROLLED_BACK: Stage.WENT_BACK,
    ProposalState.HANDED_OVER: Stage.WENT_BACK,
}
"""Where the saving of an approved proposal stands once its change has ended."""
LAPSED = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
"""Nobody will answer these any more; what is still there to be saved is in the latest recommendation."""
GOES_ON = frozenset({ProposalState.APPROVED, ProposalState.APPLYING})


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The saving of one stage of a plan."""

    number: int
    """1 for the first stage, and for a proposal without a plan."""
    usd_per_month: Decimal
    """Whole cents, never negative."""
    stage: Stage


@dataclass(frozen=True, slots=True)
class Ends:
    """How changes ended, by their ids."""

    at: Mapping[str, datetime]
    """When each ended, those after the window too."""
    returned: Collection[str] = ()
    """Those that are not in force since."""


def plan_parts(proposal: Proposal, ends: Ends, start: datetime, end: datetime) -> tuple[PlanPart, ...]:
    """The savings of the proposal that belong into the window, in the order of their stages."""
    whole = stage_of(proposal, ends.at, start, end)
    is_answered = proposal.decision is not None and proposal.decision.at < end
    is_approved = is_answered and proposal.decision is not None and proposal.decision.state is ProposalState.APPROVED
    savings = _savings(
        proposal.recommendation, len(stages_approved(proposal)) if is_answered else len(proposal.recommendation.stages)
    )
    if len(savings) == 1 or not is_approved or proposal.state in LAPSED or proposal.created_at >= end:
        return tuple(PlanPart(n, usd, whole) for n, usd in enumerate(savings, start=1) if whole is not None)
    chain = stage_change_ids(proposal)
    now_at = chain.index(proposal.change_id) if chain else 0
    since = max(proposal.created_at, proposal.decision.at) if proposal.decision is not None else proposal.created_at
    found = []
    for place, usd in enumerate(savings):
        stage, at = _stage_of_part(proposal, ends, chain, place, now_at)
        if stage is not None and at is not None:
            stage = Stage.UNDER_WAY if at >= end else stage if max(at, since) >= start else None
        if stage is not None:
            found.append(PlanPart(place + 1, usd, stage))
    return tuple(found)


def _stage_of_part(
    proposal: Proposal, ends: Ends, chain: tuple[str, ...], place: int, now_at: int
) -> tuple[Stage | None, datetime | None]:
    """Where a stage of the plan stands, and since when; None of one that does not begin any more."""
    known = chain[place] if chain else ""
    at = ends.at.get(known)
    if at is None and place < now_at and proposal.decision is not None:
        at = proposal.decision.at  # an end that is not known is taken to be the approval
    if place != now_at and known in ends.returned:
        return Stage.WENT_BACK, at
    if place < now_at or (place == now_at and proposal.state is ProposalState.APPROVED and at is not None):
        return Stage.PROVEN, at
    if place > now_at:
        return (Stage.UNDER_WAY if proposal.state in GOES_ON else None), None
    stage = ENDED.get(proposal.state)
    if stage is None or proposal.decision is None:
        return Stage.UNDER_WAY, None
    return stage, at or proposal.decision.at


def _savings(recommendation: Recommendation, stages: int) -> list[Decimal]:
    """The saving of the recommended change and of so many stages after it."""
    if recommendation.identified_usd_per_month <= 0:  # its owner wants none, or it is no waste
        return [Decimal(0)]
    return [recommendation.saving_usd_per_month.quantize(Decimal("0.01")), *recommendation.stage_savings[:stages]]


def stage_of(proposal: Proposal, ended: Mapping[str, datetime], start: datetime, end: datetime) -> Stage | None:
    """Where the proposal stood at the end of the window; None where it is of another window, or lapsed.

    `ended` has the time at which each change ended. An end that is not known is taken to be the approval.
    """
    if proposal.created_at >= end or (proposal.state in LAPSED and _lapse_time(proposal, ended) < end):
        return None
    decision = proposal.decision
    if decision is None or decision.at >= end:
        return Stage.WAITING
    if decision.state is not ProposalState.APPROVED:
        return Stage.DECLINED
    at = ended.get(proposal.change_id, decision.at)
    stage = ENDED.get(proposal.state) if at < end else None
    if stage is None:
        return Stage.UNDER_WAY
    return stage if max(at, decision.at, proposal.created_at) >= start else None


def _lapse_time(proposal: Proposal, ended: Mapping[str, datetime]) -> datetime:
    """When it lapsed: an unanswered one at its end, an approval when its change ended, or could begin no more.

    When one was withdrawn is not stored: it counts in no window.
    """
    if proposal.state is ProposalState.WITHDRAWN:
        return proposal.created_at
    if proposal.decision is None:
        return proposal.expires_at
    return ended.get(proposal.change_id, proposal.decision.at + PATIENCE)
