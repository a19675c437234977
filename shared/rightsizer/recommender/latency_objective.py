"""The p95 to keep: declared by the owner, else held by their scaling, else near today's.

And how many requests a limit cuts off, and how much slower they may become.
"""

import math
from collections.abc import Sequence

from rightsizer.domain.demand import Latency
from rightsizer.domain.endpoint import Endpoint, EndpointKind, tracked_p95_s
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import seconds_text
from rightsizer.domain.usage import BIN

type Bins = Sequence[tuple[float, float]]
REAL_TIME_S = 60.0
"""Seconds after which a real-time request ends unanswered (SageMaker API reference, InvokeEndpoint)."""


def latency_objective(endpoint: Endpoint, latency: Latency, policy: Policy) -> LatencyObjective:
    """The p95 to keep, seconds: the tag, else what the owner's scaling holds, else *as today*.

    Who declares nothing expects nothing to become worse. Only the tag declares an objective.
    """
    declared = endpoint.objective
    if declared.p95_s is not None:
        if declared.p95_s > REAL_TIME_S and _ends_after_a_minute(endpoint, latency):
            source = f"{declared.source} says {seconds_text(declared.p95_s)}, and a real-time request ends before that"
            return LatencyObjective(REAL_TIME_S, True, source, declared.error_share)
        return LatencyObjective(declared.p95_s, True, declared.source, declared.error_share)
    tracked = tracked_p95_s(endpoint.scaling)
    if tracked is not None:
        held = f"its scaling policy holds the p95 of ModelLatency at {1000 * tracked:.0f} ms"
        return LatencyObjective(tracked, False, held, declared.error_share)
    today = min(max(policy.objective_factor * latency.p95_s, latency.p99_s), policy.objective_most * latency.p95_s)
    source = f"as today: max({policy.objective_factor:g} x p95, p99), at most {policy.objective_most:g} x p95"
    return LatencyObjective(today, False, source, declared.error_share)


def _ends_after_a_minute(endpoint: Endpoint, latency: Latency) -> bool:
    """Whether no request may take longer; answers that are streamed may, and show it."""
    return EndpointKind.ASYNC not in endpoint.kinds and latency.p99_s <= REAL_TIME_S


def share_of_late_requests(bins: Bins, limit_s: float) -> float:
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


def allowed_latency_factor(bins: Bins, limit_s: float, excess: float) -> float:
    """The largest factor on every latency at which at most `excess` more of the requests exceed `limit_s`."""
    allowed = share_of_late_requests(bins, limit_s) + excess
    share = 0.0
    for value, weight in reversed(bins):
        share += weight
        if share > allowed:
            return limit_s / (value * math.sqrt(BIN))
    return limit_s / bins[0][0] if bins else 1.0


def allowed_slowdown(latency: Bins, service: Bins, limit_s: float, excess: float) -> float:
    """How much slower the `service` may become before `excess` more of the requests miss the limit than do today.

    Those that miss it today because they waited are no reason against it. At least 1.
    """
    waiting = share_of_late_requests(latency, limit_s) - share_of_late_requests(service, limit_s)
    return max(allowed_latency_factor(service, limit_s, excess + max(waiting, 0.0)), 1.0)
