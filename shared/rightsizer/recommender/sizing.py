"""What a request costs on a candidate: its latency against today's, and the workers of an instance."""

from dataclasses import dataclass

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Slowdown
from rightsizer.domain.policy import Policy


@dataclass(frozen=True, slots=True)
class Ratio:
    """Latency without waiting on the candidate over today's."""

    mid: float
    bound: float


def host_factor(now: InstanceType, candidate: InstanceType, demand: Demand, shown: float | None = None) -> float:
    """Bound of how the latency outside the GPU scales: by the vCPUs that it can use, by all when that is unknown.

    What CPU metrics say goes before `shown`, the vCPUs that a test showed to be in use.
    """
    if candidate.vcpu >= now.vcpu:
        return 1.0
    if demand.host_threads is None and shown is None:
        return now.vcpu / candidate.vcpu
    threads = max(demand.host_threads if demand.host_threads is not None else shown or 0.0, 1.0)
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
