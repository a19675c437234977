"""Input of the apply door: approved proposals from the stream, endpoint events, and the tick.

The tick also finds in the table's index what a person decided and no event brought, and takes it up. The stream is the
quick way and may lose a record: it gives up after its retries, keeps nothing for longer than a day, and a table that
was restored from a backup has none. Nothing here depends on it: each approval ends as a change, as withdrawn with a
reason, or as expired and told; each order to go back is taken, or refused and told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from rightsizer.changes.ending import shown_change_id, shown_outcome, shown_proposal_state
from rightsizer.changes.reconcile.drift import BUSY
from rightsizer.domain.capacity_change import OPEN, CapacityChange, CapacityChangeMoved
from rightsizer.domain.change import Change
from rightsizer.domain.message import Notice
from rightsizer.domain.outcome import Occurrence, UnreadRow
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalMoved, ProposalState
from rightsizer.domain.reason import time_text
from rightsizer.domain.trigger import EndpointMoved, TickDue, Trigger
from rightsizer.errors import ConflictError, InputError, RightsizerError, UnreadableError
from rightsizer.flows.apply import BOOKS_RESERVE_MS, RESERVE_MS, Apply, TimeLeft, unlimited_ms
from rightsizer.flows.notify import catch_send_errors, tell_once
from rightsizer.flows.record_change import LedgerEntries, book_savings
from rightsizer.telemetry import Failure, attempt, count, logger

BOOKS_MIN = 5
"""Savings are booked by the one tick in the first minutes of an hour, so that the others make no call for them."""
LATE = timedelta(minutes=15)
"""A stream that works needs seconds; after this a person hears that an approval, or an order, waits."""


@dataclass(frozen=True, slots=True)
class LateDecision:
    """A person's decision that is not carried out yet: an approval, or an order to go back."""

    proposal: Proposal
    since: datetime
    """When it was decided."""
    subject: str
    """Of the message that tells it; it sets the two decisions on one proposal apart."""


def start_approved(apply: Apply, moves: Sequence[ProposalMoved | CapacityChangeMoved], now: datetime) -> list[str]:
    """Start the change of each approved proposal; returns the sequences of the records to deliver again.

    A refusal (another change holds the endpoint, the proposal moved on meanwhile) is an answer and is not repeated.
    Nor is a record that nobody can read, which would hold up its shard: it is told once, and the ticks look at its row.
    That a tick saved the change while the order of a rollback was written is none: the order is delivered again.
    """
    failed = []
    for move in moves:
        again = attempt("taking a record of the stream", move.sequence, partial(_act_on_record, apply, move, now))
        failed += [move.sequence] if isinstance(again, Failure) else again
    return failed


def _act_on_record(apply: Apply, move: ProposalMoved | CapacityChangeMoved, now: datetime) -> list[str]:
    """Act on one record; its sequence when it should be delivered again."""
    if isinstance(move, CapacityChangeMoved):
        return _start_capacity_change(apply, move, now)
    if move.problem:
        logger.error("a stream record is malformed", extra={"problem": move.problem, "sequence": move.sequence})
        count(RecordsMalformed=1)
        if move.id:
            apply.store.park(move.id, move.problem, now, catch_send_errors(apply.notifier))
        return []
    return [] if move.proposal is None else _act_on_proposal(apply, move.proposal, move.sequence, now)


def _act_on_proposal(apply: Apply, proposal: Proposal, sequence: str, now: datetime) -> list[str]:
    """Start the change of an approved proposal, or undo the change that somebody wants undone."""
    try:
        if proposal.asked_back_by:  # first: it stops what an approval would begin
            change = start_rollback(apply, proposal, now)
        elif proposal.state is ProposalState.APPROVED:
            if apply.stage_hold(proposal, now) is not None:
                return []  # the ticks look at it again
            change = apply.start(proposal.id, now)
            count(ChangesStarted=1)
        else:
            return []
    except (ConflictError, InputError) as error:
        logger.warning("no change", extra={"proposal": proposal.id, "why": str(error)})
        if proposal.state is ProposalState.APPROVED and not proposal.asked_back_by:
            return []
        if isinstance(error, UnreadableError):  # a newer release wrote the row since; each tick looks at it again
            apply.store.park(proposal.id, str(error), now, catch_send_errors(apply.notifier))
            return []
        return [sequence]  # a tick saved the change while the order was written
    except RightsizerError as error:
        logger.warning("not started", extra={"proposal": proposal.id, "why": str(error)})
        return [sequence]
    else:
        if change is not None:
            logger.info("change", extra={"change": change.id, "state": change.state, "outcome": change.outcome})
    return []


