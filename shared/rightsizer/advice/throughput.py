"""How many tokens a second an LLM server generates on named accelerators, with an interval and its reasons.

Prefill is bound by compute, decode by memory bandwidth or by compute, whichever takes longer (the roofline model; Pope
et al., arXiv 2211.05102; rule S1). Continuous batching keeps as many sequences as are sent and as the memory holds
(rule S2). The constants are set by the benchmarks of scripts/published that are not held out; docs/advise.md prints all
deviations.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rightsizer.advice.memory import (
    BYTES,
    Precision,
    kv_bytes_per_token,
    serving_memory,
    tokens_that_fit,
)
from rightsizer.advice.models import Architecture
from rightsizer.domain.hardware import Accelerator

BANDWIDTH_SHARE = 0.85
"""Share of the listed memory bandwidth that reading weights and KV cache reaches."""
PREFILL_SHARE = 0.60
"""Share of the dense peak that prefill reaches."""
DECODE_SHARE = 0.45
"""Share of the dense peak that decode with a large batch reaches."""
LAYER_S = 65e-6
"""Seconds a layer and step beside the work on data: launches, norms, sampling; with CUDA graphs."""
LINK_S: Mapping[str, float] = {"nvlink": 35e-6, "pcie": 180e-6}
"""Seconds a layer and step for the two exchanges of tensor parallelism, by what links the accelerators."""
SEQUENCE_S = 30e-6
"""Seconds a sequence and step on the host: scheduling, sampling and streaming."""
NVLINK = ("V100", "A100", "H100", "H200", "B200", "B300", "GB200")
"""GPUs that AWS instances connect by NVLink; the others talk over PCIe."""
FOUR_BIT_SHARE = 0.6
"""Share of the FP16 rate that 4-bit weights leave, since each is unpacked to 16 bits first; an assumption."""
EIGHT_BIT_DOUBLES = (8, 9)
"""CUDA compute capability from which tensor cores compute FP8 at twice the FP16 rate (Ada 8.9, Hopper 9.0)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the range that it is expected in, and why the range is as wide as it is."""

    low: float
    middle: float
    high: float
    reasons: tuple[str, ...] = ()

    def scaled(self, factor: float) -> "Interval":
        """The interval times a positive factor."""
        return Interval(self.low * factor, self.middle * factor, self.high * factor, self.reasons)

    def inverse(self, numerator: float = 1.0) -> "Interval":
        """The interval of `numerator` divided by the figure."""
        return Interval(numerator / self.high, numerator / self.middle, numerator / self.low, self.reasons)


@dataclass(frozen=True, slots=True)
class Serving:
    """One copy of a model on one or several accelerators that share each layer."""

    architecture: Architecture
    accelerator: Accelerator
    accelerators: int = 1
    precision: Precision = Precision.BF16
    kv_precision: Precision = Precision.FP16
    experts_unknown: bool = False
    """Whether it is a mixture of experts that is counted as dense, since nobody knows what a token passes."""

    @property
    def parameters(self) -> float:
        """Parameters of the model."""
        return self.architecture.parameters


@dataclass(frozen=True, slots=True)
class RequestLoad:
    """Requests that one copy serves at once, and their tokens."""

    concurrency: float
    tokens_in: float
    tokens_out: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput and latency of one copy under a load."""

    tokens_per_second: Interval
    """Tokens generated, over all sequences."""
    requests_per_second: Interval
    first_token_s: Interval
    """Time to the first token of a request that waits for no other."""
    seconds_per_token: Interval
    """Time between two tokens of one sequence."""
    batch: float
    """Sequences in progress: those sent, or those that the memory holds."""
    bound_by: str
    """``bandwidth``, ``compute``, ``host`` or ``memory``: what would have to grow for more tokens."""


def throughput(serving: Serving, load: RequestLoad) -> Throughput | None:
    """Tokens a second under the load; None where the accelerators cannot hold one sequence."""
    batch = min(load.concurrency, sequences_that_fit(serving, load))
    if batch < 1:
        return None
    prefill, step, parts = _prefill_s(serving, load), *_step(serving, load, batch)
    seconds = load.tokens_out * step + batch * prefill
    rate = batch * load.tokens_out / seconds
    width = _width(serving, load, batch)
    tokens = width.around(rate)
    bound = "memory" if batch < load.concurrency else max(parts, key=lambda name: parts[name])
    return Throughput(
        tokens,
        tokens.scaled(1 / load.tokens_out),
        width.around(1 / (prefill + step)).inverse(),
        tokens.inverse(batch),
        batch,
        bound,
    )


def sequences_that_fit(serving: Serving, load: RequestLoad) -> float:
    """Sequences whose keys and values fit beside the weights, on average half way through their output."""
    need = serving_memory(serving.parameters, serving.precision, serving.architecture)
    per_token = kv_bytes_per_token(serving.architecture, serving.kv_precision)
    usable = serving.accelerator.usable_gib * serving.accelerators
    return tokens_that_fit(usable, need, per_token) / (load.tokens_in + load.tokens_out / 2)


