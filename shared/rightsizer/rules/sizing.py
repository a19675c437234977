"""What a request costs on a candidate: its latency, the workers of an instance, the room left for waiting."""

from dataclasses import dataclass

from rightsizer.model.candidate import Goal, Slowdown
from rightsizer.model.demand import Demand, Latency
from rightsizer.model.hardware import InstanceType
from rightsizer.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Service:
    """One request on the candidate, without waiting."""

    service_s: float
    """Time that a request keeps a worker busy, with the middle slowdown: for counting."""
    p95_s: float
    """With the bound of the slowdown: for promising."""
    workers: int
    """Requests that one instance serves at once."""
    slack: float
    """Slowdown of the GPU part at which p95 meets the objective."""


def host_factor(now: InstanceType, candidate: InstanceType, demand: Demand, policy: Policy) -> float:
    """How the part of the latency outside the GPU scales: by vCPU when the CPU is busy, else as it is."""
    if candidate.vcpu >= now.vcpu or demand.cpu_p95 is None or demand.cpu_p95 <= policy.cpu_scaling_share:
        return 1.0
    return now.vcpu / candidate.vcpu


def service_on(
    candidate: InstanceType, demand: Demand, latency: Latency, speed: Slowdown, host: float, goal: Goal, policy: Policy
) -> Service:
    """The request on the candidate. Count by the middle slowdown, promise latency by the bound (decision.md 4.3)."""
    share = demand.gpu_share
    gpus = max(candidate.accelerator_count, 1)
    together = 1
    if demand.gpu_s_per_request and demand.gpu_s_per_request > 1.2 * latency.mean_s:
        together = min(gpus, round(demand.gpu_s_per_request / latency.mean_s))
    workers = max(gpus // together, 1)
    mean = latency.mean_s
    if demand.concurrency > policy.batching_concurrency and demand.gpu_s_per_request:
        mean = demand.gpu_s_per_request / together
    limit = policy.objective_safety * goal.p95_s / latency.p95_s
    slack = (limit - (1 - share) * host) / share if share > 0 else 1e9
    return Service(
        service_s=mean * ((1 - share) * host + share * speed.mid),
        p95_s=latency.p95_s * ((1 - share) * host + share * speed.bound),
        workers=workers,
        slack=max(slack, 0.0),
    )
