"""Orders to wake endpoints that office hours stopped; the `hours` function carries them out at its next tick."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.changes.hours.wake import (
    ASLEEP,
    WakeTimes,
    handed_over,
    is_covered,
    wake_refusal,
    wake_times,
    wakes_left,
)
from rightsizer.domain.hours_record import HoursRecord, HoursState, LetGo, Wake, take_wake
from rightsizer.domain.office_hours import HOURS_TAG, HoursLimits
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.reason import count as plural
from rightsizer.errors import ConflictError, InputError
from rightsizer.ports.changes import HoursBook, WakeBook
from rightsizer.telemetry import attempt, logger

WAKE_TRIES = 3

type Tell = Callable[[HoursRecord, str, str, str, datetime], HoursRecord]
"""Tells people once: record, key, subject, text, now. Returns the record, which keeps what no channel took."""


@dataclass(frozen=True, slots=True)
class WakeAnswer:
    """The outcome of one order to wake an endpoint."""

    record: HoursRecord
    is_recorded: bool
    """Whether the order counts; not where it was refused, or where a wake that holds lasts as long."""
    wakes_left: int
    """Wakes that the endpoint may still be given within 24 hours."""
    times: WakeTimes | None = None
    """When the endpoint serves; None where the wake was refused, or is for good."""
    reason: Reason | None = None
    """Why it was refused, or why it adds nothing; None where it is recorded."""
    by_hand: tuple[str, ...] = ()
    """Commands that bring it back where nobody carries the order out; else empty."""


def wake_text(answer: WakeAnswer, limits: HoursLimits) -> str:
    """A sentence that tells when the endpoint serves and until when, or why nothing was recorded."""
    name, times, most = answer.record.ref.name, answer.times, limits.wakes_a_day
    left = f"{answer.wakes_left} of {plural(most, 'wake')} in 24 hours left"
    if times is None:
        return f"Not recorded: {name}: {answer.reason.sentence if answer.reason else 'nothing to do'}."
    until = max(w.until for w in answer.record.wakes)
    stays = f"stays until {time_text(until)}, or until its hours end where they begin before that"
    if not answer.is_recorded:
        return f"Ordered already: {name} {stays}; {left}."
    basis = "by its own starts" if answer.record.starts else "no start of its own is measured yet, most are quicker"
    return f"Recorded: {name} should serve by {time_text(times.serves_by)} ({basis}); it {stays}; {left}."


@dataclass(frozen=True, slots=True)
class WakeOrders:
    """Orders of a person; each is a conditional write on the endpoint's record."""

    book: WakeBook
    limits: HoursLimits
    switch: Callable[[], Switch]
    """Whether all changes are frozen."""
    may_stop: bool = True
    """Whether the stack has the function that carries the orders out (MayStop=tagged)."""

    def wake(self, name: str, stay: timedelta, by: str, now: datetime) -> WakeAnswer:
        """Record that the endpoint shall serve for so long, or say why not. InputError where it has no record."""
        record = self.book.load(name)
        if record is None:
            asleep = ", ".join(r.ref.name for r in self.sleeping_records([])) or "none"
            missing = "" if self.may_stop else "; the stack has MayStop=nothing, so it stops no endpoint"
            text = f"waking {name}: its office hours never stopped an endpoint of that name{missing}"
            raise InputError(f"{text}; asleep now: {asleep}")
        refused = wake_refusal(record, self.limits, now)
        if refused is not None and refused.code is not Code.NEEDS_APPROVAL:
            return self._refused(record, refused, now)
        blocked = refused or self._nobody_acts(record.ref.region)
        if blocked is not None:
            return self._refused(record, blocked, now, record.remaining or commands_by_hand(record, now))
        times = wake_times(record, stay, self.limits, now)
        if is_covered(record, times, now):
            text = "a wake that holds already lasts as long"
            return self._refused(record, Reason(Code.ALREADY_RIGHT, text), now, times=times)
        found = record_wake(self.book, self.limits, name, times.until, by, now)
        if isinstance(found, Reason):
            return self._refused(record, found, now)
        return WakeAnswer(found, True, wakes_left(found, self.limits, now), times)

    def let_go(self, name: str, by: str, now: datetime) -> WakeAnswer:
        """Take the endpoint out of its hours for good: it is started where it sleeps, and not stopped again.

        What was handed over is refused, with the commands, since nothing starts it by itself. InputError where it has
        no record, ConflictError where nobody would carry the order out; both with the remedy.
        """
        for left in reversed(range(WAKE_TRIES)):
            record = self.book.load(name)
            if record is None:
                raise InputError(f"letting {name} go: no endpoint of that name was seen with hours; remove its tag")
            blocked = self._nobody_acts(record.ref.region)
            if blocked is not None:
                raise ConflictError(f"letting {name} go: {blocked.sentence}")
            if record.state is HoursState.HANDED_OVER:
                return self._refused(record, handed_over(record), now, record.remaining)
            try:
                is_known = record.state is not HoursState.RUNNING  # what runs may have another tag since the last look
                let_go = LetGo(now, by, record.hours if is_known else "")
                saved = self.book.save(replace(record, let_go=let_go, next_due=now))
                return WakeAnswer(saved, True, wakes_left(saved, self.limits, now))
            except ConflictError:  # a tick saved the record at this moment
                if not left:
                    raise
        raise ConflictError(f"letting {name} go: its record is being saved all the time; try again")

    def wake_all(self, stay: timedelta, by: str, now: datetime, unread: list[UnreadRow]) -> tuple[WakeAnswer, ...]:
        """Wake every endpoint that is asleep, by name; rows that cannot be read go into `unread`."""
        answers = list[WakeAnswer]()
        for record in self.sleeping_records(unread):
            try:
                answers.append(self.wake(record.ref.name, stay, by, now))
            except ConflictError as error:  # the others are asked for all the same
                answers.append(self._refused(record, Reason(Code.CHANGED_SINCE, str(error)), now))
        return tuple(answers)

    def sleeping_records(self, unread: list[UnreadRow]) -> tuple[HoursRecord, ...]:
        """Endpoints that are stopped by us or on the way to it, by name."""
        return tuple(record for record in away_records(self.book, unread) if record.state in ASLEEP)

    def _nobody_acts(self, region: str) -> Reason | None:
        """Why no function would carry the order out; None where one does."""
        if not self.may_stop:
            text = "the stack has MayStop=nothing, so no function would carry the order out"
            return Reason(Code.BAD_SETTING, f"{text}; deploy it with MayStop=tagged, or bring it back by hand")
        switch = self.switch()
        if switch.frozen and switch.hard:
            text = f"everything is frozen hard by {decider_name(switch.by)}, so nobody would carry the order out"
            return Reason(
                Code.FROZEN, f"{text}; lift it by {terminal_command('freeze --off', region)}, or bring it back by hand"
            )
        return None

    def _refused(
        self,
        record: HoursRecord,
        reason: Reason,
        now: datetime,
        by_hand: tuple[str, ...] = (),
        times: WakeTimes | None = None,
    ) -> WakeAnswer:
        return WakeAnswer(record, False, wakes_left(record, self.limits, now), times, reason, by_hand)


