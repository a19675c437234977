"""Many proposals at once become one message, in whose thread each has its own.

New proposals are counted within half an hour, by one row of the message book that every invocation swaps. Up to `FEW`
stand by themselves; those beyond go into the thread of a digest. The invocation that takes the count beyond claims the
digest and posts it; another one that comes meanwhile fails and is delivered again, when the digest stands. A claim
whose owner died is free again after a minute.

Each channel that proposals are sent to has digests of its own, kept under its name. When the next one begins, the row
of the one before is kept apart, under the time of its message, so that its lines go on following their proposals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from rightsizer.domain.message import Digest, DigestLine, Gathering
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import ConflictError, RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.ports.evaluation import MessageBook, Notifier
from rightsizer.telemetry import attempt, logger

FEW = 5
"""Proposals that stand by themselves."""
TOGETHER = timedelta(minutes=30)
CLAIM = timedelta(minutes=1)
SWAPS = 5
NO_DIGEST = MessageRef("", "", "", "")
"""Where proposals stand by themselves."""
MOST = 500
"""Proposals of one digest, so that its row stays far below DynamoDB's 400 KiB; the next ones begin another."""


def thread_for(
    board: Notifier, book: MessageBook, fresh: Sequence[DigestLine], now: datetime, name: str = ""
) -> MessageRef:
    """The digest in whose thread these new proposals are posted; without a time where they stand by themselves.

    `name` is that of their digests: the channel that they are sent to. ThrottledError while another invocation posts.
    """
    for _ in range(SWAPS):
        kept = book.gathering(name)
        fits = kept is not None and now - kept.began_at < TOGETHER and len(kept.lines) < MOST
        held = kept if fits else None
        if held is None and kept is not None and kept.ts:
            _keep_apart(book, kept, name)
        version = kept.version if kept is not None else 0
        gathering = held or Gathering(now)
        added = tuple(
            digest_line for digest_line in fresh if digest_line.id not in {line.id for line in gathering.lines}
        )
        whole = replace(gathering, lines=(*gathering.lines, *added), version=version + 1)
        claims = len(whole.lines) > FEW and not whole.ts
        if claims and whole.claimed_at is not None and now - whole.claimed_at < CLAIM:
            raise ThrottledError("another invocation posts the digest at this moment; it is tried again")
        try:
            book.swap_gathering(replace(whole, claimed_at=now) if claims else whole, version, name)
        except ConflictError:
            continue
        return _post(board, book, whole, name) if claims else _update(board, whole, name)
    raise ThrottledError("many proposals are told at this moment; it is tried again")


def follow(board: Notifier, book: MessageBook, digest: MessageRef, moved: Mapping[str, DigestLine], name: str) -> None:
    """Let the lines of a digest show how their proposals stand now; the message is edited in place.

    A digest that is not known any more is left as it is. ThrottledError where others write it all the time.
    """
    for _ in range(SWAPS):
        place, kept = name, book.gathering(name)
        if kept is None or kept.ts != digest.ts:
            place = _apart(name, digest.ts)
            kept = book.gathering(place)
        if kept is None or kept.ts != digest.ts:
            return
        lines = tuple(moved.get(line.id, line) for line in kept.lines)
        if lines == kept.lines:
            return
        whole = replace(kept, lines=lines, version=kept.version + 1)
        try:
            book.swap_gathering(whole, kept.version, place)
        except ConflictError:
            continue
        _update(board, whole, name)
        return
    raise ThrottledError("a digest is written by many at this moment; its lines follow with the next move")


def _apart(name: str, ts: str) -> str:
    return f"{name}@{ts}"


def _keep_apart(book: MessageBook, kept: Gathering, name: str) -> None:
    """Keep the row of a digest that is full or over; it may be there from a try before, and then is written over."""
    place = _apart(name, kept.ts)
    before = book.gathering(place)
    version = before.version if before is not None else 0
    book.swap_gathering(replace(kept, version=version + 1), version, place)


def _post(board: Notifier, book: MessageBook, whole: Gathering, name: str) -> MessageRef:
    """Post the digest; nowhere where Slack refuses it: the proposals then stand by themselves, and say why.

    Where it was not posted the claim is free at once: whoever comes next need not wait for it to lapse.
    """
    try:
        posted = board.post(Digest(whole.lines, channel=name))
    except WriteRefusedError as error:
        logger.warning("the digest was refused", extra={"error": str(error)})
        posted = None
    except RightsizerError:
        _free(book, whole, name)
        raise
    if posted is None or not posted.ts:
        _free(book, whole, name)
        return NO_DIGEST
    stands = replace(whole, channel=posted.channel, ts=posted.ts, version=whole.version + 1)
    book.swap_gathering(stands, whole.version, name)
    return posted


def _free(book: MessageBook, whole: Gathering, name: str) -> None:
    free = replace(whole, claimed_at=None, version=whole.version + 1)
    attempt("freeing the claim of a digest", "digest", partial(book.swap_gathering, free, whole.version, name))


def _update(board: Notifier, whole: Gathering, name: str) -> MessageRef:
    if not whole.ts:
        return NO_DIGEST
    stands = MessageRef("", whole.channel, whole.ts, "")
    try:
        board.update(stands, Digest(whole.lines, channel=name))
    except RightsizerError as error:
        logger.warning("the digest was not renewed", extra={"error": str(error)})
    return stands