def peak_flops(accelerator: Accelerator, precision: Precision) -> float:
    """Dense operations a second at the precision; 8 bits double the rate where the chip computes in them."""
    peak = accelerator.fp16_tflops * 1e12
    if precision is Precision.INT4:
        return peak * FOUR_BIT_SHARE
    if precision is Precision.FP32:
        return peak / 2
    doubles = accelerator.compute_capability is not None and accelerator.compute_capability >= EIGHT_BIT_DOUBLES
    return peak * 2 if doubles and precision in (Precision.FP8, Precision.INT8) else peak


def link_of(accelerator: Accelerator) -> str:
    """Link between accelerators of one instance: ``nvlink`` or ``pcie``. NeuronLink counts as NVLink."""
    return "nvlink" if accelerator.vendor == "AWS" or accelerator.model.startswith(NVLINK) else "pcie"


def _prefill_s(serving: Serving, load: RequestLoad) -> float:
    """Seconds of the prompt of one request: 2 operations a parameter and token, and attention over the prompt."""
    shape = serving.architecture
    attention = 2 * shape.layers * shape.heads * shape.head_dim * load.tokens_in
    operations = load.tokens_in * (2 * shape.parameters_used + attention)
    compute = operations / (serving.accelerators * peak_flops(serving.accelerator, serving.precision) * PREFILL_SHARE)
    exchanged = 0.0
    if serving.accelerators > 1 and link_of(serving.accelerator) == "pcie":
        exchanged = 2 * shape.layers * load.tokens_in * shape.hidden * 2 / PCIE_BYTES_PER_SECOND
    return compute + exchanged


PCIE_BYTES_PER_SECOND = 12e9
"""What an exchange among accelerators without NVLink carries: PCIe 4 x16 half used."""


def _step(serving: Serving, load: RequestLoad, batch: float) -> tuple[float, dict[str, float]]:
    """Seconds of one decode step, and its parts."""
    shape, chip, by = serving.architecture, serving.accelerator, serving.accelerators
    bandwidth = by * chip.memory_bandwidth_gbps * 1e9 * BANDWIDTH_SHARE
    touched = min(shape.parameters, shape.parameters_used * batch)
    weights = touched * BYTES[serving.precision] / bandwidth
    context = load.tokens_in + load.tokens_out / 2
    cache = batch * context * kv_bytes_per_token(shape, serving.kv_precision) / bandwidth
    compute = batch * 2 * shape.parameters_used / (by * peak_flops(chip, serving.precision) * DECODE_SHARE)
    linked = LINK_S[link_of(chip)] if by > 1 else 0.0
    host = shape.layers * (LAYER_S + linked) + batch * SEQUENCE_S
    return max(weights, compute) + cache + host, {"bandwidth": weights + cache, "compute": compute, "host": host}


LOW, HIGH = 0.60, 1.45
"""The interval around the middle: what servers, releases and settings differ by on one accelerator."""
SEVERAL, CROWDED, FOUR_BITS, EXPERTS = 0.80, 0.90, 0.70, 0.70
"""Factors on the lower end: exchange among accelerators, a batch that memory limits, 4 bits, experts by size alone."""
UNKNOWN_EXPERTS = 5.0
"""Factor on the upper end where a mixture is counted as dense: known ones pass a fourth to a twentieth; assumption."""


@dataclass(frozen=True, slots=True)
class _Width:
    low: float
    reasons: tuple[str, ...]
    high: float = HIGH

    def around(self, middle: float) -> Interval:
        return Interval(middle * self.low, middle, middle * self.high, self.reasons)


def _width(serving: Serving, load: RequestLoad, batch: float) -> _Width:
    """How wide the interval is, and why."""
    low, parts = LOW, ["servers, releases and settings differ by about that much on one accelerator"]
    if serving.accelerators > 1:
        low *= SEVERAL
        parts.append(
            f"{serving.accelerators} accelerators exchange data over {link_of(serving.accelerator)} at each layer"
        )
    if batch < load.concurrency:
        low *= CROWDED
        parts.append(f"the memory holds about {batch:.0f} of {load.concurrency:.0f} sequences, and lengths vary")
    if serving.precision is Precision.INT4:
        low *= FOUR_BITS
        parts.append("kernels for 4-bit weights differ widely between servers")
    if serving.architecture.name.startswith("estimated"):
        parts.append(f"the architecture is {serving.architecture.name}")
    if serving.architecture.experts > 1 and not serving.architecture.published_parameters:
        low *= EXPERTS
        parts.append(
            "no benchmark of a mixture of experts of which only the sizes are known is among the published ones"
        )
    if serving.experts_unknown:
        parts.append(
            "it is counted as dense, and a mixture of experts passes fewer parameters: up to five times as fast"
        )
        return _Width(low, tuple(parts), HIGH * UNKNOWN_EXPERTS)
    return _Width(low, tuple(parts))
