"""Turns: an evaluation does its work in parts, so that an invocation ends in time, and knows what it did not begin."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

CHUNK = 250
"""Endpoints that are read and judged together at most."""
FIRST_DAYS, MOST_DAYS = 350, 3_500
"""Days of one endpoint in the first turn at most (1.6 million datapoints), and in a later one (310 MiB of digests)."""
QUICK_S = 5.0
"""A turn that took less is followed by one of twice the size."""
SPARE = 0.55
"""Share of an invocation's time that no turn is meant to use: the next one may be slower than the last one was.

Half of the time is to spare; with 0.5 here an invocation on two busy cores ended 6 s after half of its time."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Divides work by the time that is left."""

    left: Callable[[], float] = lambda: math.inf
    """Seconds that are left; infinite where nothing ends by itself."""
    first: int = 25
    """Items of the first turn: what they need is not known yet."""
    most: int = CHUNK
    reserve: float = 60.0
    """Seconds that are left when the last turn ends, if it takes as long as the one before."""
    together: int = CHUNK
    """Items of a turn whose metrics are read together: fewer let progress be told sooner."""

    def divide[T](self, items: Sequence[T]) -> Iterator[tuple[Sequence[T], bool]]:
        """The items in turns, each with whether time is left; without time, all the rest.

        The caller works on what it is given before it asks for more: that is what is timed.
        """
        size, done, last = (self.most if math.isinf(self.left()) else self.first), 0, 0.0
        while done < len(items):
            before = self.left()
            if before < self.reserve + last:
                yield items[done:], False
                return
            yield items[done : done + size], True
            done += size
            last = before - self.left() if math.isfinite(before) else 0.0
            size = min(2 * size, self.most) if last < QUICK_S else max(1, min(size, self.first))


def divide_time(lookback_days: int, left: Callable[[], float]) -> Turns:
    """Turns of an invocation: they leave `SPARE` of the time unused, whatever the look-back is."""
    first, most = max(1, FIRST_DAYS // lookback_days), max(1, min(CHUNK, MOST_DAYS // lookback_days))
    return Turns(left, first, most, SPARE * left())
