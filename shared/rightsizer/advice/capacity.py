"""What one instance holds and serves: memory of a model, and tokens, requests and latency before a measurement."""

import math
from dataclasses import dataclass

from rightsizer.advice.answer import AdviceReason, Estimate, Memory
from rightsizer.advice.market import Offer
from rightsizer.advice.memory import BYTES, SERVING_FACTOR, Precision, ServingMemory, serving_memory
from rightsizer.advice.models import Architecture, estimated_architecture
from rightsizer.advice.rules import Rule
from rightsizer.advice.throughput import Interval, RequestLoad, Serving, Throughput, peak_flops, throughput
from rightsizer.advice.workload import Model, ModelKind, Workload

HOST_GIB = 1.0
"""What the operating system and the server take on a host; an assumption."""
LOADING = 1.1
"""Host memory over weights from which they can be read through the host without swapping; an assumption (rule M7)."""
DEFAULT_GIB = 0.5
"""Size of a model of which nothing is known; small, so that nothing is ruled out by a guess."""


@dataclass(frozen=True, slots=True)
class Need:
    """Need of one copy of the model."""

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


TARGET_USE = 0.7
"""Share of the estimated capacity that instances are counted for; the rest is for bursts and a lost instance."""
UNCOUNTED = 10**9
"""Instances beyond which nobody counts."""
ENCODER_SHARE = 0.30
"""Share of the dense peak that an encoder reaches with small batches; an assumption, hence the wide interval."""
NETWORK_SHARE, NETWORK_LEAST, NETWORK_MOST = 0.18, 0.06, 0.40
"""Share of the dense peak that a vision network reaches, and its range; set by the figures of docs/advise.md."""
LAUNCH_S = (0.0005, 0.005, 0.015)
"""Seconds of a request beside the mathematics: a compiled engine, a server, a framework that launches each layer."""
MOST_AT_ONCE = 64
"""Sequences at once that are counted with where no objective limits them."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Throughput and latency of one instance at the load that the objectives allow."""

    requests_per_second: Interval
    tokens_per_second: Interval | None
    latency_s: Interval | None
    estimates: tuple[Estimate, ...]
    meets: bool = True
    """Whether the middle of the estimate meets the objectives."""
    may_meet: bool = True
    """Whether the hopeful end does."""

    def count(self, peak: float | None) -> int:
        """Instances for the highest rate."""
        if not peak:
            return 1
        each = TARGET_USE * self.requests_per_second.middle
        return max(1, math.ceil(min(peak / each, UNCOUNTED))) if each > 0 else UNCOUNTED


def speed_of(placement: Placement, workload: Workload, need: Need) -> Speed | None:
    """The estimated speed of one instance; None where only a measurement can tell."""
    chip = placement.offer.type.accelerator
    if workload.model.kind is ModelKind.LLM and need.architecture and chip and workload.model.size:
        return _generating(placement, workload, need)
    if workload.model.kind is ModelKind.LLM and need.architecture and workload.model.size:
        return _on_cpu(placement, workload)
    if workload.model.kind is ModelKind.TRANSFORMER and chip and workload.model.size:
        return _encoding(placement, workload)
    if workload.model.kind is ModelKind.TRANSFORMER and workload.model.size:
        return _network(placement, workload, 2 * workload.model.size * workload.model.tokens_in)
    if workload.model.operations is not None:
        return _network(placement, workload, workload.model.operations)
    seconds = workload.data.seconds_per_request
    if seconds is None:
        return None
    at_once = placement.copies if placement.together else placement.offer.type.vcpu
    why = ("the duration of a request was given for other hardware or is a guess",)
    rate = Interval(0.5 * at_once / seconds, at_once / seconds, 1.5 * at_once / seconds, why)
    return Speed(rate, None, None, (Estimate("requests a second of one instance", "", rate),))


def _generating(placement: Placement, workload: Workload, need: Need) -> Speed | None:
    """An LLM server: the largest batch whose middle estimate meets the objectives."""
    chip, model = placement.offer.type.accelerator, workload.model
    assert chip is not None
    assert need.architecture is not None
    kv = Precision.FP8 if model.precision is Precision.FP8 else Precision.FP16
    unknown = model.is_mixture and model.active is None
    serving = Serving(need.architecture, chip, placement.together, model.precision, kv, unknown)
    best: Throughput | None = None
    for at_once in (MOST_AT_ONCE, 32, 16, 8, 4, 2, 1):
        made = throughput(serving, RequestLoad(at_once, model.tokens_in, model.tokens_out))
        if made is None:
            return None
        best = made
        if _meets(made, workload, 0):
            break
    assert best is not None
    latency = _request_s(best, workload)
    copies = placement.copies
    tokens, requests = best.tokens_per_second.scaled(copies), best.requests_per_second.scaled(copies)
    estimates = (
        Estimate("tokens a second of one instance", "", tokens),
        Estimate("requests a second of one instance", "", requests),
        Estimate("sequences at once of one copy", "", Interval(best.batch, best.batch, best.batch, (best.bound_by,))),
        Estimate("time to first token", "s", best.first_token_s),
        Estimate("time between tokens", "s", best.seconds_per_token),
        Estimate("time of one request", "s", latency),
    )
    return Speed(requests, tokens, latency, estimates, _meets(best, workload, 0), _meets(best, workload, 1))


