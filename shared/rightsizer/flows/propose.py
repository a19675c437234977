"""Post a proposal that was written or moved, and let its message follow until the end.

At least once: a record that fails after the post and before the note of it is posted again, and its event is sent
again. Everything else is done once, because the message book knows what the message shows. An event that is refused is
noted there too: the next hourly sweep brings the proposal here again, and its event is sent then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from rightsizer.domain.capacity_change import CapacityChange, CapacityChangeMoved
from rightsizer.domain.message import CapacityChangeMessage, DigestLine, Notice, ProposalMessage, SleepMoved, SleepNote
from rightsizer.domain.proposal import MessageRef, Proposal, ProposalMoved, ProposalState, shown_revision, shown_state
from rightsizer.errors import RightsizerError, WriteRefusedError
from rightsizer.flows.digest import NO_DIGEST, follow, thread_for
from rightsizer.flows.notify import catch_send_errors
from rightsizer.flows.sleep_message import tell_of_sleep
from rightsizer.ports.evaluation import Conversation, DetailsPages, EventSink, MessageBook, Notifier
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
REFUSED_LOOKUP = "slack-refused-lookup"
"""The same of looking up owners."""
ASKED_BEFORE = frozenset(
    {ProposalState.WITHDRAWN, ProposalState.EXPIRED, ProposalState.REJECTED, ProposalState.SNOOZED}
)
"""States after which a proposal that is pending again is asked by a new message."""
SAID_IN_THREAD = frozenset(ProposalState) - {ProposalState.PENDING, ProposalState.WITHDRAWN, ProposalState.EXPIRED}
"""The states that are told in the thread of the message too: what a person did, and what follows from it."""


TOLD_OF: Mapping[str, tuple[str, str]] = {
    REFUSED: (
        "rightsizer: Slack refuses its messages",
        "Until then proposals are told by this topic, with the commands that answer them.",
    ),
    REFUSED_LOOKUP: (
        "rightsizer: Slack does not tell who an owner is",
        "Until then messages name the owner by the text of the tag rightsizer:owner, and mention nobody.",
    ),
}
"""Subject and last line of the notice, by the note that it was told."""
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
    people: Conversation | None = None
    """Slack's threads and its directory of people; None where the stack has no Slack."""
    draw: Callable[[str], None] | None = None
    """Starts the drawing of a proposal's picture and waits for nothing; None where nothing is drawn."""
    digest_of: Callable[[Proposal], str] = lambda _: ""
    """Name of the digests that the proposal belongs to: each channel of the policy document has its own."""


def propose(ports: ProposePorts, moves: Sequence[ProposalMoved | CapacityChangeMoved], now: datetime) -> list[str]:
    """Tell each move; returns the sequences of those that failed, so that they come again.

    A record that nobody can read is none of them: it would be no better the next time, and hold up its shard until
    the stream gives up. It is counted, and people are told once.
    """
    fresh, failed = _fresh_proposals(ports, moves)
    threads = _threads(ports, fresh, now)
    told: list[tuple[Proposal, MessageRef]] = []
    for move in moves:
        if move.sequence in failed:
            continue
        under = threads.get(_id_of(move), NO_DIGEST)
        if isinstance(under, Failure):
            failed.append(move.sequence)  # it comes again with its digest
            continue
        done = attempt("telling a proposal", move.sequence, partial(_try_move, ports, move, now, under))
        if isinstance(done, Failure) or not done:
            failed.append(move.sequence)
        elif isinstance(done, MessageRef) and isinstance(move, ProposalMoved) and move.proposal is not None:
            told.append((move.proposal, done))
    _renew_digests(ports, told)
    return failed


def _threads(ports: ProposePorts, fresh: Mapping[str, Proposal], now: datetime) -> dict[str, MessageRef | Failure]:
    """The digest that each new proposal is posted under, by id."""
    named: dict[str, list[Proposal]] = {}
    for proposal in fresh.values():
        named.setdefault(ports.digest_of(proposal), []).append(proposal)
    threads: dict[str, MessageRef | Failure] = {}
    for name, proposals in named.items():
        lines = [_digest_line(proposal) for proposal in proposals]
        gather = partial(thread_for, ports.board, ports.book, lines, now, name)
        under = attempt("gathering proposals", "digest", gather)
        threads |= {proposal.id: under for proposal in proposals}
    return threads


