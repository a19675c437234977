"""Kinds of hosting beside an endpoint that always runs, and what each costs as a function of traffic.

Limits: rules H1 to H7. Serverless and Lambda have no accelerator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer import catalog
from rightsizer.advice.answer import Action, AdviceReason, AdvisedOption, Cost, Estimate, Hosting, Memory, Purchase
from rightsizer.advice.capacity import answer_on_vcpus, need_of, too_slow_on_six_vcpus
from rightsizer.advice.rules import Rule
from rightsizer.advice.throughput import Interval
from rightsizer.advice.workload import Constraints, ModelKind, Shape, Workload
from rightsizer.domain.environment import Environment
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.recommender.other_endpoint import SERVERLESS_GB, serverless_usd, vcpus_of, whole_gigabytes

REAL_TIME_S, REAL_TIME_MB = 60.0, 6.0
SERVERLESS_MB, SERVERLESS_AT_ONCE = 4.0, 200
ASYNC_S, ASYNC_MB = 3600.0, 1000.0
LAMBDA_S, LAMBDA_GIB, LAMBDA_MB = 900.0, 10.0, 6.0
LAMBDA_USD_PER_GB_S, LAMBDA_USD_PER_CALL = 0.0000166667, 0.0000002
"""AWS Lambda, x86, us-east-1, list price as published by AWS in 2024; not part of the snapshot."""
HOLD_H = 0.25
"""Hours that an instance stays after a request before it is given back; an assumption."""
ALL_HOURS = 0.9 * float(HOURS_PER_MONTH)
"""From so many hours a month an endpoint counts as always on: to give its instances back saves too little."""
ASSUMED_S = 0.1
"""Duration of a request to a classical model where none was given; an assumption."""
ZERO = (
    "MinCapacity 0 needs two policies: target tracking on the backlog for each instance, and step scaling on"
    " HasBacklogWithoutCapacity to start the first instance"
)


@dataclass(frozen=True, slots=True)
class ServerlessCost:
    """A serverless endpoint that holds the model, and what a request costs."""

    memory_gb: int
    usd_per_request: float | None
    """US dollars; None where no price is known in the Region, or no duration of a request."""
    as_of: str
    assumed: bool
    """Whether the duration of a request is an assumption."""
    most_usd_per_request: float | None = None
    """Of a request of 60 s, which serverless endpoints end then. None where no price is known in the Region."""

    def monthly(self, requests: float) -> float | None:
        """US dollars for so many requests."""
        return None if self.usd_per_request is None else self.usd_per_request * requests


def needs_accelerator(workload: Workload) -> bool:
    """Whether the model cannot be expected to answer from a CPU."""
    model = workload.model
    if model.answers_on_cpu or model.cpu_only or workload.constraints.no_gpu:
        return False
    if too_slow_on_six_vcpus(workload):
        return True
    return model.kind is ModelKind.LLM or model.size is None or model.size > 2e8


def serverless_refusal(workload: Workload) -> str | None:
    """Why a serverless endpoint cannot serve the model, or None."""
    data = workload.data
    if needs_accelerator(workload):
        return "a serverless endpoint has no GPU, and the model needs one"
    if slow := too_slow_on_six_vcpus(workload):
        return f"a serverless endpoint is no faster than a CPU: {slow}"
    at_once = (workload.traffic.peak or 0) * (data.seconds_per_request or 0)
    if at_once > SERVERLESS_AT_ONCE:
        return f"a serverless endpoint answers {SERVERLESS_AT_ONCE} requests at once, the peak has {at_once:,.0f}"
    need = need_of(workload.model).host_gib
    if need > SERVERLESS_GB:
        return f"a serverless endpoint has 6 GB of memory at most, the model needs {need:.1f} GiB"
    if (data.seconds_per_request or 0) > REAL_TIME_S:
        return f"a serverless request ends after 60 s, one takes {data.seconds_per_request:g} s"
    answer = answer_on_vcpus(workload, vcpus_of(SERVERLESS_GB))
    if answer is not None and answer.low > REAL_TIME_S:
        return f"a serverless request ends after 60 s, an answer takes {answer.low:.0f} s at the hopeful end on 6 GB"
    if (data.payload_mb or 0) > SERVERLESS_MB:
        return f"a serverless request carries 4 MB at most, one has {data.payload_mb:g} MB"
    return None


def lambda_refusal(workload: Workload) -> str | None:
    """Why AWS Lambda cannot carry the model, or None."""
    data = workload.data
    if needs_accelerator(workload):
        return "Lambda has no GPU, and the model needs one"
    if slow := too_slow_on_six_vcpus(workload):
        return f"Lambda is no faster than a CPU: {slow}"
    if (data.seconds_per_request or 0) > LAMBDA_S:
        return f"Lambda ends after 15 minutes, a request takes {(data.seconds_per_request or 0) / 60:.0f} minutes"
    need = need_of(workload.model).host_gib
    if need > LAMBDA_GIB:
        return f"Lambda has 10 GB of memory at most, the model needs {need:.1f} GiB"
    if (data.payload_mb or 0) > LAMBDA_MB:
        return f"a call of Lambda carries 6 MB at most, one has {data.payload_mb:g} MB"
    return None


def serverless_of(workload: Workload) -> ServerlessCost:
    """The smallest serverless endpoint that holds the model; memory comes in whole GB."""
    wanted = workload.constraints.serverless_memory_gb or need_of(workload.model).host_gib
    memory = whole_gigabytes(wanted) or SERVERLESS_GB
    row = next((each for each in catalog.serverless() if each.region == workload.constraints.region), None)
    seconds = workload.data.seconds_per_request
    assumed = seconds is None and workload.model.kind is ModelKind.CLASSICAL
    duration = ASSUMED_S if assumed else seconds
    if row is None:
        return ServerlessCost(memory, None, "", assumed)
    price = float(row.usd_per_gb_second)
    per_request = serverless_usd(price, memory, duration) if duration else None
    return ServerlessCost(memory, per_request, row.as_of, assumed, serverless_usd(price, memory, REAL_TIME_S))


def host(workload: Workload, always_on: Sequence[AdvisedOption]) -> list[AdvisedOption]:
    """All options of a service: those that fit the traffic best come first."""
    if needs_queue(workload):
        return [as_asynchronous(workload, option) for option in always_on]
    base = [_bought(workload, option) for option in always_on]
    light = [*_serverless(workload), *_lambda(workload)]
    if workload.traffic.is_rare:
        if not needs_accelerator(workload):
            return [*base, *light] if _may_outlast(workload) else [*light, *base]
        asleep = _asleep(workload, always_on)
        return [*asleep, *base] if _should_sleep(workload, always_on) else [*base, *asleep]
    if workload.constraints.environment is Environment.DEVELOPMENT and always_on:
        return [*base[:1], _scheduled(workload, always_on[0]), *base[1:], *light]
    if workload.traffic.used_hours < ALL_HOURS and always_on:
        return [_scheduled(workload, always_on[0]), *base, *light]
    return [*base, *light]


def needs_queue(workload: Workload) -> bool:
    """Whether requests are too large or too long for a real-time endpoint."""
    data = workload.data
    return (data.seconds_per_request or 0) > REAL_TIME_S or (data.payload_mb or 0) > REAL_TIME_MB


def _may_outlast(workload: Workload) -> str | None:
    """Why the answers of a decoder may outlast a serverless request; None where they surely do not."""
    memory = serverless_of(workload).memory_gb
    answer = answer_on_vcpus(workload, vcpus_of(memory))
    if answer is None or answer.high <= REAL_TIME_S:
        return None
    span = f"{answer.middle:.0f} ({answer.low:.0f} to {answer.high:.0f}) s on the {vcpus_of(memory):.1f} vCPUs of"
    return f"an answer takes about {span} {memory} GB, and a serverless request ends after 60 s: measure it first"


def _serverless(workload: Workload) -> Iterator[AdvisedOption]:
    if serverless_refusal(workload) is not None:
        return
    serverless, requests = serverless_of(workload), workload.traffic.monthly_requests
    monthly = serverless.monthly(requests) if requests is not None else None
    most = serverless.most_usd_per_request
    reasons = [AdviceReason("billed by the millisecond of work, nothing while idle", Rule.SERVERLESS_LIMITS)]
    if monthly is not None:
        text = f"USD {monthly:.2f} a month, {serverless.memory_gb} GB, price of {serverless.as_of}"
        reasons.append(AdviceReason(text, "snapshot"))
    elif most is not None and requests is not None and workload.traffic.is_rare:
        monthly = most * requests
        text = f"USD {monthly:.2f} a month is the most, {REAL_TIME_S:g} s a request; give data.seconds_per_request"
        reasons.append(AdviceReason(text, Rule.SERVERLESS_LIMITS))
    elif serverless.usd_per_request is None:
        text = f"no duration of a request, or no serverless price in {workload.constraints.region}, is known"
        reasons.append(AdviceReason(text, "snapshot"))
    outlasts = _may_outlast(workload)
    if outlasts is not None:
        reasons.insert(0, AdviceReason(outlasts, Rule.SERVERLESS_LIMITS))
    if serverless.assumed:
        reasons.append(AdviceReason(f"a request is assumed to take {ASSUMED_S:g} s; measure it", "assumption"))
    each = serverless.usd_per_request
    yield AdvisedOption(
        Hosting.SERVERLESS,
        Purchase.ON_DEMAND,
        Action.PROPOSE if outlasts is None else Action.TEST,
        plan=f"{serverless.memory_gb} GB of memory",
        cost=Cost(
            usd_per_month=None if monthly is None else Decimal(f"{monthly:.2f}"),
            at_most=each is None and monthly is not None,
            usd_per_1000_requests=None if each is None else Interval(each * 1000, each * 1000, each * 1000),
            region=workload.constraints.region,
            basis="serverless snapshot",
            as_of=serverless.as_of,
        ),
        memory=_memory(workload, serverless.memory_gb),
        reasons=tuple(reasons),
        effort="a new endpoint; cold starts of seconds, provisioned concurrency if they hurt",
        measure="measure the duration of a request and of a cold start",
    )


def _lambda(workload: Workload) -> Iterator[AdvisedOption]:
    seconds = workload.data.seconds_per_request
    if lambda_refusal(workload) is not None or not workload.traffic.is_rare or seconds is None:
        return
    requests, gib = workload.traffic.monthly_requests, need_of(workload.model).host_gib
    each = gib * seconds * LAMBDA_USD_PER_GB_S + LAMBDA_USD_PER_CALL
    yield AdvisedOption(
        Hosting.LAMBDA,
        Purchase.ON_DEMAND,
        Action.PROPOSE,
        plan=f"{gib:.1f} GB of memory",
        cost=Cost(
            usd_per_month=None if requests is None else Decimal(f"{each * requests:.2f}"),
            usd_per_1000_requests=Interval(each * 1000, each * 1000, each * 1000),
            basis="Lambda list price, us-east-1",
            as_of="2024",
        ),
        memory=_memory(workload, LAMBDA_GIB),
        reasons=(AdviceReason("a light model with rare and short calls, at most 15 minutes each", Rule.LAMBDA_LIMITS),),
        effort="package model and code as an image of Lambda; outside SageMaker endpoints",
        measure="measure duration and cold start in a function of that memory",
    )


def _memory(workload: Workload, usable: float) -> Memory:
    need = need_of(workload.model)
    return Memory((("model and server", need.host_gib),), need.host_gib, float(usable))


def as_asynchronous(workload: Workload, option: AdvisedOption) -> AdvisedOption:
    """The option as an asynchronous endpoint that gives its instances back."""
    hours, text = _busy_hours(workload)
    start = _cold_start(option)
    reasons = (
        AdviceReason("takes payloads to 1 GB and requests to an hour from a queue", Rule.ASYNC_LIMITS),
        AdviceReason(ZERO, Rule.SCALE_TO_ZERO),
        AdviceReason(text, "arithmetic"),
        *option.reasons,
    )
    return replace(
        option,
        hosting=Hosting.ASYNC,
        action=Action.PROPOSE if option.action is Action.APPLY else option.action,
        cost=_for_hours(option.cost, hours),
        estimates=(*option.estimates, start),
        reasons=reasons,
        effort="; ".join(filter(None, (option.effort, "callers fetch answers from S3 or are notified"))),
        measure="measure the seconds of a request and the age of the queue with your own requests",
    )


def _busy_hours(workload: Workload) -> tuple[float, str]:
    """Hours a month that an instance runs at most when it is given back between requests."""
    traffic = workload.traffic
    if traffic.idle_share is not None:
        hours = min(730.0, 730 * (1 - traffic.idle_share) * 1.1)
        return hours, f"{hours:.0f} hours a month at {100 * traffic.idle_share:.0f} % idle, with 10 % for starts"
    requests = traffic.monthly_requests
    if requests is None:
        return 730.0, "the cost is that of all hours, since the traffic is not known"
    seconds = workload.data.seconds_per_request or 1.0
    hours = min(730.0, requests * (HOLD_H + seconds / 3600))
    return hours, f"at most {hours:.0f} hours a month if every request comes alone; bursts need fewer"


def _for_hours(cost: Cost, hours: float) -> Cost:
    if cost.usd_per_hour is None:
        return cost
    monthly = (cost.usd_per_hour * Decimal(f"{hours:.4f}")).quantize(Decimal("0.01"))
    return replace(cost, usd_per_month=monthly, usd_per_1000_requests=None)


def _should_sleep(workload: Workload, always_on: Sequence[AdvisedOption]) -> bool:
    """Whether zero instances between requests come first: they save hours, and the objectives allow a cold start."""
    traffic = workload.traffic
    pauses = traffic.shape is Shape.INTERMITTENT or traffic.idle_share is not None  # else requests may come evenly
    if not pauses and _busy_hours(workload)[0] > ALL_HOURS:
        return False
    return not pauses_forbidden(workload, always_on)


def pauses_forbidden(workload: Workload, always_on: Sequence[AdvisedOption]) -> bool:
    """Whether an objective forbids the first request after a pause to wait, by the slow end of a cold start."""
    goals = workload.objectives
    limits = [each for each in (goals.p95_ms, goals.first_token_ms) if each is not None]
    return bool(limits and always_on) and 60_000 * _cold_start(always_on[0]).interval.high > min(limits)


def _asleep(workload: Workload, always_on: Sequence[AdvisedOption]) -> Iterator[AdvisedOption]:
    """Ways to pay for an accelerator only while it is used."""
    if not always_on:
        return
    best = always_on[0]
    hours, text = _busy_hours(workload)
    yield as_asynchronous(workload, best)
    yield replace(
        best,
        purchase=Purchase.AUTOSCALE,
        action=Action.PROPOSE,
        cost=_for_hours(best.cost, hours),
        estimates=(*best.estimates, _cold_start(best)),
        reasons=(
            AdviceReason(
                "an endpoint with inference components scales to zero; the first request waits minutes",
                Rule.COMPONENTS_TO_ZERO,
            ),
            AdviceReason(text, "arithmetic"),
            *best.reasons,
        ),
        effort="inference components with managed scaling to zero; callers retry while it starts",
        risk="medium",
    )
    yield _scheduled(workload, best)
    yield from _packed(best)


def _packed(best: AdvisedOption) -> Iterator[AdvisedOption]:
    """A share of an instance, where other models could fill the rest of its accelerator."""
    memory, cost = best.memory, best.cost
    if memory is None or memory.needed_gib > 0.5 * memory.usable_gib or cost.usd_per_month is None:
        return
    share = memory.needed_gib / memory.usable_gib
    text = f"the model fills {100 * share:.0f} % of the accelerator: other models can share it as inference components"
    part = (cost.usd_per_month * Decimal(f"{share:.4f}")).quantize(Decimal("0.01"))
    yield replace(
        best,
        hosting=Hosting.PACKED,
        action=Action.PROPOSE,
        cost=replace(cost, usd_per_month=part, usd_per_1000_requests=None, usd_per_million_tokens=None),
        estimates=(),
        reasons=(AdviceReason(f"{text}; the month is that share of the price", Rule.PACKING),),
        effort="inference components, or a multi-model endpoint on Triton; the call of the client names the model",
        risk="medium",
    )


def _cold_start(best: AdvisedOption) -> Estimate:
    """Minutes from zero instances to the first answer."""
    weights = best.memory.parts[0][1] if best.memory and best.memory.parts else 1.0
    why = ("start of an instance 2 to 6 minutes, image 1 to 4, weights at 0.2 to 1 GiB a second: assumptions",)
    span = Interval(3 + weights / 60, 6 + weights / 30, 10 + weights / 12, why)
    return Estimate("cold start from zero instances", "min", span)


def _scheduled(workload: Workload, best: AdvisedOption) -> AdvisedOption:
    hours = workload.traffic.used_hours
    if hours > ALL_HOURS:
        hours = 8 * 22.0
    less = 100 * (1 - hours / 730)
    text = f"{hours:.0f} of 730 hours a month, {less:.0f} % fewer, where calls come in known hours"
    return replace(
        best,
        purchase=Purchase.SCHEDULE,
        action=Action.PROPOSE,
        cost=_for_hours(best.cost, hours),
        reasons=(AdviceReason(text, Rule.WORKING_HOURS), *best.reasons),
        effort="create and delete the endpoint on a schedule, or scheduled scaling",
    )


def _bought(workload: Workload, option: AdvisedOption) -> AdvisedOption:
    """The option with the purchase that fits its traffic, and where it runs."""
    limits, shape = workload.constraints, workload.traffic.shape
    if limits.edge:
        text = "the model runs at the edge, outside SageMaker hosting; price and type stand for a comparable CPU"
        return replace(option, hosting=Hosting.CONTAINERS, reasons=(AdviceReason(text, Rule.EDGE), *option.reasons))
    option = _with_second(option, limits)
    peak, rate = workload.traffic.peak, workload.traffic.rate
    varies = peak is not None and rate is not None and peak > 1.5 * rate
    if shape is Shape.FLUCTUATING or (shape is Shape.UNKNOWN and varies):
        text = (
            "target tracking on SageMakerVariantInvocationsPerInstance follows the load; the price is that of the peak"
        )
        return replace(
            option, purchase=Purchase.AUTOSCALE, reasons=(AdviceReason(text, Rule.AUTOSCALING), *option.reasons)
        )
    if shape is Shape.STEADY and limits.right_sized and not limits.new_launch:
        text = "a steady load that is right-sized: a SageMaker Savings Plan, whose rates only the account can see"
        return replace(
            option, purchase=Purchase.COMMIT, reasons=(AdviceReason(text, Rule.NO_RESERVED_INSTANCES), *option.reasons)
        )
    reasons = [*option.reasons]
    if shape is Shape.STEADY and not limits.new_launch:
        text = "a SageMaker Savings Plan is worth a look once the type is right-sized"
        reasons.append(AdviceReason(text, Rule.COMMIT_LAST))
    if shape is Shape.SPIKY or limits.new_launch:
        text = "no commitment before the load is known and the type is right"
        reasons.insert(0, AdviceReason(text, Rule.COMMIT_LAST))
    return replace(option, reasons=tuple(reasons))


def _with_second(option: AdvisedOption, limits: Constraints) -> AdvisedOption:
    """The option that says what production wants beside its one instance; itself where it has more, or need not."""
    if not needs_two(limits) or option.count > 1:
        return option
    text = "production wants two instances for guarded updates and a lost zone: twice the price"
    return replace(option, reasons=(*option.reasons, AdviceReason(text, Rule.PRODUCTION_TWO)))


def needs_two(limits: Constraints) -> bool:
    """Whether the environment asks for a second instance."""
    return limits.environment is Environment.PRODUCTION