ASSUMED_MS = 1000.0
"""p95 within which an endpoint answers where no objective is given, to judge a network on a CPU; an assumption."""


def cpu_reason(workload: Workload, speed: Speed | None) -> AdviceReason:
    """Why a CPU may serve the model, and with what doubt."""
    model = workload.model
    if model.kind is ModelKind.CLASSICAL:
        text = "a classical model has no parallel mathematics that an accelerator would speed up"
        return AdviceReason(text, Rule.CLASSICAL_ON_CPU)
    if model.answers_on_cpu:
        text = "the page of the algorithm names CPU types for answers; its networks are small"
        return AdviceReason(text, Rule.ALGORITHM_PAGES)
    if model.kind is ModelKind.LLM and speed and speed.latency_s and 1000 * speed.latency_s.low > ASSUMED_MS:
        text = "a CPU generates token by token: see the time of one request, and whether your callers wait so long"
        return AdviceReason(text, Rule.SMALL_NETWORK_ON_CPU)
    goal = "its objective" if workload.objectives.p95_ms is not None else f"an assumed p95 of {ASSUMED_MS:.0f} ms"
    text = f"a small network may meet {goal} on a CPU, which only a measurement shows"
    return AdviceReason(text, Rule.SMALL_NETWORK_ON_CPU)


VCPU_FLOPS, VCPU_BYTES = 25e9, 3e9
"""Operations and bytes a second that one vCPU gives to a decoder; an assumption, a factor of three either way."""
VCPUS_OF_ONE = 16
"""vCPUs that one request of a network keeps busy; beyond them more requests run side by side. An assumption."""


def _on_cpu(placement: Placement, workload: Workload) -> Speed:
    """A decoder on a CPU, one sequence at a time."""
    made = _decoding(workload.model, placement.memory.parts[0][1], placement.offer.type.vcpu)
    latency = _request_s(made, workload)
    estimates = (
        Estimate("tokens a second of one instance", "", made.tokens_per_second),
        Estimate("time to first token", "s", made.first_token_s),
        Estimate("time of one request", "s", latency),
    )
    tokens = made.tokens_per_second
    return Speed(latency.inverse(), tokens, latency, estimates, _meets(made, workload, 0), _meets(made, workload, 1))


def _decoding(model: Model, weights_gib: float, vcpus: float) -> Throughput:
    """A decoder on so many vCPUs: prompt by operations, each token by reading the weights."""
    assert model.size is not None
    why = ("25 GFLOPS and 3 GB/s a vCPU are assumed, a factor of three either way",)

    def around(middle: float) -> Interval:
        return Interval(middle / 3, middle, middle * 3, why)

    used = model.active or model.size
    first = around(2 * used * model.tokens_in / (vcpus * VCPU_FLOPS))
    interval = around(weights_gib * (used / model.size) * 2**30 / (vcpus * VCPU_BYTES))
    return Throughput(interval.inverse(), interval.inverse(1 / model.tokens_out), first, interval, 1, "bandwidth")


def answer_on_vcpus(workload: Workload, vcpus: float) -> Interval | None:
    """Seconds of a decoder's whole answer on so many vCPUs; None for other models, or where the duration was given."""
    model = workload.model
    if model.kind is not ModelKind.LLM or model.size is None or workload.data.seconds_per_request is not None:
        return None
    return _request_s(_decoding(model, model.size * BYTES[model.precision] / 2**30, vcpus), workload)


SMALL_CPU_FLOPS = 6 * 3 * VCPU_FLOPS
"""Operations a second of six vCPUs, the most that Lambda gives to a function, at the hopeful end of the estimate."""


def too_slow_on_six_vcpus(workload: Workload) -> str | None:
    """Why the vCPUs of a function miss the objective at the hopeful end; None where they may meet it."""
    model, limit = workload.model, workload.objectives.p95_ms
    operations = model.operations
    if operations is None and model.kind is ModelKind.TRANSFORMER and model.size is not None:
        operations = 2 * model.size * model.tokens_in
    if limit is None or operations is None or operations / SMALL_CPU_FLOPS * 1000 <= limit:
        return None
    least = operations / SMALL_CPU_FLOPS * 1000
    return f"six vCPUs take {least:.0f} ms at the hopeful end of the estimate, the objective is {limit:g} ms"


