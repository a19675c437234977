"""Advice for a Kubernetes cluster: node groups and pod requests by what containers and their devices did.

Types are judged by the same rule as a running endpoint (`advice.running.judge_type`), on EC2 prices.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.advice.answer import Action, AdviceReason, HardwareClass
from rightsizer.advice.market import Market, Offer
from rightsizer.advice.rules import Rule
from rightsizer.advice.running import MARGIN, judge_type
from rightsizer.advice.workload import Running, Task, Workload
from rightsizer.domain.cluster import ClusterUse, ContainerRequest, ContainerUse, DeviceUse, PodGroup
from rightsizer.domain.policy import Policy
from rightsizer.recommender.slowdown import expected_slowdown

WORTH = 0.20
"""Share by which a request must differ from the need before it is worth a change; an assumption."""
IDLE_PERCENT = 0.05
"""Mean use below which a device did no work worth its price: ten minutes in a fortnight. An assumption."""
SHARED_PERCENT = 40.0
"""Highest busy share, and share of the memory, below which a device may be shared; an assumption."""
FILLED = 0.85
"""Share of a card from which a server is taken to have reserved it; an assumption."""
FULL_PERCENT = 90.0
"""Busy share on another type above which it has no room for the load; an assumption (rule K5)."""
NODE_SHARE = 0.9
"""What of a node's CPU and memory pods can have; the rest is the kubelet's and the daemons'. An assumption."""
LEAST_CPU, LEAST_GIB = 0.1, 0.25
"""Steps of a request."""
TAINTS = {"nvidia.com/gpu": "nvidia.com/gpu=present:NoSchedule"}


@dataclass(frozen=True, slots=True)
class PodAdvice:
    """One container of a group of pods: what it asks for, what it did, and what it should ask for."""

    group: PodGroup
    container: str
    pods: int
    devices: int
    resource: str
    instance_type: str
    """Type of the nodes that it runs on today; empty where that is not known."""
    busy_percent: float | None
    busy_p95_percent: float | None
    memory_max_gib: float | None
    """Highest memory of one device."""
    tensor_percent: float | None
    cpu_request: float | None
    cpu_needed: float | None
    memory_request_gib: float | None
    memory_needed_gib: float | None
    action: Action
    advised_type: str
    """EC2 type that is advised for the pods; today's where nothing is better, empty for no device."""
    reasons: tuple[AdviceReason, ...]
    usd_per_month: Decimal | None = None
    """Its share of the nodes of today, by devices."""
    advised_usd_per_month: Decimal | None = None

    @property
    def changes_requests(self) -> bool:
        """Whether CPU or memory is asked for that differs enough from the need."""
        return _differs(self.cpu_request, self.cpu_needed) or _differs(self.memory_request_gib, self.memory_needed_gib)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """One node group of the advised cluster."""

    instance_type: str
    nodes: int
    """Nodes that the pods of today need."""
    least: int
    most: int
    resource: str
    taint: str
    pods: tuple[str, ...]
    usd_per_hour: Decimal
    usd_per_month: Decimal


@dataclass(frozen=True, slots=True)
class ClusterAdvice:
    """The whole answer for a cluster."""

    days: int
    region: str
    prices_as_of: str
    pods: tuple[PodAdvice, ...]
    groups: tuple[NodeGroup, ...]
    usd_per_month: Decimal
    """Of all pods with devices today: their shares of the nodes, by devices."""
    advised_usd_per_month: Decimal
    """Monthly cost of those pods as advised."""
    nodes_usd_per_month: Decimal
    """Of the advised node groups, whole nodes: a device that no pod takes is paid for too."""
    unknown: tuple[str, ...]


