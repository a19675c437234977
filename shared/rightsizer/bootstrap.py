"""Settings to adapters to flows: the only place that chooses.

One cached function per door, built on the first call and not at import, so that an invocation pays only for its own
door. `now` is the only clock; a simulated account replaces it by `set_clock`.
"""

from collections.abc import Callable
from datetime import UTC, datetime

_clock: Callable[[], datetime] = lambda: datetime.now(UTC)  # noqa: E731 - replaced as a whole by set_clock


def now() -> datetime:
    """The time, aware and in UTC."""
    return _clock()


def set_clock(clock: Callable[[], datetime]) -> None:
    """Let the time come from a simulated account."""
    global _clock
    _clock = clock