def advance_changes(apply: Apply, trigger: Trigger, now: datetime, left: TimeLeft = unlimited_ms) -> list[str]:
    """Advance the change of the event, or every due one; returns the ids of the changes read.

    Endpoint events are hints: most are about endpoints that we do not change. One that says that a deployment goes on
    asks for nothing, so it costs no look; should it be wrong or late, the tick finds out. `left` is what the tick has.
    """
    match trigger:
        case EndpointMoved() if trigger.status in BUSY:
            return []
        case EndpointMoved():
            moved = apply.advance_endpoint(trigger.endpoint, now)
            return [moved.id] if moved else []
        case TickDue():
            changes = apply.tick(now, left)
            lost = _find_lost_decisions(apply, now) if left() >= RESERVE_MS else []
            if now.minute < BOOKS_MIN:
                attempt("booking savings", "all that are due", partial(_book_savings, apply, now, left))
            capacity_changes = apply.capacity_changes.tick(now) if apply.capacity_changes else ()
            count(ChangesAdvanced=len(changes) + len(capacity_changes))
            return [
                *lost,
                *(change.id for change in changes),
                *(capacity_change.id for capacity_change in capacity_changes),
            ]
        case _:
            logger.debug("nothing asked", extra={"kind": trigger.kind})
            return []


def _find_lost_decisions(apply: Apply, now: datetime) -> list[str]:
    """Decisions that no event brought here; a search that fails does not stop the tick.

    Once an hour the proposals that are being applied are compared with their changes, and once a day the orders of the
    first release are looked for, so that the other ticks make two calls for all of this.
    """
    hourly = now.minute < BOOKS_MIN
    found: list[str] = []
    found += _search("taking up approvals", partial(start_lost_approvals, apply, now))
    orders = partial(start_lost_rollbacks, apply, now, everything=hourly and now.hour == 0)
    found += _search("taking up orders to go back", orders)
    if hourly:
        attempt("comparing proposals with their changes", "those being applied", partial(correct_proposals, apply))
    return found


def _search(doing: str, search: Callable[[], list[str]]) -> list[str]:
    """What a search found; nothing where it failed, which is in the log, and the next tick searches again."""
    found = attempt(doing, "those that no event brought", search)
    return [] if isinstance(found, Failure) else found


def _book_savings(apply: Apply, now: datetime, left: TimeLeft) -> None:
    """Book what changes that stand saved since yesterday; one that fails gets a look after an hour, behind the rest."""
    waiting = apply.journal.changes_to_book(now)
    for number, change_id in enumerate(waiting):
        if left() < BOOKS_RESERVE_MS:
            count(SavingsLate=len(waiting) - number)
            break
        if isinstance(attempt("booking a saving", change_id, partial(_book_change, apply, change_id, now)), Failure):
            count(SavingsNotBooked=1)


def _book_change(apply: Apply, change_id: str, now: datetime) -> None:
    try:
        book_savings(apply.journal, apply.changer, LedgerEntries(apply.ledger, apply.stopped), change_id, now)
    except UnreadableError as error:
        apply.journal.park(change_id, str(error), now, catch_send_errors(apply.notifier))
    except Exception:
        apply.journal.postpone(change_id, now)
        raise


def _start_capacity_change(apply: Apply, move: CapacityChangeMoved, now: datetime) -> list[str]:
    """Begin an approved capacity change; the sequence of its record when it should be delivered again."""
    if apply.capacity_changes is None or move.capacity_change.state not in OPEN:
        return []
    try:
        done: CapacityChange = apply.capacity_changes.start(move.capacity_change.id, now)
    except InputError as error:
        logger.warning("no capacity change", extra={"capacity_change": move.capacity_change.id, "why": str(error)})
    except RightsizerError as error:
        logger.warning("not started", extra={"capacity_change": move.capacity_change.id, "why": str(error)})
        return [move.sequence]
    else:
        logger.info("capacity change", extra={"capacity_change": done.id, "state": done.state, "outcome": done.outcome})
    return []


