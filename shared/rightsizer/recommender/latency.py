"""The p95 to keep, and the service time behind a latency that contains waiting."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.domain.demand import Latency
from rightsizer.domain.endpoint import Endpoint, EndpointKind, tracked_p95_s
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.domain.usage import BIN, SLOT_S, SLOTS, DailyUsage, known_values

type Bins = Sequence[tuple[float, float]]
REAL_TIME_S = 60.0
"""Seconds after which a real-time request ends unanswered (SageMaker API reference, InvokeEndpoint)."""

OVERHEAD_TOLD, OVERHEAD_MOST = 0.05, 0.5
"""Shares of what was promised: up to the first, time around the model is noise, for days differ by more; with more than
the second no instance keeps the promise, and what is left of it is no measure of one."""


def seconds_for_model(promised_s: float, overhead_s: float, queued: bool, slowest_s: float) -> float | None:
    """Seconds of a promised latency that the model may take; None where most of it passes around the model.

    Of a longer promise a minute counts, with which a real-time request ends. One that is `queued` may take longer, and
    so may an answer that is streamed, which the `slowest_s` shows.
    """
    most = promised_s if queued or slowest_s > REAL_TIME_S else min(promised_s, REAL_TIME_S)
    if overhead_s > OVERHEAD_MOST * most:
        return None
    return most - overhead_s if overhead_s >= OVERHEAD_TOLD * most else most


def promised_objective(endpoint: Endpoint, overhead_s: float, slowest_s: float) -> LatencyObjective | None:
    """The part of the declared latency that the model may take; None without one, or where most passes around it."""
    declared, queued = endpoint.objective, EndpointKind.ASYNC in endpoint.kinds
    if declared.p95_s is None:
        return None
    left = seconds_for_model(declared.p95_s, overhead_s, queued, slowest_s)
    if left is None:
        return None
    most = seconds_for_model(declared.p95_s, 0.0, queued, slowest_s) or left
    source, around = declared.source, overhead_s if left < most else 0.0
    if most < declared.p95_s:
        source = f"{source} says {seconds_text(declared.p95_s)}, and a real-time request ends before that"
    source = f"{source}: {seconds_text(most)}, of which {_passes_text(around)}" if around else source
    return LatencyObjective(left, True, source, declared.error_share, around)


def _passes_text(overhead_s: float) -> str:
    return f"{seconds_text(overhead_s)} pass around the model (OverheadLatency)"


def latency_objective(
    endpoint: Endpoint, latency: Latency, policy: Policy, overhead_s: float = 0.0
) -> LatencyObjective:
    """The p95 of the model to keep, seconds: the tag, else what the owner's scaling holds, else *as today*.

    Who declares nothing expects nothing to become worse. Only the tag declares an objective: what callers wait, so
    that `overhead_s`, the mean that passes around the model, is taken off. Where that alone is most of what was
    declared no instance keeps the promise, and the model's latency stays as today.
    """
    declared, around, broken = endpoint.objective, 0.0, ""
    if (promised := promised_objective(endpoint, overhead_s, latency.p99_s)) is not None:
        return promised
    if declared.p95_s is not None:
        around = overhead_s
        broken = f"{declared.source} says {seconds_text(declared.p95_s)}, and {_passes_text(around)}"
        broken = f"{broken}, which no instance changes; "
    tracked = tracked_p95_s(endpoint.scaling)
    if tracked is not None:
        held = f"its scaling policy holds the p95 of ModelLatency at {1000 * tracked:.0f} ms"
        return LatencyObjective(tracked, False, f"{broken}{held}", declared.error_share, around)
    today = min(max(policy.objective_factor * latency.p95_s, latency.p99_s), policy.objective_most * latency.p95_s)
    source = f"{broken}as today: max({policy.objective_factor:g} x p95, p99), at most {policy.objective_most:g} x p95"
    return LatencyObjective(today, False, source, declared.error_share, around)


def broken_promise(objective: LatencyObjective) -> Reason | None:
    """Why no instance keeps what was promised to callers: most of it passes around the model. None where one may."""
    if objective.declared or not objective.overhead_s:
        return None
    return Reason(Code.TOO_SLOW, objective.source)


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


CLEAR = 0.75
"""Load of a worker up to which its service time can be told from its latency."""
ROUNDS = 4
STEPS = 14
"""Bisections of a mean: one part in sixteen thousand."""
LEVELS = 6
"""Groups of stretches by their rate, in which waiting is reckoned."""
PAIRED, SAMPLED = 2, 20
"""Requests of a shadow that tell something: the very ones that production served, and a sample of them."""
STRETCHES, TOGETHER = (1, 3, 12, 36, SLOTS), 10
"""Slots of a stretch, shortest first, and the requests that it should have."""

type Rates = Sequence[tuple[float, float]]
"""(requests per second, requests that came at about this rate): waiting is made in the busy hours."""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """How to take the waiting out of a latency: service = mean_s x (latency / its mean) ** power."""

    mean_s: float
    power: float

    def share(self, latency: Latency) -> float:
        """Service time over latency, of the means."""
        return min(self.mean_s / latency.mean_s, 1.0) if latency.mean_s > 0 else 1.0


def rates_of(days: Sequence[DailyUsage], queues: float) -> tuple[tuple[float, float], ...]:
    """(requests per second before each of `queues`, requests) in LEVELS groups of stretches, quiet ones first.

    A stretch is long enough to have TOGETHER requests on average: fewer would be busy or quiet by chance. A request
    meets the others of its stretch, so it is not counted itself.
    """
    seen: list[float] = []
    width = SLOTS
    for width in STRETCHES:
        seen = sorted([v for d in days for v in _request_sums(d.requests, width) if v > 0])
        if seen and sum(seen) >= TOGETHER * len(seen):
            break
    out = []
    for level in range(LEVELS):
        part = seen[level * len(seen) // LEVELS : (level + 1) * len(seen) // LEVELS]
        calls = sum(part)
        if calls > 0:
            met = sum([(v - 1) * v for v in part if v > 1]) / calls
            out.append((met / (width * SLOT_S) / queues, calls))
    return tuple(out)


def _request_sums(requests: Sequence[float | None], width: int) -> Sequence[float]:
    """Requests of each `width` slots, those without a datapoint taken as the others."""
    if width == 1:
        return known_values(requests)
    out = []
    for first in range(0, SLOTS, width):
        part = [v for v in requests[first : first + width] if v is not None]
        if part:
            out.append(sum(part) * width / len(part))
    return out


def find_service_time(latency: Latency, rates: Rates, workers: float) -> ServiceTime:
    """Mean and spread of the service behind a latency, for one queue before `workers`, with log-normal service.

    Both moments must match: E(L) = S + W, Var(L) = Var(S) + Var(W). One worker waits by Pollaczek and Khinchine,
    several by Sakasegawa's approximation of M/G/c (1977). For random routing give the rates of one worker's queue.
    """
    total = latency.squared_variation
    rates = [(rate, calls) for rate, calls in rates if rate > 0 and calls > 0]
    if workers <= 0 or not rates or total <= 0:
        return ServiceTime(latency.mean_s, 1.0)
    spread, mean = total, latency.mean_s
    for _ in range(ROUNDS):
        mean = _service(latency.mean_s, rates, workers, spread)
        variance = total * latency.mean_s**2 - _variance(mean, rates, workers, spread)
        spread = (spread + max(variance / mean**2, 0.0)) / 2 if mean > 0 else spread
    power = math.sqrt(math.log1p(spread) / math.log1p(total))
    return ServiceTime(_service(latency.mean_s, rates, workers, spread), min(power, 1.0))


def service_time_of(mean_s: float, rate: float, spread: float) -> float | None:
    """The service time behind a mean latency of one worker at `rate` requests a second (Pollaczek-Khinchine).

    `spread` is the squared variation of the service. None where the worker was so busy that waiting hides it.
    """
    service = _service(mean_s, [(rate, 1.0)], 1.0, spread)
    return service if rate * service < CLEAR else None


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """Measurements of a shadow test, and as ``live_`` of production in the same hours; seconds a request."""

    requests: float
    """Answered by the shadow."""
    hours: float
    mean_s: float | None
    live_mean_s: float | None
    gpu_s: float | None
    """GPU seconds."""
    live_gpu_s: float | None
    spread: float
    """Squared variation of the latency."""
    queued: bool
    """Whether a request waited before one instance of production as it waits before the shadow."""
    alike: bool
    """Whether production served exactly the requests that the shadow got copies of."""


def shadow_ratios(run: ShadowRun) -> tuple[float | None, float | None]:
    """GPU seconds and latency of a request on the shadow over production's; None where too little was seen.

    The shadow is one instance with a queue of its own, however many serve: the waiting is taken out of its latency, and
    out of production's where it waits in the same way. Where the shadow was so busy that waiting hides its service, no
    latency is told.
    """
    gpu = latency = None
    if run.gpu_s and run.live_gpu_s and run.requests >= (PAIRED if run.alike else SAMPLED):
        gpu = run.gpu_s / run.live_gpu_s
    if run.mean_s and run.live_mean_s and run.requests >= PAIRED and run.hours > 0:
        rate = run.requests / (3600 * run.hours)
        shadow = service_time_of(run.mean_s, rate, run.spread)
        live = service_time_of(run.live_mean_s, rate, run.spread) if run.queued else None
        latency = shadow / (live or run.live_mean_s) if shadow else None
    return gpu, latency


def service_bins(latency: Latency, taken: ServiceTime) -> tuple[tuple[float, float], ...]:
    """The latency histogram without its waiting, (seconds, share), ascending, with the mean of the service."""
    raw = [((value / latency.mean_s) ** taken.power, share) for value, share in latency.bins]
    mean = sum(value * share for value, share in raw)
    return tuple((value / mean * taken.mean_s, share) for value, share in raw)


def _service(latency_s: float, rates: Rates, workers: float, spread: float) -> float:
    """The service time that with its mean waiting makes the latency."""
    low, high = 0.0, latency_s
    total = sum(calls for _, calls in rates)
    for _ in range(STEPS):
        middle = (low + high) / 2
        wait = sum(calls * _wait(middle, rate, workers, spread)[0] for rate, calls in rates) / total
        if middle + wait > latency_s:
            high = middle
        else:
            low = middle
    return low


def _variance(service_s: float, rates: Rates, workers: float, spread: float) -> float:
    """Variance of the waiting over all requests."""
    total = sum(calls for _, calls in rates)
    first = second = 0.0
    for rate, calls in rates:
        wait, chance = _wait(service_s, rate, workers, spread)
        if workers <= 1:
            third = rate * (service_s * (1 + spread)) ** 3 / (3 * max(1 - rate * service_s, 1e-6))
            square = 2 * wait**2 + third
        else:
            square = 2 * wait**2 / max(chance, 1e-9)  # exponential for those who wait at all
        first += calls * wait / total
        second += calls * square / total
    return max(second - first**2, 0.0)


def _wait(service_s: float, rate: float, workers: float, spread: float) -> tuple[float, float]:
    """Mean waiting in seconds, and the chance to wait; infinite where the workers do not carry the rate."""
    rho = rate * service_s / workers
    if rho >= 1:
        return math.inf, 1.0
    chance = rho ** (math.sqrt(2 * (workers + 1)) - 1)
    return service_s * chance * (1 + spread) / (2 * workers * (1 - rho)), chance
