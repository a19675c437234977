"""Carry out approved capacity changes: the policy of a group, the end of a warm pool. Called by the `apply` door.

Intent to the record, then the write, then what came of it; each move rests on a fresh look at AWS.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from rightsizer.changes.approval import approver_refusal
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.capacity_change import (
    OPEN,
    Arrived,
    CapacityChange,
    CapacitySight,
    Ended,
    GroupPolicy,
    LookAgain,
    ManualStep,
    PoolRelease,
    Send,
    TurnBack,
    Vanished,
)
from rightsizer.domain.change import Entry, JournalEvent
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.policy import TICK, Switch
from rightsizer.domain.proposal import ProposalState, decider_name
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import (
    ConflictError,
    InputError,
    PermissionMissingError,
    ReadError,
    RightsizerError,
    UnreadableError,
    VanishedError,
    WriteRefusedError,
)
from rightsizer.flows.notify import catch_send_errors, tell_once
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import Notifier
from rightsizer.ports.spot import CapacityChangeReader, CapacityChangeStore, CapacityChangeWriter
from rightsizer.spot.capacity_change import approval_age_end, next_capacity_action, not_forward, restored_table_end
from rightsizer.spot.interruption import NO_CAPACITY
from rightsizer.telemetry import Failure, attempt, logger

BUDGET = 8
"""Moves of one invocation."""


@dataclass(frozen=True, slots=True)
class CapacityChanges:
    """The flow of capacity changes."""

    book: CapacityChangeStore
    reader: CapacityChangeReader
    writer: CapacityChangeWriter
    switch: Callable[[], Switch]
    ledger: SavingsLedger
    notifier: Notifier
    approvers: Approvers = field(default_factory=Approvers)
    """Who may decide; a capacity change that somebody else approved is not begun."""
    dry_run: bool = False
    """The stack may change nothing: no capacity change goes forward, and what goes back goes on (decision 20)."""
    automatic: bool = True
    """Whether automatic mode may begin one; the policy document can say no."""

    def start(self, capacity_change_id: str, now: datetime) -> CapacityChange:
        """Begin an approved capacity change, or go on with it.

        InputError when there is none, or when it is not approved.
        """
        capacity_change = self.book.load(capacity_change_id)
        if capacity_change is None:
            raise InputError(f"starting a capacity change: there is no capacity change {capacity_change_id}")
        if capacity_change.state not in OPEN:
            raise InputError(
                f"starting a capacity change: {capacity_change_id} is {capacity_change.state}, not approved"
            )
        return self._advance(capacity_change, now)

    def tick(self, now: datetime) -> tuple[CapacityChange, ...]:
        """Go on with every due capacity change.

        One that fails does not stop the others, and is told once a day.
        """
        done = []
        for capacity_change_id in self.book.due(now):
            advanced = attempt(
                "carrying a capacity change on", capacity_change_id, partial(self._continue, capacity_change_id, now)
            )
            if isinstance(advanced, Failure):
                stuck = Occurrence(
                    f"stuck#{capacity_change_id}#{now:%Y-%m-%d}", now, "errand-stuck", capacity_change_id, str(advanced)
                )
                tell_once(
                    self.ledger, self.notifier, stuck, f"capacity change {capacity_change_id} could not be carried on"
                )
            elif advanced is not None:
                done.append(advanced)
        return tuple(done)

    def _continue(self, capacity_change_id: str, now: datetime) -> CapacityChange | None:
        try:
            capacity_change = self.book.load(capacity_change_id)
        except UnreadableError as error:
            self.book.park(capacity_change_id, str(error), now, catch_send_errors(self.notifier))
            return None
        return (
            self._advance(capacity_change, now)
            if capacity_change is not None and capacity_change.state in OPEN
            else None
        )

    def _advance(self, capacity_change: CapacityChange, now: datetime) -> CapacityChange:
        try:
            return self._advance_steps(capacity_change, now)
        except ConflictError:
            return self.book.load(capacity_change.id) or capacity_change  # somebody else goes on with it
        except RightsizerError as error:
            logger.warning(
                "a capacity change cannot be looked at",
                extra={"capacity_change": capacity_change.id, "why": str(error)},
            )
            known = self.book.load(capacity_change.id) or capacity_change
            note = Entry(now, JournalEvent.LOOK, "noted", str(error)[:500])
            if known.journal and known.journal[-1].detail == note.detail:
                return self.book.save(replace(known, next_due=now + TICK))
            catch_send_errors(self.notifier)(
                f"capacity change {capacity_change.id} of {capacity_change.subject} cannot be looked at", str(error)
            )
            return self.book.save(replace(known, next_due=now + TICK, journal=(*known.journal, note)))

    def _advance_steps(self, capacity_change: CapacityChange, now: datetime) -> CapacityChange:
        switch = self.switch()
        for _ in range(BUDGET):
            move = self._start_refusal(capacity_change, now) or next_capacity_action(
                capacity_change, self._read_state(capacity_change, now), now, switch
            )
            if move == Send():
                move = restored_table_end(capacity_change, self.book.created_at()) or (
                    not_forward(capacity_change) if self.dry_run else move
                )
            match move:
                case Send():
                    capacity_change = self._send(capacity_change, move.back, now)
                case Arrived():
                    capacity_change = self.book.save(
                        replace(capacity_change, done_at=now, next_due=now + TICK, outcome="The new value is there.")
                    )
                case TurnBack():
                    capacity_change = self._turn_back(capacity_change, move.reason, now)
                case LookAgain():
                    return self.book.save(replace(capacity_change, next_due=move.until, outcome=_sentence(move.why)))
                case Ended():
                    return self._end(capacity_change, move, now)
                case _:
                    assert_never(move)
        return self.book.save(replace(capacity_change, next_due=now + TICK))

    def _start_refusal(self, capacity_change: CapacityChange, now: datetime) -> Ended | None:
        """Why a capacity change does not begin; None where it may.

        Nobody on the list approved it, the approval is too old, or it is older than the table. One that was sent goes
        on, or back. Asked before anything is read, so that what cannot be read expires too.
        """
        if capacity_change.sent_at is not None:
            return None
        decision = capacity_change.decision
        if decision is not None and decision.is_automatic and not self.automatic:
            text = "the policy document lets nothing change by itself any more"
            return Ended(ProposalState.WITHDRAWN, Reason(Code.NOT_OPTED_IN, text))
        if self.approvers.unreadable and not (decision is not None and decision.is_automatic):
            raise ReadError(f"asking who may decide: {self.approvers.unreadable}")
        by = decision.by if decision else ""
        found = approver_refusal(by, self.approvers, approves=True)
        if found is not None:
            return Ended(ProposalState.WITHDRAWN, found)
        return approval_age_end(capacity_change, now) or restored_table_end(capacity_change, self.book.created_at())

    def _read_state(self, capacity_change: CapacityChange, now: datetime) -> CapacitySight:
        """What AWS shows now; a thing that is gone is an answer."""
        try:
            match capacity_change.work:
                case GroupPolicy(group=group):
                    return replace(self.reader.group(group), faults=self._faults(capacity_change, group, now))
                case PoolRelease(job=job):
                    return self.reader.pool(job)
                case ManualStep():
                    raise InputError(f"{capacity_change.id} is sent by a person; it cannot be approved")
                case _:
                    assert_never(capacity_change.work)
        except VanishedError:
            return Vanished()

    def _faults(self, capacity_change: CapacityChange, group: str, now: datetime) -> tuple[str, ...]:
        """Failed launches since the policy is new, from our own record, without those for lack of capacity."""
        if capacity_change.done_at is None:
            return ()
        return tuple(
            occurrence.text
            for occurrence in self.ledger.occurrences(capacity_change.done_at, now + timedelta(seconds=1))
            if occurrence.kind == "launch-failure"
            and occurrence.subject == group
            and not any(words in occurrence.text for words in NO_CAPACITY)
        )

    def _send(self, capacity_change: CapacityChange, back: bool, now: datetime) -> CapacityChange:
        """Intent to the record, then the write, then what came of it."""
        step = capacity_change.step(back=back)
        capacity_change = self.book.save(
            replace(
                capacity_change,
                state=ProposalState.APPLYING,
                sent_at=capacity_change.sent_at or now,
                next_due=now + TICK,
                journal=(*capacity_change.journal, Entry(now, step.key, "intended", step.kind.value)),
            )
        )
        try:
            self.writer.perform(step)
        except (WriteRefusedError, PermissionMissingError) as error:
            result = Entry(now, step.key, "failed", f"refused:{error}"[:500])
        except RightsizerError as error:
            result = Entry(now, step.key, "failed", f"again:{error}"[:500])
        else:
            result = Entry(now, step.key, "done")
        return self.book.save(replace(capacity_change, journal=(*capacity_change.journal, result)))

    def _turn_back(self, capacity_change: CapacityChange, reason: Reason, now: datetime) -> CapacityChange:
        return self.book.save(_turn_back(capacity_change, reason, now))

    def _end(self, capacity_change: CapacityChange, move: Ended, now: datetime) -> CapacityChange:
        """Books and messages first: they may be repeated, the closed capacity change is not looked at again."""
        text = _sentence(move.reason.sentence)
        if move.state is ProposalState.HANDED_OVER:
            step = capacity_change.step(back=capacity_change.back is not None)
            text += f" By hand, if it is still wanted: {step.command(capacity_change.region)}"
            if capacity_change.undo_command:
                text += f" The old policy: {capacity_change.undo_command}"
        note = Entry(now, JournalEvent.END, "noted", f"{move.state}: {move.reason.sentence}"[:500])
        known = f"errand#{capacity_change.id}#{move.state}#{capacity_change.version}"
        self.ledger.note(Occurrence(known, now, f"errand-{move.state}", capacity_change.subject, text))
        if move.state is not ProposalState.PROVEN:
            catch_send_errors(self.notifier)(f"{capacity_change.subject}: {move.state}", text)
        return self.book.save(
            replace(
                capacity_change, state=move.state, next_due=None, outcome=text, journal=(*capacity_change.journal, note)
            )
        )


def request_rollback(book: CapacityChangeStore, capacity_change_id: str, by: str, now: datetime) -> CapacityChange:
    """Record that somebody wants the old policy back; the next tick carries it out.

    InputError when there is nothing to go back from, ConflictError when the capacity change moved at this moment.
    """
    capacity_change = book.load(capacity_change_id)
    if capacity_change is None:
        raise InputError(f"rolling back: there is no capacity change {capacity_change_id}")
    undone = (
        isinstance(capacity_change.work, GroupPolicy)
        and capacity_change.sent_at is not None
        and capacity_change.back is None
    )
    if not undone or capacity_change.state not in (*OPEN, ProposalState.PROVEN):
        raise InputError(
            f"rolling back: capacity change {capacity_change_id} is {capacity_change.state}; there is nothing to undo"
        )
    return book.save(
        _turn_back(capacity_change, Reason(Code.ROLLED_BACK, f"{decider_name(by)} asked for the rollback"), now)
    )


def _turn_back(capacity_change: CapacityChange, reason: Reason, now: datetime) -> CapacityChange:
    note = Entry(now, JournalEvent.TURN_BACK, "noted", reason.sentence)
    return replace(
        capacity_change,
        state=ProposalState.APPLYING,
        back=reason,
        next_due=now,
        outcome=_sentence(reason.sentence),
        journal=(*capacity_change.journal, note),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
