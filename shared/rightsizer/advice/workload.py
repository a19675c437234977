"""What a person knows of a workload before it runs. Every field but the task may be left out."""

from dataclasses import dataclass, field
from enum import StrEnum

from rightsizer.advice.memory import Method, Optimiser, Precision
from rightsizer.advice.models import (
    Algorithm,
    Architecture,
    Network,
    active_in_name,
    find_algorithm,
    find_architecture,
    find_network,
    names_a_mixture,
    precision_in_name,
    size_in_name,
)
from rightsizer.domain.checks import finite
from rightsizer.domain.environment import Environment
from rightsizer.errors import InputError


class Task(StrEnum):
    """Purpose of the hardware."""

    TRAINING = "training"
    FINE_TUNING = "fine-tuning"
    REAL_TIME = "real-time"
    ASYNCHRONOUS = "asynchronous"
    BATCH_INFERENCE = "batch-inference"
    PREPROCESSING = "preprocessing"
    NOTEBOOK = "notebook"

    @property
    def is_training(self) -> bool:
        """Whether weights change."""
        return self in (Task.TRAINING, Task.FINE_TUNING)

    @property
    def is_inference(self) -> bool:
        """Whether a trained model answers."""
        return self in (Task.REAL_TIME, Task.ASYNCHRONOUS, Task.BATCH_INFERENCE)


class ModelKind(StrEnum):
    """Kinds of model that ask for different hardware."""

    CLASSICAL = "classical"
    """Linear models, trees, forests, XGBoost."""
    VISION = "vision"
    TRANSFORMER = "transformer"
    """An encoder such as BERT."""
    LLM = "llm"
    """A decoder that generates tokens."""
    DEEP_LEARNING = "deep-learning"
    """Any other neural network, or several kinds."""

    @property
    def words(self) -> str:
        """The kind as it stands in a sentence."""
        special = {"llm": "a language model", "transformer": "an encoder", "vision": "a vision network"}
        return special.get(self.value, "a classical model" if self is ModelKind.CLASSICAL else "a deep network")


class Goal(StrEnum):
    """Aim that counts most once the hard constraints hold."""

    COST = "cost"
    BALANCED = "balanced"
    PERFORMANCE = "performance"
    EXPERIMENT = "experiment"
    FLEXIBILITY = "flexibility"


class Shape(StrEnum):
    """How traffic arrives."""

    UNKNOWN = "unknown"
    STEADY = "steady"
    FLUCTUATING = "fluctuating"
    SPIKY = "spiky"
    INTERMITTENT = "intermittent"


WORKING_HOURS = 176.0
"""Hours of a month in which somebody works: 8 on 22 days (rule P7)."""
TINY_PARAMETERS, TINY_OPERATIONS = 2e6, 1e8
"""A network of at most so many parameters, and operations an item where they are known, trains on CPU: assumptions."""


def _within(owner: object, **bounds: tuple[float, float]) -> None:
    """Refuse a figure of `owner` outside its bounds; InputError names field, value and bounds."""
    for name, (low, high) in bounds.items():
        value = getattr(owner, name)
        if value is None:
            continue
        place = f"{type(owner).__name__.lower()}.{name}"
        if not low <= finite(place, value) <= high:
            raise InputError(f"{place} must be from {low:g} to {high:g}, got {value:g}")


