"""How many requests a limit cuts off, and how much slower they may become."""

import math
from collections.abc import Sequence

from rightsizer.domain.usage import BIN

type Bins = Sequence[tuple[float, float]]


def late_share(bins: Bins, limit_s: float) -> float:
    """Share of the requests above `limit_s`, with part of the bin that the limit falls into."""
    share = 0.0
    edge = math.sqrt(BIN)
    for value, weight in reversed(bins):
        if value / edge >= limit_s:
            share += weight
        elif value * edge > limit_s:
            share += weight * (value * edge - limit_s) / (value * edge - value / edge)
        else:
            break
    return share


def stretch(bins: Bins, limit_s: float, excess: float) -> float:
    """The largest factor on every latency at which at most `excess` more of the requests exceed `limit_s`."""
    allowed = late_share(bins, limit_s) + excess
    share = 0.0
    for value, weight in reversed(bins):
        share += weight
        if share > allowed:
            return limit_s / (value * math.sqrt(BIN))
    return limit_s / bins[0][0] if bins else 1.0


def room(latency: Bins, service: Bins, limit_s: float, excess: float) -> float:
    """How much slower the `service` may become before `excess` more of the requests miss the limit than do today.

    Those that miss it today because they waited are no reason against it. At least 1.
    """
    waiting = late_share(latency, limit_s) - late_share(service, limit_s)
    return max(stretch(service, limit_s, excess + max(waiting, 0.0)), 1.0)
