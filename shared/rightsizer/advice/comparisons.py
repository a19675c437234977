"""Comparisons beside the options: hosting over traffic, types side by side, tracked runs, and what cannot be known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from rightsizer.advice.answer import Action, AdviceReason, AdvisedOption
from rightsizer.advice.capacity import TARGET_USE
from rightsizer.advice.describe import nearest
from rightsizer.advice.hosting import ASSUMED_S, HOLD_H, pauses_forbidden, serverless_of, serverless_refusal
from rightsizer.advice.market import Market, Offer, class_of, dollars, without_price
from rightsizer.advice.models import precision_in_name
from rightsizer.advice.rules import Rule
from rightsizer.advice.workload import Model, ModelKind, Task, TrackedRun, Workload


def notes(workload: Workload, market: Market) -> Iterator[AdviceReason]:
    """Notes that belong to the description and to no single option."""
    limits, size = workload.constraints, workload.model.size_of_name
    if size is not None:
        text = f"{size / 1e9:g} billion parameters are read from the name {workload.model.name}: check them"
        yield AdviceReason(text, "description")
    yield from _precision(workload)
    yield from _mixture(workload.model)
    if unused := [name for name, value in _unused(workload) if value is not None]:
        said = "is" if len(unused) == 1 else "are"
        yield AdviceReason(f"{', '.join(unused)} {said} not used for {workload.task.value}", "description")
    if limits.shares_fleet_with_application:
        text = "give inference a fleet of its own: application and model need different CPU and memory"
        yield AdviceReason(text, Rule.SEPARATE_FLEETS)
    if limits.in_one_step:
        text = "do not move everything in one step: a pilot first, and GPU capacity stays to fall back on"
        yield AdviceReason(text, Rule.NEURON_PHASES)
    if workload.task.is_training:
        yield AdviceReason(
            "the type that trains is not the type that serves: choose that one anew", Rule.SERVING_TYPE_ANEW
        )
    yield from _side_by_side(workload, market)
    yield from _runs(workload.runs, workload.objectives.required_quality)


def _unused(workload: Workload) -> Iterator[tuple[str, object]]:
    """Fields that say nothing of the task, and their values."""
    goals, traffic, task = workload.objectives, workload.traffic, workload.task
    if task in (Task.REAL_TIME, Task.ASYNCHRONOUS):
        yield "objectives.deadline_hours", goals.deadline_hours
    if workload.trained_tokens is None or not task.is_training:
        yield "data.tokens", workload.data.tokens
    if not task.is_training:
        yield "constraints.checkpoints", workload.constraints.checkpoints
    if not task.is_inference:
        yield "traffic.requests_per_second", traffic.requests_per_second
        yield "traffic.peak_requests_per_second", traffic.peak_requests_per_second
        yield "traffic.requests_per_month", traffic.requests_per_month
        yield "objectives.first_token_ms", goals.first_token_ms
        yield "objectives.tokens_per_second", goals.tokens_per_second


def _precision(workload: Workload) -> Iterator[AdviceReason]:
    """In which precision the weights are counted, where the name or the publisher tells it."""
    told = workload.model.published_precision
    if told is not None and told is workload.model.precision and workload.task.is_inference:
        whose = "as the name says" if precision_in_name(workload.model.name) else "as they are published"
        yield AdviceReason(f"weights of {workload.model.name} are counted in {told.value}, {whose}", "description")


def _mixture(model: Model) -> Iterator[AdviceReason]:
    """What a mixture of experts is counted with."""
    if model.size is None or not model.is_mixture:
        return
    whole = f"{model.size / 1e9:g} billion parameters"
    if model.active is not None:
        text = f"a token passes {model.active / 1e9:.3g} of {whole}: speed is counted with those, memory with all"
    else:
        text = f"how many of its {whole} a token passes is not known, so it is counted as dense and may be five times"
        text += " as fast: give model.active_parameters"
    yield AdviceReason(text, "description")


def _side_by_side(workload: Workload, market: Market) -> Iterator[AdviceReason]:
    """Class, memory and price of each type, and the price of each against the first."""
    offers: list[Offer] = []
    for name in workload.compare:
        hardware, offer = market.types.find(name), market.find(name)
        if hardware is None:
            meant = nearest(name, (each.name for each in market.types))
            why = market.types.incomplete.get(name, f"it is no known instance type{meant}")
            yield AdviceReason(f"{name} cannot be compared: {why}", "catalogue")
            continue
        chip = hardware.accelerator
        card = f", {hardware.accelerator_count} x {chip.model} with {chip.usable_gib:g} GiB usable each" if chip else ""
        price = (
            f"USD {dollars(offer.hourly)} an hour in {market.region}"
            if offer
            else without_price(hardware, market.region)
        )
        host = f"{hardware.cpu_arch}, {hardware.vcpu} vCPUs, {hardware.memory_gib:g} GiB host"
        yield AdviceReason(
            f"{name} is {class_of(hardware).value} ({host}{card}), {price}", "catalogue and price snapshot"
        )
        if offer is not None:
            offers.append(offer)
    for other in offers[1:]:
        yield _against(offers[0], other)


def _against(first: Offer, other: Offer) -> AdviceReason:
    ratio = other.price.usd_per_hour / first.price.usd_per_hour
    percent = abs(ratio - 1) * 100
    word = "dearer" if ratio >= 1 else "cheaper"
    text = f"{other.type.name} is {percent:.0f} % {word} an hour than {first.type.name}"
    if ratio > 1:
        text += f"; it pays when it serves more than {ratio:.2f} times the requests"
    return AdviceReason(text, Rule.PRICE_OF_A_REQUEST)


def _runs(runs: Sequence[TrackedRun], required: float | None) -> Iterator[AdviceReason]:
    """The cheapest run that reaches the required quality, and those that no other run beats."""
    if not runs:
        return
    able = [run for run in runs if required is None or run.quality >= required]
    if not able:
        yield AdviceReason(f"no tracked run reaches the quality {required:g}", Rule.CHEAPEST_GOOD_ENOUGH)
        return
    best = min(able, key=lambda run: (run.cost_usd, -run.quality))
    text = f"choose the run {best.name}: quality {best.quality:g} for USD {best.cost_usd:g}, the cheapest good enough"
    yield AdviceReason(text, Rule.CHEAPEST_GOOD_ENOUGH)
    front = [run.name for run in runs if not any(_beats(other, run) for other in runs)]
    yield AdviceReason(
        f"runs that no other one beats in cost and quality: {', '.join(front)}", Rule.CHEAPEST_GOOD_ENOUGH
    )


def _beats(other: TrackedRun, run: TrackedRun) -> bool:
    no_worse = other.quality >= run.quality and other.cost_usd <= run.cost_usd
    return no_worse and (other.quality > run.quality or other.cost_usd < run.cost_usd)


def unknown(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[str]:
    """Facts that the description does not tell, each with the measurement or figure that would settle it."""
    model = workload.model
    if not model.has_size and workload.task not in (Task.PREPROCESSING, Task.NOTEBOOK):
        yield "the size of the model is not given: give model.parameters, or measure GPU memory on any large card"
    yield from _memory_of_work(workload, options)
    network = model.kind is not ModelKind.CLASSICAL and workload.task.is_training
    if network and workload.trained_tokens is None and workload.data.known_hours is None:
        give = "give data.tokens, or " if model.kind in (ModelKind.LLM, ModelKind.TRANSFORMER) else ""
        yield f"the duration of a run: {give}run a hundred steps and read the seconds a step"
    if workload.task is Task.REAL_TIME and workload.running is None:
        if options and not any(option.estimates for option in options):
            yield "latency and requests a second: deploy the first option and send your own requests for an hour"
        if workload.traffic.rate is None:
            yield "how many instances the load needs: give traffic.requests_per_second and the peak"
    if workload.objectives.budget_usd is not None and all(_cost(option) is None for option in options):
        yield "whether objectives.budget_usd holds: no price of a run is known; give data.tokens or data.known_hours"
    if any(option.cost.basis.startswith("derived") for option in options):
        yield "prices whose basis is derived are estimates: ask the price list of the account's Region before deciding"
    yield "whether capacity and quota of a type are there: look at the account's quotas before deciding"


def _memory_of_work(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[str]:
    """That the memory of a network's activations is not known, where a card could be too small for them."""
    model, asks = workload.model, workload.task.is_inference or workload.task.is_training
    first = next(iter(options), None)
    if model.kind in (ModelKind.LLM, ModelKind.CLASSICAL) or model.architecture is not None or not asks:
        return
    if first is None or not first.accelerators or not model.has_size or workload.running is not None:
        return
    counted = "not counted" if workload.task.is_training else "counted as 20 % of the weights"
    yield (
        f"memory for the work on images, frames, sound or long inputs, {counted}: run your largest input and batch"
        " once, and read the highest GPU memory"
    )


