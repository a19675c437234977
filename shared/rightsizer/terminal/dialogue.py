"""The questions of `rightsizer advise` when nothing is given at a terminal. An empty answer means: not known."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rightsizer.advice.describe import kind_of, workload_of
from rightsizer.advice.market import snapshot
from rightsizer.advice.workload import Model, ModelKind, Task, Workload
from rightsizer.errors import InputError
from rightsizer.terminal.workload import FLAGS, SWITCHES, describe

type Given = dict[str, Any]
"""Answers by the name of the flag that says the same."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the flag that its answer stands for."""

    flag: str
    text: str
    default: str = ""
    yes_or_no: tuple[str, str] | None = None
    """The switches for yes and for no, where the flag is one of two switches."""


MODEL = Question(
    "--model", "What do you want to run? (a model or an algorithm, such as llama-3-8b, resnet-50, xgboost)"
)
TASK = Question("--task", f"What for? ({', '.join(each.value for each in Task)})", Task.REAL_TIME.value)
KIND = Question("--kind", f"What kind of model? ({', '.join(each.value for each in ModelKind)})", ModelKind.LLM.value)
SIZE = Question("--parameters", "How many parameters, such as 7B?")
SERVICE = (
    Question("--rate", "How many requests a second, on average?"),
    Question("--peak", "And at the peak?"),
    Question("--p95-ms", "How many milliseconds may an answer take (p95)?"),
)
QUEUE = (
    Question("--seconds-per-request", "How many seconds does a request take?"),
    Question("--requests-per-month", "How many requests a month?"),
)
TRAINING = (
    Question("--training-tokens", "How many tokens pass through training, such as 1e9?"),
    Question("--deadline-hours", "How many hours may a run take?"),
    Question(
        "--checkpoints", "Does the script write checkpoints? (yes, no)", "", ("--checkpoints", "--no-checkpoints")
    ),
)
DATA = (Question("--data-gib", "How many GiB of data?"),)
LAST = (
    Question("--environment", "development, staging or production?", "production"),
    Question("--region", "Which AWS Region?", "us-east-1"),
)


def ask(read: Callable[[str], str], say: Callable[[str], None]) -> Mapping[str, Any]:
    """The answers of a person, by the keys of the command's flags. A wrong answer is explained and asked again."""
    given: Given = {}
    say("A few questions; an empty answer takes what stands in brackets, or means: not known.")
    for question in _questions(given):
        while not _take(question, given, read(_prompt(question)).strip(), say):
            pass
    say(f"The same without questions: {command(given)}")
    return {name.removeprefix("--").replace("-", "_"): value for name, value in given.items()}


def command(given: Mapping[str, Any]) -> str:
    """The command line that gives the same answers."""
    words = ["rightsizer", "advise"]
    for flag, value in given.items():
        words += [flag] if value is True else [flag, shlex.quote(str(value))]
    return " ".join(words)


def _questions(given: Given) -> Iterator[Question]:
    """The questions in their order; later ones depend on earlier answers."""
    yield MODEL
    yield TASK
    task = _workload(given).task
    if task not in (Task.PREPROCESSING, Task.NOTEBOOK):
        if not _tells_its_kind(_workload(given).model):
            yield KIND
        if not _workload(given).model.has_size:
            yield SIZE
    if task is Task.REAL_TIME:
        yield from SERVICE
    elif task in (Task.ASYNCHRONOUS, Task.BATCH_INFERENCE):
        yield from QUEUE
    elif task.is_training and _workload(given).model.kind is not ModelKind.CLASSICAL:
        yield from TRAINING
    elif task is not Task.NOTEBOOK:
        yield from DATA
    yield from LAST


def _tells_its_kind(model: Model) -> bool:
    """Whether the kind of model need not be asked for."""
    return kind_of(model) is not None or model.algorithm is not None or model.kind is ModelKind.CLASSICAL


def _workload(given: Given) -> Workload:
    """What is understood so far; the task that is asked for next counts as the usual one."""
    return workload_of(describe({"task": TASK.default}, _keys(given)))


def _prompt(question: Question) -> str:
    return f"{question.text} [{question.default}] " if question.default else f"{question.text} "


def _take(question: Question, given: Given, answer: str, say: Callable[[str], None]) -> bool:
    """Keep the answer; False where it cannot be understood, which is said."""
    text = answer or question.default
    if not text:
        return True
    flag: str = question.flag
    value: Any = text
    if question.yes_or_no is not None:
        word = text.lower()
        if word not in ("y", "yes", "n", "no"):
            say(f"{text!r} is neither yes nor no")
            return False
        flag, value = question.yes_or_no[word.startswith("n")], True
    try:
        described = _workload({**given, flag: value})
        snapshot(described.constraints.region)
    except InputError as error:
        say(str(error))
        return False
    given[flag] = value
    return True


def _keys(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {*FLAGS, *SWITCHES}
    return {name.removeprefix("--").replace("-", "_"): value for name, value in given.items() if name in known}
