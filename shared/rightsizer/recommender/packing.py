"""Small endpoints of one owner that fit on one card: planned loads by hour and memory added up.

A step over the fleet, for judging one endpoint knows no other. Nothing here is ever applied: every partner needs
another endpoint or an inference component of its own (SageMaker guide, inference components).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import gt, sub
from typing import TYPE_CHECKING

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Needs, Pack, Recommendation

if TYPE_CHECKING:  # the report adds up needs that are known, and loads no more for it
    from rightsizer.recommender.context import EvaluationContext

CALLERS = "name the inference component (InferenceComponentName) on the shared endpoint"
NOT_CHECKED = (
    "whether the partners may share a VPC, an execution role and each other's fate",
    "how requests of one model slow those of another: the latencies were not replayed together",
    "the hosts' memory and vCPU beyond what each published",
)
LOOKS = 2000
"""Nodes of the tree that are looked at for one endpoint: all of them up to about a thousand groups of one owner."""
type FreeRoom = tuple[float, ...]
EXACT = 1e-9
"""Error of sums of numbers with four digits, which is no need."""


def needs_at(context: EvaluationContext) -> Needs | Reason:
    """Needs of the endpoint on a shared card, for the fleet's report.

    Known only where it runs on what it was measured on.
    """
    if not context.endpoint.is_plain:
        return Reason(Code.OTHER_KIND, f"only plain real-time endpoints are packed, not {context.endpoint.kind.value}")
    if context.endpoint.scaling:
        most = max(target.maximum for target in context.endpoint.scaling)
        return Reason(Code.AUTOSCALED, f"autoscaling may set up to {most} instances; only what stays on one is packed")
    if context.runs.name != context.reference.name:
        text = f"it was measured on {context.reference.name}, whose days have to leave the look-back first"
        return Reason(Code.TOO_FEW_DAYS, text)
    return needs_of(
        context.runs, context.variant.current_count, context.demand, context.endpoint.framework, context.policy
    )


def needs_of(runs: InstanceType, instances: int, demand: Demand, framework: str, policy: Policy) -> Needs | Reason:
    """Needs of the endpoint on a shared card, or why no card can be shared."""
    chip, need = runs.accelerator, demand.memory.need_gib
    if chip is None or instances != 1 or runs.accelerator_count != 1:
        sentence = (
            f"it runs {instances} × {runs.name} with {count(runs.accelerator_count, 'GPU')} each;"
            " only an endpoint of one instance with one GPU can share it"
        )
        return Reason(Code.NOT_APPLICABLE, sentence)
    if need is None or demand.memory.kind is MemoryClass.PREALLOCATED:
        sentence = "its server pre-allocates GPU memory, or publishes none, which hides how much of a card it needs"
        return Reason(Code.UNKNOWN_MEMORY_NEED, sentence)
    if demand.memory.growing:
        sentence = (
            f"its GPU memory grows ({demand.memory.peak_gib or need:.1f} GiB so far), so a shared card would fill"
        )
        return Reason(Code.UNKNOWN_MEMORY_NEED, sentence)
    if demand.latency is None:
        return Reason(Code.TOO_FEW_REQUESTS, f"{demand.requests:.0f} requests do not tell how busy it keeps a card")
    work = demand.gpu_s_per_request if demand.gpu_s_per_request is not None else demand.latency.mean_s
    busy = tuple(round(rate * work, 4) for rate in demand.load.hourly_rate)
    if max(busy, default=0.0) > policy.rho_one:
        sentence = f"it alone works {100 * max(busy):.0f} % of its card in the busiest hour"
        return Reason(Code.TOO_BUSY, f"{sentence}; a shared one works {100 * policy.rho_one:.0f} % at most")
    return Needs(
        accelerator=chip.model,
        usable_gib=chip.usable_gib,
        gpu_memory_gib=round(need, 2),
        busy=busy,
        host_memory_gib=round(runs.memory_gib if demand.host_memory_gib is None else demand.host_memory_gib, 2),
        vcpu=round(float(runs.vcpu) if demand.vcpu is None else demand.vcpu, 2),
        type_memory_gib=runs.memory_gib,
        type_vcpu=runs.vcpu,
        framework=framework,
    )


def packing_reason(needs: Needs, owner: str) -> Reason:
    """Why an endpoint that could share a card has no partners named yet: finding them needs the other endpoints."""
    asks = (
        f"it would ask for {needs.gpu_memory_gib:.1f} of {needs.usable_gib:.1f} GiB of a shared {needs.accelerator} and"
        f" {100 * max(needs.busy, default=0.0):.0f} % of its busiest hour"
    )
    if not owner:
        return Reason(Code.NEEDS_PARTNERS, f"{asks}, but no owner is named (tag rightsizer:owner) with whom to share")
    return Reason(Code.NEEDS_PARTNERS, f"{asks}; the report names the endpoints of {owner} that fit beside it, if any")


def find_packs(recommendations: Iterable[Recommendation], policy: Policy) -> tuple[Pack, ...]:
    """The groups that save more together than their own options do, the largest saving first.

    Partners have one account, Region, named owner and card model; each joins the first group that still holds it,
    the dearest endpoint first. An endpoint is in one group at most.
    """
    shared: dict[tuple[str, ...], list[Recommendation]] = {}
    for recommendation in recommendations:
        if (
            recommendation.needs is not None
            and recommendation.price is not None
            and recommendation.owner
            and recommendation.mode is not Mode.OFF
        ):
            key = (
                recommendation.ref.account,
                recommendation.ref.region,
                recommendation.owner,
                recommendation.needs.accelerator,
            )
            shared.setdefault(key, []).append(recommendation)
    packs: list[Pack] = []
    for partners in shared.values():
        for group in _groups(partners, policy):
            pack = _pack(group, policy)
            if pack is not None:
                packs.append(pack)
    return tuple(sorted(packs, key=lambda p: (-p.beyond_usd_per_month, p.endpoints)))


class _Rooms:
    """The room that each group has left, in the order of the groups, and which is the first with enough of it.

    A room is free GPU memory, host memory, vCPUs and the free load of each hour. Rooms are kept as a tree in which each
    node has the largest of its two halves, so that a half without room is passed over at once.
    """

    def __init__(self, most: int) -> None:
        self._leaves = 1 << (most - 1).bit_length()
        self._largest: list[FreeRoom] = [()] * (2 * self._leaves)

    def first_with(self, needs: FreeRoom) -> int | None:
        """The number of the first group that holds the needs too; None where none does, or `LOOKS` found none."""
        waiting = [1]
        for _ in range(LOOKS):
            if not waiting:
                return None
            node = waiting.pop()
            largest = self._largest[node]
            if not largest or any(map(gt, needs, largest)):
                continue
            if node >= self._leaves:
                return node - self._leaves
            waiting += (2 * node + 1, 2 * node)
        return None

    def leave(self, group: int, room: FreeRoom) -> None:
        """Set what is left of the room of a group."""
        node = self._leaves + group
        self._largest[node] = room
        while node := node // 2:
            left, right = self._largest[2 * node], self._largest[2 * node + 1]
            self._largest[node] = tuple(map(max, left, right)) if left and right else left or right

    def of(self, group: int) -> FreeRoom:
        """What is left of the room of a group."""
        return self._largest[self._leaves + group]


def _groups(partners: Sequence[Recommendation], policy: Policy) -> list[list[Recommendation]]:
    """Each endpoint in the first group with room for it, the dearest first; a group is on the card of its first."""
    groups: list[list[Recommendation]] = []
    rooms = _Rooms(len(partners))
    for recommendation in sorted(partners, key=lambda p: (-_usd(p), p.ref.name)):
        if recommendation.needs is None:
            continue
        asked = (
            recommendation.needs.gpu_memory_gib,
            recommendation.needs.host_memory_gib,
            recommendation.needs.vcpu,
            *recommendation.needs.busy,
        )
        group = rooms.first_with(asked)
        if group is None:
            group = len(groups)
            groups.append([])
            card = (
                recommendation.needs.usable_gib,
                recommendation.needs.type_memory_gib,
                float(recommendation.needs.type_vcpu),
            )
            rooms.leave(
                group, tuple(free + EXACT for free in (*card, *(policy.rho_one for _ in recommendation.needs.busy)))
            )
        groups[group].append(recommendation)
        rooms.leave(group, tuple(map(sub, rooms.of(group), asked)))
    return [group for group in groups if len(group) > 1]


def _peak(needs: Sequence[Needs]) -> float:
    return max((sum(hour) for hour in zip(*(n.busy for n in needs), strict=True)), default=0.0)


def _pack(group: Sequence[Recommendation], policy: Policy) -> Pack | None:
    first, needs = group[0], [recommendation.needs for recommendation in group if recommendation.needs is not None]
    now, after = sum(map(_usd, group), Decimal(0)), _usd(first)
    saving = now - after
    beyond = saving - sum((recommendation.identified_usd_per_month for recommendation in group), Decimal(0))
    least = now * Decimal(str(policy.minimum_saving_share))
    if first.price is None or beyond < policy.minimum_saving_usd or saving < least:
        return None
    frameworks = {n.framework for n in needs}
    same = len(frameworks) == 1 and "" not in frameworks
    way = "inference components" + (" or one multi-model endpoint, if they use one image" if same else "")
    peak = _peak(needs)
    return Pack(
        owner=first.owner,
        endpoints=tuple(recommendation.ref.name for recommendation in group),
        instance_type=first.instance_type,
        price=first.price,
        now_usd=now,
        usd_per_month=after,
        saving_usd_per_month=saving,
        beyond_usd_per_month=beyond,
        gpu_memory_gib=round(sum(n.gpu_memory_gib for n in needs), 1),
        usable_gib=needs[0].usable_gib,
        peak_load=round(peak, 3),
        headroom=round(policy.rho_one / peak, 1) if peak > 0 else 1000.0,
        way=way,
        client_change=CALLERS,
        not_checked=NOT_CHECKED,
    )


def _usd(recommendation: Recommendation) -> Decimal:
    return recommendation.usd_per_month or Decimal(0)