def _digest_line(proposal: Proposal) -> DigestLine:
    saving = proposal.recommendation.approval_usd_per_month
    return DigestLine(proposal.id, proposal.ref.name, saving, str(proposal.state), proposal.measured_usd_per_month)


def _renew_digests(ports: ProposePorts, told: Sequence[tuple[Proposal, MessageRef]]) -> None:
    """Let the digests follow the proposals in their threads; one that fails is renewed with the next move."""
    moved: dict[tuple[str, str, str], dict[str, DigestLine]] = {}
    for proposal, ref in told:
        if ref.thread:
            place = (ports.digest_of(proposal), ref.channel, ref.thread)
            moved.setdefault(place, {})[proposal.id] = _digest_line(proposal)
    for (name, channel, ts), lines in moved.items():
        digest = MessageRef("", channel, ts, "")
        attempt("renewing a digest", ts, partial(follow, ports.board, ports.book, digest, lines, name))


def tell_sleeps(ports: ProposePorts, moves: Sequence[SleepMoved]) -> list[str]:
    """Let the message of each endpoint that sleeps follow it; returns the sequences of those that failed."""
    failed: list[str] = []
    for move in moves:

        def tell(note: SleepNote = move.note) -> None:
            try:
                tell_of_sleep(ports.board, ports.book, note)
            except WriteRefusedError as error:
                _tell_once(ports, error)

        if isinstance(attempt("telling that an endpoint sleeps", move.note.endpoint, tell), Failure):
            failed.append(move.sequence)
    return failed


def _fresh_proposals(
    ports: ProposePorts, moves: Sequence[ProposalMoved | CapacityChangeMoved]
) -> tuple[dict[str, Proposal], list[str]]:
    """New proposals that a digest may gather, by id, and the sequences of moves that could not be looked up.

    What the message book knows at that version was told before: a stack that adopts a table reads a day of it again.
    """
    fresh: dict[str, Proposal] = {}
    failed: list[str] = []
    for move in moves if ports.people is not None else ():
        proposal = _new_proposal(move)
        if proposal is None:
            continue
        known = attempt("looking up a message", move.sequence, partial(ports.book.message, proposal.id))
        if isinstance(known, Failure):
            failed.append(move.sequence)
        elif known is None or (not _is_message_half_sent(known) and not 0 < move.version <= known.version):
            fresh[proposal.id] = proposal
    return fresh, failed


def _id_of(move: ProposalMoved | CapacityChangeMoved) -> str:
    asked = move.proposal if isinstance(move, ProposalMoved) else move.capacity_change
    return asked.id if asked is not None else ""


def _new_proposal(move: ProposalMoved | CapacityChangeMoved) -> Proposal | None:
    """The proposal that begins to wait for an answer by this move."""
    proposal = move.proposal if isinstance(move, ProposalMoved) else None
    is_new = (
        proposal is not None and proposal.state is ProposalState.PENDING and move.before is not ProposalState.PENDING
    )
    return proposal if is_new else None


def _is_message_half_sent(message_ref: MessageRef) -> bool:
    """Whether the message was posted, and what belongs to it failed afterwards: it is not posted again for that."""
    return bool(message_ref.ts) and not message_ref.shown


def _try_move(
    ports: ProposePorts, move: ProposalMoved | CapacityChangeMoved, now: datetime, thread: MessageRef
) -> MessageRef | bool:
    """The message that tells the move, or whether people know of the move."""
    if isinstance(move, ProposalMoved) and move.problem:
        logger.error("a stream record is malformed", problem=move.problem, sequence=move.sequence)
        count(RecordsMalformed=1)
        return not move.id or ports.book.park(move.id, move.problem, now, catch_send_errors(ports.notifier))
    asked = move.capacity_change if isinstance(move, CapacityChangeMoved) else move.proposal
    return tell(ports, asked, move.before, move.version, thread) if asked is not None else True


