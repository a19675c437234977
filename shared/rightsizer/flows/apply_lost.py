"""What a person decided and no event brought to `apply`: the tick finds it in the table's index and takes it up.

The stream is the quick way and may lose a record: it gives up after its retries, keeps nothing for longer than a day,
and a table that was restored from a backup has none. Nothing here depends on it: each approval ends as a change, as
withdrawn with a reason, or as expired and told; each order to go back is taken, or refused and told.
"""

from datetime import datetime, timedelta
from functools import partial

from rightsizer.domain.change import Change
from rightsizer.domain.outcome import Occurrence, UnreadRow
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalState
from rightsizer.errors import ConflictError, InputError, RightsizerError
from rightsizer.flows.apply import Apply
from rightsizer.flows.notify import once, surely
from rightsizer.flows.record_change import shown
from rightsizer.telemetry import Failed, attempt, count, logger

LATE = timedelta(minutes=15)
"""A stream that works needs seconds; after this a person hears that an approval, or an order, waits."""


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
        park = partial(apply.store.park, identity, row.cause, now, surely(apply.tell))
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
        apply.tell(f"{proposal.ref.name}: the way back was not taken", str(error))
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
        surely(apply.tell)(f"{proposal.ref.name}: approval withdrawn", text)
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
        surely(apply.tell)(f"{proposal.ref.name}: approval expired", text)
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
    once(apply.ledger, apply.tell, Occurrence(key, now, "approval-late", proposal.ref.name, text), subject)


def _decided_at(proposal: Proposal) -> datetime:
    return proposal.decision.at if proposal.decision else proposal.created_at


def _overtaken(apply: Apply, proposal: Proposal) -> bool:
    """Whether the order of a way back met a save of its own change: no other change holds the endpoint."""
    return apply.journal.held_by(proposal.ref.name) in ("", proposal.change_id)
