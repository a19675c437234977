"""What the newest recommendation of an endpoint lets a change do: begin, with which fleet, go on, wait, or end.

It is held against what was approved when a change begins, and before each write that leads towards its configuration.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.changes.overruled import (
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
from rightsizer.changes.stages import option_of_stage, stage_size_sentence, unjudged_reason
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.next_action import Do, Steer, Wait
from rightsizer.domain.option import Option
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Recommendation

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
