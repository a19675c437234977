"""Memory of a model in serving and in training, as arithmetic. GiB everywhere (2**30 bytes).

Sources: weights and the factor 1.2 of serving, rule M1; KV cache, the sizes of keys and values of grouped-query
attention (Ainslie et al., arXiv 2305.13245; rule M2); 16 bytes a parameter and the stages of ZeRO, Rajbhandari et al.,
arXiv 1910.02054 (rule M3); activations, Korthikanti et al., arXiv 2205.05198 (rule M4); LoRA, Hu et al., arXiv
2106.09685; 4.127 bits a parameter of QLoRA, Dettmers et al., arXiv 2305.14314 (rule M5); optimisers of eight bits,
arXiv 2110.02861 (rule M10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rightsizer.advice.models import Architecture
from rightsizer.errors import InputError

GIB = 2**30
SERVING_FACTOR = 1.2
"""Weights times this factor is what serving needs before the KV cache (rule M1)."""
CONTEXT_GIB = 1.0
"""CUDA context, communication buffers and fragments of one accelerator in training; an assumption."""
ADAPTER_SHARE = 0.005
"""Trainable share of LoRA: rank 16 on all linear layers of a 7 billion model is 0.6 %, of a 70 billion model 0.3 %."""


class Precision(StrEnum):
    """How a weight or a value of the KV cache is stored."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"


BYTES: Mapping[Precision, float] = {
    Precision.FP32: 4.0,
    Precision.FP16: 2.0,
    Precision.BF16: 2.0,
    Precision.FP8: 1.0,
    Precision.INT8: 1.0,
    Precision.INT4: 0.5,
}
"""Bytes of one weight."""
QLORA_BYTES = 4.127 / 8


class Method(StrEnum):
    """Weights that are trained: all of them, or adapters."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"


class Optimiser(StrEnum):
    """The optimiser, by how its states are stored."""

    ADAMW = "adamw"
    ADAMW_8BIT = "adamw-8bit"
    """Both states in a byte each (rule M10)."""


STATE_BYTES: Mapping[Optimiser, float] = {Optimiser.ADAMW: 8.0, Optimiser.ADAMW_8BIT: 2.0}
"""Bytes of both states of one trained parameter, beside master weights."""
MASTER_BYTES = 4.0
"""Bytes of the FP32 copy of a weight that mixed precision keeps."""


def weights_gib(parameters: float, precision: Precision) -> float:
    """GiB of the weights: parameters times bytes of the precision."""
    return parameters * BYTES[precision] / GIB


def kv_bytes_per_token(architecture: Architecture, precision: Precision = Precision.FP16) -> float:
    """Bytes of keys and values of one token; 0 for an encoder.

    Keys and values, so 2 x layers x KV heads x size of a head x bytes of the precision.
    """
    if architecture.kind != "llm":
        return 0.0
    return 2 * architecture.layers * architecture.kv_heads * architecture.head_dim * BYTES[precision]


@dataclass(frozen=True, slots=True)
class ServingMemory:
    """Memory for serving over all accelerators together, GiB."""

    weights_gib: float
    workspace_gib: float
    """Activations, buffers and fragments: 20 % of the weights."""
    kv_cache_gib: float
    """Keys and values of the tokens that are held at once."""

    @property
    def total_gib(self) -> float:
        """All parts together."""
        return self.weights_gib + self.workspace_gib + self.kv_cache_gib


def serving_memory(
    parameters: float,
    precision: Precision,
    architecture: Architecture | None = None,
    tokens: float = 0,
    kv_precision: Precision = Precision.FP16,
) -> ServingMemory:
    """Memory to serve a model that holds `tokens` of context at once, over all its sequences.

    A checkpoint of four bits keeps the embedding and the output matrix in 16 (AWQ and GPTQ quantise the layers).
    """
    has_whole = precision is Precision.INT4 and architecture is not None and architecture.kind == "llm"
    whole = min(architecture.embedding_parameters, parameters) if has_whole and architecture else 0
    weights = weights_gib(parameters - whole, precision) + weights_gib(whole, Precision.FP16)
    per_token = kv_bytes_per_token(architecture, kv_precision) if architecture else 0.0
    return ServingMemory(weights, weights * (SERVING_FACTOR - 1), tokens * per_token / GIB)


def tokens_that_fit(usable_gib: float, memory: ServingMemory, kv_bytes: float) -> float:
    """Tokens of context that the room beside weights and workspace holds; infinite without a KV cache."""
    room = usable_gib - memory.weights_gib - memory.workspace_gib
    if room <= 0:
        return 0.0
    return room * GIB / kv_bytes if kv_bytes else float("inf")


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Memory for training on each accelerator, GiB."""

    weights_gib: float
    gradients_gib: float
    optimiser_gib: float
    activations_gib: float
    context_gib: float = CONTEXT_GIB

    @property
    def states_gib(self) -> float:
        """Weights, gradients and states of the optimiser."""
        return self.weights_gib + self.gradients_gib + self.optimiser_gib

    @property
    def total_gib(self) -> float:
        """All parts together."""
        return self.states_gib + self.activations_gib + self.context_gib


