"""A workload from plain data, such as a YAML file or flags. Errors name the field, the value and what is expected."""

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from rightsizer.advice.models import find_algorithm
from rightsizer.advice.workload import Model, ModelKind, Task, Workload
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
