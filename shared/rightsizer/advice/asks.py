"""Verdicts on what somebody has in mind: a type, a service or a purchase option. Each is refused or kept."""

from collections.abc import Callable, Iterator, Mapping

from rightsizer.advice.answer import AdviceReason, HardwareClass, Refused
from rightsizer.advice.capacity import need_of, place
from rightsizer.advice.describe import nearest
from rightsizer.advice.hosting import lambda_refusal, needs_queue, serverless_refusal
from rightsizer.advice.market import LEGACY, NO_ON_DEMAND, Market, class_of, without_price
from rightsizer.advice.memory import training_memory
from rightsizer.advice.plans import training_model
from rightsizer.advice.rules import Rule
from rightsizer.advice.serving import may_compile
from rightsizer.advice.training import too_small
from rightsizer.advice.workload import ModelKind, Task, Workload

CPU_MS = 300.0
"""What a BERT-class model may take on a compute-optimised CPU (rule C5)."""


def refusals(workload: Workload, market: Market) -> Iterator[Refused]:
    """Options that were asked for and are not advised, in the order of the questions."""
    for asked in workload.ask:
        name = asked.strip().lower()
        reason = _type_refusal(name, workload, market) if name.startswith("ml.") else _word_refusal(name, workload)
        if reason is not None:
            yield Refused(asked, reason)


def unpriced(workload: Workload, market: Market) -> Iterator[Refused]:
    """Trainium that would hold the model and has no price; nothing where one chip is enough."""
    task, model = workload.task, workload.model
    language = model.kind in (ModelKind.LLM, ModelKind.TRANSFORMER) and model.size is not None
    if not language or not may_compile(workload) or task is Task.BATCH_INFERENCE or workload.running is not None:
        return
    training = training_memory(training_model(model)).total_gib if task.is_training else need_of(model).gib
    for each in market.types:
        chip = each.accelerator
        if each.family in NO_ON_DEMAND and chip is not None and class_of(each) is HardwareClass.TRN:
            whole = chip.usable_gib * each.accelerator_count
            if chip.usable_gib < training <= whole:
                text = f"{without_price(each, market.region)}; its {whole:,.0f} GiB hold the {training:,.0f} GiB needed"
                yield Refused(each.name, AdviceReason(text, Rule.NO_ON_DEMAND_PRICE))


def _word_refusal(name: str, workload: Workload) -> AdviceReason | None:
    judge = WORDS.get(name)
    if judge is None:
        return AdviceReason(
            f"{name!r} is no type, service or purchase option that is known{nearest(name, WORDS)}; known are"
            f" {', '.join(WORDS)}"
        )
    return judge(workload)


def _gpu(workload: Workload) -> AdviceReason | None:
    if workload.model.kind is ModelKind.CLASSICAL or workload.task is Task.PREPROCESSING:
        text = "a GPU speeds up parallel mathematics, which a classical model or a cleaning of data has none of"
        return AdviceReason(
            text, Rule.CLASSICAL_ON_CPU if workload.model.kind is ModelKind.CLASSICAL else Rule.PREPROCESSING_ON_CPU
        )
    if workload.model.cpu_only:
        return AdviceReason("the software runs on CPU only", "the description")
    if workload.constraints.no_gpu:
        return AdviceReason("the description rules GPUs out", "the description")
    return None


def _spot(workload: Workload) -> AdviceReason | None:
    if workload.task is Task.BATCH_INFERENCE:
        return AdviceReason(
            "a transform job has no Spot field; managed Spot exists for training jobs only", Rule.SPOT_FOR_TRAINING
        )
    if workload.task.is_inference:
        return AdviceReason(
            "an endpoint cannot run on Spot: SageMaker has no such option, and interruptions lose calls",
            Rule.SPOT_FOR_TRAINING,
        )
    if workload.task is Task.PREPROCESSING:
        return AdviceReason(
            "a processing job has no Spot field; managed Spot exists for training jobs only", Rule.SPOT_FOR_TRAINING
        )
    if workload.task is Task.NOTEBOOK:
        return AdviceReason("a notebook has no Spot field", Rule.SPOT_FOR_TRAINING)
    if workload.constraints.checkpoints is False:
        return AdviceReason(
            "without a checkpoint an interruption loses the whole run; write checkpoints first",
            Rule.SPOT_NEEDS_CHECKPOINTS,
        )
    return None