def start_lost_approvals(apply: Apply, now: datetime) -> list[str]:
    """Start each approval that has no change yet, or end it; returns the ids of the changes that began."""
    unread: list[UnreadRow] = []
    begun: list[str] = []
    for proposal in apply.store.proposals((ProposalState.APPROVED,), unread):
        change = attempt("taking up an approval", proposal.id, partial(_try_approval, apply, proposal, now))
        begun += [change.id] if isinstance(change, Change) else []
    _park(apply, unread, now)
    count(ApprovalsTakenUp=len(begun), ApprovalsUnread=len(unread))
    return begun


def _park(apply: Apply, unread: list[UnreadRow], now: datetime) -> None:
    """Leave the decisions that cannot be read, and tell of each once."""
    for row in unread:
        identity = row.key.partition(" ")[0].partition("#")[2]
        park = partial(apply.store.park, identity, row.cause, now, catch_send_errors(apply.notifier))
        attempt("parking a decision that cannot be read", row.key, park)


def start_lost_rollbacks(apply: Apply, now: datetime, *, everything: bool) -> list[str]:
    """Take each order to go back that was not taken yet; returns the ids of the changes that go back.

    With `everything` also among the orders that the first release wrote, which its index does not set apart.
    """
    taken = []
    unread: list[UnreadRow] = []
    for proposal in apply.store.rollback_requests(everything=everything, unread=unread):
        change = attempt("taking up an order to go back", proposal.id, partial(start_rollback, apply, proposal, now))
        if isinstance(change, Failure):
            asked_at = proposal.asked_back_at or _decided_at(proposal)
            what = f"the rollback of {proposal.change_id}, of proposal {proposal.id},"
            subject = f"{proposal.ref.name}: its rollback was asked, and not started yet"
            _tell_of_wait(apply, LateDecision(proposal, asked_at, subject), what, now, change)
        elif change is not None:
            taken.append(change.id)
    _park(apply, unread, now)
    count(OrdersTakenUp=len(taken), OrdersUnread=len(unread))
    return taken


