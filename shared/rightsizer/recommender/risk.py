"""Performance risk on Compute Optimizer's scale, resource by resource."""

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Risk
from rightsizer.domain.policy import Policy


def step(probability: float, policy: Policy) -> Risk:
    """The risk level of a probability of harm."""
    return Risk(sum(1 for limit in policy.risk_steps if probability >= limit))


def memory_risk(now: InstanceType, candidate: InstanceType, demand: Demand, started: bool) -> Risk:
    """GPU memory: by class of need and by margin; `started` when a test or change showed that the model fits."""
    if candidate.accelerator is None or now.accelerator is None:
        return Risk.VERY_HIGH
    have, had = candidate.accelerator.usable_gib, now.accelerator.usable_gib
    if have >= had or started:
        return Risk.VERY_LOW
    if demand.memory.need_gib is None:
        return Risk.HIGH
    if demand.memory.kind is MemoryClass.PREALLOCATED:
        return Risk.MEDIUM  # reckoned from its pool, and no start on a smaller card has shown it yet
    room = have / demand.memory.need_gib
    if demand.memory.growing:
        return Risk.HIGH if room < 1.3 else Risk.MEDIUM
    return Risk.VERY_LOW if room >= 1.15 else Risk.LOW


def host_risk(now: InstanceType, candidate: InstanceType, demand: Demand) -> Risk:
    """Host memory, with the margin already inside the need."""
    if candidate.memory_gib >= now.memory_gib:
        return Risk.VERY_LOW
    if demand.host_memory_gib is None:
        return Risk.HIGH
    return Risk.VERY_LOW if candidate.memory_gib >= 1.2 * demand.host_memory_gib else Risk.LOW


def vcpu_risk(now: InstanceType, candidate: InstanceType, demand: Demand) -> Risk:
    """vCPU: fewer of them are only safe when their use is known to be low."""
    if candidate.vcpu >= now.vcpu:
        return Risk.VERY_LOW
    if demand.vcpu is None:
        return Risk.MEDIUM
    return Risk.VERY_LOW if candidate.vcpu >= 1.5 * demand.vcpu else Risk.LOW


def load_risk(load: float, policy: Policy) -> Risk:
    """Capacity: how near the planned peak comes to the workers there are."""
    if load <= policy.rho_one:
        return Risk.VERY_LOW
    if load <= policy.rho_many:
        return Risk.LOW
    return Risk.HIGH if load < 1 else Risk.VERY_HIGH


def quota_risk(needed: int, quota: int | None) -> Risk:
    """Whether the new fleet fits the quota by itself; unknown is a low risk: preflight asks, a start fails early."""
    if quota is None:
        return Risk.LOW
    return Risk.VERY_LOW if needed <= quota else Risk.VERY_HIGH
