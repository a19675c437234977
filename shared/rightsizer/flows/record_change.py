"""Record a change in its proposal and in the savings ledger, and notify people.

The realised saving of a change is booked in parts that follow each other: at its end, then a day at a time while it
stands. Each part begins where the last one ended, and its id names its end. The end is always a time that the table has
already, so that a part that is booked again after a crash is the same part.

That an endpoint is left without its autoscaling is told at once, and when it is back. A step that AWS refuses is tried
for about an hour, in which load may come that nothing answers. What is handed over is told by the hand-over itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from rightsizer.changes.ending import (
    end_subject,
    end_text,
    shown_change_id,
    shown_outcome,
    shown_proposal_state,
)
from rightsizer.changes.measurement import add_instance_hours, past_change_of, realised_usd
from rightsizer.changes.stages import measured_in_all
from rightsizer.domain.change import Change, ChangeState, Entry, FailureClass, JournalEvent, StepResult
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.message import SafeTell
from rightsizer.domain.office_hours import StoppedTime, stopped_hours
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.plan import PlanKind, Step, StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import time_text
from rightsizer.ports.changes import Changer, EndedChangeBook, Journal, SavingsLedger
from rightsizer.ports.evaluation import RecommendationStore

PART = timedelta(days=1)
NOTES = (JournalEvent.FINISH, JournalEvent.LEFT)
"""Lines that the end itself adds to the journal."""


@dataclass(frozen=True, slots=True)
class ChangeRecorder:
    """Everything that is told about a change. Each line of it may be repeated without harm."""

    store: RecommendationStore
    ledger: SavingsLedger
    history: EndedChangeBook
    tell: SafeTell
    catalogue: Catalogue

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
                self.tell(end_subject(change), end_text(change))
            self.ledger.note(occurred)
        return change

    def warn_of_handover(self, change: Change, text: str) -> None:
        """Tell at once that a change is being handed over. Its end follows."""
        self.tell(f"{change.ref.name}: change is being handed over", text)

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
        past = past_change_of(change, self.catalogue, now)
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


def tell_of_missing_autoscaling(change: Change, step: Step, live: LiveState, result: Entry, tell: SafeTell) -> Change:
    """The change with the line of the message, where this refusal leaves a resource without autoscaling; told once."""
    lack = _missing_part(change, step, live)
    if not lack or change.ending is ChangeState.HANDED_OVER or _is_incident_open(change, step.subject):
        return change
    if result.result not in (StepResult.RETRY, StepResult.UNANSWERED):
        return change
    if result.failure is not FailureClass.PERMISSION and change.attempts(step) < 2:
        return change  # it may pass soon, and is told when it comes again
    text = f"{lack}: {step.key} was refused ({result.detail}). It serves with the instances that it has. "
    by_hand = live.resolve_step(step).command(change.ref.region)
    told = tell(
        f"INCIDENT {change.ref.name}: its autoscaling is missing",
        f"{text}It is tried again for about an hour; until then this does it: {by_hand}",
    )
    return _note_message(change, JournalEvent.INCIDENT, step.subject, result.at) if told else change


def tell_of_restored_autoscaling(change: Change, live: LiveState, now: datetime, tell: SafeTell) -> Change:
    """The change with the line of the message that ends each incident; told once, whoever gave autoscaling back."""
    targets = change.before.scaling if change.before is not None and live.scaling is not None else ()
    for had in targets:
        if not _is_incident_open(change, had.resource_id) or not _is_whole(had, live):
            continue
        text = f"{had.resource_id} has its scalable target and its policies, as seen on {time_text(now)}"
        if tell(f"{change.ref.name}: its autoscaling is back", text):
            change = _note_message(change, JournalEvent.INCIDENT_OVER, had.resource_id, now)
    return change


def _is_whole(had: ScalableTarget, live_state: LiveState) -> bool:
    """Whether the target is there, with each policy that it had by its name; bounds follow the new fleet."""
    key = (had.resource_id, had.dimension)
    live = next((t for t in live_state.scaling or () if (t.resource_id, t.dimension) == key), None)
    if live is None:
        return False
    return {p.get("PolicyName") for p in had.policies} <= {p.get("PolicyName") for p in live.policies}


def _missing_part(change: Change, step: Step, live_state: LiveState) -> str:
    """What the resource of the step lacks that it had before the change; empty where it lacks nothing."""
    had = _target_before(change, step)
    if had is None or live_state.scaling is None:
        return ""
    live = live_state.target(step)
    if step.kind is StepKind.REGISTER_TARGET and live is None:
        return f"{step.subject} has no scalable target"
    if step.kind is StepKind.PUT_POLICY and had.policies and (live is None or not live.policies):
        return f"{step.subject} has no scaling policy"
    return ""


def _target_before(change: Change, step: Step) -> ScalableTarget | None:
    targets = change.before.scaling if change.before is not None else ()
    return next((t for t in targets if t.resource_id == step.subject), None)


def _is_incident_open(change: Change, resource: str) -> bool:
    told = (JournalEvent.INCIDENT, JournalEvent.INCIDENT_OVER)
    lines = (e.step for e in reversed(change.journal) if e.step in told and e.detail == resource)
    return next(lines, "") == JournalEvent.INCIDENT


def _note_message(change: Change, line: JournalEvent, resource: str, now: datetime) -> Change:
    return replace(change, journal=(*change.journal, Entry(now, line, "noted", resource)))
