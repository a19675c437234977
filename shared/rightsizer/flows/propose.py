"""Post a proposal that was written or moved, and let its message follow until the end.

At least once: a record that fails after the post and before the note of it is posted again, and its event is sent
again. Everything else is done once, because the message book knows what the message shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from rightsizer.domain.capacity_change import CapacityChange, CapacityChangeMoved
from rightsizer.domain.message import CapacityChangeMessage, Notice, ProposalMessage
from rightsizer.domain.proposal import MessageRef, Proposal, ProposalMoved, ProposalState, shown_state
from rightsizer.errors import RightsizerError, WriteRefusedError
from rightsizer.flows.notify import catch_send_errors
from rightsizer.ports.evaluation import DetailsPages, EventSink, MessageBook, Notifier
from rightsizer.telemetry import Failure, attempt, count, logger

TOLD_BY_TEXT = frozenset(
    {
        ProposalState.PENDING,
        ProposalState.APPLIED,
        ProposalState.PROVEN,
        ProposalState.ROLLED_BACK,
        ProposalState.HANDED_OVER,
    }
)
"""The states that are worth an e-mail; the message shows all of them."""
REFUSED = "slack-refused"
"""Name of the note in the message book that says what Slack refused, and that the topic was told."""
CLOSED_UNANSWERED = (ProposalState.WITHDRAWN, ProposalState.EXPIRED)


type Asked = Proposal | CapacityChange
"""What a person is asked about."""


@dataclass(frozen=True, slots=True)
class ProposePorts:
    """Ports of the propose flow."""

    board: Notifier
    """Slack: shows one message of each proposal, which follows it to its end."""
    notifier: Notifier
    """The other channels: each new state that is worth a text, once, and what goes wrong."""
    book: MessageBook
    pages: DetailsPages
    events: EventSink


def propose(ports: ProposePorts, moves: Sequence[ProposalMoved | CapacityChangeMoved], now: datetime) -> list[str]:
    """Tell each move; returns the sequences of those that failed, so that they come again.

    A record that nobody can read is none of them: it would be no better the next time, and hold up its shard until
    the stream gives up. It is counted, and people are told once.
    """
    failed = []
    for move in moves:
        done = attempt("telling a proposal", move.sequence, partial(_try_move, ports, move, now))
        if isinstance(done, Failure) or not done:
            failed.append(move.sequence)
    return failed


def _try_move(ports: ProposePorts, move: ProposalMoved | CapacityChangeMoved, now: datetime) -> bool:
    """Whether people know of the move."""
    if isinstance(move, ProposalMoved) and move.problem:
        logger.error("a stream record is malformed", problem=move.problem, sequence=move.sequence)
        count(RecordsMalformed=1)
        return not move.id or ports.book.park(move.id, move.problem, now, catch_send_errors(ports.notifier))
    asked = move.capacity_change if isinstance(move, CapacityChangeMoved) else move.proposal
    if asked is not None:
        tell(ports, asked, move.before, move.version)
    return True


def tell(ports: ProposePorts, proposal: Asked, before: ProposalState | None, version: int) -> None:
    """Post or update the message of one proposal, and publish the text where the state is worth one.

    A row older than the one that the message shows is not told: a stack that adopts the table reads a day of it again.
    """
    known = ports.book.message(proposal.id)
    if known and 0 < version < known.version:
        return
    shown = _shown_state(proposal)
    reopened = proposal.state is ProposalState.PENDING and before in CLOSED_UNANSWERED
    if known and known.shown == shown and not reopened:
        return
    if known is None and before is proposal.state:
        before = None  # an earlier record was lost: nobody has heard of this state
    if before is not proposal.state and isinstance(proposal, Proposal):
        _announce(ports.events, proposal)
    message = _with_page(ports, proposal)
    posted = _on_the_board(ports, proposal.id, message, None if reopened else known)
    if _is_worth_text(proposal, before):
        ports.notifier.post(message)
    ports.book.remember(replace(posted, shown=shown, version=version))


def _on_the_board(
    ports: ProposePorts, identity: str, message: ProposalMessage | CapacityChangeMessage, known: MessageRef | None
) -> MessageRef:
    """Where the message now stands: updated, or posted and noted at once, so that a retry updates it."""
    try:
        if known and known.ts and _try_update(ports.board, known, message):
            _note_that_slack_takes(ports)
            return known
        posted = ports.board.post(message)
    except WriteRefusedError as error:
        _tell_once(ports, error)
        return known or MessageRef(identity, "", "", "")
    made = MessageRef(identity, posted.channel if posted else "", posted.ts if posted else "", "")
    ports.book.remember(made)
    if posted:
        _note_that_slack_takes(ports)
    return made


def _note_that_slack_takes(ports: ProposePorts) -> None:
    """Clear the note of a refusal, so that the next one is told."""
    told = ports.book.message(REFUSED)
    if told is not None and told.shown:
        ports.book.remember(MessageRef(REFUSED, "", "", ""))


def _try_update(board: Notifier, known: MessageRef, message: ProposalMessage | CapacityChangeMessage) -> bool:
    """Whether the message took its new form; False when somebody deleted it."""
    try:
        board.update(known, message)
    except WriteRefusedError as error:
        if error.code != "message_not_found":
            raise
        return False
    return True


def _tell_once(ports: ProposePorts, error: WriteRefusedError) -> None:
    """Tell the topic that Slack refuses, and what to do; once for each cause, until Slack takes a message again.

    What Slack refuses now it refuses in a minute too: tries again would end in the dead letters, where nobody looks.
    """
    logger.error("Slack refuses the message; the topic is told instead", extra={"error": str(error)})
    count(SlackRefused=1)
    told = ports.book.message(REFUSED)
    if told is None or told.shown != error.code:
        text = f"{error}.\n\nUntil then proposals are told by this topic, with the commands that answer them.\n"
        ports.notifier.post(Notice("rightsizer: Slack refuses its messages", text))
        ports.book.remember(MessageRef(REFUSED, "", "", error.code))


def _is_worth_text(proposal: Asked, before: ProposalState | None) -> bool:
    """A text for each new state, not for each step of the change within one state."""
    return proposal.state in TOLD_BY_TEXT and before is not proposal.state


def _announce(events: EventSink, proposal: Proposal) -> None:
    """One event for each new state, before anything that may fail for long; people are told whether it went or not."""
    try:
        events.proposal_moved(proposal)
    except RightsizerError as error:
        count(EventsLost=1)
        logger.warning("the event was not sent", extra={"error": str(error), "proposal": proposal.id})


def _with_page(ports: ProposePorts, proposal: Asked) -> ProposalMessage | CapacityChangeMessage:
    """The message, with where its details page is kept; without one it still asks."""
    message = CapacityChangeMessage(proposal) if isinstance(proposal, CapacityChange) else ProposalMessage(proposal)
    try:
        return replace(message, page=ports.pages.keep(message))
    except RightsizerError as error:
        logger.warning("the details page could not be stored", error=str(error), proposal=proposal.id)
        return message


def _shown_state(proposal: Asked) -> str:
    return shown_state(
        proposal.state, proposal.outcome, proposal.asked_back_by if isinstance(proposal, Proposal) else ""
    )
