"""What a sweep does beside the endpoints: remember the Auto Scaling groups, ask for a look at groups and training jobs.

Facts first: `interruption` acts on them within the two minutes and reads nothing else. Looking is for `evaluate`: the
sweep sends it messages, as it does for endpoints.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from rightsizer.domain.trigger import LookBeyond, SweepKind
from rightsizer.ports.spot import GroupReader, JobReader, LookQueue, SpotBook, Unread
from rightsizer.telemetry import Failed, attempt, logger

PAGE = 10
"""Groups or jobs in one message."""


@dataclass(frozen=True, slots=True)
class BeyondPorts:
    """What it needs."""

    groups: GroupReader
    jobs: JobReader
    book: SpotBook
    queue: LookQueue


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a sweep of the groups and jobs did."""

    kept: int
    unread: tuple[Unread, ...]
    asked: int = 0
    """Groups and jobs that `evaluate` was asked to look at."""


def remember_groups(reader: GroupReader, book: SpotBook, now: datetime) -> Remembered:
    """Store the facts of every Spot or opted-in group; one that cannot be read or stored stops no other."""
    kept, unread = 0, []
    for found in reader.groups(now):
        if isinstance(found, Unread):
            logger.warning("an Auto Scaling group could not be read", group=found.name, reason=str(found.reason))
            unread.append(found)
        elif not isinstance(attempt("keeping the facts of a group", found.name, partial(book.keep, found)), Failed):
            kept += 1
    return Remembered(kept, tuple(unread))


def look_beyond(ports: BeyondPorts, sweep: SweepKind, now: datetime) -> Remembered:
    """Groups and training jobs after a sweep of the endpoints: facts each time, groups' options after a full one.

    What cannot be read costs itself only, never the sweep of the endpoints.
    """
    found = attempt("remembering groups", "all", partial(remember_groups, ports.groups, ports.book, now))
    done = Remembered(0, ()) if isinstance(found, Failed) else found
    asked = 0
    if sweep is SweepKind.FULL:
        asked += _asked(ports.queue, "group", lambda: _spot_groups(ports.book), now)
    asked += _asked(ports.queue, "training-job", ports.jobs.open_jobs, now)
    return Remembered(done.kept, done.unread, asked)


def _spot_groups(book: SpotBook) -> Sequence[str]:
    return [group.name for group in book.groups() if group.purchase.uses_spot]


def _asked(
    queue: LookQueue, subject: Literal["group", "training-job"], listed: Callable[[], Sequence[str]], now: datetime
) -> int:
    """Ask for a look at what is listed, page by page; how many the queue took. A page that is refused stops no other.

    The next sweep asks again for what is left out: groups each day, jobs each hour.
    """
    names = attempt(f"listing each {subject}", "all", listed)
    if isinstance(names, Failed):
        return 0
    taken = 0
    for start in range(0, len(names), PAGE):
        some = tuple(names[start : start + PAGE])
        look = LookBeyond(subject, some, "sweep", now, f"{subject}|sweep|{now.isoformat()}|{start}")
        done = attempt(f"asking for a look at each {subject}", str(start), partial(queue.send_beyond, look))
        taken += 0 if isinstance(done, Failed) else len(some)
    return taken
