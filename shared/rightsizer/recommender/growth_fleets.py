"""Growth: why an endpoint needs more than it runs, and the fleets that serve where today's does not."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rightsizer.domain.demand import Fleet, MemoryClass
from rightsizer.domain.endpoint import LEAST, EndpointKind, ScalableTarget
from rightsizer.domain.option import Excluded, Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.recommender.candidates import CandidateType, check_candidates
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.finding import busy_and_failing_reason, busy_and_refusing_reason, too_late_reason
from rightsizer.recommender.fleet_size import mean_instances, replayed_p95_s
from rightsizer.recommender.latency import allowed_latency_factor, share_of_late_requests
from rightsizer.recommender.priced_option import price_fleet
from rightsizer.recommender.slowdown import Ratio, allowed_gpu_slowdown, chance_weight, chance_within, host_factor

QUEUE_S = 3600.0
"""Seconds of work before each instance from which a queue is too long: what one asynchronous request may take at most
(SageMaker guide, Asynchronous inference); after six hours, by default, a request in the queue is lost."""
QUEUE_DAYS, LOST = 2, 10.0
"""Days with such a queue, or with so many losses: one alone is a burst, which a queue is there for."""
P95_LATE = 0.05
"""Share of the requests that may be late behind an objective for the p95."""
FULL = 0.97
"""Share of a GPU's memory from which it is full; the proof of a change calls the same bad."""


class NeedKind(StrEnum):
    """Evidence that more is needed."""

    LATE = "late"
    FAILING = "failing"
    MEMORY = "memory"
    QUEUE = "queue"
    MINIMUM = "minimum"


@dataclass(frozen=True, slots=True)
class GrowthNeed:
    """Why more is needed, and the instances that its owner wants at all times."""

    kind: NeedKind
    reason: Reason
    least: int


def growth_need(context: EvaluationContext) -> GrowthNeed | None:
    """Why the endpoint needs more than its owner gave it; None where it does not.

    A fleet that changes of ours made smaller has rules of its own: what was taken comes back.
    """
    least = context.endpoint.objective.min_instances or 1
    if _is_owners_fleet(context):
        for kind, find in (
            (NeedKind.MEMORY, _full_memory_reason),
            (NeedKind.LATE, _late_reason),
            (NeedKind.FAILING, _failing_reason),
            (NeedKind.QUEUE, _queue_reason),
        ):
            if (reason := find(context)) is not None:
                return GrowthNeed(kind, reason, least)
    short = _minimum_reason(context)
    return GrowthNeed(NeedKind.MINIMUM, short, least) if short is not None else None


def todays_count(context: EvaluationContext) -> int:
    """Whole instances that run now."""
    return max(math.ceil(context.instances - 0.01), 1)


def scaled_targets(context: EvaluationContext) -> list[ScalableTarget]:
    """The registrations whose policies set the count."""
    return [target for target in context.endpoint.scaling if target.policies or not target.scheduled]


def _is_owners_fleet(context: EvaluationContext) -> bool:
    """Whether what runs is its owner's: no change of ours is in force, or none that left fewer instances."""
    same = context.runs.name == context.reference.name
    as_many = context.instances >= sum(context.reference_counts) / 24 - 0.01
    return same and not context.is_strained and (as_many or not context.has_active_change)


def _late_reason(context: EvaluationContext) -> Reason | None:
    """Late requests on the fleet that runs now; those of a smaller one before it say nothing about it."""
    instances = sum(context.reference_counts) / 24
    days = context.days
    if not context.endpoint.scaling:
        days = [d for d in days if min((c for c in d.instances if c), default=0.0) > context.instances - 0.5]
    latency = latency_of([d for d in days if d.instance_type == context.runs.name])
    if latency is None:
        return None
    return too_late_reason(context.demand, latency, context.objective, context.policy, instances)


