"""Work that ends: batch transform, preprocessing, classical training on CPU, notebooks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.advice.answer import (
    Action,
    AdviceReason,
    AdvisedOption,
    Cost,
    Estimate,
    HardwareClass,
    Hosting,
    Memory,
    Purchase,
)
from rightsizer.advice.market import TRAINING, Market, Offer, dollars
from rightsizer.advice.memory import Sharding, training_memory
from rightsizer.advice.plans import training_model
from rightsizer.advice.rules import Rule
from rightsizer.advice.serving import CPU, LEAST_VCPU, TABLE_FACTOR
from rightsizer.advice.throughput import Interval
from rightsizer.advice.training import purchase_of, run_cost, verdict
from rightsizer.advice.workload import WORKING_HOURS, ModelKind, Task, Workload

SMALL_TABLE_GIB = 8
"""Memory of the smallest compute-optimised type that is advised; a table within it leaves arithmetic to decide."""
MOST_TRANSFORM = 100
"""Instances of one transform job beyond which a plan is no advice; an assumption."""
DEAREST = 2.0
"""A type may cost so many times the cheapest one by the hour, where its vCPUs are cheaper."""


def batch_options(workload: Workload, always_on: Sequence[AdvisedOption]) -> list[AdvisedOption]:
    """Batch transform on the types that hold the model, without commitment."""
    return [_as_batch(workload, option) for option in always_on]


def _as_batch(workload: Workload, option: AdvisedOption) -> AdvisedOption:
    hourly, runs = option.cost.usd_per_hour, workload.traffic.runs_per_month
    cost = replace(option.cost, usd_per_month=None, usd_per_1000_requests=None)
    reasons = [
        AdviceReason(
            "billed for the duration of the job; transform jobs know no Spot", f"{Rule.BATCH}, {Rule.SPOT_FOR_TRAINING}"
        )
    ]
    hours = workload.data.known_hours
    if hours and hourly is not None:
        run = float(hourly) * hours
        cost = replace(cost, usd_per_run=Interval(run, run, run, ("the duration was given",)))
        if runs:
            cost = replace(cost, usd_per_month=(hourly * int(runs * hours * 100) / 100))
    elif hourly is not None and (rate := _rate(option)):
        thousand = rate.inverse(float(hourly) / option.count / 3600 * 1000)
        cost = replace(cost, usd_per_1000_requests=replace(thousand, reasons=("at full load", *thousand.reasons)))
        requests = _requests_of_run(workload)
        if requests:
            run_of_all = thousand.scaled(requests / 1000)
            monthly = Decimal(f"{run_of_all.middle * (runs or 1):.2f}")
            cost = replace(cost, usd_per_run=run_of_all, usd_per_month=monthly)
    elif hourly is not None:
        reasons.append(
            AdviceReason(f"USD {dollars(hourly)} for each hour of the job; its duration is not known", "snapshot")
        )
    kept = [reason for reason in option.reasons if reason.source != Rule.SPARE_CAPACITY]
    made = replace(
        option,
        hosting=Hosting.BATCH,
        purchase=Purchase.ON_DEMAND,
        cost=cost,
        reasons=(*reasons, *kept),
        measure="run the job once on a tenth of the data and measure records a second",
    )
    return _within_deadline(made, workload)


def _within_deadline(option: AdvisedOption, workload: Workload) -> AdvisedOption:
    """The transform job with its duration, and as many instances as the deadline asks for; the price of a run stays."""
    deadline, known, requests = (
        workload.objectives.deadline_hours,
        workload.data.known_hours,
        _requests_of_run(workload),
    )
    rate, hourly = _rate(option), option.cost.usd_per_hour
    if known:
        alone = Interval(known, known, known, ("the duration was given",))
    elif rate and requests:
        alone = rate.inverse(requests / 3600)
    else:
        return option
    count = 1 if deadline is None else max(1, min(MOST_TRANSFORM, math.ceil(alone.high / deadline)))
    hours = alone.scaled(1 / count)
    made = replace(option, count=count, estimates=(*option.estimates, Estimate("duration of a run", "h", hours)))
    if hourly is not None:
        made = replace(made, cost=replace(made.cost, usd_per_hour=hourly / option.count * count))
    if deadline is None:
        return made
    text = f"{verdict(hours, deadline)} the deadline of {deadline:g} h"
    late = hours.high > deadline and made.action is Action.APPLY
    reasons = (AdviceReason(text, "arithmetic"), *made.reasons)
    return replace(made, reasons=reasons, action=Action.TEST if late else made.action)


def _requests_of_run(workload: Workload) -> float | None:
    """Records of one run: those of the month over its runs; one run where nobody says how many."""
    requests = workload.traffic.monthly_requests
    return None if requests is None else requests / (workload.traffic.runs_per_month or 1)


def _rate(option: AdvisedOption) -> Interval | None:
    """Estimated requests a second of one instance, where there is an estimate."""
    return next(
        (estimate.interval for estimate in option.estimates if estimate.name.startswith("requests a second")), None
    )


def cpu_job_options(workload: Workload, market: Market) -> list[AdvisedOption]:
    """A processing or training job on CPU types: enough memory, then the cheapest vCPU."""
    needed, parts = _needed(workload)
    offers = [
        offer
        for offer in market.offers(CPU, TRAINING)
        if offer.type.cpu_arch == "x86_64" and offer.type.memory_gib >= needed and offer.type.vcpu >= LEAST_VCPU
    ]
    spread = workload.task is Task.PREPROCESSING and needed > MAY_SPREAD_GIB
    several = list(_spread(workload, market, needed)) if spread or not offers else []
    if not offers:
        return several
    limit = DEAREST * offers[0].hourly
    smallest: dict[str, Offer] = {}
    for offer in offers:
        if offer.hourly <= limit:
            smallest.setdefault(offer.type.family, offer)
    bound = workload.task.is_training and needed > SMALL_TABLE_GIB

    def order(each: Offer) -> tuple[float, ...]:
        """Classical training over a large table is bound by memory, so compute-optimised types come last (rule C2)."""
        return (bound and each.hardware is HardwareClass.CPU_COMP, each.hourly / each.type.vcpu, each.hourly)

    ranked = sorted(smallest.values(), key=order)
    alone = [_as_job(workload, each, Memory(parts, needed, each.type.memory_gib)) for each in ranked[:4]]
    return [*several, *alone] if needed > SPREAD_FROM_GIB else [*alone, *several]


def _spread(workload: Workload, market: Market, needed: float) -> Iterator[AdvisedOption]:
    """Data over several instances; nothing for a model that must be in one."""
    if workload.model.size and workload.task.is_training:
        return
    offers = [each for each in market.offers((HardwareClass.CPU_GEN,), TRAINING) if each.type.memory_gib >= SPREAD_GIB]
    if not offers:
        return
    size, training = workload.data.size_gib or 1.0, workload.task.is_training
    whole = needed if training else size * SPREAD_FACTOR
    offer = next((each for each in offers if whole <= FEW * each.type.memory_gib), offers[-1])
    count = max(2, min(MOST_PROCESSING, math.ceil(whole / offer.type.memory_gib)))
    part = min(whole / count, offer.type.memory_gib)
    memory = Memory((("its share of the data in memory", part),), part, offer.type.memory_gib)
    option = _as_job(workload, offer, memory)
    how = f"train over {count} instances" if training else f"shard the input by S3 key over {count}, or run Spark"
    text = f"{size:,.0f} GiB of data take {needed:,.0f} GiB as one table in memory: {how}"
    if whole > count * offer.type.memory_gib:
        text += f"; a job has {MOST_PROCESSING} instances at most, so go through the data in several jobs"
    reasons = (AdviceReason(text, Rule.DATA_SPREAD), *option.reasons)
    cost = replace(offer.cost(count), usd_per_month=None, usd_per_run=option.cost.usd_per_run)
    yield replace(option, count=count, plan=f"{option.plan} over {count} instances", cost=cost, reasons=reasons)


SPREAD_GIB = 64
"""Memory of an instance from which spreading data over several is worth its overhead; an assumption."""
MAY_SPREAD_GIB, SPREAD_FROM_GIB = 384, 768
"""Memory of the largest m5 and of the largest r5: above the first data may be spread, above the second it should."""
SPREAD_FACTOR = 1.25
"""Memory of all instances over the data that they go through in parts; an assumption (rule C13)."""
FEW, MOST_PROCESSING = 20, 100
"""Instances up to which the smaller type is taken, an assumption; and the API's greatest ProcessingInstanceCount."""


