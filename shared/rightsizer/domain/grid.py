"""The window of a reading: aligned outwards to whole periods."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Grid:
    """The aligned window that is read."""

    start: datetime
    end: datetime
    period_s: int

    @property
    def size(self) -> int:
        """Number of periods."""
        return int((self.end - self.start).total_seconds()) // self.period_s


def align(start: datetime, end: datetime, period_s: int) -> Grid:
    """The window outwards to multiples of the period, in UTC."""
    first = int(start.timestamp()) // period_s * period_s
    last = -(-math.ceil(end.timestamp()) // period_s) * period_s
    return Grid(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC), period_s)
