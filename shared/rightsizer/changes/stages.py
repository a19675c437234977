"""What the newest recommendation lets a change do: begin, go on, wait, and begin the next stage of its plan."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.changes.measurement import measured_usd_per_month
from rightsizer.changes.overruled import (
    COVERED,
    ApprovedAs,
    covered_fleet,
    covered_sentence,
    is_by_policy,
    is_independent_of_recommendation,
    overruling_reason,
    recommendation_at_start,
    slow_test_reason,
)
from rightsizer.changes.reconcile import may_have_changed_autoscaling, may_show_until
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent, ProvenStage
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.next_action import Do, Steer, Wait
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


LOOK_AGAIN = timedelta(hours=1)
"""How often a change that waits for a recommendation or a peak looks again; an endpoint is evaluated once a day."""


@dataclass(frozen=True, slots=True)
class NewestRecommendation:
    """The newest recommendation of an endpoint as it was read for a change."""

    found: Recommendation | None
    unreadable: str = ""
    """Why this release cannot read what is stored."""
    table_made: datetime | None = None
    """When the table was made; None where nothing depends on it."""


def refusal_by_newest(change: Change, proposal: Proposal | None, newest: NewestRecommendation) -> Reason | None:
    """Why the change is not carried out on the newest recommendation of its endpoint; None where it may be.

    NEWER_JUDGEMENT where that forbids it. JUDGEMENT_UNKNOWN where nobody knows what the newest one says, so that the
    change waits: this release cannot read it, or it is older than the table. Such a table was restored from a backup,
    or copied, and what was judged after the backup is not in it. Without a proposal that can be read, what was judged
    since the change was created counts; the rest was looked at when it began.
    """
    if is_independent_of_recommendation(change.option):
        return None
    name, recommendation = change.ref.name, newest.found
    if newest.unreadable:
        text = f"the newest recommendation of {name} cannot be read by this release ({newest.unreadable}), so nobody"
        return Reason(Code.JUDGEMENT_UNKNOWN, f"{text} knows it; the next evaluation, within a day, writes a new one")
    decided = (
        proposal.recommendation
        if proposal is not None
        else recommendation and recommendation_at_start(recommendation, change)
    )
    if decided is None:
        return None
    against = _reason_against(change, proposal, decided, recommendation)
    return (
        against if against is not None else _restored_table_reason(recommendation or decided, name, newest.table_made)
    )


def _reason_against(
    change: Change, proposal: Proposal | None, decided: Recommendation, newest: Recommendation | None
) -> Reason | None:
    """Why the newest recommendation stands against a change that was approved on `decided`."""
    if change.after is not None and (newest is None or newest.evaluated_at <= change.after.ended_at):
        text = f"the shadow test of {change.ref.name} ended on {time_text(change.after.ended_at)}"
        wait = "the change waits for an evaluation that knows what it measured, within a day"
        return Reason(Code.JUDGEMENT_UNKNOWN, f"{text} ({change.after.result}); {wait}")
    if (unjudged := unjudged_reason(change.stage_before, change.ref.name, newest)) is not None:
        return unjudged
    stage = _stage_now(change, decided, newest)
    if isinstance(stage, Reason):
        return stage
    slow = slow_test_reason(change.after, change.option, decided) if change.after is not None else None
    if slow is not None:
        return slow
    by_policy, approved_as = is_by_policy(proposal), _approved_beginning(change, proposal)
    return overruling_reason(change.option, decided, newest, by_policy=by_policy, approved_as=approved_as)


def _restored_table_reason(newest: Recommendation, name: str, made: datetime | None) -> Reason | None:
    if made is None or newest.evaluated_at >= made:
        return None
    text = (
        f"the newest recommendation of {name} is of {time_text(newest.evaluated_at)} and older than the table,"
        f" which was restored or copied on {time_text(made)}: a later one may be lost"
    )
    return Reason(Code.JUDGEMENT_UNKNOWN, f"{text}; the next evaluation, within a day, writes a new one")


def with_covered_fleet(
    change: Change, proposal: Proposal, read: NewestRecommendation, catalogue: Catalogue, now: datetime
) -> Change:
    """The change with the fleet that its approval begins now (`covered_fleet`), and a line in its journal.

    Unchanged where the newest recommendation cannot be read: then the change waits.
    """
    newest = read.found
    stage = _stage_now(change, proposal.recommendation, newest)
    if read.unreadable or (change.stage_before is not None and not isinstance(stage, Option)):
        return change
    approved_as = _approved_beginning(change, proposal)
    option = (
        stage
        if isinstance(stage, Option)
        else covered_fleet(change.option, proposal.recommendation, newest, catalogue, approved_as=approved_as)
    )
    if newest is None or option == change.option:
        return change
    sized = replace(change, option=option, saving_usd_per_month=option.saving_usd_per_month)
    text = covered_sentence(option, change.option, newest) if stage is None else stage_size_sentence(sized, newest)
    return replace(sized, journal=(*change.journal, Entry(now, JournalEvent.PREFLIGHT, "noted", text[:500])))


def _stage_now(change: Change, decided: Recommendation, newest: Recommendation | None) -> Option | Reason | None:
    """A later stage as the newest recommendation sizes it, or why it may not begin; None where it waits, or is none."""
    approved = decided.chosen_option
    before = change.stage_before
    if approved is None or newest is None or before is None or unjudged_reason(before, change.ref.name, newest):
        return None
    return option_of_stage(approved, decided.variant, newest)


def _approved_beginning(change: Change, proposal: Proposal | None) -> ApprovedAs:
    """What the approval of a change lets begin now."""
    if change.after is not None:
        return ApprovedAs.CHANGE_AFTER_TEST
    test = change.leads_on if proposal is None else proposal.runs_test
    return ApprovedAs.TEST if test else ApprovedAs.CHANGE


def action_in_place(change: Change, move: Do, refusal: Reason | None, now: datetime) -> Do | Steer | Wait:
    """The move, or the end or the wait in its place where the newest recommendation stands against it.

    While autoscaling is taken away nothing waits for a recommendation: autoscaling goes back at once. An update of
    which the answer was lost is not asked again against the newest recommendation. It may still show for an hour
    (`SHOWS`); until then it counts as made, and an endpoint with all its autoscaling waits.
    """
    if refusal is None:
        return move
    touched = may_have_changed_autoscaling(change)
    if refusal.code is Code.JUDGEMENT_UNKNOWN and not touched:
        return Wait(now + LOOK_AGAIN, refusal.sentence)
    until = may_show_until(change, now)
    if until is not None and not touched:
        text = f"{refusal.sentence}; the update that was asked already may still show until {until:%H:%M} UTC"
        return Wait(until, f"{text}, and is not asked again")
    text = f"{refusal.sentence}; seen right before the next write, and it was not made"
    if touched:
        text += "; autoscaling goes back as it was"
    ending = ChangeState.ROLLED_BACK if touched else ChangeState.REFUSED
    return Steer(Reason(refusal.code, text), Course.CLOSE, ending, FailureClass.OUTSIDE)
