"""Advice for an endpoint that runs already: memory first, then latency, by the optimiser's own bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rightsizer.advice.answer import (
    Action,
    AdviceReason,
    AdvisedOption,
    HardwareClass,
    Hosting,
    Memory,
    Purchase,
    Refused,
)
from rightsizer.advice.capacity import need_of
from rightsizer.advice.market import Market, Offer, dollars
from rightsizer.advice.rules import Rule
from rightsizer.advice.serving import may_compile
from rightsizer.advice.workload import Running, Workload
from rightsizer.domain.environment import Environment
from rightsizer.domain.policy import Policy
from rightsizer.errors import InputError
from rightsizer.recommender.slowdown import expected_slowdown

MARGIN = 1.15
"""Factor on the measured need of what runs: highest memory, and the 95th percentile of CPU. An assumption (rule K2)."""
SAFETY = 0.97
"""Share of the objective that a bound may reach (rule R4)."""
REVIEW_PERCENT = 20.0
"""Utilisation of one GPU below which an endpoint is worth a look; never a reason to move by itself."""


def running_options(
    workload: Workload, market: Market
) -> tuple[list[AdvisedOption], list[Refused], list[AdviceReason]]:
    """Options, refusals and notes for the endpoint that runs; InputError for a type that nobody knows."""
    now = workload.running
    assert now is not None
    today = market.find(now.instance_type)
    if today is None:
        raise InputError(f"workload.running.instance_type: {now.instance_type} is no known type with a price")
    keep = _keep(now, today)
    notes = list(_notes(now, today))
    if now.alarm:
        hint = AdviceReason(
            "an alarm is a hint: read the metrics again before anything is decided", Rule.ALARM_IS_A_HINT
        )
        return [replace(keep, reasons=(hint, *keep.reasons))], [], [*notes, hint]
    if now.metrics_missing:
        text = "no datapoints: missing is not idle, so nothing can be said about its size"
        unknown = replace(keep, action=Action.UNKNOWN, reasons=(AdviceReason(text, Rule.MISSING_IS_NOT_IDLE),))
        return [replace(keep, reasons=(AdviceReason(text, Rule.MISSING_IS_NOT_IDLE),)), unknown], [], notes
    if workload.constraints.environment is Environment.STAGING:
        return [_staging(today)], [], notes
    moves, refused = _moves(workload, now, today, market)
    blocked = [each.reason for each in refused[:3]] if not moves else []
    keep = replace(keep, reasons=(*blocked, *keep.reasons))
    extra = [*_compiled(workload, market, today), *_packed(keep, today)]
    return [*moves, keep, *extra], refused, notes


def _keep(now: Running, today: Offer) -> AdvisedOption:
    return AdvisedOption(
        Hosting.REALTIME,
        Purchase.ON_DEMAND,
        Action.KEEP,
        today.hardware,
        today.type.name,
        now.count,
        today.type.accelerator_count,
        cost=today.cost(now.count),
        memory=_memory(now, today),
        reasons=(AdviceReason("nothing moves without evidence that memory and latency hold", Rule.LOW_USE_IS_A_HINT),),
    )


def _memory(now: Running, offer: Offer) -> Memory | None:
    chip = offer.type.accelerator
    if chip is None or now.gpu_memory_max_gib is None:
        return None
    return Memory((("highest seen on one GPU", now.gpu_memory_max_gib),), now.gpu_memory_max_gib, chip.memory_gib)


def _notes(now: Running, today: Offer) -> Iterator[AdviceReason]:
    percent, gpus = now.gpu_utilisation_percent, today.type.accelerator_count
    if percent is not None and gpus > 0:
        each = percent / gpus
        text = f"GPU utilisation is {each:.0f} % per GPU: the metric is summed over {gpus}"
        if each < REVIEW_PERCENT:
            text += "; low use makes it a candidate for review, and is no reason to move by itself"
        yield AdviceReason(text, Rule.SUMMED_METRIC)


def _staging(today: Offer) -> AdvisedOption:
    """One instance of the same type: staging mimics production."""
    text = "staging keeps endpoint kind, family and image of production; a count of one is enough to prove a deployment"
    return AdvisedOption(
        Hosting.REALTIME,
        Purchase.SCHEDULE,
        Action.PROPOSE,
        today.hardware,
        today.type.name,
        1,
        today.type.accelerator_count,
        cost=today.cost(1),
        reasons=(AdviceReason(text, Rule.STAGING_MIRRORS),),
        effort="delete it between tests",
    )


def _moves(workload: Workload, now: Running, today: Offer, market: Market) -> tuple[list[AdvisedOption], list[Refused]]:
    """Single GPUs of the G family that are cheaper, each with its bound, and those that are ruled out."""
    options: list[AdvisedOption] = []
    refused: list[Refused] = []
    families: set[str] = set()
    for offer in market.offers((HardwareClass.GPU_G,)):
        cheaper = (
            offer.type.accelerator_count == 1 and offer.hourly < today.hourly and offer.type.name != today.type.name
        )
        asked = offer.type.name in workload.ask
        if offer.type.family in families or not (cheaper or asked):
            continue
        families.add(offer.type.family)
        made = judge_type(workload, now, today, offer)
        if isinstance(made, str):
            refused.append(Refused(offer.type.name, AdviceReason(made, Rule.LOW_USE_IS_A_HINT)))
        else:
            options.append(made)
    return _without_needless_tests(options, workload, today, refused), refused


def _without_needless_tests(
    options: list[AdvisedOption], workload: Workload, today: Offer, refused: list[Refused]
) -> list[AdvisedOption]:
    """The options in their order: a test comes first where it would save half as much again as any safe move.

    Other types that would need a test are refused once a safe move is there.
    """
    safe = [option for option in options if option.action is not Action.TEST]
    if not safe:
        return options
    worth = WORTH_A_TEST * max(_saving(option, today) for option in safe)
    first, last = [], []
    for option in options:
        if option.action is Action.TEST and _saving(option, today) >= worth:
            first.append(option)
        elif option.action is Action.TEST and option.instance_type in workload.ask:
            last.append(option)
        elif option.action is Action.TEST:
            refused.append(Refused(option.instance_type, option.reasons[-1]))
    return [*first, *safe, *last]


WORTH_A_TEST = 1.5
"""Saving over that of the best safe move from which the cost of a test is worth it; an assumption."""


def _saving(option: AdvisedOption, today: Offer) -> float:
    """US dollars an hour that one instance saves."""
    return today.hourly - float(option.cost.usd_per_hour or 0) / option.count


def judge_type(workload: Workload, now: Running, today: Offer, offer: Offer) -> AdvisedOption | str:
    """The type as an option, or why it is none: memory first, then the bound of the latency."""
    old, chip, name = today.type.accelerator, offer.type.accelerator, offer.type.name
    assert chip is not None
    if old is None:
        return f"{today.type.name} has no accelerator; a move to a GPU is a new deployment"
    policy = Policy()
    margin = 1 + policy.memory_margin + policy.memory_margin_small_sample / now.gpu_memory_days**0.5
    need = None if now.gpu_memory_max_gib is None else now.gpu_memory_max_gib * margin
    if now.gpu_memory_reserved:
        need = None if chip.usable_gib >= old.usable_gib else _declared(workload)
    if need is not None and need > chip.usable_gib:
        return f"{name} offers {chip.usable_gib:g} GiB, the model needs {need:.1f} GiB with margin"
    speed = expected_slowdown(old, chip, policy)
    option = _move(now, today, offer, need)
    if now.gpu_memory_reserved and chip.usable_gib < old.usable_gib:
        text = "the server reserves its memory, so metrics do not tell whether a smaller card holds the model: test it"
        return replace(option, action=Action.TEST, reasons=(*option.reasons, AdviceReason(text, Rule.RESERVED_MEMORY)))
    if now.p95_ms is None or workload.objectives.p95_ms is None:
        text = (
            f"no latency objective and measurement: up to {speed.bound:.2f} times slower is possible, so test it first"
        )
        return replace(option, action=Action.TEST, reasons=(*option.reasons, AdviceReason(text, Rule.MEASURE_FIRST)))
    return _by_latency(option, speed.bound * now.p95_ms, speed.mid * now.p95_ms, workload)


def _declared(workload: Workload) -> float | None:
    """GiB that the description of the model asks for; None where it tells no size."""
    need = need_of(workload.model)
    return need.gib if need.is_known else None


def _by_latency(option: AdvisedOption, bound: float, middle: float, workload: Workload) -> AdvisedOption | str:
    """The option by the bound and the middle of its p95, milliseconds, against what the objective leaves."""
    objective, name = workload.objectives.p95_ms or 0.0, option.instance_type
    limit = SAFETY * objective
    now = workload.running.p95_ms if workload.running and workload.running.p95_ms else 0.0
    figures = f"p95 {now:g} ms becomes {middle:.0f} ms in the middle and at most {bound:.0f} ms"
    reason = AdviceReason(f"{figures}; the objective leaves {limit:.0f} ms", Rule.LATENCY_BOUND)
    if bound <= limit:
        return replace(option, reasons=(*option.reasons, reason))
    if middle <= objective:
        return replace(option, action=Action.TEST, reasons=(*option.reasons, reason))
    return f"{name}: the bound is {bound:.0f} ms and the middle {middle:.0f} ms, the objective leaves {limit:.0f} ms"


def _move(now: Running, today: Offer, offer: Offer, need: float | None) -> AdvisedOption:
    saving = 100 * (1 - offer.hourly / today.hourly)
    word = f"saves {saving:.1f} %" if saving >= 0 else f"costs {-saving:.1f} % more"
    text = f"{word} an hour: USD {dollars(offer.hourly)} against {dollars(today.hourly)}"
    chip = offer.type.accelerator
    assert chip is not None
    parts = (("highest seen with margin", need),) if need is not None else ()
    memory = Memory(parts, need, chip.usable_gib) if need is not None else None
    return AdvisedOption(
        Hosting.REALTIME,
        Purchase.ON_DEMAND,
        Action.PROPOSE,
        offer.hardware,
        offer.type.name,
        now.count,
        offer.type.accelerator_count,
        cost=offer.cost(now.count),
        memory=memory,
        reasons=(AdviceReason(text, "price snapshot"),),
        effort="an update with a canary; the optimiser applies it where its own conditions hold",
        measure="a shadow variant on the new type beside production",
    )


def _compiled(workload: Workload, market: Market, today: Offer) -> Iterator[AdvisedOption]:
    """Inferentia as an extra proposal for a deep network."""
    offer = market.find("ml.inf2.xlarge")
    if offer is None or not may_compile(workload) or today.hardware.is_cpu or offer.hourly >= today.hourly:
        return
    if workload.model.size is None or workload.model.size * 2 * 1.2 / 2**30 > offer.usable_gib:
        return
    yield AdvisedOption(
        Hosting.REALTIME,
        Purchase.ON_DEMAND,
        Action.PROPOSE,
        offer.hardware,
        offer.type.name,
        1,
        1,
        cost=offer.cost(),
        reasons=(
            AdviceReason(
                "where the model compiles with Neuron; only the price of a request decides",
                Rule.PRICE_OF_A_REQUEST,
            ),
        ),
        risk="medium",
        effort="compile with torch-neuronx, use a Neuron image, test accuracy",
        measure="measure requests a second at the required latency",
    )


def _packed(keep: AdvisedOption, today: Offer) -> Sequence[AdvisedOption]:
    """Sharing the instance, where a model of known size leaves most of its accelerators empty."""
    memory = keep.memory
    if memory is None or memory.needed_gib > 0.5 * today.usable_gib:
        return ()
    text = "several models share the instance as inference components, or a multi-model endpoint on Triton"
    packed = replace(
        keep,
        hosting=Hosting.PACKED,
        action=Action.PROPOSE,
        reasons=(AdviceReason(text, Rule.PACKING),),
        effort="the call of the client changes",
        risk="medium",
    )
    return (packed,)
