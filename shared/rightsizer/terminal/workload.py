"""A workload for `rightsizer advise`: from flags, from a file, or from questions at a terminal."""

import inspect
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rightsizer.advice.describe import kind_of, workload_of
from rightsizer.advice.market import snapshot
from rightsizer.advice.workload import Model, ModelKind, Task, Workload
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError

FLAGS: Mapping[str, tuple[str, str]] = {
    "--task": (
        "task",
        "training, fine-tuning, real-time, asynchronous, batch-inference, preprocessing, notebook, classical-ml.",
    ),
    "--kind": (
        "model.kind",
        "classical, vision, transformer (encoders), llm or deep-learning; else what the name tells.",
    ),
    "--model": ("model.name", "A model, repository or algorithm: llama-3-8b, resnet-50, xgboost."),
    "--parameters": ("model.parameters", "Parameters, such as 7B."),
    "--active-parameters": ("model.active_parameters", "Of a mixture of experts: those that a token passes."),
    "--precision": ("model.precision", "fp32, fp16, bf16, fp8, int8 or int4; else as published or named, else bf16."),
    "--framework": ("model.framework", "Such as pytorch or xgboost."),
    "--method": ("model.method", "full, lora or qlora, in training; default full."),
    "--optimiser": ("model.optimiser", "adamw or adamw-8bit, in training; default adamw."),
    "--gflop": ("model.gflop", "Operations of one request, in 10^9, of a network that is not known by name."),
    "--model-gib": ("model.memory_gib", "Size of the loaded model, where parameters say nothing."),
    "--tokens-in": ("model.tokens_in", "Tokens of a prompt; default 512."),
    "--tokens-out": ("model.tokens_out", "Tokens of an answer; default 256."),
    "--context": (
        "model.context_tokens",
        "Longest context that is kept, default prompt and answer; in training the sequence, default 2048.",
    ),
    "--rate": ("traffic.requests_per_second", "Mean requests a second."),
    "--peak": (
        "traffic.peak_requests_per_second",
        "Highest requests a second, which the fleet is sized for; default the mean.",
    ),
    "--requests-per-month": ("traffic.requests_per_month", "Requests a month, where no rate is given."),
    "--shape": ("traffic.shape", "steady, fluctuating, spiky or intermittent."),
    "--idle-share": ("traffic.idle_share", "Share of the time without requests, 0 to 1."),
    "--hours-per-day": ("traffic.hours_per_day", "Hours of use a day; default 24."),
    "--days-per-month": ("traffic.days_per_month", "Days of use a month; default all."),
    "--goal": ("objectives.goal", "cost, balanced, performance, experiment or flexibility; default balanced."),
    "--p95-ms": ("objectives.p95_ms", "p95 of the whole answer, milliseconds."),
    "--first-token-ms": ("objectives.first_token_ms", "Time to the first token, milliseconds."),
    "--tokens-per-second": ("objectives.tokens_per_second", "Tokens a second of each answer."),
    "--deadline-hours": ("objectives.deadline_hours", "Hours that a run may take: more instances where it needs them."),
    "--budget": ("objectives.budget_usd", "US dollars a month of a service, or of a run."),
    "--data-gib": ("data.size_gib", "Size of the data on disk."),
    "--training-tokens": ("data.tokens", "Tokens that training passes, over all epochs."),
    "--seconds-per-request": ("data.seconds_per_request", "Duration of a request, where you measured one."),
    "--payload-mb": ("data.payload_mb", "Size of a request."),
    "--region": ("constraints.region", "AWS Region of the prices; default us-east-1."),
    "--environment": (
        "constraints.environment",
        "development (dev), staging or production; default production, which wants two instances.",
    ),
    "--running": ("running.instance_type", "The instance type that serves today."),
    "--running-p95-ms": ("running.p95_ms", "Its p95, milliseconds."),
    "--running-gpu-gib": ("running.gpu_memory_max_gib", "Highest memory of one of its GPUs."),
}
"""Options with a value: the field of the description that each sets, and its help."""
SWITCHES: Mapping[str, tuple[str, bool, str]] = {
    "--no-gpu": ("constraints.no_gpu", True, "No accelerator."),
    "--cpu-only": ("model.cpu_only", True, "The software runs on CPU only."),
    "--no-compiled": ("constraints.compiled_models", False, "No chips that need a compiled model."),
    "--checkpoints": ("constraints.checkpoints", True, "The training script writes checkpoints."),
    "--no-checkpoints": ("constraints.checkpoints", False, "The training script writes none."),
}
"""Options without a value."""
LISTS: Mapping[str, tuple[str, str]] = {
    "--ask": ("ask", "A type, spot, serverless, lambda ...: say whether it fits; may be given again."),
    "--compare": ("compare", "An instance type to set beside others; may be given again."),
}


