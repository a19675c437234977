"""Options of inference: which types hold the model, what they serve and cost, in the order of the goal."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.advice.answer import (
    Action,
    AdviceReason,
    AdvisedOption,
    Cost,
    HardwareClass,
    Hosting,
    Purchase,
    Refused,
)
from rightsizer.advice.capacity import ASSUMED_MS, Need, Placement, Speed, cpu_reason, need_of, placements, speed_of
from rightsizer.advice.hosting import needs_two
from rightsizer.advice.market import Market, Offer, dollars
from rightsizer.advice.memory import Precision
from rightsizer.advice.rules import Rule
from rightsizer.advice.throughput import EIGHT_BIT_DOUBLES, Interval
from rightsizer.advice.workload import Goal, ModelKind, Task, Workload
from rightsizer.domain.environment import Environment
from rightsizer.domain.hardware import TRANSFORM_FAMILIES
from rightsizer.recommender.other_endpoint import SERVING_PHASES

CPU = (HardwareClass.CPU_GEN, HardwareClass.CPU_COMP, HardwareClass.CPU_MEM)
LOW_RATE = 1.0
"""Requests a second below which a classical model needs no compute-optimised type."""
SMALL_PARAMETERS, LOOSE_MS = 2e8, 500.0
"""A network of at most so many parameters with an objective no tighter may be tried on CPU."""
TINY_PARAMETERS = 2e7
"""A network of at most so many parameters is tried on CPU first; an assumption."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One placement with what it serves."""

    placement: Placement
    speed: Speed | None
    count: int

    @property
    def offer(self) -> Offer:
        """The type and its price."""
        return self.placement.offer

    @property
    def monthly(self) -> float:
        """US dollars a month of all instances."""
        return self.offer.hourly * self.count * 730

    @property
    def per_work(self) -> float:
        """US dollars an hour for the estimated rate of one request a second; the hourly price where it is unknown."""
        if self.speed is None:
            return self.offer.hourly
        return self.offer.hourly / self.speed.requests_per_second.middle


def serving_options(workload: Workload, market: Market) -> tuple[list[AdvisedOption], list[Refused]]:
    """Always-on options in the order of the goal, and the types that are ruled out."""
    need = need_of(workload.model)
    found, refused = _candidates(workload, market, need)
    found, dear = _without_dear(found, workload.objectives.goal)
    refused += dear
    ranked = sorted(found, key=_order(workload, found))
    reference = min((each for each in found if not each.offer.hardware.is_neuron), key=_hourly, default=None)
    return [_option(each, workload, reference) for each in ranked], refused


def classes_of(workload: Workload) -> tuple[HardwareClass, ...]:
    """Classes of hardware that may serve at all."""
    model, limits = workload.model, workload.constraints
    cpu = (HardwareClass.CPU_BURST, *CPU) if limits.environment is Environment.DEVELOPMENT else CPU
    if model.kind is ModelKind.CLASSICAL or model.cpu_only or limits.no_gpu or limits.edge:
        return cpu
    chips = [HardwareClass.GPU_G, HardwareClass.GPU_P]
    if may_compile(workload):
        chips += [HardwareClass.INF, HardwareClass.TRN]
    tight = workload.objectives.p95_ms is not None and workload.objectives.p95_ms < LOOSE_MS
    tight = tight and model.operations is None  # where the operations are known, the estimate decides
    if model.answers_on_cpu or ((model.size or SMALL_PARAMETERS + 1) <= SMALL_PARAMETERS and not tight):
        chips.extend(cpu)
    return tuple(chips)


def may_compile(workload: Workload) -> bool:
    """Whether chips that need a compiled model come into question."""
    if workload.objectives.goal is Goal.FLEXIBILITY or workload.model.neuron is False:
        return False
    return workload.constraints.compiled_models is not False and workload.model.kind is not ModelKind.CLASSICAL