def _failing_reason(context: EvaluationContext) -> Reason | None:
    """Requests fail, or are refused, for want of capacity."""
    failing = busy_and_failing_reason(context.demand, context.objective, context.policy)
    if failing is not None or context.demand.latency is None:
        return failing
    instances = sum(context.reference_counts) / 24
    return busy_and_refusing_reason(
        context.demand, context.demand.latency, context.objective, context.policy, instances
    )


def _full_memory_reason(context: EvaluationContext) -> Reason | None:
    """Requests fail while the GPU memory is full; a server that takes its share of any card is full by design."""
    memory, chip = context.demand.memory, context.runs.accelerator
    declared = context.objective.error_share
    allowed = context.policy.error_share if declared is None else declared
    if memory.kind not in (MemoryClass.STATIC, MemoryClass.ELASTIC) or chip is None:
        return None
    if context.demand.error_share <= allowed or memory.peak_gib < FULL * chip.usable_gib:
        return None
    return Reason(
        Code.UNDER_PROVISIONED,
        f"{100 * context.demand.error_share:.2f} % of the requests failed ({100 * allowed:g} % are allowed) while the"
        f" GPU memory was full: {memory.peak_gib:.1f} of {chip.usable_gib:.1f} GiB",
    )


def _queue_reason(context: EvaluationContext) -> Reason | None:
    """A queue held more than an hour of work on several days, or a busy fleet let requests in it expire."""
    if EndpointKind.ASYNC not in context.endpoint.kinds:
        return None
    lost, runs = [d.expired for d in context.days if d.expired >= LOST], max(context.instances, 1.0) * context.workers
    busy = context.demand.load.peak_rate * context.latency.mean_s / runs
    if len(lost) >= QUEUE_DAYS and busy > context.policy.rho_one:
        text = f"{sum(lost):,.0f} requests expired in its queue before an instance took them, on {len(lost)} days"
        return Reason(Code.UNDER_PROVISIONED, text)
    waits = sorted(((d.backlog or 0.0) * context.latency.mean_s / runs, d.backlog or 0.0) for d in context.days)
    long = [held for wait, held in waits if wait > QUEUE_S]
    if len(long) < QUEUE_DAYS:
        return None
    wait, held = waits[-1]
    return Reason(
        Code.UNDER_PROVISIONED,
        f"up to {held:,.0f} requests waited in its queue, {wait / 3600:.1f} h of work for what runs; on {len(long)} of"
        f" {len(waits)} days it held more than {QUEUE_S / 3600:g} h of work",
    )


def _minimum_reason(context: EvaluationContext) -> Reason | None:
    least, scaled = context.endpoint.objective.min_instances, scaled_targets(context)
    if least is None or (context.endpoint.scaling and not scaled):
        return None
    variant = context.variant
    has = min(t.minimum for t in scaled) if scaled else max(variant.current_count, variant.desired_count)
    if has >= least:
        return None
    where = "the minimum of its autoscaling is" if scaled else "it runs"
    return Reason(
        Code.UNDER_PROVISIONED, f"{where} {has}, and the tag rightsizer:min-instances says {least} at all times"
    )


OFTEN_FASTER = 0.95
"""The most that is believed of a faster card that nobody measured: 5 % of the measured moves to one were slower."""
LIKELY = 0.8
"""Chance of being fast enough from which such a type is offered; below, its performance risk is above 3."""


@dataclass(frozen=True, slots=True)
class GrowthOffer:
    """A way to grow."""

    option: Option
    is_guess: bool
    """Whether its speed follows from datasheets alone."""


type GrowthAnswer = GrowthOffer | Excluded