def tell(
    ports: ProposePorts, proposal: Asked, before: ProposalState | None, version: int, thread: MessageRef = NO_DIGEST
) -> MessageRef | bool:
    """Post or update the message of one proposal, and publish its text where that is due; where it stands.

    A row older than the one that the message shows is not told: a stack that adopts the table reads a day of it again.
    """
    message_ref = ports.book.message(proposal.id)
    if message_ref and 0 < version < message_ref.version:
        return True
    shown, half_told = _shown_state(proposal), message_ref is not None and _is_message_half_sent(message_ref)
    reopened = proposal.state is ProposalState.PENDING and _was_asked_before(before, message_ref) and not half_told
    if message_ref and message_ref.shown == shown and not reopened:
        _announce_late(ports, proposal, replace(message_ref, version=max(version, message_ref.version)))
        return message_ref
    if (message_ref is None or half_told) and before is proposal.state:
        before = None  # an earlier record was lost: nobody has heard of this state
    sent = before is proposal.state or not isinstance(proposal, Proposal) or _announce(ports.events, proposal)
    current = None if reopened else message_ref
    if current is not None and current.picture and shown_revision(current.shown) != shown_revision(shown):
        ports.book.keep_picture(current.proposal_id, current.ts, "")  # it is of the option that was asked about before
        current = replace(current, picture="")
    message = _with_people(ports, _with_page(ports, proposal), current, thread)
    posted = _on_the_board(ports, proposal.id, message, current)
    if _is_worth_text(proposal, before):
        ports.notifier.post(message)
    if current is not None and before is not proposal.state and isinstance(message, ProposalMessage):
        _say_in_thread(ports, posted, message)
    ports.book.remember(replace(posted, shown=shown, version=version, event_due=not sent))
    if posted.ts and isinstance(message, ProposalMessage) and _needs_picture(posted, current, shown):
        _start_drawing(ports, proposal.id)
    return posted


def _needs_picture(posted: MessageRef, message_ref: MessageRef | None, shown: str) -> bool:
    """Whether the message is new, posted anew, or asks about another option: each time a picture is begun once."""
    if message_ref is None or not message_ref.shown:
        return not posted.picture
    return posted.ts != message_ref.ts or shown_revision(message_ref.shown) != shown_revision(shown)


def _was_asked_before(before: ProposalState | None, message_ref: MessageRef | None) -> bool:
    """Whether an earlier message of the same proposal is over: its row may have been deleted since, by its TTL."""
    if before is None and message_ref is not None and message_ref.shown:
        return message_ref.shown.partition("|")[0] in ASKED_BEFORE
    return before in ASKED_BEFORE


def _with_people(
    ports: ProposePorts,
    message: ProposalMessage | CapacityChangeMessage,
    message_ref: MessageRef | None,
    thread: MessageRef,
) -> ProposalMessage | CapacityChangeMessage:
    """The message with its owner's Slack id, its picture, and the thread that it stands in."""
    if ports.people is None or not isinstance(message, ProposalMessage):
        return message
    if message_ref is not None:
        return replace(message, owner=message_ref.owner, picture=message_ref.picture, thread=message_ref.thread)
    owner = ""
    try:
        owner = ports.people.person(message.proposal.recommendation.owner)
    except WriteRefusedError as error:
        _tell_once(ports, error, REFUSED_LOOKUP)
    except RightsizerError as error:
        logger.warning("the owner could not be looked up", extra={"error": str(error), "proposal": message.proposal.id})
    return replace(message, owner=owner, thread=thread.ts, thread_channel=thread.channel)


def _say_in_thread(ports: ProposePorts, ref: MessageRef, message: ProposalMessage) -> None:
    """Say what follows in the thread; the message itself shows it already, so that a failure is only logged."""
    if ports.people is None or not ref.ts or message.proposal.state not in SAID_IN_THREAD:
        return
    try:
        ports.people.reply(ref, message)
    except RightsizerError as error:
        logger.warning("the thread was not told", extra={"error": str(error), "proposal": message.proposal.id})


