"""Which instance types hold a model in serving, by memory alone, and the arithmetic that shows it."""

from dataclasses import dataclass

from rightsizer.advice.answer import Memory
from rightsizer.advice.market import Offer
from rightsizer.advice.memory import SERVING_FACTOR, Precision, ServingMemory, serving_memory
from rightsizer.advice.models import Architecture, estimated_architecture
from rightsizer.advice.workload import Model, ModelKind

HOST_GIB = 1.0
"""What the operating system and the server take on a host; an assumption."""
LOADING = 1.1
"""Host memory over weights from which they can be read through the host without swapping; an assumption (rule M7)."""
DEFAULT_GIB = 0.5
"""Size of a model of which nothing is known; small, so that nothing is ruled out by a guess."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one copy of the model needs."""

    memory: ServingMemory
    architecture: Architecture | None
    is_known: bool
    """False where neither parameters nor a size were given."""

    @property
    def gib(self) -> float:
        """GiB with the KV cache of one sequence of the longest context."""
        return self.memory.total_gib

    @property
    def host_gib(self) -> float:
        """GiB on a host without accelerator."""
        return self.gib + HOST_GIB


def need_of(model: Model) -> Need:
    """The memory of one copy, with the keys and values of one sequence for a decoder."""
    shape = model.architecture
    if model.size is None:
        weights = DEFAULT_GIB if model.memory_gib is None else model.memory_gib
        return Need(ServingMemory(weights, weights * (SERVING_FACTOR - 1), 0.0), shape, model.memory_gib is not None)
    tokens = 0.0
    if model.kind is ModelKind.LLM:
        shape = shape or estimated_architecture(model.size, model.active)
        tokens = model.context_tokens or model.tokens_in + model.tokens_out
    kv = Precision.FP8 if model.precision is Precision.FP8 else Precision.FP16
    return Need(serving_memory(model.size, model.precision, shape, tokens, kv), shape, True)


@dataclass(frozen=True, slots=True)
class Placement:
    """One type that holds the model: accelerators that share a copy, and copies on the instance."""

    offer: Offer
    together: int
    """Accelerators that share one copy; 0 on a CPU."""
    copies: int
    memory: Memory

    @property
    def words(self) -> str:
        """How the model lies on the instance."""
        if not self.together:
            return "in host memory"
        shared = f"tensor parallel over {self.together}" if self.together > 1 else "one accelerator"
        return shared + (f", {self.copies} copies" if self.copies > 1 else "")


def place(offer: Offer, need: Need) -> Placement | str:
    """The placement with the fewest accelerators for a copy, or why the type does not hold the model."""
    found = placements(offer, need)
    return found if isinstance(found, str) else found[0]


def placements(offer: Offer, need: Need) -> tuple[Placement, ...] | str:
    """Every way in which one instance holds the model, fewest accelerators for a copy first, or why it does not."""
    chip, name = offer.type.accelerator, offer.type.name
    if chip is None:
        if need.host_gib > offer.type.memory_gib:
            return f"{name} has {offer.type.memory_gib:.0f} GiB of host memory, the model needs {need.host_gib:.1f} GiB"
        return (Placement(offer, 0, 1, _shown(need, offer.type.memory_gib, HOST_GIB)),)
    number = offer.type.accelerator_count
    have = f"{number} x {chip.usable_gib:g} GiB usable" if number > 1 else f"{chip.usable_gib:g} GiB usable"
    if number * chip.usable_gib < need.gib:
        return f"{name} offers {have} on {chip.model}, the model needs {need.gib:,.1f} GiB"
    if need.memory.weights_gib * LOADING > offer.type.memory_gib:
        weights = f"loading {need.memory.weights_gib:.1f} GiB of weights fills it"
        return f"{name} has {offer.type.memory_gib:.0f} GiB of host memory, and {weights}: a larger size of the family"
    found = tuple(
        Placement(offer, together, number // together, _shown(need, together * chip.usable_gib))
        for together in sorted({1, 2, 4, 8, 16, number})
        if together <= number
        and number % together == 0
        and _divides(together, need, offer)
        and together * chip.usable_gib >= need.gib
    )
    if found:
        return found
    heads = need.architecture.heads if need.architecture else 0
    return f"{name}: {heads} attention heads cannot be shared over enough of {have}"


def _divides(together: int, need: Need, offer: Offer) -> bool:
    """Whether the attention heads can be shared evenly, as servers on GPUs require; Neuron pads them (rule M8)."""
    if need.architecture is None or together == 1:
        return True
    return offer.hardware.is_neuron or need.architecture.heads % together == 0


def _shown(need: Need, usable_gib: float, host_gib: float = 0.0) -> Memory:
    memory = need.memory
    parts = [("weights", memory.weights_gib), ("workspace, 20 % of the weights", memory.workspace_gib)]
    if memory.kv_cache_gib:
        parts.append(("KV cache of one longest sequence", memory.kv_cache_gib))
    if host_gib:
        parts.append(("operating system and server", host_gib))
    needed = need.gib + host_gib
    words = f"{needed:.1f} of {usable_gib:g} GiB usable for one copy"
    guess = "" if need.is_known else "; the size of the model is not known, and this is a guess"
    return Memory(tuple(parts), needed, usable_gib, words + guess)
