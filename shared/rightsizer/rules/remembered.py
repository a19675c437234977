"""What kept digests are still worth: from when a variant must be read, and what is kept of it afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from rightsizer.model.digest import DayDigest, KeptUsage
from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint

LATE = timedelta(hours=1)
"""Datapoints may come so late: a day is complete this long after its end."""
OURS = timedelta(hours=6)
"""A modification this close to a change of ours is that change."""
FRESH = timedelta(hours=48)
"""After a change of ours the running day is read too: it tells soonest whether users suffer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read of a variant: whole days from `start` on, and what is known of the days before."""

    start: datetime
    end: datetime
    first: date
    """First day that is known then."""
    known: tuple[DayDigest, ...] = ()


def complete_until(now: datetime) -> date:
    """The first day that is not complete yet."""
    return (now - LATE).astimezone(UTC).date()


def reading(endpoint: Endpoint, kept: KeptUsage | None, history: History, lookback_days: int, now: datetime) -> Reading:
    """The part that is not kept. Everything, where the endpoint was modified by others since, or too little is kept."""
    start = now - timedelta(days=lookback_days)
    if kept is None or kept.first > start.date() or kept.until <= start.date() or kept.until > now.date():
        return Reading(start, now, start.date())
    if kept.modified_at != endpoint.modified_at and not _ours(endpoint, history):
        return Reading(start, now, start.date())
    known = tuple(d for d in kept.days if start.date() <= d.day < kept.until)
    begin, complete = _midnight(kept.until), _midnight(complete_until(now))
    recent = now - endpoint.modified_at < FRESH
    return Reading(begin, now if recent or complete <= begin else complete, kept.first, known)


def keep(endpoint: Endpoint, done: Reading, days: Sequence[DayDigest], now: datetime) -> KeptUsage:
    """What to keep after `done` was read: complete days only, the first of which may be read in part."""
    until = complete_until(now)
    variant = endpoint.variants[0].name
    complete = tuple(d for d in days if d.day < until)
    return KeptUsage(endpoint.ref.name, variant, endpoint.modified_at, min(done.first, until), until, complete)


def _ours(endpoint: Endpoint, history: History) -> bool:
    """Scaling modifies an endpoint too, but leaves what one request costs as it was."""
    return bool(endpoint.scaling) or any(abs(p.at - endpoint.modified_at) < OURS for p in history.endpoint)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
