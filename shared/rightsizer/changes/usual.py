"""What was usual before a change, so that alarms and proof compare with this endpoint and not with a constant."""

from collections.abc import Sequence
from datetime import datetime

from rightsizer.changes import baseline_queue as queue
from rightsizer.changes.baseline import PEAK, PERIOD_S, Period, Windows, by_hour, figures, periods
from rightsizer.domain.usage import MetricWindow


def baseline(windows: Windows) -> dict[str, float]:
    """What was usual, as `Change.baseline` has it. Empty when nothing was published; then only absolute limits hold."""
    by_variant = {w.variant: tuple(periods(w)) for w in windows if isinstance(w, MetricWindow)}
    rows = [p for some in by_variant.values() for p in some]
    requests, errors = sum(p.requests for p in rows), sum(p.errors for p in rows)
    found: dict[str, float] = {}
    if requests > 0:
        found[PEAK] = _peak(rows)
        found |= {f"{PEAK}/{name}": _peak(some) for name, some in by_variant.items() if some}
        found["error_share"] = errors / requests
        found["errors_per_minute"] = max((p.errors for p in rows), default=0.0) * 60 / PERIOD_S
    waited = [queue.longest(some) for some in by_variant.values()]
    if known := [seconds for seconds in waited if seconds is not None]:
        found[queue.USUAL] = max(known)
    latencies = sorted(p.p95_s for p in rows if p.p95_s is not None)
    if latencies:
        found["p95_s"] = latencies[len(latencies) // 2]
    served = figures(windows)
    return found | {name: served[name] for name in ("mean_s", "gpu_s", "gpu_requests") if served.get(name)}


def _peak(rows: Sequence[Period]) -> float:
    """Requests of the busiest hour of a day; the median of the days."""
    by_day: dict[datetime, float] = {}
    for hour, requests in by_hour(rows).items():
        day = hour.replace(hour=0)
        by_day[day] = max(by_day.get(day, 0.0), requests)
    return sorted(by_day.values())[len(by_day) // 2]
