"""Datapoints a second, so that a long reading stays within CloudWatch's quota instead of running into it.

Source: CloudWatch user guide, "CloudWatch service quotas": GetMetricData gives 396,000 datapoints a second, account and
Region together, where StartTime is more than three hours ago; it throttles beyond.
"""

import time
from collections.abc import Callable
from threading import Lock

QUOTA = 396_000
SHARE = 0.75
"""Of the quota that we take at most: others read metrics too."""
INVOCATIONS = 4
"""Of `evaluate` at the same time (MaximumConcurrency of its queue); each takes its part."""
AT_ONCE = 2_000_000
"""Datapoints that are read without waiting: 25 to 30 endpoints over a fortnight. Retries cover what is throttled."""


class Pace:
    """Gives leave to read; may be shared by threads."""

    def __init__(
        self,
        per_second: float = QUOTA * SHARE / INVOCATIONS,
        at_once: float = AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._most = per_second, at_once
        self._clock, self._sleep = clock, sleep
        self._lock, self._stock, self._seen = Lock(), at_once, clock()

    def take(self, points: int) -> None:
        """Wait until so many datapoints may be asked for."""
        with self._lock:
            now = self._clock()
            self._stock = min(self._most, self._stock + (now - self._seen) * self._rate) - points
            self._seen = now
            wait = -self._stock / self._rate
        if wait > 0:
            self._sleep(wait)
