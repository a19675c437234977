"""The account's own time. Nothing in the sandbox that behaves like AWS reads the machine's clock."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Timed(Protocol):
    """Something that happens by itself as time passes."""

    def next_due(self, now: datetime) -> datetime | None:
        """The next moment after `now` at which something may happen, or None."""
        ...

    def happen(self, now: datetime) -> None:
        """Do what is due at `now`."""
        ...


class Clock:
    """A clock that only moves when it is told to, and then lets everything happen in its order."""

    def __init__(self, now: datetime) -> None:
        if now.tzinfo is None:
            raise ValueError("the clock needs an aware time, such as datetime(2026, 11, 2, 9, tzinfo=UTC)")
        self._now = now.astimezone(UTC)
        self._timed: list[Timed] = []

    @property
    def now(self) -> datetime:
        """The simulated time, aware UTC."""
        return self._now

    def drive(self, timed: Timed) -> None:
        """Let `timed` take part; those added first act first at the same moment."""
        self._timed.append(timed)

    def advance(self, by: timedelta) -> None:
        """Move on by `by`, stopping at each moment at which something is due."""
        if by < timedelta(0):
            raise ValueError("time does not run backwards")
        self.advance_to(self._now + by)

    def advance_to(self, end: datetime) -> None:
        """Move on to `end`."""
        while self._now < end:
            dues = [due for timed in self._timed if (due := timed.next_due(self._now)) is not None]
            self._now = min([end, *(due for due in dues if due > self._now)])
            for timed in self._timed:
                timed.happen(self._now)

    def run_until(
        self, condition: Callable[[], bool], limit: timedelta, step: timedelta = timedelta(minutes=1)
    ) -> bool:
        """Advance step by step until `condition` holds or `limit` has passed; says whether it holds."""
        end = self._now + limit
        while not condition() and self._now < end:
            self.advance(min(step, end - self._now))
        return condition()


def next_minute(now: datetime) -> datetime:
    """The next full minute after `now`."""
    return now.replace(second=0, microsecond=0) + timedelta(minutes=1)