PARTS = {
    "": "What for, and what you have in mind",
    "model": "Model",
    "traffic": "Traffic",
    "objectives": "Objectives",
    "data": "Data",
    "constraints": "Constraints",
    "running": "What serves today",
}
"""Headings of the help, by the part of the description that a flag sets."""


class ByPart(TyperCommand):
    """A command whose help lists its flags under the part of the description that they set."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of the command itself, then a section for each part of a description."""
        paths = {name: path for table in (FLAGS, SWITCHES, LISTS) for name, (path, *_) in table.items()}
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in PARTS.values()}}
        for param in self.get_params(ctx):
            path, record = paths.get(param.opts[0]), param.get_help_record(ctx)
            if record is not None:
                sections["Options" if path is None else PARTS[path.rpartition(".")[0]]].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def with_flags[**P](command: Callable[P, None]) -> Callable[..., None]:
    """The command with every option of the tables above; they reach it by their names."""
    own = [each for each in inspect.signature(command).parameters.values() if each.kind is not each.VAR_KEYWORD]
    made = [_parameter(name, str | None, text) for name, (_, text) in FLAGS.items()]
    made += [_parameter(name, bool, text, False) for name, (_, _, text) in SWITCHES.items()]
    made += [_parameter(name, list[str] | None, text) for name, (_, text) in LISTS.items()]
    whole = [*own, *made]
    command.__signature__ = inspect.Signature(whole, return_annotation=None)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in whole} | {"return": None}
    return command


def _parameter(name: str, kind: Any, text: str, default: object = None) -> inspect.Parameter:
    option = Annotated[kind, typer.Option(name, help=text)]
    return inspect.Parameter(_key(name), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def read_workload(file: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the file with what the flags set; InputError without a task."""
    described = describe(_read(file) if file else {}, given)
    if "task" not in described:
        raise InputError(LESSON)
    return described


LESSON = (
    "nothing says what the workload is. Give --task and what you know, for example"
    " rightsizer advise --task real-time --model llama-3-8b --rate 5;"
    " or --file workload.yaml with the key task (docs/advise.md);"
    " or run rightsizer advise at a terminal without a flag, and it asks"
)


def is_empty(file: Path | None, given: Mapping[str, Any]) -> bool:
    """Whether neither a file nor a flag describes anything."""
    return file is None and not given_flags(given)


def given_flags(given: Mapping[str, Any]) -> list[str]:
    """The flags of a description that were given, as they are written."""
    return [name for name in (*FLAGS, *SWITCHES, *LISTS) if given.get(_key(name))]


def describe(described: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The description with what the flags set."""
    for name, (path, _) in FLAGS.items():
        if given.get(_key(name)) is not None:
            _set(described, path, given[_key(name)])
    chosen: dict[str, str] = {}
    for name, (path, value, _) in SWITCHES.items():
        if given.get(_key(name)):
            if path in chosen:
                raise InputError(f"{chosen[path]} and {name} say the opposite of each other: give one of them")
            chosen[path] = name
            _set(described, path, value)
    for name, (path, _) in LISTS.items():
        if given.get(_key(name)):
            _set(described, path, list(given[_key(name)]))
    return described


def _set(described: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        within = described.setdefault(parent, {})
        if not isinstance(within, dict):
            raise InputError(f"{parent} in the file must be a mapping of fields, got {within!r}")
        described = within
    described[last] = value


def _read(file: Path) -> dict[str, Any]:
    """The description in a file; InputError names the file and the line that cannot be understood."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"reading {file}: {error.strerror or error}; give a readable YAML or JSON file") from None
    except UnicodeDecodeError:
        raise InputError(f"reading {file}: it is no text in UTF-8; give a readable YAML or JSON file") from None
    try:
        found = json.loads(text) if file.suffix == ".json" else _yaml(text)
    except ValueError as error:
        raise InputError(f"reading {file}: {one_line(str(error))}") from None
    if not isinstance(found, dict):
        what = "nothing" if found is None else type(found).__name__
        raise InputError(
            f"reading {file}: a description is a mapping with the key task, got {what}; see docs/advise.md"
        )
    return found


def _yaml(text: str) -> Any:
    """YAML as plain data; ValueError where it is malformed. Loaded here, as only a file needs it."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


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