def advise_cluster(use: ClusterUse, market: Market) -> ClusterAdvice:
    """Pods with devices first, then the others whose requests differ from their need, and the node groups."""
    types = {node.name: node.instance_type for node in use.nodes}
    made = [_advise(group, container, use, types, market) for group, container in _containers(use.requests)]
    pods = [advice for advice in made if advice.devices or advice.changes_requests]
    pods.sort(
        key=lambda advice: (not advice.devices, -(advice.usd_per_month or 0), str(advice.group), advice.container)
    )
    groups = tuple(_groups(pods, market))
    as_of = max((price.as_of for price in market.prices.values()), default="")
    return ClusterAdvice(
        use.days,
        market.region,
        as_of,
        tuple(pods),
        groups,
        _sum(advice.usd_per_month for advice in pods),
        _sum(advice.advised_usd_per_month for advice in pods),
        _sum(node_group.usd_per_month for node_group in groups),
        (*use.missing, *_unknown(pods)),
    )


def _containers(requests: Iterable[ContainerRequest]) -> list[tuple[PodGroup, str]]:
    return list(dict.fromkeys((request.group, request.container) for request in requests))


def _advise(group: PodGroup, container: str, use: ClusterUse, types: dict[str, str], market: Market) -> PodAdvice:
    asks = [request for request in use.requests if (request.group, request.container) == (group, container)]
    did = [each for each in use.uses if (each.group, each.container) == (group, container)]
    devices = max(request.devices for request in asks)
    kinds = Counter(name for request in asks if (name := types.get(request.node, "")))
    plain = PodAdvice(
        group,
        container,
        len(asks),
        devices,
        next((request.resource for request in asks if request.resource), ""),
        kinds.most_common(1)[0][0] if kinds else "",
        None,
        None,
        None,
        None,
        _most(request.cpu for request in asks),
        _needed(_most(each.cpu_p95 for each in did), LEAST_CPU),
        _most(request.memory_gib for request in asks),
        _needed(_most(each.memory_max_gib for each in did), LEAST_GIB),
        Action.KEEP,
        "",
        tuple(_about_requests(asks, did)),
    )
    if not devices:
        return plain
    return _with_devices(plain, _devices_of(plain, asks, use.devices), use.days, market)


def _devices_of(advice: PodAdvice, asks: Sequence[ContainerRequest], devices: Iterable[DeviceUse]) -> list[DeviceUse]:
    """The devices that pods of the group held; NeuronCores name no pod and are found by their node."""
    nodes = {request.node for request in asks}
    if advice.resource == "nvidia.com/gpu":
        return [device for device in devices if device.group == advice.group]
    return [device for device in devices if device.group is None and device.node in nodes]


def _about_requests(asks: Sequence[ContainerRequest], did: Sequence[ContainerUse]) -> Iterator[AdviceReason]:
    cpu, memory = _most(request.cpu for request in asks), _most(request.memory_gib for request in asks)
    used, held = _most(use.cpu_p95 for use in did), _most(use.memory_max_gib for use in did)
    if used is not None and _differs(cpu, _needed(used, LEAST_CPU)):
        asked = "none" if cpu is None else f"{cpu:g}"
        yield AdviceReason(f"CPU: {asked} asked, 95th percentile {used:.2f}", Rule.REQUESTS_FROM_PEAK)
    if held is not None and _differs(memory, _needed(held, LEAST_GIB)):
        asked = "none" if memory is None else f"{memory:.2f} GiB"
        yield AdviceReason(f"memory: {asked} asked, highest {held:.2f} GiB", Rule.REQUESTS_FROM_PEAK)


