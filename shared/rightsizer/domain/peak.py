"""When most requests come, as far as past days tell."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peak:
    """The busiest hour of the day, UTC, and the weekdays (Monday is 0) on which it carries what it usually does."""

    hour: int
    weekdays: tuple[int, ...]
    """Never empty. A weekday that was not seen counts as one like the others."""
