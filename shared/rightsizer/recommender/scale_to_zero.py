"""Traffic that stops: scale to zero with its saving and cold starts, or the few instances that are enough meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rightsizer.domain.demand import Demand, Fleet
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.option import Money, Option, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.tags import is_yes
from rightsizer.domain.usage import SLOT_S, SLOTS, DailyUsage
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import gpu_mean
from rightsizer.recommender.finding import IDLE_GPU_MEAN
from rightsizer.recommender.priced_option import price_fleet
from rightsizer.recommender.pricing import committed_text, cost_of, scale_to_zero_option
from rightsizer.recommender.queued_sleep import (
    COLD_TAG,
    START_S,
    expiry_refusal,
    failing_sentence,
    sleeps_already,
    stay_awake_by_order,
    wait_sentence,
)

EXPECTED = 20.0
"""Requests that had to come in silent hours on every earlier day, before silence says that the traffic has stopped."""


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was asked, and the longest pause before that, hours."""

    hours: float
    longest_before_h: float

    @property
    def sentence(self) -> str:
        """Sentence without an end, that says why the traffic counts as stopped."""
        before = f"{self.longest_before_h:.0f} h" if self.longest_before_h >= 1 else "less than an hour"
        return f"no request for {self.hours:.0f} h, and the longest pause before was {before}"


@dataclass(frozen=True, slots=True)
class SilentFleet:
    """Fleet that a silent endpoint needs, and the context of its silent days alone."""

    context: EvaluationContext
    silence: Silence
    option: Option | Reason
    """As few instances as its owner allows, or why it stays as it is."""


def fleet_while_silent(context: EvaluationContext) -> SilentFleet | None:
    """The fleet of an endpoint whose traffic has stopped, where its count is all that could be less; else None."""
    several = context.variant.current_count > 1 or context.has_active_change
    if not several or not context.endpoint.is_plain or context.endpoint.scaling:
        return None
    silence = find_stopped_traffic(context.days, context.policy.stopped_hours)
    if silence is None:
        return None
    asked = max(day.day for day in context.days if day.request_count > 0)
    inputs = replace(context.inputs, policy=_with_one_zone(context.policy))
    quiet = replace(context, inputs=inputs, days=[day for day in context.days if day.day > asked], _replays={})
    if (gpu_mean(quiet.days, quiet.runs) or 0.0) > IDLE_GPU_MEAN:
        return None  # as an endpoint is not idle whose GPU works: a person looks at what works there
    return SilentFleet(quiet, silence, _fewest(quiet))


def _with_one_zone(policy: Policy) -> Policy:
    """The policy without the risk of a lone instance: a second Availability Zone serves callers, and there are none.

    An owner who wants two all the same says so (`rightsizer:min-instances`), and callers who return find one instance.
    """
    return replace(policy, lone_instance=min(policy.lone_instance, Risk.LOW))


def _fewest(quiet: EvaluationContext) -> Option | Reason:
    """The fewest instances of the type that runs."""
    candidate, least = check_candidate(quiet, quiet.runs), quiet.owner_minimum
    if not isinstance(candidate, CandidateType) or least >= quiet.variant.current_count:
        runs = f"{quiet.variant.current_count} × {quiet.runs.name}"
        return Reason(
            Code.ALREADY_RIGHT, f"already right: its traffic has stopped, and {runs} is the least that it keeps"
        )
    fleet = Fleet((least,) * 24, candidate.workers, quiet.is_random_routing, 1.0)
    return price_fleet(quiet, candidate, fleet, None)


def find_stopped_traffic(days: Sequence[DailyUsage], least_hours: float) -> Silence | None:
    """The silence of traffic that has stopped: to the end for `least_hours` and four times any gap before.

    In the same hours every earlier day had requests, and so had an earlier day of each weekday that was silent from
    midnight to midnight: the silence is no habit of the hour or the week, and no accident.
    """
    silent = longest = 0.0
    if not days or days[-1].requests[-1] != 0:
        return None
    for usage in days:
        for count in usage.requests:
            if count is None or count > 0:
                longest, silent = max(longest, silent), 0.0
            else:
                silent += SLOT_S
    slots = round(silent / SLOT_S)
    if silent < 3600 * least_hours or silent < 4 * longest or _expected_requests(days, slots) < EXPECTED:
        return None
    if _is_weekly_silence(days, slots):
        return None
    return Silence(silent / 3600, longest / 3600)


