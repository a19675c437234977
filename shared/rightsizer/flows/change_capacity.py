"""Carry out approved errands: the policy of a group, the end of a warm pool. Called by the `apply` door.

Intent to the record, then the write, then what came of it; each move rests on a fresh look at AWS.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from rightsizer.changes.preflight.consent import stranger
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.capacity_change import (
    OPEN,
    Arrived,
    ByHand,
    Ended,
    Errand,
    GroupPolicy,
    LookAgain,
    PoolRelease,
    Seen,
    Send,
    TurnBack,
    Vanished,
)
from rightsizer.domain.change import Entry, JournalEvent
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import (
    ConflictError,
    InputError,
    PermissionMissingError,
    RightsizerError,
    UnreadableError,
    VanishedError,
    WriteRefusedError,
)
from rightsizer.flows.notify import once, surely
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import Notifier
from rightsizer.ports.spot import ErrandBook, ErrandReader, ErrandWriter
from rightsizer.spot.capacity_change import next_move, not_forward, of_a_backup, too_old
from rightsizer.spot.interruption import NO_CAPACITY
from rightsizer.telemetry import Failed, attempt, logger

BUDGET = 8
"""Moves of one invocation."""
LOOK_AGAIN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Errands:
    """The flow of errands."""

    book: ErrandBook
    reader: ErrandReader
    writer: ErrandWriter
    switch: Callable[[], Switch]
    ledger: SavingsLedger
    notifier: Notifier
    approvers: Approvers = field(default_factory=Approvers)
    """Who may decide; an errand that somebody else approved is not begun."""
    dry_run: bool = False
    """The stack may change nothing: no errand goes forward, and what goes back goes on (decision 20)."""

    def start(self, errand_id: str, now: datetime) -> Errand:
        """Begin an approved errand, or go on with it. InputError when there is none, or when it is not approved."""
        errand = self.book.load(errand_id)
        if errand is None:
            raise InputError(f"starting an errand: there is no errand {errand_id}")
        if errand.state not in OPEN:
            raise InputError(f"starting an errand: {errand_id} is {errand.state}, not approved")
        return self._advance(errand, now)

    def tick(self, now: datetime) -> tuple[Errand, ...]:
        """Go on with every errand that is due; one that fails does not stop the others, and is told once a day."""
        done = []
        for errand_id in self.book.due(now):
            errand = attempt("carrying an errand on", errand_id, partial(self._carried_on, errand_id, now))
            if isinstance(errand, Failed):
                stuck = Occurrence(f"stuck#{errand_id}#{now:%Y-%m-%d}", now, "errand-stuck", errand_id, str(errand))
                once(self.ledger, self.notifier, stuck, f"errand {errand_id} could not be carried on")
            elif errand is not None:
                done.append(errand)
        return tuple(done)

    def _carried_on(self, errand_id: str, now: datetime) -> Errand | None:
        try:
            errand = self.book.load(errand_id)
        except UnreadableError as error:
            self.book.park(errand_id, str(error), now, surely(self.notifier))
            return None
        return self._advance(errand, now) if errand is not None and errand.state in OPEN else None

    def ask_back(self, errand_id: str, by: str, now: datetime) -> Errand:
        """Put the old policy back, also after it was proven; InputError when there is nothing to go back from."""
        return self._advance(order_back(self.book, errand_id, by, now), now)

    def _advance(self, errand: Errand, now: datetime) -> Errand:
        try:
            return self._walk(errand, now)
        except ConflictError:
            return self.book.load(errand.id) or errand  # somebody else goes on with it
        except RightsizerError as error:
            logger.warning("an errand cannot be looked at", extra={"errand": errand.id, "why": str(error)})
            known = self.book.load(errand.id) or errand
            note = Entry(now, JournalEvent.LOOK, "noted", str(error)[:500])
            if known.journal and known.journal[-1].detail == note.detail:
                return self.book.save(replace(known, next_due=now + LOOK_AGAIN))
            surely(self.notifier)(f"errand {errand.id} of {errand.subject} cannot be looked at", str(error))
            return self.book.save(replace(known, next_due=now + LOOK_AGAIN, journal=(*known.journal, note)))

    def _walk(self, errand: Errand, now: datetime) -> Errand:
        switch = self.switch()
        for _ in range(BUDGET):
            move = self._not_begun(errand, now) or next_move(errand, self._look(errand, now), now, switch)
            if move == Send():
                move = of_a_backup(errand, self.book.made_at()) or (not_forward(errand) if self.dry_run else move)
            match move:
                case Send():
                    errand = self._send(errand, move.back, now)
                case Arrived():
                    errand = self.book.save(
                        replace(errand, done_at=now, next_due=now + LOOK_AGAIN, outcome="The new value is there.")
                    )
                case TurnBack():
                    errand = self._turn(errand, move.reason, now)
                case LookAgain():
                    return self.book.save(replace(errand, next_due=move.until, outcome=_sentence(move.why)))
                case Ended():
                    return self._end(errand, move, now)
                case _:
                    assert_never(move)
        return self.book.save(replace(errand, next_due=now + LOOK_AGAIN))

    def _not_begun(self, errand: Errand, now: datetime) -> Ended | None:
        """The end of an errand that nobody on the list approved, or too long ago, or before the table was made.

        One that was sent goes on, or back.

        Asked before anything is read, so that what cannot be read expires too.
        """
        if errand.sent_at is not None:
            return None
        found = stranger(errand.decision.by if errand.decision else "", self.approvers)
        if found is not None:
            return Ended(ProposalState.WITHDRAWN, found)
        return too_old(errand, now) or of_a_backup(errand, self.book.made_at())

    def _look(self, errand: Errand, now: datetime) -> Seen:
        """What AWS shows now; a thing that is gone is an answer."""
        try:
            match errand.work:
                case GroupPolicy(group=group):
                    return replace(self.reader.group(group), faults=self._faults(errand, group, now))
                case PoolRelease(job=job):
                    return self.reader.pool(job)
                case ByHand():
                    raise InputError(f"{errand.id} is sent by a person; it cannot be approved")
                case _:
                    assert_never(errand.work)
        except VanishedError:
            return Vanished()

    def _faults(self, errand: Errand, group: str, now: datetime) -> tuple[str, ...]:
        """Failed launches since the policy is new, from our own record, without those for lack of capacity."""
        if errand.done_at is None:
            return ()
        return tuple(
            found.text
            for found in self.ledger.occurrences(errand.done_at, now + timedelta(seconds=1))
            if found.kind == "launch-failure"
            and found.subject == group
            and not any(words in found.text for words in NO_CAPACITY)
        )

    def _send(self, errand: Errand, back: bool, now: datetime) -> Errand:
        """Intent to the record, then the write, then what came of it."""
        step = errand.step(back=back)
        errand = self.book.save(
            replace(
                errand,
                state=ProposalState.APPLYING,
                sent_at=errand.sent_at or now,
                next_due=now + LOOK_AGAIN,
                journal=(*errand.journal, Entry(now, step.key, "intended", step.kind.value)),
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
        return self.book.save(replace(errand, journal=(*errand.journal, result)))

    def _turn(self, errand: Errand, reason: Reason, now: datetime) -> Errand:
        return self.book.save(_turned(errand, reason, now))

    def _end(self, errand: Errand, move: Ended, now: datetime) -> Errand:
        """Books and messages first: they may be repeated, the closed errand is not looked at again."""
        text = _sentence(move.reason.sentence)
        if move.state is ProposalState.HANDED_OVER:
            step = errand.step(back=errand.back is not None)
            text += f" By hand, if it is still wanted: {step.command}"
            if errand.undo:
                text += f" The old policy: {errand.undo}"
        note = Entry(now, JournalEvent.END, "noted", f"{move.state}: {move.reason.sentence}"[:500])
        known = f"errand#{errand.id}#{move.state}#{errand.version}"
        self.ledger.note(Occurrence(known, now, f"errand-{move.state}", errand.subject, text))
        if move.state is not ProposalState.PROVEN:
            surely(self.notifier)(f"{errand.subject}: {move.state}", text)
        return self.book.save(
            replace(errand, state=move.state, next_due=None, outcome=text, journal=(*errand.journal, note))
        )


def order_back(book: ErrandBook, errand_id: str, by: str, now: datetime) -> Errand:
    """Record that somebody wants the old policy back; the next tick carries it out.

    InputError when there is nothing to go back from, ConflictError when the errand moved at this moment.
    """
    errand = book.load(errand_id)
    if errand is None:
        raise InputError(f"rolling back: there is no errand {errand_id}")
    undone = isinstance(errand.work, GroupPolicy) and errand.sent_at is not None and errand.back is None
    if not undone or errand.state not in (*OPEN, ProposalState.PROVEN):
        raise InputError(f"rolling back: errand {errand_id} is {errand.state}; there is nothing to undo")
    return book.save(_turned(errand, Reason(Code.ROLLED_BACK, f"{by} asked for the way back"), now))


def _turned(errand: Errand, reason: Reason, now: datetime) -> Errand:
    note = Entry(now, JournalEvent.TURN_BACK, "noted", reason.sentence)
    return replace(
        errand,
        state=ProposalState.APPLYING,
        back=reason,
        next_due=now,
        outcome=_sentence(reason.sentence),
        journal=(*errand.journal, note),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
