"""A workload from plain data, and what in a description cannot hold together. Errors name the field and the value."""

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from rightsizer.advice.hosting import ASYNC_MB, ASYNC_S, REAL_TIME_MB, REAL_TIME_S
from rightsizer.advice.memory import Method
from rightsizer.advice.models import architectures, find_algorithm, is_closed, networks
from rightsizer.advice.workload import Model, ModelKind, Shape, Task, Workload
from rightsizer.domain.environment import Environment, environment_of_word
from rightsizer.errors import InputError

ALIASES: Mapping[str, Mapping[str, Any]] = {
    "classical-ml": {"task": "training", "model": {"kind": "classical"}},
    "batch": {"task": "batch-inference"},
    "async": {"task": "asynchronous"},
    "inference": {"task": "real-time"},
}
"""Words for a task, and what they stand for."""


def workload_of(described: Mapping[str, Any]) -> Workload:
    """The workload that plain data describes; InputError names what is wrong with it.

    Kind and precision need not be given where the name or the framework tells them. Training computes in 16 bits
    whatever the weights are published in.

    Example:
        >>> workload_of({"task": "training", "model": {"kind": "llm", "parameters": 13e9}}).model.kind.value
        'llm'
    """
    if not isinstance(described, Mapping):
        raise InputError(f"a workload is a mapping with the key task, got {type(described).__name__}")
    task = described.get("task")
    known = ALIASES.get(task) if isinstance(task, str) else None
    whole = _joined(described, known) if known else described
    made = _object(Workload, whole, "workload")
    assert isinstance(made, Workload)
    made = replace(made, model=_with_algorithm(made.model))
    model = whole.get("model")
    given = model if isinstance(model, Mapping) else {}
    kind, precision = kind_of(made.model), made.model.published_precision
    if kind is not None and given.get("kind") is None:
        made = replace(made, model=replace(made.model, kind=kind))
    if precision is not None and given.get("precision") is None and made.task.is_inference:
        made = replace(made, model=replace(made.model, precision=precision))
    return made


def _with_algorithm(model: Model) -> Model:
    """The model with its name as the framework, where it names an algorithm and nothing else."""
    known = model.architecture or model.network or model.framework or model.size_of_name
    word = model.name.lower().split("-")[0].split(" ")[0]
    names = [each for each in (model.name, word) if _is_classical(each) or find_algorithm(each)]
    return replace(model, name="", framework=names[0]) if names and not known else model


def _is_classical(name: str) -> bool:
    return re.sub(r"[^a-z]", "", name.lower()) in CLASSICAL


CLASSICAL = (
    "xgboost",
    "lightgbm",
    "catboost",
    "sklearn",
    "scikitlearn",
    "kmeans",
    "knn",
    "knearestneighbors",
    "linearlearner",
    "lda",
    "pca",
    "randomcutforest",
    "factorizationmachines",
    "randomforest",
    "decisiontree",
    "gradientboosting",
    "linearregression",
    "logisticregression",
    "isolationforest",
    "naivebayes",
    "svm",
)
"""Frameworks and algorithms that train no network, in small letters without signs."""


def kind_of(model: Model) -> ModelKind | None:
    """The kind that the name or the framework tells; None where neither does. Sizes in billions are language models."""
    found = model.architecture or model.network
    if found:
        return ModelKind(found.kind)
    if _is_classical(model.framework):
        return ModelKind.CLASSICAL
    return ModelKind.LLM if (model.size_of_name or 0) >= 1e9 else None