def _needed(workload: Workload) -> tuple[float, tuple[tuple[str, float], ...]]:
    """GiB of host memory, and of what."""
    table = (workload.data.size_gib or 1.0) * TABLE_FACTOR
    size = workload.model.size
    if workload.task.is_training and size:
        made = training_memory(training_model(workload.model), Sharding())
        return made.total_gib, (("model, gradients and optimiser", made.states_gib), ("overhead", made.context_gib))
    return table, ((f"data in memory, {TABLE_FACTOR} times its size on disk", table),)


def _as_job(workload: Workload, offer: Offer, memory: Memory) -> AdvisedOption:
    cost = replace(offer.cost(), usd_per_month=None)
    known = workload.data.known_hours
    hours = Interval(known / 2, known, known * 2, ("the duration was measured elsewhere",)) if known else None
    purchase, bought = purchase_of(workload, hours) if workload.task.is_training else (Purchase.ON_DEMAND, ())
    if hours:
        cost = replace(cost, usd_per_run=run_cost(offer.hourly, hours, purchase))
    preprocessing = workload.task is Task.PREPROCESSING
    first = "preprocessing and feature engineering run on CPU" if preprocessing else "classical training runs on CPU"
    rule = Rule.PREPROCESSING_ON_CPU if preprocessing else Rule.CLASSICAL_ON_CPU
    if workload.model.cpu_only:
        first = "the software runs on CPU only, so host memory decides"
    elif not preprocessing and workload.model.is_tiny and workload.model.kind is not ModelKind.CLASSICAL:
        first = "a network this small is little arithmetic: a GPU would wait for data and for the start of each layer"
        rule = Rule.TINY_NETWORK_ON_CPU
    return AdvisedOption(
        Hosting.JOB,
        purchase,
        Action.APPLY,
        offer.hardware,
        offer.type.name,
        plan="processing job" if preprocessing else "training job",
        cost=cost,
        memory=memory,
        reasons=(
            AdviceReason(first, rule),
            AdviceReason(f"USD {dollars(offer.hourly)} an hour for {offer.type.vcpu} vCPUs", "price snapshot"),
            *bought,
        ),
        effort="none",
        measure="run it once on a tenth of the data and read CPU and memory use",
    )