def _request_s(made: Throughput, workload: Workload) -> Interval:
    first, interval, out = made.first_token_s, made.seconds_per_token, workload.model.tokens_out
    return Interval(
        first.low + out * interval.low,
        first.middle + out * interval.middle,
        first.high + out * interval.high,
        interval.reasons,
    )


def _meets(made: Throughput, workload: Workload, hopeful: int) -> bool:
    """Whether the middle of the estimates, or the `hopeful` end, meets every objective."""
    goals, request = workload.objectives, _request_s(made, workload)

    def end(figure: Interval) -> float:
        return figure.low if hopeful else figure.middle

    if goals.p95_ms is not None and end(request) * 1000 > goals.p95_ms:
        return False
    if goals.first_token_ms is not None and end(made.first_token_s) * 1000 > goals.first_token_ms:
        return False
    return goals.tokens_per_second is None or 1 / end(made.seconds_per_token) >= goals.tokens_per_second


def network_rate(flops: float, operations: float) -> Interval:
    """Items a second of an accelerator with so many FP16 operations a second at its dense peak."""
    why = ("a network reaches 6 % to 40 % of the peak, by batch, layers and compiler",)
    low, middle, high = (share * flops / operations for share in (NETWORK_LEAST, NETWORK_SHARE, NETWORK_MOST))
    return Interval(low, middle, high, why)


def network_latency(interval: Interval) -> Interval:
    """Seconds of one item that comes alone, from the items a second."""
    ends = (1 / interval.high, 1 / interval.middle, 1 / interval.low)
    low, middle, high = (launch + end for launch, end in zip(LAUNCH_S, ends, strict=True))
    return Interval(low, middle, high, interval.reasons)


IMAGES_OF_VCPU = (50.0, 250.0)
"""Images a second that one vCPU decodes and resizes, from a cautious to a good decoder (rule S8)."""


def _fed_by_host(rate: Interval, vcpu: int) -> Interval:
    """The images a second of an accelerator, as far as the vCPUs of its host can decode them."""
    cautious, good = (each * vcpu for each in IMAGES_OF_VCPU)
    if rate.low <= cautious and rate.middle <= good:
        return rate
    why = f"{vcpu} vCPUs decode {cautious:.0f} to {good:.0f} images a second, unless the GPU or the caller does"
    return Interval(min(rate.low, cautious), min(rate.middle, good), rate.high, (*rate.reasons, why))


def _network(placement: Placement, workload: Workload, operations: float) -> Speed:
    """A vision network by its operations; an encoder on a CPU too."""
    chip, vcpu = placement.offer.type.accelerator, placement.offer.type.vcpu
    if chip is None:
        together = min(vcpu, VCPUS_OF_ONE)
        middle = together * VCPU_FLOPS / operations
        why = ("25 GFLOPS a vCPU are assumed, a factor of three either way, and at most 16 vCPUs for one request",)
        interval, side_by_side = Interval(middle / 3, middle, middle * 3, why), vcpu / together
    else:
        interval = network_rate(peak_flops(chip, workload.model.precision), operations)
        side_by_side = placement.copies * placement.together
    rate = interval.scaled(side_by_side)
    if chip is not None and workload.model.kind is ModelKind.VISION:
        rate = _fed_by_host(rate, vcpu)
    return _of_requests(rate, network_latency(interval), workload)


def _encoding(placement: Placement, workload: Workload) -> Speed:
    """An encoder by its operations: 2 a parameter and token."""
    chip, model = placement.offer.type.accelerator, workload.model
    assert chip is not None
    assert model.size is not None
    operations = 2 * model.size * model.tokens_in
    middle = peak_flops(chip, model.precision) * ENCODER_SHARE / operations
    why = ("an encoder reaches 10 % to 50 % of the peak, by batch, length and compiler", "padding is not known")
    interval = Interval(middle / 3, middle, middle * 1.7, why)
    rate = interval.scaled(placement.copies * placement.together)
    latency = Interval(0.003 + 1 / interval.high, 0.005 + 1 / interval.middle, 0.010 + 1 / interval.low, why)
    return _of_requests(rate, latency, workload)


def _of_requests(rate: Interval, latency: Interval, workload: Workload) -> Speed:
    """The speed of what answers whole requests, held against the declared latency."""
    limit = workload.objectives.p95_ms
    estimates = (
        Estimate("requests a second of one instance", "", rate),
        Estimate("time of one request", "s", latency),
    )
    meets = limit is None or latency.middle * 1000 <= limit
    return Speed(rate, None, latency, estimates, meets, limit is None or latency.low * 1000 <= limit)
