"""One message in Slack for each night of an endpoint with office hours: it sleeps, who may wake it, and how it ended.

A stop posts a message with the choice to wake it; what follows edits that message. So a channel gets one message an
endpoint and night, and none where the endpoint is not stopped.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from rightsizer.changes.hours import demand_at
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.message import SleepMessage, SleepNote
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import WriteRefusedError
from rightsizer.ports.changes import HoursBook
from rightsizer.ports.evaluation import MessageBook, Notifier
from rightsizer.telemetry import Failure, attempt

OVER = frozenset({HoursState.RUNNING.value, HoursState.HANDED_OVER.value})
"""States after which the next stop begins a message of its own."""


def sleep_note(record: HoursRecord, serves_at: datetime | None, limits: HoursLimits, now: datetime) -> SleepNote:
    """Note for people of the state that the record takes."""
    return SleepNote(
        region=record.ref.region,
        endpoint=record.ref.name,
        state=record.state,
        at=now,
        version=record.version + 1,
        hours=record.hours,
        serves_at=serves_at,
        why=record.reason.sentence if record.reason is not None else "",
        longest_minutes=int(limits.longest_wake / timedelta(minutes=1)),
        owner=record.owner,
        tags=record.before.tags if record.before is not None else {},
    )


def show_state(
    book: HoursBook, record: HoursRecord, serves_at: datetime | None, limits: HoursLimits, now: datetime
) -> HoursRecord:
    """Leave the note of the record's state; returns the record, which knows where that failed. Saves nothing."""
    note = sleep_note(record, serves_at, limits, now)
    shown = attempt("noting its state", record.ref.name, partial(book.show, note))
    return replace(record, is_unshown=isinstance(shown, Failure))


def show_again(book: HoursBook, record: HoursRecord, limits: HoursLimits, now: datetime) -> HoursRecord:
    """Leave the note that failed before; returns the record, saved where that is over. Raises what the book raises."""
    if not record.is_unshown:
        return record
    shown = show_state(book, record, demand_at(record, now, limits.holidays).serves_at, limits, now)
    return record if shown.is_unshown else book.save(shown)


def tell_of_sleep(board: Notifier, book: MessageBook, note: SleepNote) -> None:
    """Post the message of a night, or edit it. What is older than the message tells nothing.

    RightsizerError where Slack or the table does not answer; WriteRefusedError where Slack refuses.
    """
    identity = f"hours-{note.endpoint}"
    message_ref = book.message(identity)
    if message_ref is not None and note.version <= message_ref.version:
        return
    is_new = message_ref is None or not message_ref.ts or message_ref.shown in OVER
    if is_new and note.state is not HoursState.STOPPED:
        return  # no message stands that it could follow
    standing = None if message_ref is None or is_new else message_ref
    if standing is None or not _is_edited(board, standing, note):
        posted = board.post(SleepMessage(note)) if note.can_wake else None
        if posted is None:
            return
        standing = MessageRef(identity, posted.channel, posted.ts, "")
    book.remember(MessageRef(identity, standing.channel, standing.ts, note.state.value, note.version))


def _is_edited(board: Notifier, message_ref: MessageRef, note: SleepNote) -> bool:
    """Whether the message took its new form; False where somebody deleted it."""
    try:
        board.update(message_ref, SleepMessage(note))
    except WriteRefusedError as error:
        if error.code != "message_not_found":
            raise
        return False
    return True