def notebook_options(workload: Workload, market: Market) -> list[AdvisedOption]:
    """A notebook that runs in working hours only."""
    traffic = workload.traffic
    given = traffic.hours_per_day is not None or traffic.days_per_month is not None
    hours = traffic.used_hours if given else WORKING_HOURS
    offer = next(market.offers((HardwareClass.CPU_GEN,), ("m5",)))
    less = 100 * (1 - hours / 730)
    text = f"start on demand and stop after work: {hours:.0f} of 730 hours a month, {less:.0f} % fewer"
    cost: Cost = offer.cost(1, hours)
    return [
        AdvisedOption(
            Hosting.JOB,
            Purchase.SCHEDULE,
            Action.PROPOSE,
            offer.hardware,
            offer.type.name,
            plan="notebook instance or Studio space",
            cost=cost,
            reasons=(AdviceReason(text, Rule.WORKING_HOURS),),
            effort="an idle shutdown or a schedule",
        )
    ]


def endpoint_instead(market: Market, batch: Sequence[AdvisedOption]) -> Iterator[str]:
    """Cost of an endpoint that is left running in place of the first job."""
    first = batch[0] if batch else None
    offer = market.find(first.instance_type) if first else None
    if offer is not None:
        monthly = offer.cost().usd_per_month
        yield (
            f"an endpoint left running on {offer.type.name} costs USD {monthly} a month,"
            f" an hour of the job USD {dollars(offer.hourly)}"
        )