def _with_devices(advice: PodAdvice, devices: Sequence[DeviceUse], days: int, market: Market) -> PodAdvice:
    """The advice with what the devices did, today's cost, and a verdict on the type of node."""
    today = market.find(f"ml.{advice.instance_type}") if advice.instance_type else None
    busy = [device.busy_percent for device in devices if device.busy_percent is not None]
    advice = replace(
        advice,
        busy_percent=sum(busy) / len(busy) if busy else None,
        busy_p95_percent=_most(device.busy_p95_percent for device in devices),
        memory_max_gib=_most(device.memory_max_gib for device in devices),
        tensor_percent=_most(device.tensor_percent for device in devices),
        advised_type=advice.instance_type,
    )
    if today is not None:
        cost = _month(today, advice)
        advice = replace(advice, usd_per_month=cost, advised_usd_per_month=cost)
    if advice.busy_percent is None:
        text = "no series of a device names these pods: missing is not idle"
        return _said(replace(advice, action=Action.UNKNOWN), AdviceReason(text, Rule.MISSING_IS_NOT_IDLE))
    if max(busy) < IDLE_PERCENT:
        held = advice.pods * advice.devices
        text = f"{held} devices were busy {max(busy):.2f} % of {days} days: scale to zero, or delete"
        gone = None if today is None else Decimal("0.00")
        advice = replace(advice, action=Action.PROPOSE, advised_type="", advised_usd_per_month=gone)
        return _said(advice, AdviceReason(text, Rule.IDLE_DEVICES))
    if today is None:
        name = advice.instance_type or "without a label of their type"
        text = f"the price or the hardware of nodes {name} is not known"
        return _said(replace(advice, action=Action.UNKNOWN), AdviceReason(text, Rule.CLASS_FROM_PROCESSOR))
    if not today.type.has_gpu:
        text = "a move between NVIDIA and Neuron is another image and artefact: decided by a price of a request only"
        return _said(advice, AdviceReason(text, Rule.PRICE_OF_A_REQUEST))
    return _shared(_smaller(advice, today, days, market), today)


def _smaller(advice: PodAdvice, today: Offer, days: int, market: Market) -> PodAdvice:
    """The cheapest type with one GPU that may take each pod, where each has one; else the advice as it is."""
    if advice.devices != 1:
        text = f"each pod has {advice.devices} GPUs: fewer may split the model differently, which a test tells"
        return _said(advice, AdviceReason(text, Rule.WHOLE_DEVICES))
    chip = today.type.accelerator
    held = advice.memory_max_gib
    if held is None:
        text = "DCGM_FI_DEV_FB_USED is not exported, so whether a smaller card holds the model is not known"
        return _said(advice, AdviceReason(text, Rule.MISSING_IS_NOT_IDLE))
    reserved = chip is not None and held > FILLED * chip.usable_gib
    running = Running(today.type.name, 1, None, None, held, max(1, days), reserved)
    if reserved:
        text = f"{held:.1f} GiB is almost the whole card: the server may have reserved it, so none smaller is advised"
        advice = _said(advice, AdviceReason(text, Rule.RESERVED_MEMORY))
    workload, best = Workload(Task.REAL_TIME, running=running), advice
    chip_gib = chip.usable_gib if chip else 0.0
    for offer in market.offers((HardwareClass.GPU_G,)):
        if offer.type.accelerator_count != 1 or offer.type.name == today.type.name or not _holds(offer, advice):
            continue
        if reserved and offer.usable_gib < chip_gib:
            continue
        cost = _month(offer, advice)
        if cost >= (best.advised_usd_per_month or cost):
            continue
        verdict = _verdict(workload, advice, today, offer)
        if verdict is not None:
            action, reason = verdict
            name = offer.type.ec2_name
            best = replace(_said(advice, reason), action=action, advised_type=name, advised_usd_per_month=cost)
    return best


def _verdict(workload: Workload, advice: PodAdvice, today: Offer, offer: Offer) -> tuple[Action, AdviceReason] | None:
    """What may be done with the type, or None where memory, slowdown or its load rule it out (rule K5)."""
    now, name, old, chip = workload.running, offer.type.ec2_name, today.type.accelerator, offer.type.accelerator
    assert now is not None
    busy = advice.busy_p95_percent if advice.busy_p95_percent is not None else advice.busy_percent
    if old is None or chip is None or (busy or 0.0) * expected_slowdown(old, chip, Policy()).mid > FULL_PERCENT:
        return None
    if chip == old:
        text = f"{name} has the same GPU, enough CPU and memory for the pod, and costs less"
        return Action.PROPOSE, AdviceReason(text, Rule.WHOLE_DEVICES)
    judged = judge_type(workload, now, today, offer)
    if isinstance(judged, str):
        return None
    last = judged.reasons[-1]
    return judged.action, AdviceReason(f"{name} holds the pod and costs less; {last.text}", last.source)


