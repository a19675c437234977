"""The entry: a described workload in, ranked options with reasons out. Pure; prices come from the dated snapshot."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rightsizer.advice.answer import Advice, AdviceReason, AdvisedOption, HardwareClass, Refused
from rightsizer.advice.asks import refusals, unpriced
from rightsizer.advice.blueprint import measurements
from rightsizer.advice.comparisons import (
    break_even,
    budget_note,
    by_budget,
    costs_by_traffic,
    deadline_note,
    notes,
    unknown,
)
from rightsizer.advice.describe import contradictions, workload_of
from rightsizer.advice.environments import environment_variants, in_staging
from rightsizer.advice.hosting import as_asynchronous, host, needs_accelerator
from rightsizer.advice.jobs import batch_options, cpu_job_options, endpoint_instead, notebook_options
from rightsizer.advice.market import Market, snapshot
from rightsizer.advice.rules import Rule
from rightsizer.advice.running import running_options
from rightsizer.advice.serving import serving_options
from rightsizer.advice.training import training_options
from rightsizer.advice.workload import Goal, ModelKind, Task, Workload
from rightsizer.domain.environment import Environment

MOST = 12
"""Options that are shown at most."""


def advise(workload: Workload | Mapping[str, Any], market: Market | None = None) -> Advice:
    """Ranked options for a workload, what is refused and why, and what only a measurement can tell.

    Reads no account. Prices are those of the snapshot of the workload's Region, with their date. InputError names a
    field that cannot be understood.

    Example:
        >>> advise({"task": "training", "model": {"kind": "llm", "parameters": 0.5e9}}).options[0].instance_type
        'ml.g4dn.xlarge'
    """
    described = workload if isinstance(workload, Workload) else workload_of(workload)
    where = market or snapshot(described.constraints.region)
    options, refused, reasons = _answer(described, where)
    refused += list(unpriced(described, where))
    asked = [*refusals(described, where), *_endpoint_refused(described, where, options)]
    names = {each.subject.lower() for each in asked}
    kept = [option for option in by_budget(described, options) if option.instance_type not in names]
    shown = tuple(kept[:MOST])
    missed = (*budget_note(described, shown), *deadline_note(described, shown))
    clashes = (*contradictions(described), *missed, *_nothing(described, where, shown, refused))
    return Advice(
        shown,
        (*asked, *(each for each in refused if each.subject not in names)),
        (*reasons, *notes(described, where), *(break_even(described, shown) if _is_service(described) else ())),
        clashes,
        tuple(unknown(described, shown)),
        measurements(described, shown),
        costs_by_traffic(described, shown) if _is_service(described) else (),
        environment_variants(described, lambda each: _answer(each, where)[0]) if _is_service(described) else (),
    )


def _answer(workload: Workload, market: Market) -> tuple[list[AdvisedOption], list[Refused], list[AdviceReason]]:
    """The options by task."""
    if workload.task is Task.NOTEBOOK:
        return notebook_options(workload, market), [], []
    if workload.task is Task.PREPROCESSING or _trains_on_cpu(workload):
        return cpu_job_options(workload, market), [], []
    if workload.task.is_training and workload.model.is_tiny:
        return _tiny(workload, market)
    if workload.task.is_training:
        return (*training_options(workload, market), [])
    if workload.running is not None:
        return running_options(workload, market)
    always_on, refused = serving_options(workload, market)
    if workload.task is Task.BATCH_INFERENCE:
        return batch_options(workload, always_on), refused, []
    if workload.task is Task.ASYNCHRONOUS:
        return [as_asynchronous(workload, option) for option in always_on], refused, []
    hosted = host(workload, always_on)
    if workload.constraints.environment is Environment.STAGING:
        return [in_staging(option) for option in hosted], refused, []
    return hosted, refused, []


def _tiny(workload: Workload, market: Market) -> tuple[list[AdvisedOption], list[Refused], list[AdviceReason]]:
    """A tiny network: CPU first, then two types with a GPU; the other way round with performance as goal."""
    accelerated, refused = training_options(workload, market)
    cpu, gpu = cpu_job_options(workload, market), accelerated[:2]
    return [*gpu, *cpu] if workload.objectives.goal is Goal.PERFORMANCE else [*cpu, *gpu], refused, []


def _trains_on_cpu(workload: Workload) -> bool:
    model = workload.model
    classical = model.kind is ModelKind.CLASSICAL
    return workload.task.is_training and (classical or model.cpu_only or workload.constraints.no_gpu)


def _is_service(workload: Workload) -> bool:
    return workload.task in (Task.REAL_TIME, Task.ASYNCHRONOUS) and workload.running is None


def _endpoint_refused(workload: Workload, market: Market, options: Iterable[AdvisedOption]) -> Iterator[Refused]:
    """A real-time endpoint that was asked for in place of a batch."""
    if "real-time" in workload.ask and workload.task is Task.BATCH_INFERENCE:
        for text in endpoint_instead(market, list(options)):
            yield Refused("real-time", AdviceReason(text, Rule.BATCH))


def _nothing(
    workload: Workload, market: Market, options: Iterable[AdvisedOption], refused: Iterable[Refused]
) -> Iterator[str]:
    """That nothing holds the model, or that nothing which holds it is quick enough, where that is so."""
    if list(options):
        return
    accelerated = any(offer.type.accelerator for offer in market.offers(HardwareClass))
    if needs_accelerator(workload) and not accelerated:
        yield (
            f"the price list shows no instance type with a GPU in {market.region}, and the model needs one: choose"
            " another Region, such as the nearest that your data may go to"
        )
    elif any(each.reason.source == Rule.ROOFLINE for each in refused):
        text = "types hold the model, but none meets the objective, even at the hopeful end of its estimate"
        yield f"{text}: loosen the objective, or ask for fewer tokens or a smaller precision"
    else:
        size = f"{workload.model.size / 1e9:g} billion parameters" if workload.model.size else "a model of that size"
        ruled = " without accelerator" if workload.constraints.no_gpu or workload.model.cpu_only else ""
        where = workload.constraints.region
        yield (
            f"no type{ruled} that is sold in {where} holds {size} within the objectives and limits: take a smaller"
            " precision or model, or a server that spreads one copy over several hosts, which is not sized here"
        )