def _reserved(_: Workload) -> AdviceReason:
    text = "Reserved Instances do not exist for ml types; a SageMaker Savings Plan is the commitment there is"
    return AdviceReason(text, Rule.NO_RESERVED_INSTANCES)


def _elastic(_: Workload) -> AdviceReason:
    text = "the service is no longer available; a small GPU, inference components or inf2 take its place"
    return AdviceReason(text, Rule.ELASTIC_INFERENCE_GONE)


def _serverless(workload: Workload) -> AdviceReason | None:
    if not workload.task.is_inference:
        return AdviceReason("a serverless endpoint answers requests; this is a job", Rule.SERVERLESS_LIMITS)
    text = serverless_refusal(workload)
    return AdviceReason(text, Rule.SERVERLESS_LIMITS) if text else None


def _lambda(workload: Workload) -> AdviceReason | None:
    text = lambda_refusal(workload)
    return AdviceReason(text, Rule.LAMBDA_LIMITS) if text else None


def _endpoint(workload: Workload) -> AdviceReason | None:
    if needs_queue(workload) and workload.task.is_inference:
        text = "a real-time request ends after 60 s and carries 6 MB; this one belongs into an asynchronous endpoint"
        return AdviceReason(text, Rule.REAL_TIME_LIMITS)
    return None


def _neuron(workload: Workload) -> AdviceReason | None:
    if workload.model.neuron is False:
        return AdviceReason("Neuron does not support the framework or an operator of the model", Rule.NEURON_SUPPORT)
    if not may_compile(workload):
        return AdviceReason("Neuron needs a compiled model, which the description rules out", Rule.NEURON_SUPPORT)
    return None


def _inferentia(workload: Workload) -> AdviceReason | None:
    if workload.task.is_training:
        return AdviceReason("Inferentia serves; Trainium trains", Rule.INFERENTIA_SERVES)
    return _neuron(workload)


WORDS: Mapping[str, Callable[[Workload], AdviceReason | None]] = {
    "gpu": _gpu,
    "spot": _spot,
    "reserved-instances": _reserved,
    "elastic-inference": _elastic,
    "serverless": _serverless,
    "lambda": _lambda,
    "real-time": _endpoint,
    "inferentia": _inferentia,
    "trainium": _neuron,
}
"""Words that are understood beside instance types."""


def _type_refusal(name: str, workload: Workload, market: Market) -> AdviceReason | None:
    """Why one instance type is not advised, or None."""
    hardware = market.types.find(name)
    if name in market.types.incomplete:
        return AdviceReason(f"{name} cannot be judged: {market.types.incomplete[name]}", "catalogue")
    if hardware is None:
        kind = "endpoint" if workload.task.is_inference else "known"
        near = nearest(name, (each.name for each in market.types))
        return AdviceReason(f"{name} is no {kind} type{near}", "the API's ProductionVariantInstanceType")
    offer = market.find(name)
    if offer is None:
        source = Rule.NO_ON_DEMAND_PRICE if hardware.family in NO_ON_DEMAND else "price snapshot"
        return AdviceReason(without_price(hardware, market.region), source)
    if not offer.price.listed or hardware.family in LEGACY:
        text = f"no price list shows {name} sold for hosting in {market.region}"
        if offer.price.listed:
            text = f"{name} is of an old family: newer ones do the same work for less"
        return AdviceReason(text, Rule.LEGACY_FAMILIES)
    if workload.task.is_training:
        small = too_small(name, market, workload)
        return AdviceReason(small, Rule.TRAINING_MEMORY) if small else None
    placed = place(offer, need_of(workload.model))
    if isinstance(placed, str):
        return AdviceReason(placed, Rule.SERVING_MEMORY)
    return _too_slow(name, class_of(hardware), workload) or (
        _neuron(workload) if class_of(hardware).is_neuron else None
    )


def _too_slow(name: str, hardware: HardwareClass, workload: Workload) -> AdviceReason | None:
    limit = workload.objectives.p95_ms
    deep = workload.model.kind is not ModelKind.CLASSICAL
    if hardware.is_cpu and deep and limit is not None and limit < CPU_MS:
        text = (
            f"{name} may take 300 ms and more for a network of that class; the limit is {limit:g} ms: measure it first"
        )
        return AdviceReason(text, Rule.ENCODER_ON_CPU_IS_SLOW)
    return None
