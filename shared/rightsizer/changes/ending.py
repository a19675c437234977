"""How a change takes another course and how it ends, and what its proposal and people are told of that."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from rightsizer.changes.failure import with_failure_class
from rightsizer.changes.reconcile import differences, leftover_configs, may_have_turned
from rightsizer.changes.rollback import owner_additions
from rightsizer.changes.rollback_size import kept_counts_text
from rightsizer.changes.shadow_test_result import asker_of_test, follow_up_text, passed_test
from rightsizer.changes.stages import UNDONE, next_stage_text, proven_stage, stage_number, standing_stage_text
from rightsizer.domain.change import Change, ChangeState, Course, Entry, JournalEvent
from rightsizer.domain.live_state import LiveState
from rightsizer.domain.next_action import Finish, Steer
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code

SHOWN = {
    ChangeState.PLANNED: ProposalState.APPLYING,
    ChangeState.RUNNING: ProposalState.APPLYING,
    ChangeState.APPLIED: ProposalState.APPLYING,
    ChangeState.RETURNING: ProposalState.APPLYING,
    ChangeState.PROVEN: ProposalState.PROVEN,
    ChangeState.ROLLED_BACK: ProposalState.ROLLED_BACK,
    ChangeState.HANDED_OVER: ProposalState.HANDED_OVER,
    ChangeState.REFUSED: ProposalState.WITHDRAWN,
}
"""What a proposal shows for each state of its change."""


def steer_change(change: Change, move: Steer, now: datetime) -> Change:
    """The change on its new course, with a line in its journal."""
    move = with_failure_class(move)
    state = change.state
    if move.applied:
        state = ChangeState.APPLIED
    elif move.course is Course.BACK:
        state = ChangeState.RETURNING
    ending = move.ending
    if ending is ChangeState.REFUSED and change.tries:  # an earlier try was written and rolled back
        ending = ChangeState.ROLLED_BACK
    decided = move.course is not None and (change.reason is None or move.ending is ChangeState.HANDED_OVER)
    return replace(
        change,
        state=state,
        course=move.course or change.course,
        ending=ending or change.ending,
        failure=move.failure or change.failure,
        back_for=(move.failure or change.failure) if move.course is Course.BACK else change.back_for,
        reason=move.reason if decided else change.reason,
        turned_at=now if move.turned else change.turned_at,
        returned_at=now if move.returned else change.returned_at,
        remaining=(*change.remaining, *(r for r in move.remaining if r not in change.remaining)),
        outcome=move.reason.sentence,
        looks=0,
        journal=(
            *change.journal,
            Entry(
                now,
                JournalEvent.APPLIED if move.applied else JournalEvent.STEER,
                "noted",
                move.reason.sentence[:500],
            ),
        ),
    )


def finish_change(change: Change, move: Finish, live: LiveState, now: datetime, theirs: Mapping[str, str]) -> Change:
    """The closed change, with what differs from the plan, what of ours stays, and what the owner set."""
    sentence = move.reason.sentence
    if move.state is ChangeState.ROLLED_BACK and change.plan.kind is PlanKind.DELETE:
        sentence = f"{change.ref.name} stays: {sentence}"
    elif move.state is ChangeState.ROLLED_BACK:
        sentence = f"{_current_state_text(change)}: {sentence}"
    parts = [
        e.detail
        for e in change.journal
        if e.step in (JournalEvent.WAY_BACK, JournalEvent.OWNER_EDITS, JournalEvent.SCHEDULE, JournalEvent.IMAGES)
    ]
    if move.state is ChangeState.ROLLED_BACK:
        parts.append(kept_counts_text(change))
    parts += theirs.values()
    sentence = "; ".join((sentence, *filter(None, dict.fromkeys(parts))))
    lines = owner_additions(change) if move.state is ChangeState.ROLLED_BACK else ()
    if lines:
        sentence += "; what was added to autoscaling since the change went with it, and is put again by: "
        sentence += " ; ".join(lines)
    differs = differences(change, live, move.state)
    if differs:
        sentence += "; autoscaling is not as planned, somebody changed it meanwhile: " + ", ".join(differs)
    if change.remaining:
        sentence += "; to be done by a person: " + " ; ".join(change.remaining)
    ended = replace(change, state=move.state, reason=move.reason)
    sentence += follow_up_text(ended) + next_stage_text(ended)
    notes = [Entry(now, JournalEvent.FINISH, "noted", f"{move.state.value}: {sentence}"[:500])]
    left = leftover_configs(change)
    if left:
        notes.append(
            Entry(now, JournalEvent.LEFT, "noted", f"configurations that stay and cost nothing: {', '.join(left)}")
        )
    return replace(
        change,
        state=move.state,
        reason=move.reason,
        outcome=sentence,
        next_due=None,
        lease_until=None,
        journal=(*change.journal, *notes),
    )


def shown_proposal_state(change: Change) -> ProposalState:
    """State that the proposal shows; applied only once nothing is watched any more.

    Of a later stage that did not come to stand it is that of the stage before it, which stands.
    """
    if change.stage_before is not None and change.state in UNDONE:
        return ProposalState.PROVEN
    if change.state is ChangeState.REFUSED and _is_too_old(change):
        return ProposalState.EXPIRED
    if change.state is ChangeState.REFUSED and change.asked_back_by:
        return ProposalState.REJECTED
    if passed_test(change) is not None or proven_stage(change) is not None:
        return ProposalState.APPROVED  # it waits for the change that follows the test, or for the next stage
    return ProposalState.APPLIED if change.state is ChangeState.APPLIED and change.is_closed else SHOWN[change.state]


def shown_outcome(change: Change) -> str:
    """How the change stands, as its proposal shows it: with what the shadow test before it measured."""
    whole = stage_number(change) + len(change.stages)
    stage = f"stage {stage_number(change)} of {whole}: " if whole > 1 else ""
    before = f". Before the change it was {change.after.result}" if change.after is not None else ""
    return f"{stage}{change.outcome}{before}{standing_stage_text(change)}"


def shown_change_id(change: Change) -> str:
    """Id of the change that the proposal shows, which is what a rollback undoes: the last stage that stands."""
    before = change.stage_before
    return before.change_id if before is not None and change.state in UNDONE else change.id


def _is_too_old(change: Change) -> bool:
    return change.reason is not None and change.reason.code is Code.EXPIRED


def end_text(change: Change) -> str:
    """The text of the message about an end; who may delete an endpoint gets the file that brings it back."""
    if change.state is not ChangeState.HANDED_OVER or not change.plan.restore_file:
        return f"{change.outcome}{standing_stage_text(change)}"
    return "\n".join((change.outcome, "", "To bring it back, keep this file:", "", *change.plan.restore_file))


def _current_state_text(change: Change) -> str:
    """What the endpoint runs after a change that is not in force: it may never have run anything else."""
    plan, name = change.plan, change.ref.name
    if not may_have_turned(change):
        return f"{name} was never updated by this change"
    if not plan.new_config:
        return f"{name} has what it had before this change again, on the same configuration"
    stored = change.before.config_name if change.before else "what it ran before"
    return f"{name} runs {(change.returned_at is not None and plan.back_config) or stored} again"


def end_subject(change: Change) -> str:
    """The subject of the message about an end. A shadow that could not be removed costs money until somebody does."""
    name = change.ref.name
    if _is_too_old(change) and not change.remaining:
        return f"{name}: approval expired"
    if change.state is ChangeState.REFUSED and change.asked_back_by:
        return f"{name}: stopped before it began"
    if change.plan.kind is PlanKind.DELETE and change.remaining:
        return f"{name}: idle, and ready to be deleted by its owner"
    if proven_stage(change) is not None:
        return f"{name}: stage {stage_number(change)} proven, the next one follows"
    if change.plan.kind is not PlanKind.SHADOW_TEST or change.turned_at is None:
        return f"{name}: change {change.state.value}"
    if change.state is ChangeState.HANDED_OVER:
        return f"INCIDENT {name}: its shadow may still run and cost money"
    if passed_test(change) is None:
        return f"{name}: shadow test ended"
    follows = "somebody else approves the change" if asker_of_test(change) else "the change follows"
    return f"{name}: shadow test passed, {follows}"


def handover_text(change: Change, live: LiveState | None) -> str:
    """The text of the message that a change is being handed over; first what users should know."""
    found = {t.resource_id for t in (live.scaling or ())} if live is not None else set[str]()
    stored = [t.resource_id for t in (change.before.scaling if change.before else ())]
    missing = [r for r in stored if r not in found] if live is not None and live.scaling is not None else []
    first = f"AUTOSCALING IS MISSING on {', '.join(missing)}: it serves with the instances it has. " if missing else ""
    return f"{first}{change.outcome}"