@dataclass(frozen=True, slots=True)
class Sharding:
    """How model states are spread over accelerators."""

    stage: int = 0
    """Stage of ZeRO: 0 copies all, 1 shards the optimiser, 2 also gradients, 3 also weights (FSDP full shard)."""
    devices: int = 1
    """Accelerators that share the states by data parallelism."""
    tensor_parallel: int = 1
    """Accelerators that share each layer."""

    def __post_init__(self) -> None:
        if self.stage not in (0, 1, 2, 3) or self.devices < 1 or self.tensor_parallel < 1:
            raise InputError(f"a sharding has stage 0 to 3 and positive counts, got {self}")

    @property
    def words(self) -> str:
        """The plan by its name."""
        parts = [f"tensor parallel {self.tensor_parallel}"] if self.tensor_parallel > 1 else []
        if self.devices > 1:
            full = " (FSDP full shard)" if self.stage == 3 else ""
            parts.append(f"ZeRO stage {self.stage}{full} over {self.devices}" if self.stage else "data parallel")
        return ", ".join(parts) or "one accelerator, nothing sharded"


@dataclass(frozen=True, slots=True)
class TrainingModel:
    """A model in training, with its batch on each accelerator."""

    parameters: float
    method: Method = Method.FULL
    precision: Precision = Precision.BF16
    """Of the weights in the forward pass. FP32 trains without mixed precision."""
    architecture: Architecture | None = None
    sequence: int = 2048
    """Tokens of one sequence."""
    micro_batch: int = 1
    """Sequences on each accelerator at once."""
    optimiser: Optimiser = Optimiser.ADAMW
    recompute: bool = True
    """Activation checkpointing: keep the input of each layer and compute the rest again."""


def training_memory(model: TrainingModel, sharding: Sharding | None = None) -> TrainingMemory:
    """Memory on each accelerator. Full training in mixed precision: 2 bytes weights, 2 gradients, 12 Adam."""
    plan = sharding or Sharding()
    weights, gradients, optimiser = _states_gib(model)
    by = plan.devices
    return TrainingMemory(
        weights / plan.tensor_parallel / (by if plan.stage >= 3 else 1),
        gradients / plan.tensor_parallel / (by if plan.stage >= 2 else 1),
        optimiser / plan.tensor_parallel / (by if plan.stage >= 1 else 1),
        activations_gib(model) / plan.tensor_parallel,
    )


def _states_gib(model: TrainingModel) -> tuple[float, float, float]:
    """Weights, gradients and optimiser of the whole model, GiB."""
    single = model.precision is Precision.FP32
    if model.method is Method.FULL:
        weight = 4 if single else 2
        adam = STATE_BYTES[model.optimiser] + (0 if single else MASTER_BYTES)
        return model.parameters * weight / GIB, model.parameters * weight / GIB, model.parameters * adam / GIB
    trainable = model.parameters * ADAPTER_SHARE
    base = model.parameters * BYTES[model.precision]
    if model.method is Method.QLORA:
        whole = model.architecture.embedding_parameters if model.architecture else 0
        base = (model.parameters - whole) * QLORA_BYTES + whole * 2
    return (base + trainable * 4) / GIB, trainable * 4 / GIB, trainable * STATE_BYTES[model.optimiser] / GIB


def activations_gib(model: TrainingModel) -> float:
    """Activations of one micro batch. Recomputed: 2sbh a layer and 34sbh of one layer, and the logits in FP32.

    Without recomputation, and with attention that keeps no matrix of scores, 34sbh a layer. 0 without an architecture.
    """
    shape = model.architecture
    if shape is None:
        return 0.0
    positions = model.sequence * model.micro_batch
    tokens = positions * shape.hidden
    kept = 2 * tokens * shape.layers + 34 * tokens if model.recompute else 34 * tokens * shape.layers
    logits = 6 * positions * shape.vocabulary if shape.kind == "llm" else 0
    return (kept + logits) / GIB