def budget_note(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[str]:
    """A budget that the cheapest option exceeds, as a contradiction."""
    budget = workload.objectives.budget_usd
    costs = [cost for option in options if (cost := _cost(option)) is not None]
    if budget is not None and costs and min(costs) > Decimal(str(budget)):
        what = "a run" if workload.task.is_training else "a month"
        yield f"objectives.budget_usd is {budget:,.0f}, and the cheapest option costs {min(costs):,.2f} {what}"


def by_budget(workload: Workload, options: Sequence[AdvisedOption]) -> list[AdvisedOption]:
    """The options within the budget, those of unknown cost, and those above it; a person decides on the last."""
    budget = workload.objectives.budget_usd
    if budget is None:
        return list(options)
    limit, what = Decimal(str(budget)), "a run" if workload.task.is_training else "a month"
    costs = [(option, _cost(option)) for option in options]
    within = [option for option, cost in costs if cost is not None and cost <= limit]
    unknown = [option for option, cost in costs if cost is None]
    above = [(option, cost) for option, cost in costs if cost is not None and cost > limit]
    return [*within, *unknown, *(_above(option, f"USD {cost:,.2f} {what}", budget) for option, cost in above)]


def _above(option: AdvisedOption, cost: str, budget: float) -> AdvisedOption:
    """The option as one above the budget: a person decides."""
    reason = AdviceReason(f"{cost} is above the budget of {budget:,.0f}", "description")
    action = option.action if option.action is Action.UNKNOWN else Action.PROPOSE
    return replace(option, action=action, reasons=(reason, *option.reasons))


def deadline_note(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[str]:
    """A deadline that no option meets even at the hopeful end of its duration, as a contradiction."""
    deadline = workload.objectives.deadline_hours
    hours = [
        estimate.interval for option in options for estimate in option.estimates if estimate.name == "duration of a run"
    ]
    quickest = min(hours, key=lambda interval: interval.low, default=None)
    if deadline is not None and quickest is not None and quickest.low > deadline:
        took = f"{quickest.middle:,.0f} h, {quickest.low:,.0f} at best"
        yield f"objectives.deadline_hours is {deadline:g}, and the quickest option takes {took}"


def _cost(option: AdvisedOption) -> Decimal | None:
    run = option.cost.usd_per_run
    return Decimal(str(round(run.middle, 2))) if run else option.cost.usd_per_month


SHOWN_POWERS = tuple(float(power) for power in range(2, 9))
"""Powers of ten of requests a month in the table."""
CURVE_POWERS = tuple(2 + step / 10 for step in range(61))
"""The same for a chart."""


def costs_by_traffic(
    workload: Workload, always_on: Sequence[AdvisedOption], powers: Sequence[float] = SHOWN_POWERS
) -> tuple[Mapping[str, Any], ...]:
    """US dollars a month of each kind of hosting at several volumes, with the cheapest; empty without an option."""
    first = next((option for option in always_on if option.cost.usd_per_hour is not None), None)
    if first is None:
        return ()
    return tuple(_row(workload, first, 10.0**power) for power in powers)


def changes(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[tuple[float, float, str]]:
    """Requests a month from which another kind of hosting is the cheapest online, its US dollars, and its name."""
    rows = costs_by_traffic(workload, options, CURVE_POWERS)
    first = next((option for option in options if option.cost.usd_per_hour is not None), None)
    for before, after in pairwise(rows):
        one, other = before["cheapest_online"], after["cheapest_online"]
        if one != other and first is not None:
            at = _crossing(workload, first, (one, other), (before["requests_per_month"], after["requests_per_month"]))
            yield at, _costs(workload, first, at)[other], other


def _from(workload: Workload, first: AdvisedOption, kind: str, other: str) -> Iterator[float]:
    """Requests a month from which the kind costs no more than the other."""
    points = [10.0**power for power in CURVE_POWERS]
    for low, high in pairwise(points):
        before, after = _costs(workload, first, low), _costs(workload, first, high)
        if other in before and before[other] < before[kind] and after[kind] <= after[other]:
            yield _crossing(workload, first, (other, kind), (low, high))


def _crossing(workload: Workload, first: AdvisedOption, names: tuple[str, str], between: tuple[float, float]) -> float:
    """Requests a month, within the bounds, from which the second kind costs no more than the first: by halving."""
    (one, other), (low, high) = names, between
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        costs = _costs(workload, first, middle)
        low, high = (low, middle) if costs[other] <= costs[one] else (middle, high)
    return high


TO_ZERO = "asynchronous or scaled to zero"
AT_MOST = "serverless at most"
"""Where nobody gave the duration of a request: 60 s each, after which serverless inference ends them."""
ALONE_S = 1.0
"""Seconds that a request takes where nobody says, beside the time that its instance is held; an assumption."""
HALVINGS = 60
"""Halvings after which the bounds of a crossing are as near as numbers of the machine can be."""


def _costs(workload: Workload, first: AdvisedOption, requests: float) -> dict[str, float]:
    """US dollars a month of each kind at so many requests a month."""
    assert first.cost.usd_per_hour is not None
    hourly = float(first.cost.usd_per_hour) / first.count
    rate = next((e.interval.middle for e in first.estimates if e.name.startswith("requests a second")), None)
    number = max(1, -(-requests / (730 * 3600) // (TARGET_USE * rate))) if rate else 1
    seconds = workload.data.seconds_per_request or (1 / rate if rate else ASSUMED_S)
    costs = {"real-time": hourly * 730 * number}
    held = requests * (HOLD_H + (workload.data.seconds_per_request or ALONE_S) / 3600)
    costs[TO_ZERO] = hourly * max(min(730.0, held), number * 730 * (number > 1))
    costs["batch transform once a day"] = hourly * max(30 * 0.1, requests * seconds / 3600)
    if serverless_refusal(workload) is None:
        serverless = serverless_of(workload)
        monthly = serverless.monthly(requests)
        if monthly is not None:
            costs["serverless"] = monthly
        elif serverless.most_usd_per_request is not None:
            costs[AT_MOST] = serverless.most_usd_per_request * requests
    return costs


def _row(workload: Workload, first: AdvisedOption, requests: float) -> Mapping[str, Any]:
    rounded = {name: round(value, 2) for name, value in _costs(workload, first, requests).items()}
    online = {name: value for name, value in rounded.items() if not name.startswith("batch")}
    return {"requests_per_month": requests, **rounded, "cheapest_online": min(online, key=lambda name: online[name])}


def break_even(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[AdviceReason]:
    """The traffic at which one kind of hosting becomes cheaper than another, as notes."""
    first = next((option for option in options if option.cost.usd_per_hour is not None), None)
    if first is None:
        return
    even = next(_from(workload, first, "real-time", "serverless"), None)
    if even is not None:
        text = f"serverless is cheaper than one {first.instance_type} below {even:,.0f} requests a month"
        yield AdviceReason(text, Rule.SERVERLESS_BREAK_EVEN)
    sure = next(_from(workload, first, "real-time", AT_MOST), None)
    if sure is not None:
        text = f"serverless is cheaper than one {first.instance_type} below {sure:,.0f} requests a month of 60 s each"
        yield AdviceReason(f"{text}, and below more of shorter ones", Rule.SERVERLESS_BREAK_EVEN)
    alone = next(_from(workload, first, "real-time", TO_ZERO), None)
    if first.accelerators and alone is not None and not pauses_forbidden(workload, options):
        text = f"giving the instance back pays below {alone:,.0f} requests a month that come alone; bursts allow more"
        yield AdviceReason(text, "arithmetic")
