"""Money that is split: of an endpoint by its inference components, of a proposal by the stages of its plan."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from rightsizer.changes.stages import stages_approved
from rightsizer.domain.money import IN_FORCE, MoneyRow, MoneyTable, Stage, Totals, sum_rows
from rightsizer.domain.option import OptionKind
from rightsizer.domain.price import CENT
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalState, stage_change_ids
from rightsizer.domain.recommendation import Recommendation
from rightsizer.reporting.money import NO_USD

UNRESERVED = "(reserved by no copy)"
PAST = IN_FORCE | {Stage.WENT_BACK}
"""Savings of changes that were made: nobody knows which component they belong to, so they follow the price."""
SPLIT = ("spend", "without_changes", "realised", "growth", "spent", "would_have_cost")
"""Amounts that follow the price."""


@dataclass(frozen=True, slots=True)
class Part:
    """One component's part of its endpoint."""

    name: str
    usd: Decimal
    """Of the price, a month."""
    freed: Decimal
    """Of that, what the copies reserve that the recommended option takes away; 0 where it takes none."""


def by_component(money: MoneyTable, recommendations: Iterable[Recommendation]) -> dict[str, Totals]:
    """Sums of each inference component, the largest spend first; they add up to those of the table's rows.

    An endpoint without components, or of which a part is not known, is a group of its own.
    """
    judged = {
        (recommendation.ref.account, recommendation.ref.region, recommendation.ref.name): recommendation
        for recommendation in recommendations
    }
    groups: dict[str, list[MoneyRow]] = {}
    for row in money.rows:
        for part in split_row(row, parts_of(judged[row.key]) if row.key in judged else ()):
            groups.setdefault(part.endpoint, []).append(part)
    made = {name: sum_rows(rows) for name, rows in groups.items()}
    return dict(sorted(made.items(), key=lambda pair: (-pair[1].spend, pair[0])))


def parts_of(recommendation: Recommendation) -> tuple[Part, ...]:
    """The parts of an endpoint's price, what no copy reserves last; empty where one of them is not known."""
    holders = [finding for finding in recommendation.components if not finding.base]
    rest = recommendation.packing.unreserved_usd_per_month if recommendation.packing is not None else None
    if not holders or rest is None or any(finding.usd_per_month is None for finding in holders):
        return ()
    option = recommendation.chosen_option
    fewer = dict(option.target.all_copies) if option is not None and option.kind is OptionKind.COPIES else {}
    parts = []
    for finding in holders:
        usd, copies = finding.usd_per_month or NO_USD, finding.copies or 0
        gone = max(0, copies - fewer.get(finding.name, copies))
        parts.append(Part(finding.name, usd, usd * gone / copies if copies else NO_USD))
    return (*parts, Part(UNRESERVED, max(rest, NO_USD), NO_USD))


def split_row(row: MoneyRow, parts: Sequence[Part]) -> list[MoneyRow]:
    """The row once for each part, with its name behind the endpoint's; the row itself where there is no part."""
    prices = [part.usd for part in parts]
    if not any(prices):
        return [row]
    split = {name: share_out(getattr(row, name), prices) for name in SPLIT}
    wasted = _freed_first(row.wasted, parts, split["spend"])
    stages = {s: share_out(u, prices) if s in PAST else _freed_first(u, parts, prices) for s, u in row.savings.items()}
    rows = []
    for at, part in enumerate(parts):
        amounts: dict[str, Any] = {name: values[at] for name, values in split.items()}
        savings = {stage: values[at] or NO_USD for stage, values in stages.items()}
        name = f"{row.endpoint}/{part.name}"
        rows.append(replace(row, **amounts, endpoint=name, wasted=wasted[at], savings=savings, months=()))
    return _with_use(row, rows)


def _with_use(row: MoneyRow, rows: list[MoneyRow]) -> list[MoneyRow]:
    """The parts with what works of them: of what each needs, as much as of the whole; the reserve is the rest."""
    if row.utilised is None:
        return rows
    needed = [(one.spend or NO_USD) - (one.wasted or NO_USD) for one in rows]
    utilised = share_out(row.utilised, needed)
    return [
        replace(one, utilised=works, reserve=need - (works or NO_USD))
        for one, works, need in zip(rows, utilised, needed, strict=True)
    ]


def _freed_first(usd: Decimal | None, parts: Sequence[Part], most: Sequence[Decimal | None]) -> list[Decimal | None]:
    """An amount that the recommended option saves: where it takes copies away, first to these and to what is free.

    Without such an option it follows the price. No part gets more than `most` as long as others have less.
    """
    freed = [part.freed for part in parts]
    if usd is None or not any(freed):
        return share_out(usd, [part.usd for part in parts])
    room = [one or NO_USD for one in most]
    first = [min(one, limit) for one, limit in zip(freed, room, strict=True)]
    idle = [limit if part.name == UNRESERVED else NO_USD for part, limit in zip(parts, room, strict=True)]
    given, left = [NO_USD] * len(parts), usd
    for tier in (first, idle):
        some = min(left, sum(tier, NO_USD).quantize(CENT))
        given = [a + (b or NO_USD) for a, b in zip(given, share_out(some, tier), strict=True)]
        left -= some
    others = [max(limit - got, NO_USD) for limit, got in zip(room, given, strict=True)]
    return [a + (b or NO_USD) for a, b in zip(given, share_out(left, others if any(others) else room), strict=True)]


def share_out(usd: Decimal | None, weights: Sequence[Decimal]) -> list[Decimal | None]:
    """The amount in whole cents by these weights; the parts add up to it. None where it is not known."""
    if usd is None:
        return [None] * len(weights)
    whole, found, given, weight = sum(weights, NO_USD), list[Decimal | None](), NO_USD, NO_USD
    for one in weights:
        weight += one
        until = (usd * weight / whole).quantize(CENT) if whole else NO_USD
        found.append(until - given)
        given = until
    return found


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
    """Changes that were rolled back since."""


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