def _candidates(workload: Workload, market: Market, need: Need) -> tuple[list[Candidate], list[Refused]]:
    """The cheapest type of each family that holds the model and may meet the objectives."""
    families = TRANSFORM_FAMILIES if workload.task is Task.BATCH_INFERENCE else ()
    best: dict[str, Candidate] = {}
    refused: dict[str, Refused] = {}
    for offer in market.offers(classes_of(workload), families):
        made = _judge(offer, workload, need)
        family = offer.type.family
        if not isinstance(made, Candidate):
            why = AdviceReason(made, Rule.SERVING_MEMORY) if isinstance(made, str) else made
            refused[family] = Refused(offer.type.name, why)  # of the dearest size: no other holds or serves more
        elif family not in best or _worth(made, workload) < _worth(best[family], workload):
            best[family] = made
    left = [reason for family, reason in refused.items() if family not in best]
    return _pruned(list(best.values()), workload), left


def _worth(each: Candidate, workload: Workload) -> tuple[bool, float]:
    """Sort key within a family: a network on a CPU first where it surely answers in time, then the price of a month."""
    network = each.offer.hardware.is_cpu and not workload.model.answers_on_cpu
    return (network and not _surely_meets(each, workload), each.monthly)


def _judge(offer: Offer, workload: Workload, need: Need) -> Candidate | AdviceReason | str:
    """The type as a candidate, or why it is none: too slow as a reason of its own, all else in words."""
    placed = placements(offer, need)
    if isinstance(placed, str):
        return placed
    if not offer.type.accelerator and offer.type.vcpu < LEAST_VCPU and workload.task is Task.BATCH_INFERENCE:
        return f"{offer.type.name} has {offer.type.vcpu} vCPUs, which a batch of data would keep waiting"
    deep = workload.model.kind is not ModelKind.CLASSICAL
    if deep and not offer.type.accelerator and offer.type.vcpu < LEAST_VCPU:
        return f"{offer.type.name} has {offer.type.vcpu} vCPUs, too few for a network"
    if workload.task is Task.BATCH_INFERENCE and not offer.type.accelerator:
        held = (workload.data.size_gib or 0) * TABLE_FACTOR
        if held > offer.type.memory_gib and workload.model.kind is ModelKind.CLASSICAL:
            return f"{offer.type.name} has {offer.type.memory_gib:.0f} GiB, the table in memory takes {held:.0f} GiB"
    placement, speed = _best_placement(placed, workload, need)
    if speed is not None and not speed.may_meet:
        text = f"{offer.type.name} misses the objective even at the hopeful end of the estimate"
        return AdviceReason(text, Rule.ROOFLINE)
    count = speed.count(workload.traffic.peak) if speed else 1
    if count > MOST_INSTANCES:
        return f"{count:,} x {offer.type.name} would be needed at the peak, more than {MOST_INSTANCES:,} instances"
    return Candidate(placement, speed, count)


def _best_placement(placed: Sequence[Placement], workload: Workload, need: Need) -> tuple[Placement, Speed | None]:
    """The placement that serves most on the instance; with the goal performance the one that answers first."""
    made = [(each, speed_of(each, workload, need)) for each in placed]
    known = [(each, speed) for each, speed in made if speed is not None]
    if not known:
        return made[0]
    fast = workload.objectives.goal is Goal.PERFORMANCE

    def worth(pair: tuple[Placement, Speed]) -> tuple[float, ...]:
        speed = pair[1]
        latency = speed.latency_s.middle if speed.latency_s else 0.0
        rate = speed.requests_per_second.middle
        return (speed.may_meet, speed.meets, -latency if fast else rate, rate)

    return max(known, key=worth)


LEAST_VCPU = 4
"""vCPUs from which a network, or a batch of data, is worth trying on a CPU type; an assumption."""
MANY = 10
"""Instances from which one is measured before the others are bought; an assumption."""
TIGHT = 0.97
"""Share of the memory above which a copy is tried first: a longer context or a newer server may not start."""
MOST_INSTANCES = 1000
"""Instances of one endpoint beyond which an option is no advice."""
TABLE_FACTOR = 5
"""Memory that a table takes in Pandas, as a multiple of its file: its author's rule of thumb says 5 to 10 (rule M9)."""


