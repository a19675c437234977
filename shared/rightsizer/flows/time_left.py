"""How long an invocation may go on. Time enters as a value, so that a flow does not know Lambda."""

from collections.abc import Callable

type TimeLeft = Callable[[], int]
"""Milliseconds until the invocation is ended from outside."""

RESERVE_MS = 45_000
"""With less than this no further change is looked at: one look must end, and savings and errands come after."""
BOOKS_RESERVE_MS = 30_000
"""With less than this no further saving is booked: the errands come after."""


def unlimited() -> int:
    """Time without an end, for whoever calls a flow outside Lambda: a day."""
    return 86_400_000
