"""Parallel plans of training: the fewest accelerators that hold the states, and how long the operations take.

Utilisation is the share of the dense 16-bit peak that counts as useful operations (MFU; rule S4). Sources: A100,
Narayanan et al., arXiv 2104.04473 (44 to 52 % with tuned code); H100, Llama 3, arXiv 2407.21783 (38 to 43 %). Ranges
begin lower, because most code is tuned less; those of the other chips are assumptions by analogy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rightsizer.advice.answer import HardwareClass, Memory
from rightsizer.advice.market import Offer
from rightsizer.advice.memory import Method, Sharding, TrainingMemory, TrainingModel, training_memory
from rightsizer.advice.models import estimated_architecture
from rightsizer.advice.throughput import Interval, link_of
from rightsizer.advice.workload import Model, ModelKind

UTILISATION: Mapping[str, tuple[float, float, float]] = {
    "A100": (0.28, 0.42, 0.56),
    "H100": (0.22, 0.34, 0.46),
    "H200": (0.22, 0.34, 0.46),
    "B200": (0.18, 0.30, 0.42),
    "B300": (0.18, 0.30, 0.42),
    "GB200": (0.18, 0.30, 0.42),
    "Trainium": (0.20, 0.34, 0.46),
    "L40S": (0.15, 0.30, 0.45),
    "A10G": (0.25, 0.40, 0.55),
    "L4": (0.15, 0.25, 0.40),
    "T4": (0.20, 0.35, 0.50),
    "RTX": (0.10, 0.25, 0.40),
}
"""Low, middle and high share of the peak, by the beginning of the chip's name."""
PCIE_FACTOR, NODES_FACTOR = 0.8, 0.9
"""What remains of it with several accelerators without NVLink, and with several nodes."""
MOST_NODES = 64
LARGE = 8
"""Accelerators of a type that may join others over EFA."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A count of one type with a sharding that holds the model."""

    offer: Offer
    nodes: int
    sharding: Sharding
    memory: TrainingMemory

    @property
    def devices(self) -> int:
        """Accelerators in all."""
        return self.nodes * self.offer.type.accelerator_count

    @property
    def hourly(self) -> float:
        """US dollars an hour of all nodes."""
        return self.nodes * self.offer.hourly

    @property
    def flops(self) -> Interval:
        """Useful operations a second of all accelerators."""
        chip = self.offer.type.accelerator
        assert chip is not None
        low, middle, high = utilisation(chip.model)
        factor = self.devices * chip.fp16_tflops * 1e12
        factor *= PCIE_FACTOR if self.offer.type.accelerator_count > 1 and link_of(chip) == "pcie" else 1.0
        factor *= NODES_FACTOR if self.nodes > 1 else 1.0
        why = f"{100 * low:.0f} % to {100 * high:.0f} % of the peak of {chip.model} are useful operations"
        return Interval(low * factor, middle * factor, high * factor, (why,))

    @property
    def usd_per_exaflop(self) -> float:
        """US dollars for 10**18 useful operations, by the middle of the range."""
        return self.hourly / 3600 / (self.flops.middle / 1e18)

    def hours(self, operations: float) -> Interval:
        """Duration of so many operations."""
        return self.flops.inverse(operations / 3600)

    @property
    def shown(self) -> Memory:
        """The arithmetic of one accelerator, and what all offer."""
        chip = self.offer.type.accelerator
        assert chip is not None
        parts = (
            ("weights", self.memory.weights_gib),
            ("gradients", self.memory.gradients_gib),
            ("optimiser", self.memory.optimiser_gib),
            ("activations", self.memory.activations_gib),
            ("context and buffers", self.memory.context_gib),
        )
        whole = self.devices * chip.usable_gib
        words = f"{self.memory.total_gib:.1f} of {chip.usable_gib:g} GiB on each accelerator;"
        words += f" {self.devices} x {chip.usable_gib:g} = {whole:.0f} GiB usable in all"
        return Memory(parts, self.memory.total_gib, chip.usable_gib, words)


def utilisation(chip: str) -> tuple[float, float, float]:
    """Low, middle and high utilisation of a chip."""
    return next((each for name, each in UTILISATION.items() if chip.startswith(name)), (0.10, 0.25, 0.45))


def training_model(model: Model) -> TrainingModel:
    """The model in training; a decoder of unknown shape takes the shape of the nearest known one."""
    size = model.size or SMALL
    shape = model.architecture
    if shape is None and model.kind is ModelKind.LLM:
        shape = estimated_architecture(size, model.active)
    sequence = model.context_tokens or 2048
    return TrainingModel(size, model.method, model.precision, shape, sequence, optimiser=model.optimiser)


SMALL = 100e6
"""Parameters of a network of which nothing is known."""


def operations(model: Model, tokens: float) -> float:
    """Useful operations of a run: 6 a parameter and token, 4 where the weights stay frozen (LoRA)."""
    shape = model.architecture
    used = shape.parameters_used if shape else (model.active or model.size or SMALL)
    return (6 if model.method is Method.FULL else 4) * used * tokens


def plan_of(offer: Offer, model: TrainingModel, nodes: int) -> TrainingPlan | None:
    """The plan with the least sharding that fits on so many nodes, or None."""
    chip = offer.type.accelerator
    if chip is None:
        return None
    devices = nodes * offer.type.accelerator_count
    for stage in (0, 1, 2, 3) if devices > 1 else (0,):
        sharding = Sharding(stage, devices)
        memory = training_memory(model, sharding)
        if memory.total_gib <= chip.usable_gib:
            return TrainingPlan(offer, nodes, sharding, memory)
    return None


def smallest_plan(offer: Offer, model: TrainingModel, least_nodes: int = 1) -> TrainingPlan | None:
    """The plan with the fewest nodes that holds the model; several nodes only where EFA joins them."""
    nodes = 1
    while nodes <= (MOST_NODES if joins_nodes(offer) else 1):
        if nodes >= least_nodes and (plan := plan_of(offer, model, nodes)):
            return plan
        nodes *= 2
    return None


def joins_nodes(offer: Offer) -> bool:
    """Whether several of the type train together over EFA."""
    strong = offer.hardware in (HardwareClass.GPU_P, HardwareClass.TRN)
    return strong and offer.type.accelerator_count >= LARGE
