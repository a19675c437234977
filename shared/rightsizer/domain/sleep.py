"""What people are shown of an endpoint that sleeps by its office hours: one message a night, with a way to wake it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.plan import region_option


def wake_command(endpoint: str, region: str, stack: str = "rightsizer", stay: str = "") -> str:
    """The command line that wakes an endpoint, also in a shell that knows neither Region nor stack."""
    named = f" --stack {quote(stack)}" if stack != "rightsizer" else ""
    return f"rightsizer wake {quote(endpoint)}{f' --for {stay}' if stay else ''}{region_option(region)}{named}"


WAKE_MINUTES = (60, 120, 240, 480)
"""Stays that the button offers; those beyond the longest wake of the stack are left out."""


@dataclass(frozen=True, slots=True)
class SleepNote:
    """An endpoint with office hours took another state."""

    endpoint: str
    state: HoursState
    at: datetime
    version: int
    """Of the record that it was taken from: an older note tells nothing new."""
    hours: str = ""
    """The tag's value."""
    serves_at: datetime | None = None
    """When it has to serve next; None where nobody said."""
    why: str = ""
    longest_minutes: int = 0
    """The longest wake that is allowed."""
    region: str = ""
    owner: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of the endpoint before it was stopped: they say whose channel it belongs to."""

    @property
    def can_wake(self) -> bool:
        """Whether an order to wake it has something to wake."""
        return self.state is HoursState.STOPPED


@dataclass(frozen=True, slots=True)
class SleepMoved:
    """A record of the table's stream: an endpoint fell asleep, is being started, or serves again."""

    sequence: str
    note: SleepNote
