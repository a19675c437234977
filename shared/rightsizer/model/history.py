"""What past changes and tests taught, as data for the next decision (never as an import)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change or test of the endpoint, as it ended."""

    at: datetime
    from_type: str
    to_type: str
    from_count: int
    to_count: int
    ended: Literal["proven", "rolled-back", "update-failed", "handed-over", "tested", "running"]
    failure: str = ""
    """Class of the failure: capacity, health-check, alarm, memory, timeout, quota, unknown; empty when none."""
    promised_slowdown: float | None = None
    realised_slowdown: float | None = None
    demand: float | None = None
    """GPU seconds per second at the time, to notice that the demand has changed since."""
    framework: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """Past changes of one endpoint, and of the account it belongs to."""

    endpoint: tuple[PastChange, ...] = ()
    """Oldest first."""
    account: tuple[PastChange, ...] = ()
    """Of other endpoints; what they teach is shared by framework."""
    tests_this_month: int = 0
    changes_today: int = 0
    """Changes started in the account today."""