def away_records(book: WakeBook, unread: list[UnreadRow]) -> tuple[HoursRecord, ...]:
    """Records of endpoints that are stopped by us, or on the way to it or back, by name."""
    return tuple(sorted((r for r in book.records(unread) if r.holds_lock), key=lambda r: r.ref.name))


def take_waiting_wake(
    book: HoursBook, limits: HoursLimits, record: HoursRecord, now: datetime, tell: Tell
) -> HoursRecord:
    """Take up the order that a click left, and return the record as it is saved then.

    The order is deleted, also where the limits refuse it, or no tick came in time: whoever clicked is told of both. It
    counts once: killed between both writes, the next tick finds it in the record. Raises what the book raises.
    """
    wake = book.waiting_wake(record.ref.name)
    if wake is None:
        return record
    if wake not in record.wakes:
        late = Reason(Code.VANISHED, f"no tick looked at it before the stay ended on {time_text(wake.until)}")
        woken = take_wake(record, wake, limits) if now < wake.until else late
        if isinstance(woken, Reason):  # also where the limits were lowered since the click
            name, by = record.ref.name, decider_name(wake.by)
            text = f"{by} asked for it on {time_text(wake.at)}: {woken.sentence}"
            logger.warning("not woken", extra={"endpoint": name, "by": wake.by, "why": woken.sentence})
            woken = tell(record, f"wake#{wake.at.isoformat()}", f"{name} was not woken", text, now)
        record = book.save(woken) if woken != record else record
    attempt("dropping a wake that was taken up", record.ref.name, partial(book.drop_wake, record.ref.name, wake))
    return record


def record_wake(
    book: WakeBook, limits: HoursLimits, name: str, until: datetime, by: str, now: datetime
) -> HoursRecord | Reason:
    """Take an order to run until then, or say why not. InputError where no such endpoint has hours."""
    for left in reversed(range(WAKE_TRIES)):
        record = book.load(name)
        if record is None:
            raise InputError(f"waking {name}: no such endpoint was stopped; the tag {HOURS_TAG} names its hours")
        woken = take_wake(record, Wake(now, until, by), limits)
        if isinstance(woken, Reason):
            return woken
        try:
            return book.save(woken)
        except ConflictError:  # a tick saved the record at this moment
            if not left:
                raise
    raise ConflictError(f"waking {name}: its record is being saved all the time; try again")
