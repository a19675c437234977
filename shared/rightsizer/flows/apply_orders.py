"""What reaches the apply door: approved proposals from the stream, endpoint events, and the tick."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from rightsizer.domain.capacity_change import OPEN, Errand, ErrandMoved
from rightsizer.domain.change import Change
from rightsizer.domain.proposal import Proposal, ProposalMoved, ProposalState
from rightsizer.domain.trigger import EndpointMoved, TickDue, Trigger
from rightsizer.errors import ConflictError, InputError, RightsizerError, UnreadableError
from rightsizer.flows import apply_lost
from rightsizer.flows.apply import Apply
from rightsizer.flows.apply_books import Books, book_savings
from rightsizer.flows.notify import surely
from rightsizer.flows.time_left import BOOKS_RESERVE_MS, RESERVE_MS, TimeLeft, unlimited
from rightsizer.telemetry import Failed, attempt, count, logger

BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses in which no step can be taken."""
BOOKS_MIN = 5
"""Savings are booked by the one tick in the first minutes of an hour, so that the others make no call for them."""


def start_approved(apply: Apply, moves: Sequence[ProposalMoved | ErrandMoved], now: datetime) -> list[str]:
    """Start the change of each approved proposal; returns the sequences of the records to deliver again.

    A refusal (another change holds the endpoint, the proposal moved on meanwhile) is an answer and is not repeated.
    Nor is a record that nobody can read, which would hold up its shard: it is told once, and the ticks look at its row.
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
        count(RecordsMalformed=1)
        if move.id:
            apply.store.park(move.id, move.problem, now, surely(apply.tell))
        return []
    return [] if move.proposal is None else _proposal(apply, move.proposal, move.sequence, now)


def _proposal(apply: Apply, proposal: Proposal, sequence: str, now: datetime) -> list[str]:
    """Start the change of an approved proposal, or undo the change that somebody wants undone."""
    try:
        if proposal.state is ProposalState.APPROVED:
            change: Change | None = apply.start(proposal.id, now)
            count(ChangesStarted=1)
        elif proposal.asked_back_by:
            change = apply_lost.go_back(apply, proposal, now)
        else:
            return []
    except (ConflictError, InputError) as error:
        logger.warning("no change", extra={"proposal": proposal.id, "why": str(error)})
        if proposal.state is ProposalState.APPROVED:
            return []
        if isinstance(error, UnreadableError):  # a newer release wrote the row since; each tick looks at it again
            apply.store.park(proposal.id, str(error), now, surely(apply.tell))
            return []
        return [sequence]  # a tick saved the change while the order was written
    except RightsizerError as error:
        logger.warning("not started", extra={"proposal": proposal.id, "why": str(error)})
        return [sequence]
    else:
        if change is not None:
            logger.info("change", extra={"change": change.id, "state": change.state, "outcome": change.outcome})
    return []


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
            lost = _lost(apply, now) if left() >= RESERVE_MS else []
            if now.minute < BOOKS_MIN:
                attempt("booking savings", "all that are due", partial(_book_savings, apply, now, left))
            errands = apply.errands.tick(now) if apply.errands else ()
            count(ChangesAdvanced=len(changes) + len(errands))
            return [*lost, *(change.id for change in changes), *(errand.id for errand in errands)]
        case _:
            logger.debug("nothing asked", extra={"kind": trigger.kind})
            return []


def _lost(apply: Apply, now: datetime) -> list[str]:
    """Decisions that no event brought here; a search that fails does not stop the tick.

    Once an hour the proposals that are being applied are compared with their changes, and once a day the orders of the
    first release are looked for, so that the other ticks make two calls for all of this.
    """
    hourly = now.minute < BOOKS_MIN
    found: list[str] = []
    found += _or_none("taking up approvals", partial(apply_lost.take_up, apply, now))
    orders = partial(apply_lost.take_up_orders, apply, now, everything=hourly and now.hour == 0)
    found += _or_none("taking up orders to go back", orders)
    if hourly:
        attempt("comparing proposals with their changes", "those being applied", partial(apply_lost.straighten, apply))
    return found


def _or_none(doing: str, search: Callable[[], list[str]]) -> list[str]:
    """What a search found; nothing where it failed, which is in the log, and the next tick searches again."""
    found = attempt(doing, "those that no event brought", search)
    return [] if isinstance(found, Failed) else found


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
