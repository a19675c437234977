"""Advice at a terminal: a workload from flags or a file, the ranked options as a table or JSON. Reads no account."""

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rightsizer.advice.advise import advise as advise_on
from rightsizer.advice.answer import Action, Advice
from rightsizer.advice.blueprint import Blueprint, blueprint
from rightsizer.advice.cloudformation import cloudformation
from rightsizer.advice.describe import workload_of
from rightsizer.advice.rules import cited_rules, rules
from rightsizer.advice.terraform import terraform
from rightsizer.errors import InputError
from rightsizer.render.pictures import line_chart_png
from rightsizer.terminal import tables as show
from rightsizer.terminal.advise_page import break_even_chart, document, page, rules_page
from rightsizer.terminal.app import Exit, app, check_picture, examples, print_json, write_picture
from rightsizer.terminal.cluster_page import advise_from_prometheus, cluster_page
from rightsizer.terminal.workload import ByPart, ask, given_flags, is_empty, read_workload, with_flags

VERSION = 1
"""Of the document that --json prints; a field is only ever added to it."""


class Template(StrEnum):
    """Languages of infrastructure that a template is written in."""

    CLOUDFORMATION = "cloudformation"
    TERRAFORM = "terraform"


WRITERS: Mapping[Template, Callable[[Blueprint], str]] = {
    Template.CLOUDFORMATION: cloudformation,
    Template.TERRAFORM: terraform,
}


@app.command(
    name="advise",
    cls=ByPart,
    epilog=examples(
        "rightsizer advise --task real-time --model llama-3-8b --rate 5 --first-token-ms 800",
        "rightsizer advise --file workload.yaml --json | jq '.advice.options[0]'",
        "rightsizer advise --file workload.yaml --template terraform > endpoint.tf",
        "rightsizer advise --from-prometheus http://127.0.0.1:9090 --namespace serving",
        "rightsizer advise  # asks a few questions",
    ),
)
@with_flags
def advise(
    file: Annotated[
        Path | None, typer.Option("--file", help="A description in YAML or JSON (docs/advise.md); flags go before it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output (docs/advise.md).")] = False,
    template: Annotated[
        Template | None, typer.Option("--template", help="Print the endpoint with autoscaling, guardrail and tags.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="Write a chart of costs over traffic (extra pictures).")
    ] = None,
    from_prometheus: Annotated[
        str | None,
        typer.Option("--from-prometheus", metavar="URL", help="Advise a Kubernetes cluster by what this server holds."),
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Pods of this namespace only.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=60, help="Days of the cluster's metrics.")] = 14,
    all_rules: Annotated[bool, typer.Option("--rules", help="Print the rules that reasons cite, and leave.")] = False,
    **given: Any,
) -> None:
    """Choose hardware and endpoint type for a new workload.

    Say what for and what you know; nothing but --task must be given, and what you leave out is assumed or named as not
    known. The answer begins with what to buy, its price and the next step; figures have their interval, refusals their
    reason. Reads no account: prices are those of the dated snapshot. Only --from-prometheus asks a network.
    """
    if all_rules:
        _print_rules(as_json)
    check_picture(png)
    if from_prometheus is not None:
        _only_cluster(file, template, png, given)
        _advise_cluster(from_prometheus, namespace, days, given.get("region"), as_json)
    _no_cluster(namespace)
    if is_empty(file, given) and sys.stdin.isatty():
        given = dict(ask(_read_answer, _say))
    described = read_workload(file, given)
    workload, answer = workload_of(described), advise_on(described)
    written = WRITERS[template](blueprint(workload, answer)) if template else None
    if png is not None:
        write_picture(png, line_chart_png(break_even_chart(workload, answer)))
    if as_json:
        cited = {rule: document(rules()[rule]) for rule in cited_rules(answer)}
        more = {} if written is None else {"template": written}
        print_json({"version": VERSION, "workload": described, "advice": document(answer), "rules": cited, **more})
    elif written is not None:
        sys.stdout.write(written)
    else:
        screen = show.output()
        screen.print(page(answer, screen.width))
    raise typer.Exit(_code_of(answer))


def _code_of(answer: Advice) -> Exit:
    """The exit code: whether anything is advised."""
    advised = any(option.action is not Action.UNKNOWN for option in answer.options)
    return Exit.NOTHING_TO_DO if advised else Exit.INCOMPLETE


def _no_cluster(namespace: str | None) -> None:
    """InputError where a namespace is given and no cluster."""
    if namespace is not None:
        raise InputError("--namespace narrows a cluster: give --from-prometheus URL with it")


def _only_cluster(file: Path | None, template: Template | None, png: Path | None, given: Mapping[str, Any]) -> None:
    """InputError where something is given that says nothing of a cluster."""
    if png is not None:
        raise InputError("--png draws the costs of one workload over its traffic; leave it out for a cluster")
    more = [name for name, value in (("--file", file), ("--template", template)) if value is not None]
    more += [name for name in given_flags(given) if name != "--region"]
    if more:
        raise InputError(f"{', '.join(more)} describe a single workload; leave them out with --from-prometheus")


def _advise_cluster(url: str, namespace: str | None, days: int, region: str | None, as_json: bool) -> NoReturn:
    """Advice for a cluster, and the end of the command."""
    answer = advise_from_prometheus(url, namespace, days, region)
    if as_json:
        print_json({"version": VERSION, "cluster": document(answer)})
    else:
        screen = show.output()
        screen.print(cluster_page(answer, screen.width))
    raise typer.Exit(Exit.NOTHING_TO_DO if answer.pods else Exit.INCOMPLETE)


def _read_answer(prompt: str) -> str:
    """One line from the terminal; the end of input leaves the command."""
    _say(prompt, end="")
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line


def _say(text: str, end: str = "\n") -> None:
    """Words beside the answer go to standard error, so that standard output stays an answer."""
    sys.stderr.write(text + end)
    sys.stderr.flush()


def _print_rules(as_json: bool) -> NoReturn:
    """Every rule with its figure and source, and the end of the command."""
    if as_json:
        print_json({"version": VERSION, "rules": document(rules())})
    else:
        show.output().print(rules_page(rules()))
    raise typer.Exit(Exit.NOTHING_TO_DO)