def start_rollback(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    """Take the order of a proposal, once, and settle it. None where it is refused, which is told, or settled already.

    A record of the stream may come late or again, and the index may be a moment old: the row itself tells whether the
    order still stands. Raises ConflictError where a save of the same change was in between, so that it is to be tried
    again.
    """
    proposal = apply.store.rollback_request(listed.id)
    if proposal is None:
        return None
    try:
        change = apply.roll_back(proposal, now)
        known = change or apply.journal.load(proposal.change_id)
        is_over = known is None or known.is_closed
    except (ConflictError, InputError) as error:
        if isinstance(error, ConflictError) and apply.is_asleep(proposal.ref.name):
            _tell_of_sleep(apply, proposal, now)
            return None  # the order stands, and no stop begins before it is carried out
        if isinstance(error, ConflictError) and _is_overtaken(apply, proposal):
            raise
        logger.warning("no rollback", extra={"proposal": proposal.id, "why": str(error)})
        apply.notifier.post(Notice(f"{proposal.ref.name}: the rollback was not taken", str(error)))
        change, is_over = None, True
    apply.store.settle_rollback_request(proposal.id, is_over=is_over)
    return change


def correct_proposals(apply: Apply) -> None:
    """Let each proposal that is being applied show the end of its change, or that its change is not there."""
    for proposal in apply.store.proposals((ProposalState.APPLYING,)):
        attempt("comparing a proposal with its change", proposal.id, partial(_correct_proposal, apply, proposal))


def _correct_proposal(apply: Apply, proposal: Proposal) -> None:
    change = apply.journal.load(proposal.change_id)
    if change is None:
        text = f"its change {proposal.change_id} is not in the table, so nobody knows how far it went"
        apply.store.follow(proposal.id, ProposalState.WITHDRAWN, proposal.change_id, text)
        catch_send_errors(apply.notifier)(f"{proposal.ref.name}: approval withdrawn", text)
    elif change.is_closed:
        apply.store.follow(proposal.id, shown_proposal_state(change), shown_change_id(change), shown_outcome(change))


def _try_approval(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    """What became of one approval; one that fails does not stop the others."""
    try:
        return _start_approval(apply, listed, now)
    except (ConflictError, InputError) as error:  # the flow has withdrawn it, or somebody moved it meanwhile
        logger.warning("no change", extra={"proposal": listed.id, "why": str(error)})
    except RightsizerError as error:
        late = LateDecision(listed, _decided_at(listed), f"{listed.ref.name}: approved, and not started yet")
        _tell_of_wait(apply, late, f"the change of proposal {listed.id}", now, Failure(error))
    return None


def _start_approval(apply: Apply, listed: Proposal, now: datetime) -> Change | None:
    known = apply.change_of_approval(listed)
    if known is not None and not known.is_closed:
        return None  # it waits, or is under way
    proposal = apply.store.proposal(listed.id)  # by its key: the index may be a moment old
    if proposal is None or proposal.state is not ProposalState.APPROVED or proposal.asked_back_by:
        return None
    if known is not None:
        apply.store.follow(proposal.id, shown_proposal_state(known), shown_change_id(known), shown_outcome(known))
        return None
    held = apply.stage_hold(proposal, now)
    if held is not None:
        logger.info("the next stage waits", extra={"proposal": proposal.id, "why": held.sentence})
        return None
    answer = apply.answer_to_approval(proposal)
    since, stage = answer.waits_since(proposal), answer.stage
    late = now - since
    if late > PATIENCE:
        what = f"Stage {stage.number} was proven" if stage is not None else "It was approved"
        text = (
            f"{what} on {time_text(since)} and {'the next one ' if stage is not None else ''}could not be "
            f"started within {PATIENCE.days} days{'' if stage is not None else '; nothing was changed'}. "
            "It is asked again if the saving is still there."
        )
        apply.end_approval(proposal, ProposalState.EXPIRED, text)
        catch_send_errors(apply.notifier)(f"{proposal.ref.name}: approval expired", text)
        return None
    if proposal.recommendation.chosen_option is None:
        apply.store.follow(proposal.id, ProposalState.WITHDRAWN, "", "it recommends no option, so nothing can be done")
        return None
    change = apply.start(proposal.id, now)
    if late > LATE and stage is None:
        text = f"the approval of {time_text(since)} was found by the tick and is carried out now"
        _tell_once(apply, LateDecision(proposal, since, f"{proposal.ref.name}: started late"), text, now)
    return change


def _tell_of_wait(apply: Apply, late: LateDecision, what: str, now: datetime, error: Failure) -> None:
    """The next tick tries again; a person hears of it once, when it has waited for a while."""
    logger.warning("not taken up", extra={"proposal": late.proposal.id, "why": str(error)})
    count(DecisionsWaiting=1)
    if now - late.since > LATE:
        _tell_once(apply, late, f"{what} could not be started yet and is tried again every five minutes: {error}", now)


def _tell_once(apply: Apply, late: LateDecision, text: str, now: datetime) -> None:
    """Tell it once for each decision."""
    key = f"late#{late.proposal.id}#{late.since.isoformat()}#{late.subject}"
    occurrence = Occurrence(key, now, "approval-late", late.proposal.ref.name, text)
    tell_once(apply.ledger, apply.notifier, occurrence, late.subject)


def _decided_at(proposal: Proposal) -> datetime:
    return proposal.decision.at if proposal.decision else proposal.created_at


def _tell_of_sleep(apply: Apply, proposal: Proposal, now: datetime) -> None:
    late = LateDecision(proposal, proposal.asked_back_at or now, f"{proposal.ref.name}: its rollback waits")
    text = f"the rollback of {proposal.change_id} begins when the endpoint is back: it is stopped by its office hours"
    _tell_once(apply, late, text, now)


def _is_overtaken(apply: Apply, proposal: Proposal) -> bool:
    """Whether the order of a rollback met a save of its own change: no other change holds the endpoint."""
    return apply.journal.holder_of(proposal.ref.name) in ("", proposal.change_id)