def _shared(advice: PodAdvice, today: Offer) -> PodAdvice:
    """The advice with a hint to share a device that is mostly free."""
    chip = today.type.accelerator
    busy = advice.busy_p95_percent if advice.busy_p95_percent is not None else advice.busy_percent
    if chip is None or advice.memory_max_gib is None or busy is None or advice.devices != 1:
        return advice
    if busy > SHARED_PERCENT or advice.memory_max_gib > SHARED_PERCENT / 100 * chip.usable_gib:
        return advice
    held = f"{advice.memory_max_gib:.1f} of {chip.usable_gib:g} GiB"
    text = f"at most {busy:.0f} % busy and {held}: two pods may share a GPU"
    return _said(advice, AdviceReason(text, Rule.SHARED_DEVICE))


def _holds(offer: Offer, advice: PodAdvice) -> bool:
    """Whether a node of the type has CPU and memory for one pod."""
    cpu = advice.cpu_needed if advice.cpu_needed is not None else advice.cpu_request or 0.0
    memory = advice.memory_needed_gib if advice.memory_needed_gib is not None else advice.memory_request_gib or 0.0
    return cpu <= NODE_SHARE * offer.type.vcpu and memory <= NODE_SHARE * offer.type.memory_gib


def _month(offer: Offer, advice: PodAdvice) -> Decimal:
    """US dollars a month of the devices that the pods hold."""
    share = Decimal(advice.pods * advice.devices) / max(1, offer.type.accelerator_count)
    return (offer.price.usd_per_hour * share * 730).quantize(Decimal("0.01"))


def _groups(pods: Sequence[PodAdvice], market: Market) -> Iterator[NodeGroup]:
    """A node group for each advised type: nodes by devices, and bounds for autoscaling."""
    for name in dict.fromkeys(advice.advised_type for advice in pods if advice.devices and advice.advised_type):
        offer = market.find(f"ml.{name}")
        if offer is None:
            continue
        inside = [advice for advice in pods if advice.devices and advice.advised_type == name]
        devices = sum(advice.pods * advice.devices for advice in inside)
        nodes = math.ceil(devices / max(1, offer.type.accelerator_count))
        resource = inside[0].resource
        hourly = offer.price.usd_per_hour * nodes
        yield NodeGroup(
            name,
            nodes,
            0 if all(advice.group.kind == "Job" for advice in inside) else nodes,
            2 * nodes,
            resource,
            TAINTS.get(resource, "aws.amazon.com/neuron=present:NoSchedule"),
            tuple(f"{advice.group}" for advice in inside),
            hourly,
            (hourly * 730).quantize(Decimal("0.01")),
        )


def _unknown(pods: Sequence[PodAdvice]) -> Iterator[str]:
    if any(advice.action is Action.TEST for advice in pods):
        yield "latency on the other GPU: no metric of requests was read, so every change of type is a test first"
    yield "Spot, Savings Plans and Reserved Instances of the nodes: prices are On-Demand"


def _said(advice: PodAdvice, reason: AdviceReason) -> PodAdvice:
    return replace(advice, reasons=(*advice.reasons, reason))


def _needed(value: float | None, step: float) -> float | None:
    """The value with its margin, rounded up to a step."""
    return None if value is None else round(max(step, math.ceil(value * MARGIN / step) * step), 2)


def _differs(asked: float | None, needed: float | None) -> bool:
    if needed is None:
        return False
    return asked is None or abs(asked - needed) > WORTH * max(asked, needed)


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[Decimal | None]) -> Decimal:
    return sum((value for value in values if value is not None), Decimal("0.00"))
