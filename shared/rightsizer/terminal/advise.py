"""Advice at a terminal: a workload from flags or a file, the ranked options as a table or JSON. Reads no account."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.advice.advise import advise as advise_on
from rightsizer.advice.answer import Advice, AdvisedOption
from rightsizer.advice.throughput import Interval
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import Exit, app, examples, print_json

VERSION = 1
"""Of the document that --json prints; a field is only ever added to it."""
SHOWN = 6
"""Options in the table; --json has all."""

FLAGS: Mapping[str, tuple[str, str]] = {
    "--task": (
        "task",
        "training, fine-tuning, real-time, asynchronous, batch-inference, preprocessing, notebook, classical-ml.",
    ),
    "--kind": ("model.kind", "classical, vision, transformer, llm or deep-learning."),
    "--model": ("model.name", "A known architecture or repository, such as llama-3-8b."),
    "--parameters": ("model.parameters", "Parameters, such as 7B."),
    "--precision": ("model.precision", "fp32, fp16, bf16, fp8, int8 or int4."),
    "--framework": ("model.framework", "Such as pytorch or xgboost."),
    "--method": ("model.method", "full, lora or qlora."),
    "--model-gib": ("model.memory_gib", "Size of the loaded model, where parameters say nothing."),
    "--tokens-in": ("model.tokens_in", "Tokens of a prompt."),
    "--tokens-out": ("model.tokens_out", "Tokens of an answer."),
    "--context": ("model.context_tokens", "Longest context, or the length of a sequence in training."),
    "--rate": ("traffic.requests_per_second", "Mean requests a second."),
    "--peak": ("traffic.peak_requests_per_second", "Highest requests a second."),
    "--requests-per-month": ("traffic.requests_per_month", "Requests a month."),
    "--shape": ("traffic.shape", "steady, fluctuating, spiky or intermittent."),
    "--idle-share": ("traffic.idle_share", "Share of the time without requests, 0 to 1."),
    "--hours-per-day": ("traffic.hours_per_day", "Hours of use a day."),
    "--days-per-month": ("traffic.days_per_month", "Days of use a month."),
    "--goal": ("objectives.goal", "cost, balanced, performance, experiment or flexibility."),
    "--p95-ms": ("objectives.p95_ms", "p95 of the whole answer, milliseconds."),
    "--first-token-ms": ("objectives.first_token_ms", "Time to the first token, milliseconds."),
    "--tokens-per-second": ("objectives.tokens_per_second", "Tokens a second of each answer."),
    "--deadline-hours": ("objectives.deadline_hours", "Hours that a run may take."),
    "--budget": ("objectives.budget_usd", "US dollars a month, or for a run."),
    "--data-gib": ("data.size_gib", "Size of the data."),
    "--training-tokens": ("data.tokens", "Tokens that training passes, over all epochs."),
    "--seconds-per-request": ("data.seconds_per_request", "Duration of a request."),
    "--payload-mb": ("data.payload_mb", "Size of a request."),
    "--region": ("constraints.region", "AWS Region of the prices; default us-east-1."),
    "--environment": ("constraints.environment", "development, staging or production."),
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
    "--no-checkpoints": ("constraints.checkpoints", False, "It does not."),
}
"""Options without a value."""
LISTS: Mapping[str, tuple[str, str]] = {
    "--ask": ("ask", "A type, spot, serverless, lambda ...: say whether it fits; may be given again."),
    "--compare": ("compare", "An instance type to set beside others; may be given again."),
}


def _flags[**P](command: Callable[P, None]) -> Callable[..., None]:
    """The command with every option of the tables above; they reach it by their names."""
    own = list(inspect.signature(command).parameters.values())[:2]
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


@app.command(
    name="advise",
    epilog=examples(
        "rightsizer advise --task real-time --kind llm --model llama-3-8b --rate 5 --first-token-ms 800",
        "rightsizer advise --file workload.yaml --json | jq '.advice.options[0]'",
    ),
)
@_flags
def advise(
    file: Annotated[
        Path | None, typer.Option("--file", help="A description in YAML or JSON (docs/advise.md); flags go before it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output (docs/advise.md).")] = False,
    **given: Any,
) -> None:
    """Choose hardware and endpoint type for a new workload.

    Reads no account and no network: prices are those of the dated snapshot. Each figure comes with its interval, what
    is refused with its reason, and what only a measurement can tell with the measurement.
    """
    described = described_by(file, given)
    answer = advise_on(described)
    if as_json:
        print_json({"version": VERSION, "workload": described, "advice": document(answer)})
    else:
        show.output().print(page(answer))
    raise typer.Exit(Exit.NOTHING_TO_DO if answer.options else Exit.INCOMPLETE)


def described_by(file: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the file with what the flags set; InputError without a task."""
    described = _read(file) if file else {}
    for name, (path, _) in FLAGS.items():
        if given.get(_key(name)) is not None:
            _set(described, path, given[_key(name)])
    for name, (path, value, _) in SWITCHES.items():
        if given.get(_key(name)):
            _set(described, path, value)
    for name, (path, _) in LISTS.items():
        if given.get(_key(name)):
            _set(described, path, list(given[_key(name)]))
    if "task" not in described:
        raise InputError("say what the workload is: --task real-time, or a --file with the key task (docs/advise.md)")
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
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"reading {file}: {error}; give a readable YAML or JSON file") from None
    try:
        found = json.loads(text) if file.suffix == ".json" else _yaml(text)
    except ValueError as error:
        raise InputError(f"reading {file}: {one_line(str(error))}") from None
    if not isinstance(found, dict):
        raise InputError(f"reading {file}: a description is a mapping with the key task, got {type(found).__name__}")
    return found