def _start_drawing(ports: ProposePorts, identity: str) -> None:
    """Start the picture; without it the message stays as it is."""
    if ports.draw is None:
        return
    try:
        ports.draw(identity)
    except RightsizerError as error:
        count(PicturesLost=1)
        logger.warning("the picture was not started", extra={"error": str(error), "proposal": identity})


def _on_the_board(
    ports: ProposePorts, identity: str, message: ProposalMessage | CapacityChangeMessage, message_ref: MessageRef | None
) -> MessageRef:
    """The message after its update, or newly posted and noted at once, so that a retry updates it."""
    try:
        if message_ref and message_ref.ts and _try_update(ports.board, message_ref, message):
            _note_that_slack_takes(ports)
            return message_ref
        posted = ports.board.post(replace(message, picture="") if isinstance(message, ProposalMessage) else message)
    except WriteRefusedError as error:
        _tell_once(ports, error)
        return message_ref or MessageRef(identity, "", "", "")
    made = MessageRef(identity, posted.channel if posted else "", posted.ts if posted else "", "")
    if isinstance(message, ProposalMessage):
        made = replace(made, owner=message.owner, thread=posted.thread if posted else "")
    ports.book.remember(made)
    if posted:
        _note_that_slack_takes(ports)
    return made


def _note_that_slack_takes(ports: ProposePorts) -> None:
    """Clear the note of a refusal, so that the next one is told."""
    message_ref = ports.book.message(REFUSED)
    if message_ref is not None and message_ref.shown:
        ports.book.remember(MessageRef(REFUSED, "", "", ""))


def _try_update(board: Notifier, message_ref: MessageRef, message: ProposalMessage | CapacityChangeMessage) -> bool:
    """Whether the message took its new form; False when somebody deleted it."""
    try:
        board.update(message_ref, message)
    except WriteRefusedError as error:
        if error.code != "message_not_found":
            raise
        return False
    return True


def _tell_once(ports: ProposePorts, error: WriteRefusedError, note: str = REFUSED) -> None:
    """Tell the topic that Slack refuses, and what to do; once for each cause, until Slack takes a message again.

    What Slack refuses now it refuses in a minute too: tries again would end in the dead letters, where nobody looks.
    """
    logger.error("Slack refuses; the topic is told instead", extra={"error": str(error)})
    count(SlackRefused=1)
    message_ref = ports.book.message(note)
    if message_ref is None or message_ref.shown != error.code:
        subject, then = TOLD_OF[note]
        ports.notifier.post(Notice(subject, f"{error}.\n\n{then}\n"))
        ports.book.remember(MessageRef(note, "", "", error.code))


def _is_worth_text(proposal: Asked, before: ProposalState | None) -> bool:
    """A text for each new state, not for each step of the change within one state."""
    return proposal.state in TOLD_BY_TEXT and before is not proposal.state


def _announce(events: EventSink, proposal: Proposal) -> bool:
    """Whether the event of the new state was sent, before anything that may fail for long; people are told anyway."""
    try:
        events.proposal_moved(proposal)
    except RightsizerError as error:
        count(EventsLost=1)
        logger.warning("the event was not sent", extra={"error": str(error), "proposal": proposal.id})
        return False
    return True


def _announce_late(ports: ProposePorts, proposal: Asked, message_ref: MessageRef) -> None:
    """Send the event that was refused when the message took this state."""
    if message_ref.event_due and isinstance(proposal, Proposal) and _announce(ports.events, proposal):
        ports.book.remember(replace(message_ref, event_due=False))


def _with_page(ports: ProposePorts, proposal: Asked) -> ProposalMessage | CapacityChangeMessage:
    """The message, with where its details page is kept; without one it still asks."""
    message = CapacityChangeMessage(proposal) if isinstance(proposal, CapacityChange) else ProposalMessage(proposal)
    try:
        return replace(message, page=ports.pages.keep(message))
    except RightsizerError as error:
        logger.warning("the details page could not be stored", error=str(error), proposal=proposal.id)
        return message


def _shown_state(proposal: Asked) -> str:
    back, revision = (proposal.asked_back_by, proposal.revision) if isinstance(proposal, Proposal) else ("", 0)
    return shown_state(proposal.state, proposal.outcome, back, revision)
