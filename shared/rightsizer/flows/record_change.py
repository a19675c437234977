"""Record a change in its proposal and in the ledger, and notify people.

The realised saving of a change is booked in parts that follow each other: at its end, then a day at a time while it
stands. Each part begins where the last one ended, and its id names its end. The end is always a time that the table has
already, so that a part that is booked again after a crash is the same part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from rightsizer.changes.failure import with_failure_class
from rightsizer.changes.measurement import add_instance_hours, past_of, realised_usd
from rightsizer.changes.reconcile import differences, leftover_configs, may_have_turned
from rightsizer.changes.rollback import owner_additions
from rightsizer.changes.rollback_size import kept_counts_text
from rightsizer.changes.shadow_test_result import asker_of, follow_up_text, passed_test
from rightsizer.changes.stages import UNDONE, measured_in_all, next_stage_text, number_of, proven_stage, stands_text
from rightsizer.domain.change import Change, ChangeState, Course, Entry, JournalEvent
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.next_action import Finish, Steer
from rightsizer.domain.office_hours import StoppedTime, stopped_hours
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.flows.notify import SafeTell
from rightsizer.ports.changes import Changer, EndedChangeBook, Journal, SavingsLedger
from rightsizer.ports.evaluation import RecommendationStore

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
PART = timedelta(days=1)
NOTES = (JournalEvent.FINISH, JournalEvent.LEFT)
"""Lines that the end itself adds to the journal."""


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
    whole = number_of(change) + len(change.stages)
    stage = f"stage {number_of(change)} of {whole}: " if whole > 1 else ""
    before = f"; before it {change.after.result}" if change.after is not None else ""
    return f"{stage}{change.outcome}{before}{stands_text(change)}"


def shown_change_id(change: Change) -> str:
    """Id of the change that the proposal shows, which is what a rollback undoes: the last stage that stands."""
    before = change.stage_before
    return before.change_id if before is not None and change.state in UNDONE else change.id


@dataclass(frozen=True, slots=True)
class ChangeRecorder:
    """Everything that is told about a change. Each line of it may be repeated without harm."""

    store: RecommendationStore
    ledger: SavingsLedger
    history: EndedChangeBook
    tell: SafeTell
    catalogue: Catalogue

    def steer(self, change: Change, move: Steer, now: datetime) -> Change:
        """The change on its new course."""
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

    def finish(self, change: Change, move: Finish, live: LiveState, now: datetime, theirs: Mapping[str, str]) -> Change:
        """The closed change, with what differs from the plan, what of ours stays, and what the owner set."""
        sentence = move.reason.sentence
        if move.state is ChangeState.ROLLED_BACK and change.plan.kind is PlanKind.DELETE:
            sentence = f"{change.ref.name} stays: {sentence}"
        elif move.state is ChangeState.ROLLED_BACK:
            sentence = f"{_current_state_text(change)}: {sentence}"
        told = [
            e.detail
            for e in change.journal
            if e.step in (JournalEvent.WAY_BACK, JournalEvent.OWNER_EDITS, JournalEvent.SCHEDULE, JournalEvent.IMAGES)
        ]
        if move.state is ChangeState.ROLLED_BACK:
            told.append(kept_counts_text(change))
        told += theirs.values()
        sentence = "; ".join((sentence, *filter(None, dict.fromkeys(told))))
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

    def publish(self, change: Change, now: datetime) -> Change:
        """Tell the proposal, the ledger and, when it is over, people; the change with what was booked."""
        state, shown = shown_proposal_state(change), shown_change_id(change)
        measured = measured_in_all(change, now)
        self.store.follow(change.proposal_id, state, shown, shown_outcome(change), measured=measured)
        if change.is_closed:
            occurred = Occurrence(
                f"change#{change.id}#{change.state.value}",
                now,
                f"change-{change.state.value}",
                change.ref.name,
                change.outcome,
            )
            change = LedgerEntries(self.ledger).book_to_end(change, now)
            self._remember(change, now)
            if change.state is not ChangeState.PROVEN or change.remaining or change.stages:
                self.tell(_end_subject(change), _end_text(change))
            self.ledger.note(occurred)
        return change

    def warn_of_handover(self, change: Change, live: LiveState | None) -> None:
        """Tell at once that a change is being handed over; first what users should know. Its end follows."""
        found = {t.resource_id for t in (live.scaling or ())} if live is not None else set[str]()
        stored = [t.resource_id for t in (change.before.scaling if change.before else ())]
        missing = [r for r in stored if r not in found] if live is not None and live.scaling is not None else []
        first = (
            f"AUTOSCALING IS MISSING on {', '.join(missing)}: it serves with the instances it has. " if missing else ""
        )
        self.tell(f"{change.ref.name}: change is being handed over", f"{first}{change.outcome}")

    def book_savings(self, before: Change, after: Change, now: datetime) -> None:
        """Book the estimated saving once the change is applied, and the switch or test once it serves.

        The proposal follows to APPLYING with the estimate.
        """
        if after.plan.kind is PlanKind.DELETE:
            return
        test = after.plan.kind is PlanKind.SHADOW_TEST
        if after.turned_at is not None and before.turned_at is None:
            paid = "price of the shadow test" if test else "overlap of both fleets"
            kind = "growth-cost" if after.option.grows else "switch-cost"
            self._book_entry(after, kind, after.once_usd, 0.0, paid, now)
        if not test and after.state is ChangeState.APPLIED and before.state is not ChangeState.APPLIED:
            saving = after.saving_usd_per_month
            if not after.option.grows:
                hours = float(after.option.price.hours_per_month)
                self._book_entry(after, "estimated", saving, hours, "applied, unproven", now)
            self.store.follow(after.proposal_id, ProposalState.APPLYING, after.id, shown_outcome(after))

    def remember_no_capacity(self, change: Change, planned: Change, now: datetime) -> None:
        """Remember a lack of capacity that the change leaves behind for another type."""
        if planned.option.target.instance_type != change.option.target.instance_type:
            self._remember(replace(change, state=ChangeState.ROLLED_BACK), now, f"{change.id}-{change.tries}")

    def _remember(self, change: Change, now: datetime, name: str = "") -> None:
        """Keep what the next decision and the report should know; nothing where it taught nothing."""
        past = past_of(change, self.catalogue, now)
        if past is not None:
            self.history.record(change.ref.name, name or change.id, past)

    def _book_entry(self, change: Change, kind: str, usd: Decimal, hours: float, note: str, now: datetime) -> None:
        """Book what is not proven: an estimate, or what the change itself costs."""
        self.ledger.book(
            LedgerEntry(
                id=f"{change.id}#{kind}",
                endpoint=change.ref.name,
                change_id=change.id,
                owner=change.owner,
                at=now,
                kind=kind,  # type: ignore[arg-type]
                usd=usd,
                hours=hours,
                proven=False,
                note=note,
            )
        )


def _is_too_old(change: Change) -> bool:
    return change.reason is not None and change.reason.code is Code.EXPIRED


def _end_text(change: Change) -> str:
    """The text of the message about an end; who may delete an endpoint gets the file that brings it back."""
    if change.state is not ChangeState.HANDED_OVER or not change.plan.restore_file:
        return f"{change.outcome}{stands_text(change)}"
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


def _end_subject(change: Change) -> str:
    """The subject of the message about an end. A shadow that could not be removed costs money until somebody does."""
    name = change.ref.name
    if _is_too_old(change) and not change.remaining:
        return f"{name}: approval expired"
    if change.state is ChangeState.REFUSED and change.asked_back_by:
        return f"{name}: stopped before it began"
    if change.plan.kind is PlanKind.DELETE and change.remaining:
        return f"{name}: idle, and ready to be deleted by its owner"
    if proven_stage(change) is not None:
        return f"{name}: stage {number_of(change)} proven, the next one follows"
    if change.plan.kind is not PlanKind.SHADOW_TEST or change.turned_at is None:
        return f"{name}: change {change.state.value}"
    if change.state is ChangeState.HANDED_OVER:
        return f"INCIDENT {name}: its shadow may still run and cost money"
    if passed_test(change) is None:
        return f"{name}: shadow test ended"
    follows = "somebody else approves the change" if asker_of(change) else "the change follows"
    return f"{name}: shadow test passed, {follows}"


@dataclass(frozen=True, slots=True)
class LedgerEntries:
    """Books the hours of the cheaper fleet, each hour once."""

    ledger: SavingsLedger
    stopped: Callable[[str], Sequence[StoppedTime]] = lambda _: ()
    """When office hours had an endpoint stopped, by its name."""

    def book_to_end(self, change: Change, now: datetime) -> Change:
        """The closed change with everything booked up to its last step, or to the return that ended its saving."""
        if change.turned_at is None or change.plan.kind is not PlanKind.CHANGE or not change.saves:
            return change
        last = max((e.at for e in change.journal if e.step not in NOTES), default=now)
        return self.book_until(change, change.returned_at or last)

    def book_until(self, change: Change, end: datetime) -> Change:
        """The change with its saving booked until `end`; the time between is the part."""
        if change.turned_at is None:
            return change
        since = change.booked_until or change.turned_at
        end = max(end, since)
        if end == since and change.booked_until is not None:
            return change
        hours = (end - since).total_seconds() / 3600 - stopped_hours(self.stopped(change.ref.name), since, end)
        total, grows = realised_usd(change, (end - change.turned_at).total_seconds() / 3600), change.option.grows
        part = total - change.booked_usd
        kind: Literal["growth-cost", "realised"] = "growth-cost" if grows else "realised"
        self.ledger.book(
            LedgerEntry(
                id=f"{change.id}#{kind}#{end.isoformat()}",
                endpoint=change.ref.name,
                change_id=change.id,
                owner=change.owner,
                at=end,
                kind=kind,
                usd=-part if grows else part,
                hours=hours,
                proven=change.state is ChangeState.PROVEN and change.unseen_hours == 0,
                note=_note(change, hours),
            )
        )
        return replace(change, booked_until=end, booked_usd=total)


def book_savings(
    journal: Journal, changer: Changer, ledger_entries: LedgerEntries, change_id: str, now: datetime
) -> Change | None:
    """Book the whole days that a closed change saved since it was last booked; None when it saves no more.

    It stands while the endpoint has the configuration that it left, and, where it made none, while it is the last
    change of its endpoint that wrote anything, shadow tests aside. The day in which it was seen to stand no more is not
    booked. Under a later change on its configuration, such as the next stage of its plan, its instances count as
    planned: the later one books what it adds or takes.
    """
    change = journal.load(change_id)
    if change is None or not change.is_still_saving or change.booked_until is None:
        return None
    if journal.holder_of(change.ref.name):
        return None  # another change is under way; what it leads to decides
    sight = changer.endpoint(change.ref.name)
    config = change.plan.new_config or (change.before.config_name if change.before else "")
    last = journal.last_lasting_change(change.ref.name)
    stands = bool(change.plan.new_config) or last == change.id
    if not isinstance(sight, EndpointSight) or sight.config_name != config or not stands:
        journal.save_booking(replace(change, saves=False))
        return None
    end, stopped = change.booked_until + PART, ledger_entries.stopped(change.ref.name)
    while end <= now:
        counted = add_instance_hours(change, sight, end, stopped, by_plan=last not in ("", change.id))
        change = journal.save_booking(ledger_entries.book_until(counted, end))
        end += PART
    return change


def _note(change: Change, hours: float) -> str:
    target = change.option.target
    kind = " and ".join(dict.fromkeys((target.instance_type, *(one.instance_type for one in target.others))))
    since = f"{change.instance_hours:.1f} instance hours of {kind} since the turn" if kind else "since the turn"
    if change.fallback_hours:
        since += f", {change.fallback_hours:.1f} of them on a fallback pool, which saves nothing"
    if change.unseen_hours:
        since += f", {change.unseen_hours:.1f} of them on a pool that AWS does not show: no saving is booked for them"
    return f"{hours:.1f} h, {since}; {change.state.value}"