def growth_offers(context: EvaluationContext, need: GrowthNeed) -> Iterator[GrowthAnswer]:
    """Every way to end the need, and why others are none."""
    today = todays_count(context)
    most = max(context.policy.count_factor * today + context.policy.count_spare, need.least)
    ceiling = float(context.price.usd_per_instance_month) * most
    wide = replace(context, growth_ceiling_usd=ceiling)
    candidates, _ = check_candidates(wide)
    own = next((c for c in candidates if c.hardware.name == context.runs.name), None)
    if own is not None and need.kind is not NeedKind.MEMORY:
        search = _Search(wide, need, own, today, most)
        yield from search.higher_bounds() if context.endpoint.scaling else search.more_instances()
    if need.kind in (NeedKind.LATE, NeedKind.MEMORY) and not context.endpoint.scaling:
        for candidate in candidates:
            if _may_be_faster(wide, need, candidate):
                yield from _Search(wide, need, candidate, today, most).other_type()


def _may_be_faster(context: EvaluationContext, need: GrowthNeed, candidate: CandidateType) -> bool:
    """Whether another type is worth a look: no slower, sure to fit, and for full memory with a larger card."""
    chip, now = candidate.hardware.accelerator, context.runs.accelerator
    if chip is None or now is None or candidate.hardware.name == context.runs.name:
        return False
    if need.kind is NeedKind.MEMORY and chip.usable_gib <= now.usable_gib:
        return False
    open_to_buy = candidate.hardware.name not in context.types_without_capacity
    return candidate.ratio.mid <= 1 and candidate.fit >= 1 and open_to_buy


