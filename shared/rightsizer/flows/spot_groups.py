"""What a sweep does beside the endpoints: remember the Auto Scaling groups, ask for a look at groups and training jobs.

Facts first: `interruption` acts on them within the two minutes and reads nothing else. Looking is for `evaluate`: the
sweep sends it messages, as it does for endpoints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rightsizer.errors import RightsizerError
from rightsizer.model.trigger import LookBeyond, SweepKind
from rightsizer.ports_spot import GroupReader, JobReader, LookQueue, SpotBook, Unread
from rightsizer.telemetry import logger

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
    """Store the facts of every Spot or opted-in group; one that cannot be read stops no other."""
    kept, unread = 0, []
    for found in reader.groups(now):
        if isinstance(found, Unread):
            logger.warning("an Auto Scaling group could not be read", group=found.name, reason=str(found.reason))
            unread.append(found)
        else:
            book.keep(found)
            kept += 1
    return Remembered(kept, tuple(unread))


def look_beyond(ports: BeyondPorts, sweep: SweepKind, now: datetime) -> Remembered:
    """Groups and training jobs after a sweep of the endpoints: facts each time, groups' options after a full one.

    What cannot be read costs itself only, never the sweep of the endpoints.
    """
    done, asked = Remembered(0, ()), 0
    try:
        done = remember_groups(ports.groups, ports.book, now)
        if sweep is SweepKind.FULL:
            groups = [group.name for group in ports.book.groups() if group.purchase.uses_spot]
            asked += _ask(ports.queue, "group", groups, now)
    except RightsizerError as error:
        logger.error("the Auto Scaling groups could not be read", error=str(error))
    try:
        asked += _ask(ports.queue, "training-job", ports.jobs.open_jobs(), now)
    except RightsizerError as error:
        logger.error("the training jobs could not be read", error=str(error))
    return Remembered(done.kept, done.unread, asked)


def _ask(queue: LookQueue, subject: Literal["group", "training-job"], names: Sequence[str], now: datetime) -> int:
    for start in range(0, len(names), PAGE):
        key = f"{subject}|sweep|{now.isoformat()}|{start}"
        queue.send_beyond(LookBeyond(subject, tuple(names[start : start + PAGE]), "sweep", now, key))
    return len(names)
