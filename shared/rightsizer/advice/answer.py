"""The answer: ranked options, what is refused and why, and what only a measurement can tell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from rightsizer.advice.throughput import Interval


class HardwareClass(StrEnum):
    """Classes of hardware, by the processor and never by the first letter (rule C6)."""

    CPU_BURST = "CPU-BURST"
    CPU_GEN = "CPU-GEN"
    CPU_COMP = "CPU-COMP"
    CPU_MEM = "CPU-MEM"
    GPU_G = "GPU-G"
    GPU_P = "GPU-P"
    TRN = "TRN"
    INF = "INF"

    @property
    def is_cpu(self) -> bool:
        """Whether it carries no accelerator."""
        return self.name.startswith("CPU")

    @property
    def is_neuron(self) -> bool:
        """Whether it needs the Neuron SDK."""
        return self in (HardwareClass.TRN, HardwareClass.INF)


class Hosting(StrEnum):
    """How the workload is carried."""

    REALTIME = "REALTIME"
    SERVERLESS = "SERVERLESS"
    ASYNC = "ASYNC"
    BATCH = "BATCH"
    PACKED = "PACKED"
    LAMBDA = "LAMBDA"
    CONTAINERS = "CONTAINERS"
    JOB = "JOB"


class Purchase(StrEnum):
    """How capacity is bought and switched."""

    ON_DEMAND = "ON-DEMAND"
    SPOT = "SPOT"
    COMMIT = "COMMIT"
    AUTOSCALE = "AUTOSCALE"
    SCHEDULE = "SCHEDULE"


class Action(StrEnum):
    """How an option may be carried out."""

    APPLY = "APPLY"
    """The description names nothing that stands against the option."""
    PROPOSE = "PROPOSE"
    """The option changes software, calls or habits, so a person decides."""
    TEST = "TEST"
    """A measurement comes first."""
    KEEP = "KEEP"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class AdviceReason:
    """Why, and where it is written."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, On-Demand list prices before tax and discounts. None where it cannot be said."""

    usd_per_hour: Decimal | None = None
    """Of all instances together."""
    usd_per_month: Decimal | None = None
    at_most: bool = False
    """Whether the month is the most that it can cost, since the duration of a request is not known."""
    usd_per_1000_requests: Interval | None = None
    usd_per_million_tokens: Interval | None = None
    """Tokens generated."""
    usd_per_run: Interval | None = None
    region: str = ""
    basis: str = ""
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure that nobody has measured yet."""

    name: str
    unit: str
    interval: Interval


@dataclass(frozen=True, slots=True)
class Memory:
    """The arithmetic: what is needed, of which parts, and what is offered. GiB."""

    parts: tuple[tuple[str, float], ...]
    needed_gib: float
    usable_gib: float
    """What all accelerators, or the hosts, of the option offer."""
    words: str = ""


@dataclass(frozen=True, slots=True)
class AdvisedOption:
    """One way to run the workload."""

    hosting: Hosting
    purchase: Purchase
    action: Action
    hardware: HardwareClass | None = None
    """Hardware of the option; None where the service hides it (serverless, Lambda)."""
    instance_type: str = ""
    count: int = 1
    accelerators: int = 0
    """Accelerators of one instance."""
    plan: str = ""
    cost: Cost = Cost()
    estimates: tuple[Estimate, ...] = ()
    memory: Memory | None = None
    reasons: tuple[AdviceReason, ...] = ()
    risk: str = "low"
    effort: str = ""
    phases: tuple[str, ...] = ()
    measure: str = ""
    """Which measurement would settle what the advice cannot know."""

    @property
    def words(self) -> str:
        """Everything that the option says about itself, as one text."""
        return " | ".join(_texts(self))


@dataclass(frozen=True, slots=True)
class Refused:
    """An option that was asked for or is obvious, and why it is not advised."""

    subject: str
    reason: AdviceReason


@dataclass(frozen=True, slots=True)
class Measurement:
    """One request that would settle a question."""

    operation: str
    """Operation of the SageMaker API."""
    settles: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnvironmentVariant:
    """The workload in one environment."""

    environment: str
    option: AdvisedOption
    differs: tuple[AdviceReason, ...]
    """What is special to the environment, and why."""
    tags: Mapping[str, str]
    """Tags of the endpoint that tell rightsizer what it may do there."""
    policy: Mapping[str, Any]
    """What the policy document should say of the environment, as its keys want it."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The whole answer; the first option is the one that is advised."""

    options: tuple[AdvisedOption, ...]
    refused: tuple[Refused, ...] = ()
    notes: tuple[AdviceReason, ...] = ()
    contradictions: tuple[str, ...] = ()
    """What in the description cannot hold together."""
    unknown: tuple[str, ...] = ()
    """What cannot be known before a measurement."""
    measurements: tuple[Measurement, ...] = ()
    """Requests of the SageMaker API that would settle what is not known; nothing is sent."""
    costs_by_traffic: tuple[Mapping[str, Any], ...] = ()
    """Monthly cost of each kind of hosting for several volumes of requests."""
    environments: tuple[EnvironmentVariant, ...] = ()
    """The service in development, staging and production."""

    @property
    def words(self) -> str:
        """Every text of the answer."""
        return " | ".join(_texts(self))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _texts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
