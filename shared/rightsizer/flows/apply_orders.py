"""What reaches the apply door: approved proposals from the stream, endpoint events, and the tick."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from rightsizer.errors import ConflictError, InputError, RightsizerError, UnreadableError
from rightsizer.flows.apply import Apply
from rightsizer.flows.apply_books import Books, book_savings
from rightsizer.flows.telling import surely
from rightsizer.flows.time_left import BOOKS_RESERVE_MS, TimeLeft, unlimited
from rightsizer.model.change import Change
from rightsizer.model.errand import OPEN, Errand, ErrandMoved
from rightsizer.model.proposal import Proposal, ProposalMoved, ProposalState
from rightsizer.model.trigger import EndpointMoved, TickDue, Trigger
from rightsizer.telemetry import Failed, attempt, count, logger

BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses in which no step can be taken."""
BOOKS_MIN = 5
"""Savings are booked by the one tick in the first minutes of an hour, so that the others make no call for them."""


def start_approved(apply: Apply, moves: Sequence[ProposalMoved | ErrandMoved], now: datetime) -> list[str]:
    """Start the change of each approved proposal; returns the sequences of the records to deliver again.

    A refusal (another change holds the endpoint, the proposal moved on meanwhile) is an answer and is not repeated.
    That a tick saved the change while the order of a way back was written is none: the order is delivered again.
    """
    failed = []
    for move in moves:
        again = attempt("taking a record of the stream", move.sequence, partial(_taken, apply, move, now))
        failed += [move.sequence] if isinstance(again, Failed) else again
    return failed


def _taken(apply: Apply, move: ProposalMoved | ErrandMoved, now: datetime) -> list[str]:
    """Act on one record; its sequence when it should be delivered again."""
    if isinstance(move, ErrandMoved):
        return _errand(apply, move, now)
    if move.problem:
        logger.error("a stream record is malformed", extra={"problem": move.problem, "sequence": move.sequence})
        return [move.sequence]
    return [] if move.proposal is None else _proposal(apply, move.proposal, move.sequence, now)


def _proposal(apply: Apply, proposal: Proposal, sequence: str, now: datetime) -> list[str]:
    """Start the change of an approved proposal, or undo the change that somebody wants undone."""
    try:
        if proposal.state is ProposalState.APPROVED:
            change: Change | None = apply.start(proposal.id, now)
            count(ChangesStarted=1)
        elif proposal.asked_back_by:
            change = apply.go_back(proposal, now)
        else:
            return []
    except (ConflictError, InputError) as error:
        logger.warning("no change", extra={"proposal": proposal.id, "why": str(error)})
        if isinstance(error, ConflictError) and _overtaken(apply, proposal):
            return [sequence]
        if proposal.asked_back_by:
            apply.tell(f"{proposal.ref.name}: the way back was not taken", str(error))
    except RightsizerError as error:
        logger.warning("not started", extra={"proposal": proposal.id, "why": str(error)})
        return [sequence]
    else:
        if change is not None:
            logger.info("change", extra={"change": change.id, "state": change.state, "outcome": change.outcome})
    return []


def _overtaken(apply: Apply, proposal: Proposal) -> bool:
    """Whether the order of a way back met a save of its own change: no other change holds the endpoint."""
    if proposal.state is ProposalState.APPROVED or not proposal.asked_back_by:
        return False
    return apply.journal.held_by(proposal.ref.name) in ("", proposal.change_id)


def advance_changes(apply: Apply, trigger: Trigger, now: datetime, left: TimeLeft = unlimited) -> list[str]:
    """Move on the change that the event is about, or every due one; returns the ids of the changes looked at.

    Endpoint events are hints: most are about endpoints that we do not change. One that says that a deployment goes on
    asks for nothing, so it costs no look; should it be wrong or late, the tick finds out. `left` is what the tick has.
    """
    match trigger:
        case EndpointMoved() if trigger.status in BUSY:
            return []
        case EndpointMoved():
            moved = apply.moved(trigger.endpoint, now)
            return [moved.id] if moved else []
        case TickDue():
            changes = apply.tick(now, left)
            if now.minute < BOOKS_MIN:
                attempt("booking savings", "all that are due", partial(_book_savings, apply, now, left))
            errands = apply.errands.tick(now) if apply.errands else ()
            count(ChangesAdvanced=len(changes) + len(errands))
            return [*(change.id for change in changes), *(errand.id for errand in errands)]
        case _:
            logger.debug("nothing asked", extra={"kind": trigger.kind})
            return []


def _book_savings(apply: Apply, now: datetime, left: TimeLeft) -> None:
    """Book what changes that stand saved since yesterday; one that fails gets a look after an hour, behind the rest."""
    waiting = apply.journal.unbooked(now)
    for number, change_id in enumerate(waiting):
        if left() < BOOKS_RESERVE_MS:
            count(SavingsLate=len(waiting) - number)
            break
        if isinstance(attempt("booking a saving", change_id, partial(_book, apply, change_id, now)), Failed):
            count(SavingsNotBooked=1)


def _book(apply: Apply, change_id: str, now: datetime) -> None:
    try:
        book_savings(apply.journal, apply.changer, Books(apply.ledger), change_id, now)
    except UnreadableError as error:
        apply.journal.park(change_id, str(error), now, surely(apply.tell))
    except Exception:
        apply.journal.postpone(change_id, now)
        raise


def _errand(apply: Apply, move: ErrandMoved, now: datetime) -> list[str]:
    """Begin an approved errand; the sequence of its record when it should be delivered again."""
    if apply.errands is None or move.errand.state not in OPEN:
        return []
    try:
        done: Errand = apply.errands.start(move.errand.id, now)
    except InputError as error:
        logger.warning("no errand", extra={"errand": move.errand.id, "why": str(error)})
    except RightsizerError as error:
        logger.warning("not started", extra={"errand": move.errand.id, "why": str(error)})
        return [move.sequence]
    else:
        logger.info("errand", extra={"errand": done.id, "state": done.state, "outcome": done.outcome})
    return []