def _joined(described: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The description with what the word for its task stands for."""
    joined = {**described, "task": known["task"]}
    for key, value in known.items():
        if isinstance(value, Mapping) and isinstance(described.get(key, {}), Mapping):
            joined[key] = {**value, **described.get(key, {})}
    return joined


def _object(kind: type, data: Any, place: str) -> object:
    if not isinstance(data, Mapping):
        raise InputError(f"{place} must be a mapping of fields, got {data!r}")
    hints = get_type_hints(kind)
    for key in data:
        if key not in hints:
            hint = nearest(key, hints) or f"; known are {', '.join(sorted(hints))}"
            raise InputError(f"{place}.{key} is no field of a workload{hint}")
    values = {key: _value(hints[key], value, f"{place}.{key}") for key, value in data.items()}
    missing = [f.name for f in fields(kind) if f.name not in values and _is_required(f)]
    if missing:
        raise InputError(f"{place}.{missing[0]} is missing")
    made: object = kind(**values)
    return made


def _is_required(each: Any) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _value(hint: Any, value: Any, place: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _value(next(each for each in get_args(hint) if each is not type(None)), value, place)
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise InputError(f"{place} must be a list, got {value!r}")
        return tuple(_value(get_args(hint)[0], each, f"{place}[{i}]") for i, each in enumerate(value))
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, value, place)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice(hint, value, place)
    return _plain(hint, value, place)


def _choice(hint: type[StrEnum], value: Any, place: str) -> StrEnum:
    try:
        word = environment_of_word(value) if hint is Environment and isinstance(value, str) else None
        return hint(word or value)
    except ValueError:
        known = [*hint, *(ALIASES if hint is Task else ())]
        raise InputError(f"{place} must be one of {', '.join(hint)}, got {value!r}{nearest(value, known)}") from None


def _plain(hint: Any, value: Any, place: str) -> Any:
    if hint is bool:
        if not isinstance(value, bool):
            raise InputError(f"{place} must be true or false, got {value!r}")
        return value
    if hint is str:
        if not isinstance(value, str):
            raise InputError(f"{place} must be text, got {value!r}")
        return value
    number = _number(value, place)
    if hint is int:
        if not number.is_integer():
            raise InputError(f"{place} must be a whole number, got {value!r}")
        return int(number)
    return number


def nearest(word: object, known: Iterable[str]) -> str:
    """A question after the known word that somebody may have meant, or nothing."""
    near = get_close_matches(str(word).strip().lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def _number(value: Any, place: str) -> float:
    """A number; text such as ``7B``, ``1.5k`` and ``1e9`` counts as one."""
    if isinstance(value, bool):
        raise InputError(f"{place} must be a number, got {value!r}")
    text = str(value).strip().lower().replace(",", "").replace("_", "")
    factor = SUFFIXES.get(text[-1:], 1.0)
    try:
        return float(text.removesuffix(text[-1:]) if factor != 1.0 else text) * factor
    except ValueError:
        raise InputError(f"{place} must be a number such as 7e9 or 7B, got {value!r}") from None


LEAST_LANGUAGE_MODEL = 1e5
"""Parameters below which no published language model is: the unit was forgotten. An assumption."""


def contradictions(workload: Workload) -> tuple[str, ...]:
    """The contradictions of a description; empty where it holds together."""
    return (*_of_model(workload), *_of_hardware(workload), *_of_traffic(workload), *_of_task(workload))


def _of_model(workload: Workload) -> Iterator[str]:
    model = workload.model
    found = model.architecture or model.network
    if found is None and is_closed(model.name):
        yield f"the weights of {model.name} are not published, so only its vendor serves it: name one that you can host"
    elif model.name and found is None and model.size is None and model.memory_gib is None:
        near = get_close_matches(model.name.lower(), [*architectures(), *networks()], n=3)
        hint = f"; near are {', '.join(near)}" if near else ""
        yield f"model.name {model.name!r} is no known model: give model.parameters or model.memory_gib{hint}"
    if found and (found.kind == ModelKind.LLM) != (model.kind is ModelKind.LLM):
        yield f"model.kind says {model.kind.value}, and {found.name} is of kind {found.kind}"
    if found and model.parameters and not 0.5 < model.parameters / found.parameters < 2:
        yield (
            f"model.name says {found.parameters / 1e9:.1f} billion parameters, model.parameters"
            f" {model.parameters / 1e9:.1f} billion"
        )
    if model.kind is ModelKind.LLM and model.parameters is not None and model.parameters < LEAST_LANGUAGE_MODEL:
        meant = f"{model.parameters:g}M or {model.parameters:g}B"
        yield f"model.parameters is {model.parameters:g}, and a language model has millions at least: is {meant} meant?"
    if model.active_parameters is not None and model.kind is not ModelKind.LLM:
        yield f"model.active_parameters is of a mixture of experts, a language model; the kind is {model.kind.value}"
    if model.context_tokens is not None and model.context_tokens < model.tokens_in + model.tokens_out:
        together = model.tokens_in + model.tokens_out
        yield f"model.context_tokens is {model.context_tokens}, but tokens in and out are {together:.0f} together"
    if model.method is not Method.FULL and model.kind is ModelKind.CLASSICAL:
        yield f"model.method {model.method.value} adapts a network; a classical model has no adapters"
    if model.method is not Method.FULL and workload.task is Task.TRAINING:
        yield f"model.method {model.method.value} needs a trained model: the task is fine-tuning, not training"


def _of_hardware(workload: Workload) -> Iterator[str]:
    model, limits = workload.model, workload.constraints
    asked = {each.lower() for each in workload.ask}
    if model.cpu_only and model.neuron:
        yield "model.cpu_only says that the software runs on CPU only, model.neuron that it runs on Neuron"
    if (model.cpu_only or limits.no_gpu) and "gpu" in asked:
        yield "a GPU is asked for, and the description rules GPUs out"
    if model.neuron and limits.compiled_models is False:
        yield "model.neuron says that the model compiles, constraints.compiled_models forbids compiled models"
    if model.neuron is False and asked & {"inferentia", "trainium"}:
        yield "Inferentia or Trainium is asked for, and model.neuron says that Neuron does not support the model"
    big = model.kind is ModelKind.LLM and (model.size or 0) > 2e10
    tight = workload.objectives.first_token_ms is not None or workload.objectives.p95_ms is not None
    if big and (limits.no_gpu or model.cpu_only) and tight and workload.task is Task.REAL_TIME:
        yield (
            "a model of more than 20 billion parameters, a latency objective and no accelerator do not go together:"
            " a CPU reads the weights once a token"
        )
    if limits.edge and limits.several_nodes:
        yield "constraints.edge and constraints.several_nodes do not go together"


def _of_traffic(workload: Workload) -> Iterator[str]:
    traffic = workload.traffic
    peak, rate = traffic.peak_requests_per_second, traffic.rate
    if peak is not None and rate is not None and peak < rate:
        yield f"traffic.peak_requests_per_second {peak:g} is below the mean rate {rate:g}"
    if traffic.idle_share == 1 and (rate or 0) > 0:
        yield "traffic.idle_share 1 means no request at all, but a rate is given"
    if traffic.requests_per_second is not None and traffic.requests_per_month is not None:
        counted = traffic.requests_per_second * traffic.used_hours * 3600
        if counted and not 0.5 <= traffic.requests_per_month / counted <= 2:
            yield f"traffic.requests_per_month is {traffic.requests_per_month:g}, the rate gives {counted:.0f}"
    if traffic.shape is Shape.STEADY and (traffic.idle_share or 0) >= 0.5:
        yield "traffic.shape is steady, but half of the time or more has no request"
    if traffic.used_hours == 0 and (rate or 0) > 0:
        yield "traffic has no hours of use, but a rate is given"


def _of_task(workload: Workload) -> Iterator[str]:
    goals, data, task = workload.objectives, workload.data, workload.task
    seconds = data.seconds_per_request or 0
    if goals.p95_ms is not None and seconds * 1000 > goals.p95_ms:
        yield f"a request takes {seconds:g} s by data.seconds_per_request, the objective is {goals.p95_ms:g} ms"
    if task is Task.BATCH_INFERENCE and (goals.p95_ms is not None or goals.first_token_ms is not None):
        yield "a batch job answers nobody who waits: a latency objective asks for a real-time endpoint"
    if task is Task.REAL_TIME and seconds > REAL_TIME_S:
        yield f"a real-time request ends after 60 s, one takes {seconds:g} s: an asynchronous endpoint is meant"
    if task is Task.REAL_TIME and (data.payload_mb or 0) > REAL_TIME_MB:
        yield (
            f"a real-time request carries 6 MB at most, one has {data.payload_mb:g} MB: an asynchronous endpoint, or a"
            " reference to an object in S3"
        )
    if task is Task.ASYNCHRONOUS and (seconds > ASYNC_S or (data.payload_mb or 0) > ASYNC_MB):
        yield "an asynchronous request takes an hour and 1 GB at most: a batch or processing job is meant"
    if goals.first_token_ms is not None and goals.p95_ms is not None and goals.first_token_ms > goals.p95_ms:
        yield "the first token may come later than the whole answer: objectives.first_token_ms is above p95_ms"
    if task.is_training and goals.p95_ms is not None:
        yield "training has no latency objective; objectives.p95_ms belongs to an endpoint"
    limit, hours = goals.deadline_hours, data.known_hours
    if limit is not None and hours and hours > 20 * limit:
        yield f"the run took {hours:g} h and shall take {limit:g} h: no type is 20 times faster"