def _pruned(found: list[Candidate], workload: Workload) -> list[Candidate]:
    """Without P instances where G instances do, and with few CPU types."""
    if workload.objectives.goal is not Goal.PERFORMANCE:
        small = [each for each in found if each.offer.hardware is HardwareClass.GPU_G]
        limit = 2 * min((each.monthly for each in small), default=float("inf"))
        found = [each for each in found if each.offer.hardware is not HardwareClass.GPU_P or each.monthly <= limit]
    cpu = sorted((each for each in found if each.offer.hardware.is_cpu), key=_hourly)
    rate = workload.traffic.rate
    if workload.model.kind is ModelKind.CLASSICAL and rate is not None and rate <= LOW_RATE:
        cpu = [each for each in cpu if each.offer.hardware in GENERAL] or cpu
    x86 = [each for each in cpu if each.offer.type.cpu_arch == "x86_64"]
    arm = [each for each in cpu if each.offer.type.cpu_arch != "x86_64"]
    kept = [*_one_of_each_class(x86), *arm[:1]]
    return [each for each in found if not each.offer.hardware.is_cpu or each in kept]


GENERAL = (HardwareClass.CPU_GEN, HardwareClass.CPU_BURST)


def _one_of_each_class(ordered: Sequence[Candidate]) -> Iterator[Candidate]:
    seen: set[HardwareClass] = set()
    for each in ordered:
        if each.offer.hardware not in seen:
            seen.add(each.offer.hardware)
            yield each


def _hourly(each: Candidate) -> float:
    return each.offer.hourly * each.count


DEAR = 6.0
"""An option that costs so many times the cheapest one of a known load is no alternative to it."""


def _without_dear(found: list[Candidate], objective: Goal) -> tuple[list[Candidate], list[Refused]]:
    """Candidates of a sensible price for the load, and the others with their price."""
    known = [each for each in found if each.speed is not None]
    if objective is Goal.PERFORMANCE or not known:
        return found, []
    measured = [each for each in known if not each.offer.hardware.is_cpu]  # a network on a CPU is an untried bargain
    least = min(measured or known, key=lambda each: each.monthly)
    dear = [each for each in known if each.monthly > DEAR * least.monthly]
    refused = [Refused(each.offer.type.name, AdviceReason(_dear(each, least), Rule.ROOFLINE)) for each in dear]
    return [each for each in found if each not in dear], refused


def _dear(each: Candidate, least: Candidate) -> str:
    times, name = each.monthly / least.monthly, each.offer.type.name
    some = f" with {each.count:,} instances" if each.count > 1 else ""
    return f"{name}{some} costs {times:.0f} times what {least.offer.type.name} costs for the same load"


