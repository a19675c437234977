"""A plan of several stages that one approval covers: what follows what, and whether the next one may begin.

Each stage is a change with a journal of its own. It begins once the one before it is proven, and as the newest
evaluation sizes it then: never with more risk than was approved, never for much less than was promised. What is refused
ends the plan; the stages before it stand.
"""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from rightsizer.changes.measurement import measured_usd_per_month
from rightsizer.changes.overruled import COVERED
from rightsizer.domain.change import Change, ChangeState, ProvenStage
from rightsizer.domain.option import Option
from rightsizer.domain.plan import PlanKind, order_command
from rightsizer.domain.proposal import Proposal, id_after_stage
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Gate, Recommendation

UNDONE = frozenset({ChangeState.REFUSED, ChangeState.ROLLED_BACK})
"""Ends of a later stage after which the stage before it is what stands."""


def proven_stage(change: Change) -> ProvenStage | None:
    """The change as a stage that is proven and that another one follows; None where none does."""
    proven = change.state is ChangeState.PROVEN and change.plan.kind is PlanKind.CHANGE and not change.asked_back_by
    if not proven or not change.stages or change.before is None:
        return None
    counts = ",".join(f"{variant_count.name}={variant_count.count}" for variant_count in change.plan.after)
    config = change.plan.new_config or change.before.config_name
    ended = change.journal[-1].at
    return ProvenStage(stage_number(change), change.id, ended, config, counts, measured_in_all(change, ended))


def measured_in_all(change: Change, now: datetime) -> Decimal | None:
    """Measured saving of the change and of the stages before it, US dollars a month.

    None where one of them was not measured.
    """
    own, before = measured_usd_per_month(change, now), change.stage_before
    if before is None or own is None:
        return own
    return None if before.measured_usd_per_month is None else before.measured_usd_per_month + own


def stage_number(change: Change) -> int:
    """Number of the stage that the change is; 1 where no stage went before it."""
    return 1 if change.stage_before is None else change.stage_before.number + 1


def change_id_of_next(stage: ProvenStage) -> str:
    """Id of the change that follows a proven stage; there is one for each stage."""
    return id_after_stage(stage.change_id)


def stages_approved(proposal: Proposal) -> tuple[Option, ...]:
    """Options that follow the proposal's change by the same approval, which a person gave; else ()."""
    decided = proposal.decision is not None and not proposal.decision.is_automatic
    return proposal.recommendation.stages if decided else ()


def proposal_of_stage(proposal: Proposal, before: ProvenStage | None) -> Proposal:
    """The proposal as it was approved for the stage after that one; unchanged where none went before.

    Its recommendation has the stage as its option, and the endpoint as the stage before left it.
    """
    if before is None:
        return proposal
    recommendation = proposal.recommendation
    stages = recommendation.stages[before.number - 1 :]
    left = f"{before.config_name}|{before.counts}"
    recommendation = replace(recommendation, options=stages[:1], stages=stages[1:], fingerprint=left, gate=Gate.PROPOSE)
    decision = replace(proposal.decision, test_first=False) if proposal.decision is not None else None
    return replace(proposal, recommendation=recommendation, decision=decision)


def option_of_stage(approved: Option, variant: str, newest: Recommendation) -> Option | Reason:
    """The stage as the newest recommendation sizes it, or why the approval does not cover that.

    It is of the same kind and type, has no higher risk, and adds `COVERED` of the saving that was promised.
    """
    when = f"the recommendation of {time_text(newest.evaluated_at)}"
    kind, target, promised = approved.kind, approved.target, approved.saving_usd_per_month
    alike = [
        option
        for option in newest.of_variant(variant).options
        if option.kind is kind and option.target.instance_type == target.instance_type and not option.test_usd
    ]
    best = max(alike, key=lambda option: option.saving_usd_per_month, default=None)
    if best is None:
        what = f"{kind.value} on {target.instance_type}"
        return Reason(Code.NEWER_JUDGEMENT, f"{when} does not offer {what} any more: {newest.reason.sentence}")
    if best.risk > approved.risk:
        text = f"{when} rates {kind.value} with risk {best.risk:d}, and {approved.risk:d} was approved"
        return Reason(Code.NEWER_JUDGEMENT, text)
    if best.saving_usd_per_month < COVERED * promised:
        text = f"{when} finds that {kind.value} would save ${best.saving_usd_per_month:,.2f} a month,"
        text = f"{text} and ${promised:,.2f} was approved"
        return Reason(Code.NEWER_JUDGEMENT, text)
    return best


def stage_size_sentence(change: Change, newest: Recommendation) -> str:
    """Sentence on the size with which a stage begins."""
    return (
        f"stage {stage_number(change)} begins as the recommendation of {time_text(newest.evaluated_at)}"
        f" sizes it: it saves ${change.option.saving_usd_per_month:,.2f} a month more"
    )


def unjudged_reason(before: ProvenStage | None, endpoint: str, newest: Recommendation | None) -> Reason | None:
    """Reason that the stage after that one waits for an evaluation of what runs now; None elsewhere."""
    if before is None or (newest is not None and newest.evaluated_at > before.ended_at):
        return None
    text = f"stage {before.number} of {endpoint} was proven on {time_text(before.ended_at)}"
    return Reason(Code.JUDGEMENT_UNKNOWN, f"{text}; stage {before.number + 1} waits for an evaluation of what runs now")


def next_stage_text(change: Change) -> str:
    """Clause about the stage that follows, as the end of the outcome of a change; empty where none was approved."""
    if not change.stages:
        return ""
    number = stage_number(change) + 1
    if proven_stage(change) is None:
        return f"; stage {number} of the plan does not follow"
    text = f"; stage {number} ({change.stages[0].kind.value}) follows by the same approval, once an evaluation has"
    stop = order_command("reject", change.proposal_id, change.ref.region)
    return f"{text} judged what runs now; until it begins, {stop} stops it"


def standing_stage_text(change: Change) -> str:
    """Clause about what stands where a later stage ended without effect; empty elsewhere."""
    if change.stage_before is None or change.state not in UNDONE:
        return ""
    return f"; this ends the plan, and stage {change.stage_before.number} ({change.stage_before.change_id}) stands"
