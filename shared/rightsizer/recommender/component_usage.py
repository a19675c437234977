"""What the metrics of one inference component say of the look-back. Missing is not idle (law 1)."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from rightsizer.domain.component import PER_COPY, ComponentSight, ComponentUsage
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentDay
from rightsizer.domain.usage import SLOT_S, SLOTS, MetricStatistic, MetricWindow, NoMetrics, Spread, quantile

USED = ("GPUUtilizationNormalized", "CPUUtilizationNormalized")
"""Utilisation that every copy publishes while it runs: a period with neither is unknown."""


def component_usage(
    sight: ComponentSight, autoscaled: bool, window: MetricWindow | NoMetrics, policy: Policy
) -> ComponentUsage | Reason:
    """The usage of the component; why it is unknown. A window that was read in part is no evidence.

    Copies of one without autoscaling are those of now since it was modified last: what is older is left out.
    """
    if isinstance(window, NoMetrics):
        return window.reason
    if window.notes:
        return window.notes[0]
    size = round((window.end - window.start).total_seconds() / SLOT_S)
    since = sight.modified_at + timedelta(minutes=policy.mask_minutes)
    first = 0 if autoscaled else min(size, max(0, math.ceil((since - window.start).total_seconds() / SLOT_S)))

    def values(metric: str, statistic: str) -> list[float]:
        series = window.series.get(MetricStatistic(metric, statistic))
        return series.cut(window.start, size)[first:] if series is not None else [math.nan] * (size - first)

    busy = [values(metric, "Average") for metric in USED]
    alive = [any(v == v for v in slot) for slot in zip(*busy, strict=True)]
    if not any(alive):
        text = f"CloudWatch has no utilisation of component {sight.name}; that is unknown, not idle"
        return Reason(Code.NO_DATAPOINTS, text)
    began = alive.index(True)
    called = values("Invocations", "Sum")[began:]
    calls = _known(called)
    peaks = _known(values("ConcurrentRequestsPerCopy", "Maximum")[began:])
    latencies = sorted(_known(values("ModelLatency", "p95")[began:]))
    whole = [values(metric, "Maximum") for metric in ("GPUMemoryUtilizationNormalized", "MemoryUtilizationNormalized")]
    return ComponentUsage(
        days=round(len(alive[began:]) / SLOTS, 2),
        valid_share=round(sum(alive) / len(alive[began:]), 4),
        requests=sum(calls),
        requests_per_copy=max(calls, default=0.0) / max(sight.current, 1) / (SLOT_S / 60),
        concurrency=max(peaks, default=None),
        without_capacity=sum(_known(values("NoCapacityInvocationFailures", "Sum")[began:])),
        p95_s=quantile(latencies, 0.95) / 1e6 if latencies else None,
        gpu=Spread.from_values(busy[0], values(USED[0], "Maximum"), 1.0),
        gpu_memory=Spread.from_values(whole[0], whole[0], 1.0),
        cpu=Spread.from_values(busy[1], values(USED[1], "Maximum"), 1.0),
        memory=Spread.from_values(whole[1], whole[1], 1.0),
        most_copies=_most_copies(called, values(PER_COPY.metric, PER_COPY.statistic)[began:]) if autoscaled else None,
        by_day=tuple(_days(window.start + timedelta(seconds=SLOT_S * (first + began)), called, busy[0][began:], alive)),
    )


def _days(
    start: datetime, called: Sequence[float], gpu: Sequence[float], alive: Sequence[bool]
) -> Iterator[ComponentDay]:
    """Calls and mean use of the GPU on each day in UTC; the values begin at `start`, `alive` ends with them."""
    slots = zip(called, gpu, alive[-len(called) :], strict=True)
    dated = (((start + timedelta(seconds=SLOT_S * n)).date(), slot) for n, slot in enumerate(slots))
    for day, rows in groupby(dated, key=lambda row: row[0]):
        found = [slot for _, slot in rows]
        used = _known([share for _, share, _ in found])
        requests = sum(_known([calls for calls, _, _ in found])) if any(ran for _, _, ran in found) else None
        yield ComponentDay(day, requests, round(sum(used) / len(used) / 100, 4) if used else None)


def _most_copies(calls: list[float], per_copy: list[float]) -> float | None:
    """Most copies that ran in any period with calls; None where one with calls does not show it."""
    rows = [(all_of, each) for all_of, each in zip(calls, per_copy, strict=True) if all_of > 0]
    if not all(each > 0 for _, each in rows):
        return None
    return max((round(all_of / each, 3) for all_of, each in rows), default=None)


def _known(values: list[float]) -> list[float]:
    return [v for v in values if v == v]
