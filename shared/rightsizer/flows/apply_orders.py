"""What reaches the apply door: approved proposals from the stream, endpoint events, and the tick.

The tick also finds in the table's index what a person decided and no event brought, and takes it up. The stream is the
quick way and may lose a record: it gives up after its retries, keeps nothing for longer than a day, and a table that
was restored from a backup has none. Nothing here depends on it: each approval ends as a change, as withdrawn with a
reason, or as expired and told; each order to go back is taken, or refused and told.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from rightsizer.changes.reconcile.drift import BUSY
from rightsizer.domain.capacity_change import OPEN, Errand, ErrandMoved
from rightsizer.domain.change import Change
from rightsizer.domain.message import Notice
from rightsizer.domain.outcome import Occurrence, UnreadRow
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalMoved, ProposalState
from rightsizer.domain.trigger import EndpointMoved, TickDue, Trigger
from rightsizer.errors import ConflictError, InputError, RightsizerError, UnreadableError
from rightsizer.flows.apply import BOOKS_RESERVE_MS, RESERVE_MS, Apply, TimeLeft, unlimited
from rightsizer.flows.notify import once, surely
from rightsizer.flows.record_change import Books, book_savings, shown
from rightsizer.telemetry import Failed, attempt, count, logger

BOOKS_MIN = 5
"""Savings are booked by the one tick in the first minutes of an hour, so that the others make no call for them."""
LATE = timedelta(minutes=15)
"""A stream that works needs seconds; after this a person hears that an approval, or an order, waits."""


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
            apply.store.park(move.id, move.problem, now, surely(apply.notifier))
        return []
    return [] if move.proposal is None else _proposal(apply, move.proposal, move.sequence, now)


def _proposal(apply: Apply, proposal: Proposal, sequence: str, now: datetime) -> list[str]:
    """Start the change of an approved proposal, or undo the change that somebody wants undone."""
    try:
        if proposal.state is ProposalState.APPROVED:
            change: Change | None = apply.start(proposal.id, now)
            count(ChangesStarted=1)
        elif proposal.asked_back_by:
            change = go_back(apply, proposal, now)
        else:
            return []
    except (ConflictError, InputError) as error:
        logger.warning("no change", extra={"proposal": proposal.id, "why": str(error)})
        if proposal.state is ProposalState.APPROVED:
            return []
        if isinstance(error, UnreadableError):  # a newer release wrote the row since; each tick looks at it again
            apply.store.park(proposal.id, str(error), now, surely(apply.notifier))
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
    found += _or_none("taking up approvals", partial(take_up, apply, now))
    orders = partial(take_up_orders, apply, now, everything=hourly and now.hour == 0)
    found += _or_none("taking up orders to go back", orders)
    if hourly:
        attempt("comparing proposals with their changes", "those being applied", partial(straighten, apply))
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
        apply.journal.park(change_id, str(error), now, surely(apply.notifier))
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


def take_up(apply: Apply, now: datetime) -> list[str]:
    """Start each approval that has no change yet, or end it; returns the ids of the changes that began."""
    unread: list[UnreadRow] = []
    begun: list[str] = []
    for proposal in apply.store.proposals((ProposalState.APPROVED,), unread):
        change = attempt("taking up an approval", proposal.id, partial(_each, apply, proposal, now))
        begun += [change.id] if isinstance(change, Change) else []
    _park(apply, unread, now)
    count(ApprovalsTakenUp=len(begun), ApprovalsUnread=len(unread))
    return begun


def _park(apply: Apply, unread: list[UnreadRow], now: datetime) -> None:
    """Leave the decisions that cannot be read, and tell of each once."""
    for row in unread:
        identity = row.key.partition(" ")[0].partition("#")[2]
        park = partial(apply.store.park, identity, row.cause, now, surely(apply.notifier))
        attempt("parking a decision that cannot be read", row.key, park)


def take_up_orders(apply: Apply, now: datetime, *, everything: bool) -> list[str]:
    """Take each order to go back that was not taken yet; returns the ids of the changes that go back.

    With `everything` also among the orders that the first release wrote, which its index does not set apart.
    """
    taken = []
    unread: list[UnreadRow] = []
    for proposal in apply.store.asked_back(everything=everything, unread=unread):
        change = attempt("taking up an order to go back", proposal.id, partial(go_back, apply, proposal, now))
        if isinstance(change, Failed):
            _waits(apply, proposal, f"the way back of {proposal.change_id}", now, change)
        elif change is not None:
            taken.append(change.id)
    _park(apply, unread, now)
    count(OrdersTakenUp=len(taken), OrdersUnread=len(unread))
    return taken


def go_back(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    """Take the order of a proposal, once, and settle it. None where it is refused, which is told, or settled already.

    A record of the stream may come late or again, and the index may be a moment old: the row itself tells whether the
    order still stands. Raises ConflictError where a save of the same change was in between, so that it is to be tried
    again.
    """
    proposal = apply.store.order_to_go_back(listed.id)
    if proposal is None:
        return None
    try:
        change = apply.go_back(proposal, now)
    except (ConflictError, InputError) as error:
        if isinstance(error, ConflictError) and _overtaken(apply, proposal):
            raise
        logger.warning("no way back", extra={"proposal": proposal.id, "why": str(error)})
        apply.notifier.post(Notice(f"{proposal.ref.name}: the way back was not taken", str(error)))
        change = None
    apply.store.settle(proposal.id)
    return change


def straighten(apply: Apply) -> None:
    """Let each proposal that is being applied show the end of its change, or that its change is not there."""
    for proposal in apply.store.proposals((ProposalState.APPLYING,)):
        attempt("comparing a proposal with its change", proposal.id, partial(_straight, apply, proposal))


def _straight(apply: Apply, proposal: Proposal) -> None:
    change = apply.journal.load(proposal.change_id)
    if change is None:
        text = f"its change {proposal.change_id} is not in the table, so nobody knows how far it went"
        apply.store.follow(proposal.id, ProposalState.WITHDRAWN, proposal.change_id, text)
        surely(apply.notifier)(f"{proposal.ref.name}: approval withdrawn", text)
    elif change.closed:
        apply.store.follow(proposal.id, shown(change), change.id, change.outcome)


def _each(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    """What became of one approval; one that fails does not stop the others."""
    try:
        return _one(apply, listed, now)
    except (ConflictError, InputError) as error:  # the flow has withdrawn it, or somebody moved it meanwhile
        logger.warning("no change", extra={"proposal": listed.id, "why": str(error)})
    except RightsizerError as error:
        _waits(apply, listed, "the change", now, Failed(error))
    return None


def _one(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    known = apply.answering(listed)
    if known is not None and not known.closed:
        return None  # it waits, or is under way
    proposal = apply.store.proposal(listed.id)  # by its key: the index may be a moment old
    if proposal is None or proposal.state is not ProposalState.APPROVED:
        return None
    if known is not None:
        apply.store.follow(proposal.id, shown(known), known.id, known.outcome)
        return None
    late = now - _decided_at(proposal)
    if late > PATIENCE:
        text = (
            f"It was approved on {_decided_at(proposal):%Y-%m-%d %H:%M} UTC and could not be started within "
            f"{PATIENCE.days} days; nothing was changed. It is asked again if the saving is still there."
        )
        apply.store.follow(proposal.id, ProposalState.EXPIRED, "", text)
        surely(apply.notifier)(f"{proposal.ref.name}: approval expired", text)
        return None
    if proposal.recommendation.chosen is None:
        apply.store.follow(proposal.id, ProposalState.WITHDRAWN, "", "it recommends no option, so nothing can be done")
        return None
    change = apply.start(proposal.id, now)
    if late > LATE:
        text = (
            f"the approval of {_decided_at(proposal):%Y-%m-%d %H:%M} UTC was found by the tick and is carried out now"
        )
        _once(apply, proposal, f"{proposal.ref.name}: started late", text, now)
    return change


def _waits(apply: Apply, proposal: Proposal, what: str, now: datetime, error: Failed) -> None:
    """The next tick tries again; a person hears of it once, when it has waited for a while."""
    logger.warning("not taken up", extra={"proposal": proposal.id, "why": str(error)})
    count(DecisionsWaiting=1)
    if now - _decided_at(proposal) > LATE:
        text = (
            f"{what} of proposal {proposal.id} could not be started yet and is tried again every five minutes: {error}"
        )
        _once(apply, proposal, f"{proposal.ref.name}: approved, and not started yet", text, now)


def _once(apply: Apply, proposal: Proposal, subject: str, text: str, now: datetime) -> None:
    """Tell it once for each decision."""
    key = f"late#{proposal.id}#{_decided_at(proposal).isoformat()}#{subject}"
    once(apply.ledger, apply.notifier, Occurrence(key, now, "approval-late", proposal.ref.name, text), subject)


def _decided_at(proposal: Proposal) -> datetime:
    return proposal.decision.at if proposal.decision else proposal.created_at


def _overtaken(apply: Apply, proposal: Proposal) -> bool:
    """Whether the order of a way back met a save of its own change: no other change holds the endpoint."""
    return apply.journal.held_by(proposal.ref.name) in ("", proposal.change_id)