def _order(workload: Workload, found: Sequence[Candidate]) -> Callable[[Candidate], tuple[float, ...]]:
    """Sort key: lower comes first."""
    size = workload.model.size
    tiny = workload.model.answers_on_cpu or (size is not None and size <= TINY_PARAMETERS)
    accelerated = any(not each.offer.hardware.is_cpu for each in found) and not tiny
    batch = workload.task is Task.BATCH_INFERENCE
    loaded = bool(workload.traffic.peak) and not batch

    def in_service(each: Candidate) -> float:
        """US dollars a month with the second instance that production wants (rule E1)."""
        two = workload.task is Task.REAL_TIME and needs_two(workload.constraints)
        return each.monthly / each.count * max(each.count, 2 if two else 1)

    def balanced(each: Candidate) -> tuple[float, ...]:
        other = each.offer.hardware.is_neuron or each.offer.type.cpu_arch != "x86_64"
        untried = accelerated and each.offer.hardware.is_cpu and not _surely_meets(each, workload)
        memory = each.offer.hardware is HardwareClass.CPU_MEM
        price = each.per_work if batch and each.speed is not None else in_service(each)
        other = other or _unpacks_fp8(each, workload)
        return (untried, other, bool(each.speed and not each.speed.meets), memory, price)

    def cheapest(each: Candidate) -> tuple[float, ...]:
        untried = accelerated and each.offer.hardware.is_cpu and not _surely_meets(each, workload)
        late = bool(each.speed and not each.speed.meets)
        unit = each.per_work if each.speed is not None and not loaded else in_service(each)
        return (untried, late, unit, in_service(each))

    def fastest(each: Candidate) -> tuple[float, ...]:
        latency = each.speed.latency_s.middle if each.speed and each.speed.latency_s else 0.0
        chip = each.offer.type.accelerator
        return (each.offer.hardware.is_cpu, latency, -chip.fp16_tflops if chip else 0.0, each.monthly)

    return {Goal.COST: cheapest, Goal.PERFORMANCE: fastest}.get(workload.objectives.goal, balanced)


def _unpacks_fp8(each: Candidate, workload: Workload) -> bool:
    """Whether the weights are FP8 and the GPU computes none (rule S7)."""
    chip = each.offer.type.accelerator
    able = chip is None or chip.compute_capability is None or chip.compute_capability >= EIGHT_BIT_DOUBLES
    return workload.model.precision is Precision.FP8 and not able


def _surely_meets(each: Candidate, workload: Workload) -> bool:
    """Whether even the cautious end of the estimate keeps the declared latency, or an assumed one."""
    limit, speed = workload.objectives.p95_ms, each.speed
    if limit is None and workload.task is Task.REAL_TIME:
        limit = ASSUMED_MS
    return (
        limit is not None and speed is not None and speed.latency_s is not None and speed.latency_s.high * 1000 <= limit
    )


def _option(each: Candidate, workload: Workload, reference: Candidate | None) -> AdvisedOption:
    """The candidate as an option of a real-time endpoint, On-Demand."""
    offer, hardware = each.offer, each.offer.hardware
    option = AdvisedOption(
        Hosting.REALTIME,
        Purchase.ON_DEMAND,
        _action(each, workload),
        hardware,
        offer.type.name,
        each.count,
        offer.type.accelerator_count,
        each.placement.words,
        _cost(each, workload),
        each.speed.estimates if each.speed else (),
        each.placement.memory,
        tuple(_reasons(each, workload)),
        measure=_measure(workload),
    )
    if hardware.is_neuron:
        return _with_neuron(option, each, reference)
    if offer.type.cpu_arch != "x86_64":
        return replace(option, action=Action.PROPOSE, effort="build the image for arm64 and test it", risk="medium")
    return option


def _action(each: Candidate, workload: Workload) -> Action:
    given = workload.objectives
    if not workload.model.has_size:
        return Action.UNKNOWN
    if each.offer.hardware.is_neuron:
        return Action.PROPOSE
    untried = each.offer.hardware.is_cpu and workload.model.kind is not ModelKind.CLASSICAL
    tight = each.placement.memory.needed_gib > TIGHT * each.placement.memory.usable_gib
    untried = untried or tight or each.count >= MANY or _unpacks_fp8(each, workload)
    if untried or any((given.p95_ms, given.first_token_ms, given.tokens_per_second)):
        return Action.TEST
    return Action.APPLY


