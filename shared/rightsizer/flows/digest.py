"""Many proposals at once become one message, in whose thread each has its own.

New proposals are counted within half an hour, by one row of the message book that every invocation swaps. Up to `FEW`
stand by themselves; those beyond go into the thread of a digest. The invocation that takes the count beyond claims the
digest and posts it; another one that comes meanwhile fails and is delivered again, when the digest stands. A claim
whose owner died is free again after a minute.
"""

from collections.abc import Sequence
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
MOST = 500
"""Proposals of one digest, so that its row stays far below DynamoDB's 400 KiB; the next ones begin another."""


def thread_for(board: Notifier, book: MessageBook, fresh: Sequence[DigestLine], now: datetime) -> str:
    """The thread that these new proposals are posted in; empty where they stand by themselves.

    ThrottledError while another invocation posts the digest.
    """
    for _ in range(SWAPS):
        kept = book.gathering()
        fits = kept is not None and now - kept.began_at < TOGETHER and len(kept.lines) < MOST
        held = kept if fits else None
        version = kept.version if kept is not None else 0
        known = held or Gathering(now)
        added = tuple(one for one in fresh if one.id not in {line.id for line in known.lines})
        whole = replace(known, lines=(*known.lines, *added), version=version + 1)
        claims = len(whole.lines) > FEW and not whole.ts
        if claims and whole.claimed_at is not None and now - whole.claimed_at < CLAIM:
            raise ThrottledError("another invocation posts the digest at this moment; it is tried again")
        try:
            book.swap_gathering(replace(whole, claimed_at=now) if claims else whole, version)
        except ConflictError:
            continue
        return _post(board, book, whole) if claims else _update(board, whole)
    raise ThrottledError("many proposals are told at this moment; it is tried again")


def _post(board: Notifier, book: MessageBook, whole: Gathering) -> str:
    """Post the digest; empty where Slack refuses it: the proposals then stand by themselves, and say why.

    Where it was not posted the claim is free at once: whoever comes next need not wait for it to lapse.
    """
    try:
        posted = board.post(Digest(whole.lines))
    except WriteRefusedError as error:
        logger.warning("the digest was refused", extra={"error": str(error)})
        posted = None
    except RightsizerError:
        _free(book, whole)
        raise
    if posted is None or not posted.ts:
        _free(book, whole)
        return ""
    book.swap_gathering(replace(whole, channel=posted.channel, ts=posted.ts, version=whole.version + 1), whole.version)
    return posted.ts


def _free(book: MessageBook, whole: Gathering) -> None:
    free = replace(whole, claimed_at=None, version=whole.version + 1)
    attempt("freeing the claim of a digest", "digest", partial(book.swap_gathering, free, whole.version))


def _update(board: Notifier, whole: Gathering) -> str:
    if not whole.ts:
        return ""
    try:
        board.update(MessageRef("", whole.channel, whole.ts, ""), Digest(whole.lines))
    except RightsizerError as error:
        logger.warning("the digest was not renewed", extra={"error": str(error)})
    return whole.ts
