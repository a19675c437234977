"""Signals of two weeks by the hour, as a picture shows them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WeekSignals:
    """Hourly values of the two weeks, oldest first; None where an hour has no data."""

    start: datetime
    gpu_percent: tuple[float | None, ...]
    """Of all GPUs of an instance, 0..100."""
    gpu_gib: tuple[float | None, ...]
    """Of one GPU."""
    p95_s: tuple[float | None, ...]
    then_percent: tuple[float | None, ...] = ()
    """The same hours replayed on the candidate, 100 is all that it can."""
    then_gib: float | None = None
    """GiB that one GPU of the candidate has for a model."""