@dataclass(frozen=True, slots=True)
class Model:
    """The model: a known name, or what is known of its size."""

    kind: ModelKind = ModelKind.DEEP_LEARNING
    name: str = ""
    """A known model such as ``llama-3-8b`` or ``resnet-50``, or the name of a repository."""
    parameters: float | None = None
    active_parameters: float | None = None
    """Parameters that one token passes in a mixture of experts; None where they are all, or not known."""
    gflop: float | None = None
    """Operations of one request in units of 10^9, for a network that is not known by name; not for language models."""
    precision: Precision = Precision.BF16
    framework: str = ""
    method: Method = Method.FULL
    optimiser: Optimiser = Optimiser.ADAMW
    memory_gib: float | None = None
    """Size of the loaded weights or of the artefact, where parameters say nothing."""
    tokens_in: float = 512
    tokens_out: float = 256
    context_tokens: int | None = None
    """Longest context that the server must hold; None for tokens in and out together."""
    cpu_only: bool = False
    """The software runs on CPU only."""
    neuron: bool | None = None
    """Whether Neuron supports the framework and all operators; None when nobody has checked."""

    def __post_init__(self) -> None:
        _within(self, parameters=(1, 1e14), memory_gib=(0.001, 1e6), tokens_in=(1, 1e7), tokens_out=(1, 1e6))
        _within(self, context_tokens=(1, 1e8), gflop=(1e-6, 1e9), active_parameters=(1, 1e14))
        if self.active_parameters is not None and self.active_parameters > (self.size or 1e14):
            whole = f"{self.size or 0:g}, the size of the whole model"
            raise InputError(f"model.active_parameters is {self.active_parameters:g}, more than {whole}")

    @property
    def architecture(self) -> Architecture | None:
        """The known architecture of that name, or None."""
        return find_architecture(self.name) if self.name else None

    @property
    def network(self) -> Network | None:
        """The known vision, speech or diffusion model of that name, or None."""
        return find_network(self.name) if self.name and self.architecture is None else None

    @property
    def operations(self) -> float | None:
        """Operations of one request, as given or as the known network has them; None for models of tokens."""
        network = self.network
        gflop = self.gflop if self.gflop is not None else (network.gflop if network else None)
        return None if gflop is None else gflop * 1e9

    @property
    def size(self) -> float | None:
        """Parameters as given, as the known model has them, or as its name tells; None when none of them does."""
        found = self.architecture or self.network
        if self.parameters is not None:
            return self.parameters
        return found.parameters if found else self.size_of_name

    @property
    def size_of_name(self) -> float | None:
        """Parameters that only the name of an unknown model tells; None where something better is known."""
        known = self.parameters is not None or self.memory_gib is not None or self.architecture or self.network
        return None if known or not self.name else size_in_name(self.name)

    @property
    def active(self) -> float | None:
        """Parameters that one token passes in a mixture of experts; None for a dense model or where nobody knows."""
        shape, network = self.architecture, self.network
        if self.active_parameters is not None:
            return self.active_parameters
        if shape is not None:
            return shape.parameters_used if shape.experts > 1 else None
        named = active_in_name(self.name)
        known = network.active if network and network.active else named
        return known if known is not None and known < (self.size or 0) else None

    @property
    def is_mixture(self) -> bool:
        """Whether the model is known to be a mixture of experts."""
        return self.active is not None or (self.architecture is None and names_a_mixture(self.name))

    @property
    def algorithm(self) -> Algorithm | None:
        """The algorithm of SageMaker that the framework names, where no size says more; else None."""
        known = self.size is None and self.memory_gib is None
        return find_algorithm(self.framework) if known else None

    @property
    def is_tiny(self) -> bool:
        """Whether training it is too little arithmetic for a GPU (rule C11)."""
        if self.kind is ModelKind.LLM:
            return False
        if self.size is None:
            return self.algorithm is not None and self.algorithm.trains_on_cpu
        return self.size <= TINY_PARAMETERS and (self.operations or 0) <= TINY_OPERATIONS

    @property
    def answers_on_cpu(self) -> bool:
        """Whether a CPU is what AWS names for its answers, or it is too small for anything else."""
        return self.kind is ModelKind.CLASSICAL or (self.algorithm is not None and self.algorithm.answers_on_cpu)

    @property
    def has_size(self) -> bool:
        """Whether anything tells the size; a classical model and the algorithms of SageMaker count as small."""
        small = self.kind is ModelKind.CLASSICAL or self.algorithm is not None
        return small or self.size is not None or self.memory_gib is not None

    @property
    def published_precision(self) -> Precision | None:
        """The precision that the name tells, or in which a known model is published; None where nothing tells it."""
        text = precision_in_name(self.name) or (self.network.precision if self.network else "")
        return Precision(text) if text else None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests, and the hours of use."""

    requests_per_second: float | None = None
    """Mean over the hours of use."""
    peak_requests_per_second: float | None = None
    requests_per_month: float | None = None
    shape: Shape = Shape.UNKNOWN
    idle_share: float | None = None
    """0..1: share of the time without any request."""
    hours_per_day: float | None = None
    days_per_month: float | None = None
    runs_per_month: float | None = None
    """Jobs a month, for batch inference, preprocessing and training."""

    def __post_init__(self) -> None:
        _within(self, requests_per_second=(0, 1e7), peak_requests_per_second=(0, 1e7), requests_per_month=(0, 1e13))
        _within(self, idle_share=(0, 1), hours_per_day=(0, 24), days_per_month=(0, 31), runs_per_month=(0, 1e5))

    @property
    def used_hours(self) -> float:
        """Hours of use a month, of 730."""
        if self.hours_per_day is None and self.days_per_month is None:
            return 730.0
        day = 24.0 if self.hours_per_day is None else self.hours_per_day
        return day * (730 / 24 if self.days_per_month is None else self.days_per_month)

    @property
    def rate(self) -> float | None:
        """Mean requests a second in the hours of use."""
        if self.requests_per_second is not None:
            return self.requests_per_second
        if self.requests_per_month is not None and self.used_hours:
            return self.requests_per_month / (self.used_hours * 3600)
        return None

    @property
    def peak(self) -> float | None:
        """Highest rate, as given or the mean; never below the mean."""
        return max((each for each in (self.peak_requests_per_second, self.rate) if each is not None), default=None)

    @property
    def monthly_requests(self) -> float | None:
        """Requests a month."""
        if self.requests_per_month is not None:
            return self.requests_per_month
        return None if self.rate is None else self.rate * self.used_hours * 3600

    @property
    def is_rare(self) -> bool:
        """Whether requests come now and then, so that capacity idles most of the time."""
        if self.shape is Shape.INTERMITTENT or (self.idle_share or 0) >= 0.5:
            return True
        return self.rate is not None and self.rate <= 0.02 and self.shape is Shape.UNKNOWN


@dataclass(frozen=True, slots=True)
class Objectives:
    """Objectives that the workload must reach."""

    goal: Goal = Goal.BALANCED
    p95_ms: float | None = None
    first_token_ms: float | None = None
    tokens_per_second: float | None = None
    """For each sequence."""
    deadline_hours: float | None = None
    budget_usd: float | None = None
    """A month for a service, a run for a job."""
    required_quality: float | None = None

    def __post_init__(self) -> None:
        _within(self, p95_ms=(0.01, 1e8), first_token_ms=(0.01, 1e8), tokens_per_second=(0.001, 1e6))
        _within(self, deadline_hours=(0.001, 1e5), budget_usd=(0, 1e10))


@dataclass(frozen=True, slots=True)
class Data:
    """Sizes of data and requests."""

    size_gib: float | None = None
    payload_mb: float | None = None
    seconds_per_request: float | None = None
    """Time that one request takes on the hardware in mind."""
    tokens: float | None = None
    """Tokens that training passes, over all epochs."""
    known_hours: float | None = None
    """Duration of an earlier run."""

    def __post_init__(self) -> None:
        _within(self, size_gib=(0, 1e7), payload_mb=(0, 1e6), seconds_per_request=(1e-6, 1e6), tokens=(1, 1e16))
        _within(self, known_hours=(0, 1e5))


@dataclass(frozen=True, slots=True)
class Constraints:
    """Facts that limit the choice: Region, environment, and what may not be used or changed."""

    region: str = "us-east-1"
    environment: Environment = Environment.PRODUCTION
    no_gpu: bool = False
    compiled_models: bool | None = None
    """False where nobody may compile the model for other chips."""
    checkpoints: bool | None = None
    retriable: bool | None = None
    several_nodes: bool = False
    edge: bool = False
    right_sized: bool = False
    new_launch: bool = False
    shares_fleet_with_application: bool = False
    in_one_step: bool = False
    """Whether somebody plans to move everything at once."""
    serverless_memory_gb: float | None = None

    def __post_init__(self) -> None:
        _within(self, serverless_memory_gb=(1, 6))


@dataclass(frozen=True, slots=True)
class Running:
    """The fleet that runs today, if any."""

    instance_type: str
    count: int = 1
    p95_ms: float | None = None
    gpu_utilisation_percent: float | None = None
    """As CloudWatch gives it: summed over the GPUs of the instance."""
    gpu_memory_max_gib: float | None = None
    """Highest memory of one GPU."""
    gpu_memory_days: int = 1
    gpu_memory_reserved: bool = False
    """Whether the server takes its share of the card at its start, as vLLM and TGI do; its use then tells no need."""
    metrics_missing: bool = False
    alarm: str = ""

    def __post_init__(self) -> None:
        _within(self, count=(1, 10_000), p95_ms=(0.001, 1e9), gpu_utilisation_percent=(0, 1600))
        _within(self, gpu_memory_max_gib=(0, 1e4), gpu_memory_days=(1, 1000))


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """One run of an experiment tracker."""

    name: str
    quality: float
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The whole description."""

    task: Task
    model: Model = field(default_factory=Model)
    traffic: Traffic = field(default_factory=Traffic)
    objectives: Objectives = field(default_factory=Objectives)
    data: Data = field(default_factory=Data)
    constraints: Constraints = field(default_factory=Constraints)
    running: Running | None = None
    runs: tuple[TrackedRun, ...] = ()
    ask: tuple[str, ...] = ()
    """Types, services or purchase options that somebody has in mind; each gets a verdict."""
    compare: tuple[str, ...] = ()
    """Instance types to set side by side."""

    @property
    def trained_tokens(self) -> float | None:
        """Tokens that training passes; None for a vision network, which has none."""
        return None if self.model.kind is ModelKind.VISION else self.data.tokens
