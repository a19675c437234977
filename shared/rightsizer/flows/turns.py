"""Work in turns, so that an invocation ends before its time does: what was not begun is named, and done elsewhere."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

CHUNK = 250
"""Endpoints that are read and judged together at most; each window is folded as it comes, a digest is about 70 kB."""
QUICK_S = 5.0
"""A turn that took less is followed by one of twice the size."""
RESERVE_S = 60.0
"""Seconds for what follows the last turn: judging and saving, and telling the queue."""
SAFETY = 2.0
"""Times the last turn took that must be left for the next one."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How work is divided."""

    left: Callable[[], float] = lambda: math.inf
    """Seconds that are left; infinite where nothing ends by itself."""
    first: int = 25
    """Items of the first turn: what they need is not known yet."""
    most: int = CHUNK

    def divide[T](self, items: Sequence[T]) -> Iterator[tuple[Sequence[T], bool]]:
        """The items in their order, turn by turn, and whether there is time for them; once there is not, all the rest.

        The caller works on what it is given before it asks for more: that is what is timed.
        """
        size, done, last = (self.most if math.isinf(self.left()) else self.first), 0, 0.0
        while done < len(items):
            before = self.left()
            if before < max(RESERVE_S, SAFETY * last):
                yield items[done:], False
                return
            yield items[done : done + size], True
            done += size
            last = before - self.left() if math.isfinite(before) else 0.0
            size = min(2 * size, self.most) if last < QUICK_S else max(1, min(size, self.first))


def first_turn(lookback_days: int) -> int:
    """Endpoints of the first turn: about 350 days of metrics, 1.6 million datapoints."""
    return max(1, 350 // lookback_days)
