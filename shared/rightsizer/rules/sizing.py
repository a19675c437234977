"""What a request costs on a candidate: its latency against today's, and the workers of an instance."""

import math
from dataclasses import dataclass

from rightsizer.model.candidate import Slowdown
from rightsizer.model.demand import Demand, Latency
from rightsizer.model.hardware import InstanceType
from rightsizer.model.policy import Policy

CLEAR = 0.75
"""Load of a worker up to which its service time can be told from its latency."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Latency without waiting on the candidate over today's."""

    mid: float
    bound: float


def host_factor(now: InstanceType, candidate: InstanceType, demand: Demand, shown: float | None = None) -> float:
    """Bound of how the latency outside the GPU scales: by the vCPUs that it can use, by all when that is unknown.

    `shown` are the vCPUs that a test showed to be in use; a figure from CPU metrics gets half as much on top.
    """
    if candidate.vcpu >= now.vcpu:
        return 1.0
    if demand.host_threads is None and shown is None:
        return now.vcpu / candidate.vcpu
    threads = shown if shown is not None else max(1.5 * (demand.host_threads or 0.0), 1.0)
    return min(threads, now.vcpu) / min(threads, candidate.vcpu)


def ratio_of(demand: Demand, speed: Slowdown, host: float, measured: float | None, policy: Policy) -> Ratio:
    """Latency ratio from the GPU share and the host factor, or as a test measured it on exactly this type."""
    share = demand.gpu_share
    mid, bound = (1 - share) * host + share * speed.mid, (1 - share) * host + share * speed.bound
    if measured is None:
        return Ratio(mid, bound)
    if speed.source == "tested" and host <= 1:
        middle = (mid + measured) / 2  # two measurements of the same; with fewer vCPUs the host's part is only a bound
        return Ratio(middle, middle * (1 + policy.measured_error))
    return Ratio(measured, measured * (1 + policy.measured_error))


def gpu_room(demand: Demand, host: float, stretch: float) -> float:
    """The slowdown of the GPU part at which the latency grows by `stretch`."""
    share = demand.gpu_share
    return max((stretch - (1 - share) * host) / share, 0.0) if share > 0 else float("inf")


def workers_of(candidate: InstanceType, now: InstanceType, demand: Demand, latency: Latency) -> int:
    """Requests that an instance of the candidate serves at once: one for each GPU, or group of GPUs, that it uses."""
    gpus = max(candidate.accelerator_count, 1)
    used = min(demand.gpus_used or gpus, gpus)
    together = 1
    if demand.gpu_s_per_request and demand.gpu_s_per_request > 1.2 * latency.mean_s:
        together = max(1, min(now.accelerator_count, round(demand.gpu_s_per_request / latency.mean_s)))
    return max(used // together, 1)


@dataclass(frozen=True, slots=True)
class Unqueued:
    """How to take the waiting out of a latency: service = mean_s x (latency / its mean) ** power."""

    mean_s: float
    power: float

    def share(self, latency: Latency) -> float:
        """Service time over latency, of the means."""
        return min(self.mean_s / latency.mean_s, 1.0) if latency.mean_s > 0 else 1.0


def unqueued(latency: Latency, rate: float, workers: float) -> Unqueued:
    """Mean and spread of the service behind a latency, for one M/G/1 queue per worker with log-normal service.

    Both moments must match: E(L) = S + W, Var(L) = Var(S) + W^2 + rate E(S^3) / 3(1 - rho) (Pollaczek-Khinchine).
    """
    total = latency.squared_variation
    if workers <= 0 or rate <= 0 or total <= 0:
        return Unqueued(latency.mean_s, 1.0)
    low, high = 0.0, total * 1.5
    for _ in range(30):
        spread = (low + high) / 2
        mean = _mean_service(latency.mean_s, rate / workers, spread)
        rho = rate * mean / workers
        wait = latency.mean_s - mean
        third = mean**3 * (1 + spread) ** 3
        variance = mean**2 * spread + wait**2 + rate / workers * third / (3 * max(1 - rho, 1e-6))
        if variance > total * latency.mean_s**2:
            high = spread
        else:
            low = spread
    power = math.sqrt(math.log1p(low) / math.log1p(total))
    return Unqueued(_mean_service(latency.mean_s, rate / workers, low), min(power, 1.0))


def _mean_service(latency_s: float, rate: float, spread: float) -> float:
    """The service time S with S + rho S (1 + spread) / 2(1 - rho) = latency, rho = rate x S."""
    low, high = 0.0, latency_s
    for _ in range(30):
        middle = (low + high) / 2
        rho = rate * middle
        if rho >= 1 or middle + rho * middle * (1 + spread) / (2 * (1 - rho)) > latency_s:
            high = middle
        else:
            low = middle
    return low


def without_waiting(mean_s: float, rate: float, spread: float) -> float | None:
    """The service time behind a mean latency of one worker at `rate` requests a second (Pollaczek-Khinchine).

    `spread` is the squared variation of the service. None where the worker was so busy that waiting hides it.
    """
    service = _mean_service(mean_s, rate, spread)
    return service if rate * service < CLEAR else None


def service_bins(latency: Latency, taken: Unqueued) -> tuple[tuple[float, float], ...]:
    """The latency histogram without its waiting, (seconds, share), ascending, with the mean of the service."""
    raw = [((value / latency.mean_s) ** taken.power, share) for value, share in latency.bins]
    mean = sum(value * share for value, share in raw)
    return tuple((value / mean * taken.mean_s, share) for value, share in raw)