@dataclass(frozen=True, slots=True)
class _Search:
    """The search on one type."""

    context: EvaluationContext
    need: GrowthNeed
    candidate: CandidateType
    today: int
    most: int

    def more_instances(self) -> Iterator[GrowthAnswer]:
        """Another routing, and more instances of what runs."""
        context, need = self.context, self.need
        if need.kind is NeedKind.LATE and (alone := slow_alone_reason(context)) is not None:
            yield self._excluded(alone, OptionKind.INSTANCE_COUNT)
            return
        random_routing = context.is_random_routing
        if random_routing and need.kind is NeedKind.LATE and context.endpoint.kind is not EndpointKind.ASYNC:
            counts = range(max(self.today, 2, need.least), self.most + 1)
            routed = smallest_that_serves(counts, lambda n: self._serves(self._fleet(n, random_routing=False)))
            if routed is not None and self._quota_reason(routed) is None:
                yield self._offer(self._fleet(routed, random_routing=False), LEAST)
        counts = range(max(self.today + 1, need.least), self.most + 1)
        count = smallest_that_serves(counts, lambda n: self._serves(self._fleet(n, random_routing=random_routing)))
        reason = self._too_busy_reason() if count is None else self._quota_reason(count)
        if count is None or reason is not None:
            yield self._excluded(reason or self._too_busy_reason(), OptionKind.INSTANCE_COUNT)
        else:
            yield self._offer(self._fleet(count, random_routing=random_routing), None)

    def higher_bounds(self) -> Iterator[GrowthAnswer]:
        """A higher minimum within the owner's maximum; a higher maximum where the fleet has been at it."""
        context, need, scaled = self.context, self.need, scaled_targets(self.context)
        if not scaled:
            text = "its count follows scheduled actions: its owner raises the counts of those hours"
            yield self._excluded(Reason(Code.AUTOSCALED, text), OptionKind.AUTOSCALING)
            return
        if need.kind is NeedKind.LATE and (alone := slow_alone_reason(context)) is not None:
            yield self._excluded(alone, OptionKind.AUTOSCALING)
            return
        low, high = min(t.minimum for t in scaled), max(t.maximum for t in scaled)
        minimum: int | None = None
        if need.kind is NeedKind.MINIMUM:
            minimum, high = need.least, max(high, need.least)
        elif need.kind is NeedKind.LATE:
            starts = range(max(low + 1, need.least), high + 1)
            minimum = smallest_that_serves(starts, lambda n: self._serves(self._fleet(n, maximum=high)))
        if minimum is not None:
            yield self._bounded(minimum, high)
            return
        yield self._higher_maximum(max(low, need.least if need.least > 1 else low), high)

    def _higher_maximum(self, low: int, high: int) -> GrowthAnswer:
        """A maximum beyond the owner's, where their fleet has been at it."""
        hours = [c for d in self.context.days for c in d.instances if c is not None] or [float(self.today)]
        full = sum(c >= high - 0.01 for c in hours) / len(hours)
        if not full:
            text = f"autoscaling may run {high} instances, and ran {max(hours):.0f}"
            text += " at most: its owner lowers the target of its policy"
            return self._excluded(Reason(Code.AUTOSCALED, text), OptionKind.AUTOSCALING)
        upper = smallest_that_serves(
            range(high + 1, max(self.most, high + 1) + 1), lambda n: self._serves(self._fleet(n))
        )
        reason = self._too_busy_reason() if upper is None else self._quota_reason(upper)
        if upper is None or reason is not None:
            return self._excluded(reason or self._too_busy_reason(), OptionKind.AUTOSCALING)
        return self._bounded(low, upper, self.context.instances + full * (upper - high))

    def other_type(self) -> Iterator[GrowthAnswer]:
        """The smallest fleet of another type, at the most likely of its slowdowns."""
        context, candidate = self.context, self.candidate
        chance = chance_of_speed(context, candidate) if self.need.kind is NeedKind.LATE else 1.0
        if chance < LIKELY:
            text = f"{candidate.hardware.name} is {100 * chance:.0f} % likely to be fast enough"
            yield Excluded(candidate.hardware.name, Reason(Code.TOO_SLOW, text))
            return
        guess = replace(candidate, ratio=Ratio(candidate.ratio.mid, candidate.ratio.mid), fast=chance)
        each = float(candidate.price.usd_per_instance_month)
        last = min(self.most, int((context.growth_ceiling_usd or 0.0) / each))
        search, random_routing = replace(self, candidate=guess), context.is_random_routing
        counts = range(max(min(self.today, 2), self.need.least), last + 1)
        count = smallest_that_serves(counts, lambda n: search._serves(search._fleet(n, random_routing=random_routing)))
        reason = search._too_busy_reason(last) if count is None else search._quota_reason(count)
        if count is None or reason is not None:
            yield Excluded(candidate.hardware.name, reason or search._too_busy_reason(last))
            return
        yield search._offer(search._fleet(count, random_routing=random_routing), None, is_guess=chance < 1)

    def _fleet(self, count: int, *, random_routing: bool = False, maximum: int = 0) -> Fleet:
        ratio = self.candidate.ratio.mid
        return Fleet((count,) * 24, self.candidate.workers, random_routing, ratio, maximum=maximum)

    def _serves(self, fleet: Fleet) -> bool:
        """Whether the fleet ends the need, with the room to grow that every choice keeps."""
        context, policy = self.context, self.context.policy
        match self.need.kind:
            case NeedKind.MINIMUM:
                return True
            case NeedKind.QUEUE | NeedKind.FAILING:
                room = max(fleet.counts) * fleet.workers * policy.rho_many
                return context.demand.load.peak_rate * context.latency.mean_s * fleet.slower <= room
            case NeedKind.MEMORY:
                then, now = context.replay(fleet), context.reference_replay
                return then.late <= now.late + policy.excess_share * then.requests
            case NeedKind.LATE:
                load = max(context.load_margin, 1 + policy.down_with_growth)
                then, now = context.replay(replace(fleet, load=load)), context.reference_replay
                p95_s = context.latency.p95_s * then.p95_s / now.p95_s if now.p95_s > 0 else then.p95_s
                return then.late <= P95_LATE * then.requests and p95_s <= context.objective.p95_s

    def _offer(self, fleet: Fleet, routing: str | None, *, is_guess: bool = False) -> GrowthOffer:
        option = price_fleet(self.context, self.candidate, fleet, routing)
        return GrowthOffer(self._promised(replace(option, notes=(*option.notes, *self._notes(is_guess)))), is_guess)

    def _bounded(self, minimum: int, maximum: int, mean: float | None = None) -> GrowthOffer:
        """The fleet under other bounds of the owner's autoscaling.

        `mean`: instances on average where the maximum is raised. The hours at the old maximum then run the new one,
        which is what the replay serves with; else it starts from the new minimum.
        """
        count = max(minimum, 1) if mean is None else maximum
        fleet = self._fleet(count, maximum=maximum)
        mean = mean or max(self.context.instances, mean_instances(self.context, fleet), float(minimum))
        option = price_fleet(self.context, self.candidate, fleet, None, mean)
        target = Target(self.candidate.hardware.name, count, minimum=minimum, maximum=maximum)
        return GrowthOffer(self._promised(replace(option, kind=OptionKind.AUTOSCALING, target=target)), is_guess=False)

    def _promised(self, option: Option) -> Option:
        """The option with the p95 of the replay; a queue keeps what waits out of the latency of the model."""
        p95_s = replayed_p95_s(self.context, option, self.candidate.hardware)
        if EndpointKind.ASYNC in self.context.endpoint.kinds:
            p95_s = round(self.context.latency.p95_s * self.candidate.ratio.mid, 4)
        return replace(option, p95_s=p95_s)

    def _notes(self, is_guess: bool) -> tuple[str, ...]:
        if not is_guess:
            return ()
        name, chance = self.candidate.hardware.name, 100 * self.candidate.fast
        return (f"how fast {name} is follows from datasheets: it is {chance:.0f} % likely to be fast enough",)

    def _excluded(self, reason: Reason, kind: OptionKind) -> Excluded:
        return Excluded(self.context.runs.name, reason, kind)

    def _too_busy_reason(self, most: int | None = None) -> Reason:
        count, name = most or self.most, self.candidate.hardware.name
        text = f"even {count} × {name} would not serve it, and for more than {count} its owner has to size it anew"
        if count < self.most:
            text = f"{count} × {name} would not serve it, and more would cost more than {self.most} × "
            text += self.context.runs.name
        return Reason(Code.TOO_BUSY, text)

    def _quota_reason(self, count: int) -> Reason | None:
        name = self.candidate.hardware.name
        quota = self.context.inputs.quotas.get(name)
        if quota is None or count <= max(quota, self.today if name == self.context.runs.name else 0):
            return None
        text = f"{count} instances are needed, and the account's quota for {name} endpoints is {quota}"
        return Reason(Code.NO_QUOTA, text)