def _expected_requests(days: Sequence[DailyUsage], slots: int) -> float:
    """Requests that the last `slots` of a day had on the day with the fewest, of those before the silence."""
    dates = sorted({d.day for d in days})
    calls = dict.fromkeys(dates[: -slots // SLOTS], 0.0)
    for usage in days:
        if usage.day in calls:
            calls[usage.day] += sum(count or 0.0 for count in usage.requests[-min(slots, SLOTS) :])
    return min(calls.values(), default=0.0)


def _is_weekly_silence(days: Sequence[DailyUsage], slots: int) -> bool:
    """Whether a whole silent day is of a weekday that was never seen with requests: it may be silent each week."""
    dates = sorted({d.day for d in days})
    whole = slots // SLOTS
    asked = {d.day.weekday() for d in days if d.request_count > 0}
    return any(date.weekday() not in asked for date in dates[len(dates) - whole :])


TIMEOUTS = (15, 30, 60, 120, 240, 480)
STOPPED_MINUTES = 240
"""Idle time after which an endpoint sleeps whose traffic has stopped."""
UNREAD_VARIANTS = "it has several variants, and the calls of one do not tell whether all are"
MOST_UNEXPLAINED = 0.5
"""Share of the GPU's work without a request from which a queue stays awake: most of it is something else."""
ASLEEP_ALREADY = "its autoscaling goes down to 0 instances already"


@dataclass(frozen=True, slots=True)
class IdleTime:
    """Sleeping after `minutes` without a request."""

    minutes: int
    asleep_share: float
    """Of the time, 0..1."""
    cold: float
    """Requests that would have met a sleeping or waking fleet."""
    requests: float
    longest_gap_minutes: float


def scale_to_zero(context: EvaluationContext) -> Option | Reason:
    """Scaling to zero, where a queue keeps what comes, the owner tolerates cold starts or nobody would have met one."""
    found = _find_idle_time(context)
    return found if isinstance(found, Reason) else _option(context, found)


def _find_idle_time(context: EvaluationContext) -> IdleTime | Reason:
    queued = EndpointKind.ASYNC in context.endpoint.kinds
    if sleeps_already(context.endpoint):
        return Reason(Code.NOT_APPLICABLE, ASLEEP_ALREADY)
    if EndpointKind.INFERENCE_COMPONENTS in context.endpoint.kinds and context.variant.least_instances == 0:
        return Reason(Code.NOT_APPLICABLE, "its managed instance scaling goes down to 0 instances already")
    kept = stay_awake_by_order(context.endpoint) or expiry_refusal(context.demand) if queued else None
    if kept is not None:
        return kept
    tolerated = queued or may_start_cold(context.endpoint)
    days = [queue_day(d, context.policy) for d in context.days] if queued else context.days
    silence = find_stopped_traffic(days, context.policy.stopped_hours)
    if silence is not None:
        return IdleTime(STOPPED_MINUTES, 1.0, 0.0, 0.0, silence.longest_before_h * 60)
    if not tolerated and context.peak_count > 1:
        return Reason(
            Code.NOT_OPTED_IN,
            f"not scaled to zero: callers would wait for a cold start (the tag {COLD_TAG}=true accepts that)",
        )
    return best_timeout(days, tolerated, context.policy.cold_share, context.policy.nap_days)


def unexplained_share(days: Sequence[DailyUsage], policy: Policy) -> float:
    """Share of the GPU's work, 0..1, in slots that are known to have had no request."""
    least, work, alone = policy.cpu_class_share * SLOT_S, 0.0, 0.0
    for usage in days:
        for count, busy in zip(usage.requests, usage.busy_s, strict=True):
            if busy is not None and busy > least * max(usage.gpus, 1):
                work += busy
                alone += busy if count == 0 else 0.0
    return alone / work if work else 0.0


def queue_day(usage: DailyUsage, policy: Policy) -> DailyUsage:
    """The day of a queue; a slot in which the GPU works and no request ends is unknown, not idle."""
    least = policy.cpu_class_share * SLOT_S * max(usage.gpus, 1)
    rows = zip(usage.requests, usage.busy_s, strict=True)
    known = tuple(None if calls == 0 and work is not None and work > least else calls for calls, work in rows)
    return replace(usage, requests=known)


def _option(context: EvaluationContext, found: IdleTime) -> Option | Reason:
    awake = context.instances * (1 - found.asleep_share)
    plan = context.inputs.prices.commitment
    of_components = EndpointKind.INFERENCE_COMPONENTS in context.endpoint.kinds
    in_place = may_components_sleep(context.endpoint) or context.endpoint.kind is EndpointKind.ASYNC
    beside = in_place if of_components else not in_place
    cost = cost_of(
        context.usd_per_month,
        context.price,
        awake,
        context.variant.current_count,
        0.0,
        plan,
        context.policy,
        new_fleet=beside,
    )
    if cost.saving <= 0:
        slept = f"asleep {100 * found.asleep_share:.0f} % of the time it would save nothing"
        return Reason(
            Code.NOT_CHEAPER,
            f"{slept} of ${context.usd_per_month:,.2f} a month{committed_text(plan.usd_per_hour)}",
        )
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (context.runs.name, context.variant.current_count)
    sure, share = context.demand.confidence, found.asleep_share
    nap = scale_to_zero_option(now, context.price, money, sure, found.minutes, share, in_place, of_components)
    if of_components and in_place:
        nap = replace(nap, notes=(*nap.notes, failing_sentence(found.cold, found.requests, context.inputs.history)))
    if context.endpoint.kind is EndpointKind.ASYNC:
        nap = replace(
            nap, notes=(*nap.notes, wait_sentence(found.cold, found.requests, context.demand, context.inputs.history))
        )
    return replace(nap, mean_instances=round(awake, 4))


def may_start_cold(endpoint: Endpoint) -> bool:
    """Whether the owner says by a tag that callers can wait for a start."""
    return is_yes(endpoint.tags.get(COLD_TAG, ""))


def may_components_sleep(endpoint: Endpoint) -> bool:
    """Whether rightsizer lets components sleep: instances follow them, and their owner says that callers try again."""
    components = endpoint.kind is EndpointKind.INFERENCE_COMPONENTS and len(endpoint.variants) == 1
    return components and bool(endpoint.variants[0].least_instances) and may_start_cold(endpoint)


def stay_awake_reason(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason | None:
    """Why an endpoint without a known latency stays awake; None where its queue or its owner lets it sleep, unasked.

    Asynchronous endpoints publish no `Invocations`, and `InvocationsProcessed` as requests end: their backlog tells
    when nothing waits and nothing is worked on. A GPU of which nothing is known is not idle, nor is one whose work
    neither a request nor the backlog explains.
    """
    queued = EndpointKind.ASYNC in endpoint.kinds
    if demand.requests > 0 and not queued:
        return Reason(Code.TOO_FEW_REQUESTS, f"{demand.requests:,.0f} requests came in {demand.days:.1f} days")
    if sleeps_already(endpoint):
        return Reason(Code.NOT_APPLICABLE, ASLEEP_ALREADY)
    if len(endpoint.variants) > 1:
        text = f"{UNREAD_VARIANTS} used"
        return Reason(Code.OTHER_KIND, text)
    if endpoint.kinds not in ((EndpointKind.REAL_TIME,), (EndpointKind.ASYNC,)):
        return Reason(Code.OTHER_KIND, f"sleep is not looked at for the kind {endpoint.kind.value}")
    if queued and (kept := stay_awake_by_order(endpoint) or expiry_refusal(demand)) is not None:
        return kept
    if not queued and not may_start_cold(endpoint):
        return Reason(Code.NOT_OPTED_IN, f"no tag {COLD_TAG}=true says that callers can wait for a start")
    if queued and demand.backlog is None:
        return Reason(Code.NOT_APPLICABLE, "the backlog of its queue is not known")
    return _unexplained_work(demand, policy)


def _unexplained_work(demand: Demand, policy: Policy) -> Reason | None:
    """Work without a request, or requests that wait without work: then nobody knows what would be put to sleep."""
    if demand.gpu_peak is None:
        return Reason(Code.NO_GPU_METRICS, "no GPU utilisation was published, and unknown is not idle")
    works = demand.gpu_peak > policy.cpu_class_share
    if demand.requests > 0 or works == bool(demand.backlog):
        return None
    if demand.backlog:
        return Reason(Code.NOT_APPLICABLE, f"the backlog of its queue was up to {demand.backlog:.0f}")
    return Reason(Code.NOT_APPLICABLE, f"its GPU works (up to {100 * demand.gpu_peak:.1f} %)")


def idle_time(days: Sequence[DailyUsage], minutes: int) -> IdleTime:
    """The past days with that timeout. Slots without a datapoint count as busy: unknown is not idle.

    A start takes START_S, longer than a slot: the requests of each slot until then meet a fleet that is not there yet.
    """
    silent = cold = asleep = requests = longest = starting = 0.0
    slots, timeout = 0, 60.0 * minutes
    for usage in days:
        for count in usage.requests:
            slots += 1
            if count is not None and count <= 0:
                silent += SLOT_S
                if silent > timeout:
                    asleep += SLOT_S
            else:
                if silent > longest:
                    longest = silent
                if silent > timeout:
                    starting = START_S
                if count is not None:
                    requests += count
                    if starting > 0:
                        cold += max(1.0, count * min(1.0, starting / SLOT_S))
                silent = 0.0
            starting -= SLOT_S
    return IdleTime(minutes, asleep / max(slots * SLOT_S, 1), cold, requests, max(longest, silent) / 60)


def best_timeout(
    days: Sequence[DailyUsage], tolerated: bool, cold_share: float, certain_days: float
) -> IdleTime | Reason:
    """The timeout to take, or why there is none.

    Where cold starts are tolerated the shortest; else the shortest one that met nobody cold even at half of it in
    at least `certain_days` days, so that a gap twice as long as any seen is still covered.
    """
    quiet = sum(usage.requests.count(0.0) for usage in days) * SLOT_S / 60 / max(len(days), 1)
    if quiet < TIMEOUTS[0]:
        sentence = (
            f"never idle for long: {quiet:.0f} quiet minutes a day, and scaling to zero takes at least {TIMEOUTS[0]}"
        )
        return Reason(Code.NOT_CHEAPER, sentence)
    if tolerated:
        return _idle_time_or_reason(idle_time(days, TIMEOUTS[0]))
    seen = len({d.day for d in days})
    if seen < certain_days:
        sentence = f"{seen} days were seen, and without the tag {COLD_TAG}=true it takes {certain_days:g}"
        return Reason(Code.TOO_FEW_DAYS, sentence)
    for minutes in TIMEOUTS:
        tight = idle_time(days, minutes // 2)
        if tight.cold <= cold_share * tight.requests / 4:
            return _idle_time_or_reason(idle_time(days, minutes))
    return Reason(
        Code.NOT_OPTED_IN,
        f"not scaled to zero: even after {tight.minutes} minutes without a request, {tight.cold:.0f} of"
        f" {tight.requests:.0f} callers would have waited for a cold start ({100 * tight.cold / tight.requests:.2f} %);"
        f" without the tag {COLD_TAG}=true at most {25 * cold_share:.2f} % may",
    )


def _idle_time_or_reason(found: IdleTime) -> IdleTime | Reason:
    """That nap, where it would have been one."""
    if found.asleep_share > 0:
        return found
    longest = f"its longest pause was {found.longest_gap_minutes:.0f} minutes"
    return Reason(Code.NOT_CHEAPER, f"it was never silent for {found.minutes} minutes ({longest})")
