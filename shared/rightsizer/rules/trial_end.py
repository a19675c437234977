"""Tell when a shadow test has seen enough, and what it measured.

The shadow's answers go to nobody, so only the production variant can be harmed: it is watched as after any change. The
mean latency of the same requests on both is the ratio that the next decision uses.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rightsizer.model.change import Change, FailureClass
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import Verdict
from rightsizer.model.usage import MetricWindow, NoMetrics, Signal

MEAN = Signal("ModelLatency", "Average")
P95 = Signal("ModelLatency", "p95")
REQUESTS = Signal("Invocations", "Sum")
ERRORS = Signal("Invocation5XXErrors", "Sum")
GPU_MEMORY = Signal("GPUMemoryUtilization", "Maximum")
BAD_SHARE = 0.1
BAD_REQUESTS = 5


def judge(
    change: Change,
    production: Sequence[MetricWindow | NoMetrics],
    shadow: MetricWindow | NoMetrics,
    now: datetime,
) -> Verdict:
    """Bad where production suffers, not yet while the test runs, proven with figures or given up without. Total."""
    since, lasts = change.turned_at or now, timedelta(seconds=change.plan.test_s)
    served = sum(_all(w, REQUESTS) for w in production)
    failed = sum(_all(w, ERRORS) for w in production)
    usual = change.baseline.get("error_share", 0.0)
    if failed >= BAD_REQUESTS and failed > max(BAD_SHARE, 3 * usual) * max(served, failed):
        text = f"{failed:.0f} of {served:.0f} requests failed while the shadow test ran"
        return Verdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    if now - since < lasts:
        return Verdict(
            "not-yet", Reason(Code.UNPROVEN, f"the shadow test runs until {since + lasts:%Y-%m-%d %H:%M} UTC")
        )
    kind = change.option.target.instance_type
    old, new = _mean(production, MEAN), _mean([shadow], MEAN)
    if old is None or new is None or old <= 0:
        return Verdict("given-up", Reason(Code.UNPROVEN, f"the shadow test on {kind} served nothing to measure"))
    figures = {"latency_ratio": new / old, "mean_s": new * 1e-6}
    memory = _values(shadow, GPU_MEMORY)
    if memory:
        figures["gpu_memory_percent"] = max(memory)
    text = (
        f"tested: the mean latency on {kind} was {new / old:.2f} of today's for the same requests, then it was removed"
    )
    return Verdict("proven", Reason(Code.PROVEN, text), figures=figures)


def _mean(windows: Sequence[MetricWindow | NoMetrics], signal: Signal) -> float | None:
    values = [v for w in windows for v in _values(w, signal)]
    return sum(values) / len(values) if values else None


def _all(window: MetricWindow | NoMetrics, signal: Signal) -> float:
    return sum(_values(window, signal))


def _values(window: MetricWindow | NoMetrics, signal: Signal) -> list[float]:
    series = window.series.get(signal) if isinstance(window, MetricWindow) else None
    return [v for v in series.values if v == v] if series is not None else []