def slow_alone_reason(context: EvaluationContext) -> Reason | None:
    """Why more instances would not help: requests that wait for no other are too late already."""
    limit = context.objective.p95_s
    late = share_of_late_requests(context.service_times, limit)
    if late <= P95_LATE:
        return None
    slow = f"{100 * late:.0f} % of the requests take longer than {seconds_text(limit)} although they wait for no other"
    return Reason(Code.TOO_SLOW, f"more instances would not help: {slow}; only a faster type does")


def chance_of_speed(context: EvaluationContext, candidate: CandidateType) -> float:
    """Chance that one request alone is within the objective on that type, 0 to 1."""
    if not candidate.speed.source.is_guess:
        return candidate.fast
    late = share_of_late_requests(context.service_times, context.objective.p95_s)
    allowed = allowed_latency_factor(context.service_times, context.objective.p95_s, P95_LATE - late)
    host = host_factor(context.reference, candidate.hardware, context.demand)
    room, phi = allowed_gpu_slowdown(context.demand, host, allowed), candidate.speed.phi
    weight = chance_weight(context.outcomes, context.policy)
    return min(chance_within(room, phi, context.outcomes, weight), OFTEN_FASTER)


def smallest_that_serves(counts: Sequence[int], serves: Callable[[int], bool]) -> int | None:
    """The smallest of ascending counts that serves, by bisection; None where the largest does not."""
    if not counts or not serves(counts[-1]):
        return None
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if serves(counts[middle]):
            high = middle
        else:
            low = middle + 1
    return counts[low]