def _reasons(each: Candidate, workload: Workload) -> Iterator[AdviceReason]:
    offer, kind = each.offer, workload.model.kind
    if offer.hardware.is_cpu:
        yield cpu_reason(workload, each.speed)
    elif offer.hardware in (HardwareClass.GPU_G, HardwareClass.GPU_P):
        yield AdviceReason(f"{kind.words} is matrix arithmetic, and a GPU runs every framework", Rule.NETWORK_ON_GPU)
    month = "" if workload.task is Task.BATCH_INFERENCE else f", {offer.hourly * 730:,.2f} a month of 730 hours"
    each_of = "" if each.count == 1 else " each"
    price = f"USD {dollars(offer.hourly)} an hour{each_of}{month}, in {offer.price.region}"
    yield AdviceReason(f"{price}; {offer.price.basis} of {offer.price.as_of}", "price snapshot")
    chip = offer.type.accelerator
    if chip and chip.compute_capability and chip.compute_capability < (8, 0) and workload.model.size:
        yield AdviceReason(f"{chip.model} has no BF16: serve in FP16 and compare the answers", Rule.NO_BF16)
    if chip and _unpacks_fp8(each, workload):
        text = f"{chip.model} computes no FP8: the server must unpack such weights to 16 bits, so try it first"
        yield AdviceReason(text, Rule.NO_FP8)
    if each.speed and not each.speed.meets:
        yield AdviceReason("the middle of the estimate misses the objective, its hopeful end meets it", Rule.ROOFLINE)
    if each.speed and workload.traffic.peak:
        instances = "1 instance" if each.count == 1 else f"{each.count:,} instances"
        peak = workload.traffic.peak
        rate = "1 request" if peak == 1 else f"{peak:,.0f} requests" if peak >= 100 else f"{peak:.3g} requests"
        use = f"{instances} for {rate} a second at 70 % of the estimated capacity"
        yield AdviceReason(use, Rule.SPARE_CAPACITY)
    elif workload.traffic.peak:
        yield AdviceReason("one instance is assumed; measure how many requests it serves", Rule.MEASURE_FIRST)


def _measure(workload: Workload) -> str:
    if workload.constraints.environment is Environment.PRODUCTION:
        return "measure p95 latency and requests a second with a shadow variant or in staging, with your own requests"
    return "measure p95 latency and requests a second with your own requests"


def _cost(each: Candidate, workload: Workload) -> Cost:
    """Cost an hour and a month, and for 1,000 requests and a million tokens at the traffic or at full load."""
    cost = each.offer.cost(each.count)
    monthly, speed, requests = cost.usd_per_month, each.speed, workload.traffic.monthly_requests
    if requests and monthly is not None:
        exact = float(monthly) / requests * 1000
        cost = replace(cost, usd_per_1000_requests=Interval(exact, exact, exact, ("at the traffic that was given",)))
    elif speed:
        full = speed.requests_per_second.inverse(each.offer.hourly / 3600 * 1000)
        cost = replace(cost, usd_per_1000_requests=replace(full, reasons=("at full load", *full.reasons)))
    if speed and speed.tokens_per_second:
        full = speed.tokens_per_second.inverse(each.offer.hourly / 3600 * 1e6)
        cost = replace(cost, usd_per_million_tokens=replace(full, reasons=("at full load", *full.reasons)))
    return cost


def _with_neuron(option: AdvisedOption, each: Candidate, reference: Candidate | None) -> AdvisedOption:
    """The option with the work that Inferentia needs and the throughput at which it breaks even."""
    reasons = list(option.reasons)
    if reference is not None:
        ratio = Decimal(str(each.offer.hourly)) / Decimal(str(reference.offer.hourly))
        text = (
            f"it pays when one instance serves more than {ratio:.2f} times the requests of {reference.offer.type.name}"
        )
        reasons.append(AdviceReason(f"{text} at the required latency", Rule.PRICE_OF_A_REQUEST))
    text = "no metric of Neuron cores is known for endpoints, so it is not right-sized automatically"
    reasons.append(AdviceReason(text, Rule.NEURON_METRICS))
    return replace(
        option,
        reasons=tuple(reasons),
        risk="medium",
        effort="compile the model with torch-neuronx for fixed shapes, use a Neuron image, test accuracy and latency",
        phases=SERVING_PHASES,
        measure="measure requests a second at the required latency on one instance of each type",
    )
