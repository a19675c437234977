"""How long requests wait in the queue of an asynchronous endpoint, against how long they used to.

By Little's law a request waits for as long as the queue needs at the rate at which it is worked off: backlog over
requests per second. That is the backlog of each instance times the seconds that a request takes there, so half the
instances with half the work each are no worse, and a fleet that falls behind shows at once.
"""

import math
from collections.abc import Iterator, Sequence

from rightsizer.changes.baseline import PERIOD_S, Period
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.live_state import Verdict
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code, Reason

USUAL = "queue_s"
"""Key of the baseline: the longest wait of half an hour before the change, seconds."""
WINDOW = 6
"""Periods in the 30 minutes that are judged together."""
KNOWN = 3
"""Of them, those of which the backlog must be known."""
LEAST = 5.0
"""Requests in the queue below which nothing is said."""
FACTOR = 2.0
FLOOR_S = 60.0
"""A wait that is no harm, whatever was usual."""
WAKING_S = 1800.0
"""The same where the fleet sleeps: the first request waits for an instance."""
STUCK_S = 86_400.0
"""Stands for a queue of which nothing is worked off."""


def longest(rows: Sequence[Period]) -> float | None:
    """The longest wait of half an hour with a real queue, seconds; None where none was seen.

    A batch that comes once a week waits behind any fleet, so two quiet days say nothing of how long it may.
    """
    return max((seconds for _, seconds, backlog in _waits(rows) if backlog >= LEAST), default=None)


def behind(change: Change, rows: Sequence[Period]) -> Verdict | None:
    """The verdict on a queue that is worked off too slowly; None where it is not, or what was usual is not known.

    A fleet that sleeps is judged in any case: there the queue alone shows that nothing wakes.
    """
    usual = change.baseline.get(USUAL, 0.0 if _sleeps(change) else None)
    if usual is None or change.option.restores:
        return None
    limit = max(FACTOR * usual, WAKING_S if _sleeps(change) else FLOOR_S)
    for first, seconds, backlog in _waits(rows):
        if backlog >= LEAST and seconds > limit:
            count = max(1, sum(v.count for v in change.plan.after))
            said = "nothing was worked off" if seconds >= STUCK_S else f"a request waited {seconds:.0f} s"
            each = f"{backlog / count:.1f} per instance"
            text = f"{backlog:.0f} requests were in the queue ({each}) within 30 minutes from {first.at:%Y-%m-%d %H:%M}"
            text += f" UTC and {said}; the limit is {limit:.0f} s, the longest before was {usual:.0f} s"
            return Verdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    return None


def _waits(rows: Sequence[Period]) -> Iterator[tuple[Period, float, float]]:
    """Of each half hour: its first period, the wait in seconds, and the backlog on average."""
    for start in range(len(rows) - WINDOW + 1):
        some = rows[start : start + WINDOW]
        known = [p.backlog for p in some if p.backlog is not None]
        if len(known) < KNOWN:
            continue
        backlog, rate = math.fsum(known) / len(known), sum(p.requests for p in some) / (PERIOD_S * len(some))
        seconds = backlog / rate if rate > 0 else (STUCK_S if backlog >= LEAST else 0.0)
        yield some[0], min(seconds, STUCK_S), backlog


def _sleeps(change: Change) -> bool:
    asleep = any(target.minimum == 0 for target in (change.before.scaling if change.before else ()))
    return asleep or change.option.kind is OptionKind.SCALE_TO_ZERO
