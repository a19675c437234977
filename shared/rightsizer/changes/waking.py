"""Proof that an endpoint scaled to zero wakes: a request that came while it had no instance was served.

HasBacklogWithoutCapacity is 1 while requests wait and there is no instance (developer guide, async-inference-monitor).
A run of such periods is a wake-up. It is over with the first request that leaves the queue; the age of the oldest one
tells how long its caller waited. What is awake all the time proves nothing about waking (law 2). Inference components
have no queue: their requests fail meanwhile, which NoCapacityInvocationFailures counts for each of them. A period in
which nobody called one says nothing of an instance, so that only a request that was served ends its run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.changes.baseline import NO_CAPACITY, PERIOD_S, REQUESTS, WAKING_S, ServicePeriod
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code, Reason, time_text

type Periods = Sequence[ServicePeriod]
"""Periods of one variant, or of one inference component."""
OF_COMPONENT = (REQUESTS, NO_CAPACITY)
"""What is read of an inference component that may sleep."""
SERVED_WITHIN = 6
"""Periods after the last one without an instance in which the requests that waited have to be served."""


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One start from no instance."""

    first: ServicePeriod
    periods: int
    """From the first to the last in which requests waited without an instance, or failed."""
    wait_s: float
    """The longest that a request waited, as far as it was published."""
    expired: float
    """Requests that expired meanwhile."""
    served: bool
    """Whether requests left the queue afterwards."""


def sleeps(change: Change) -> bool:
    """Whether the change lets the fleet go to no instance, so that its proof is a wake-up."""
    return change.option.kind is OptionKind.SCALE_TO_ZERO


def wake_ups(rows: Periods, queued: bool = True) -> list[WakeUp]:
    """The wake-ups of these periods, oldest first; the last one may still go on.

    Without a queue (`queued`) a wake-up lasts from the first failing call to the last one before a request was served.
    """
    found: list[WakeUp] = []
    start, end = None, 0
    for i, row in enumerate(rows):
        if row.is_asleep:
            start, end = i if start is None else start, i + 1
        if start is not None and (not row.is_asleep if queued else row.requests > 0):
            found.append(_wake_up(rows, start, end))
            start = None
    return found if start is None else [*found, _wake_up(rows, start, end)]


def _wake_ups_since(change: Change, rows: Periods) -> list[WakeUp]:
    return wake_ups(rows, queued=not change.option.restart_needed)


def _wake_up(rows: Periods, start: int, end: int) -> WakeUp:
    after = rows[end - 1 : end + SERVED_WITHIN]  # a period can end awake
    waited = [p.oldest_s for p in (*rows[start:end], *after) if p.oldest_s is not None]
    return WakeUp(
        first=rows[start],
        periods=end - start,
        wait_s=max(waited, default=float(PERIOD_S * (end - start))),
        expired=sum(p.expired for p in (*rows[start : end - 1], *after)),
        served=any(p.requests > 0 for p in after),
    )


def waking_verdict(change: Change, rows: Periods) -> ProofVerdict | None:
    """Bad where nothing wakes it for half an hour, or requests expired meanwhile; None elsewhere."""
    if not sleeps(change):
        return None
    for wake in _wake_ups_since(change, rows):
        since = f"since {time_text(wake.first.at)}"
        if PERIOD_S * (wake.periods - 1) > WAKING_S:
            did = "failed" if change.option.restart_needed else "waited"
            text = f"requests {did} without an instance {since}, for more than {WAKING_S / 60:.0f} minutes"
        elif wake.expired > 0:
            text = f"{wake.expired:.0f} requests expired in the queue while an instance started, {since}"
        else:
            continue
        return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    return None


def unproven_wake_sentence(change: Change, parts: Sequence[Periods]) -> str:
    """Why no wake-up is proven yet; empty where one is, or none is asked for. `parts` are what sleeps, one by one."""
    if not sleeps(change) or any(wake.served for rows in parts for wake in _wake_ups_since(change, rows)):
        return ""
    return "no request came while it had no instance, so that nobody knows whether it wakes"


def wake_figures(change: Change, parts: Sequence[Periods]) -> dict[str, float]:
    """The longest wait of a wake-up that was served, as `Change.measured` has it; nothing where it did not wake."""
    waits = (
        [wake.wait_s for rows in parts for wake in _wake_ups_since(change, rows) if wake.served]
        if sleeps(change)
        else []
    )
    return {"wake_s": max(waits)} if waits else {}


def wake_text(change: Change, parts: Sequence[Periods]) -> str:
    """How often it woke, as the end of a sentence; empty where it did not."""
    served = [wake for rows in parts for wake in _wake_ups_since(change, rows) if wake.served] if sleeps(change) else []
    if not served:
        return ""
    times = "once" if len(served) == 1 else f"{len(served)} times"
    longest = max(wake.wait_s for wake in served) / 60
    if change.option.restart_needed:
        return f"; it woke {times}, and requests failed for {longest:.0f} minutes at most"
    return f"; it woke {times} for a request, which waited {longest:.0f} minutes at most"