def _yaml(text: str) -> Any:
    """YAML as plain data; ValueError where it is malformed. Loaded here, as only a file needs it."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def document(value: Any) -> Any:
    """The answer as plain data: fields by name, money as text."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Decimal):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: document(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): document(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [document(each) for each in value]
    return value


def page(answer: Advice) -> RenderableType:
    """The answer for a person: contradictions first, then the options, the first one in full, and the rest."""
    parts: list[RenderableType] = [Text(f"! {text}", style="bold red") for text in answer.contradictions]
    if answer.options:
        parts += [table(answer), Text(), *_detail(answer.options[0])]
    parts += list(_list("Not advised", [f"{each.subject}: {each.reason.text}" for each in answer.refused]))
    parts += list(_list("Notes", [each.text for each in answer.notes]))
    parts += list(_list("Not known", list(answer.unknown)))
    for each in answer.measurements:
        parts += [Text(), Text(f"To measure {each.settles}: {each.operation}", style="bold")]
        parts.append(Padding(Text(json.dumps(document(each.parameters), indent=1)), (0, 0, 0, 2)))
    if answer.costs_by_traffic:
        parts += [Text(), Text("USD a month by requests a month", style="bold"), by_traffic(answer)]
    return Group(*parts)


def table(answer: Advice) -> Table:
    """The first options, one a row."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("#", "Hardware", "Hosting", "Purchase", "Action"):
        rows.add_column(name, overflow="fold")
    for name in ("USD/hour", "USD/month", "USD per unit"):
        rows.add_column(name, justify="right")
    rows.add_column("Estimate", overflow="fold", ratio=1)
    for number, each in enumerate(answer.options[:SHOWN], 1):
        cost = each.cost
        hourly = "" if cost.usd_per_hour is None else f"{cost.usd_per_hour:,.2f}"
        monthly = "" if cost.usd_per_month is None else f"{cost.usd_per_month:,.2f}"
        figure = each.estimates[0] if each.estimates else None
        estimate = f"{figure.name}: {span(figure.interval)} {figure.unit}".rstrip() if figure else ""
        words = (str(number), hardware(each), each.hosting.value, each.purchase.value, each.action.value)
        rows.add_row(*(Text(word) for word in (*words, hourly, monthly, per_unit(each), estimate)))
    return rows


def hardware(each: AdvisedOption) -> str:
    """The type and its count, or what the service hides."""
    if not each.instance_type:
        return each.plan
    return f"{each.count} x {each.instance_type} ({each.hardware.value if each.hardware else ''})"


def per_unit(each: AdvisedOption) -> str:
    """The price of a million tokens, a run or 1,000 requests, whichever is known first."""
    cost = each.cost
    if cost.usd_per_million_tokens:
        return f"{span(cost.usd_per_million_tokens)} / M tokens"
    if cost.usd_per_run:
        return f"{span(cost.usd_per_run)} / run"
    return f"{span(cost.usd_per_1000_requests)} / 1,000" if cost.usd_per_1000_requests else ""


def span(figure: Interval) -> str:
    """An interval in three figures."""
    if figure.low == figure.high:
        return f"{figure.middle:,.3g}"
    return f"{_short(figure.middle)} ({_short(figure.low)} to {_short(figure.high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _detail(each: AdvisedOption) -> Iterator[RenderableType]:
    """The option that is advised, in full."""
    yield Text(f"Advised: {hardware(each)}, {each.hosting.value}, {each.plan}", style="bold")
    lines = [f"{reason.text} [{reason.source}]" if reason.source else reason.text for reason in each.reasons]
    if each.memory:
        parts = ", ".join(f"{name} {gib:.1f}" for name, gib in each.memory.parts if gib >= 0.05)
        lines.append(f"memory: {parts} GiB; {each.memory.words}".rstrip("; "))
    lines += [f"{figure.name}: {span(figure.interval)} {figure.unit}".rstrip() for figure in each.estimates]
    why = next((figure.interval.reasons for figure in each.estimates), ())
    lines += [f"the range: {'; '.join(why)}"] if why else []
    lines += [f"effort: {each.effort}"] if each.effort else []
    lines += [f"phases: {'; '.join(each.phases)}"] if each.phases else []
    lines += [f"risk: {each.risk}"] + ([f"to be sure: {each.measure}"] if each.measure else [])
    for line in lines:
        yield Padding(Text(f"- {line}"), (0, 0, 0, 2))


def _list(title: str, lines: list[str]) -> Iterator[RenderableType]:
    if lines:
        yield Text()
        yield Text(title, style="bold")
        yield from (Padding(Text(f"- {line}"), (0, 0, 0, 2)) for line in lines)


def by_traffic(answer: Advice) -> Table:
    """Monthly cost of each kind of hosting; the cheapest that answers at once in bold."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    names = [name for name in answer.costs_by_traffic[0] if name not in ("requests_per_month", "cheapest_online")]
    for name in ("requests", *names):
        rows.add_column(name, justify="right")
    for row in answer.costs_by_traffic:
        cells = [Text(f"{row[name]:,.2f}", style="bold" if name == row["cheapest_online"] else "") for name in names]
        rows.add_row(f"{row['requests_per_month']:,.0f}", *cells)
    return rows
