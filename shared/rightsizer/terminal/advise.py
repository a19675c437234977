"""Advice at a terminal: a workload from flags or a file, the ranked options as a table or JSON. Reads no account."""

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rightsizer.advice.advise import advise as advise_on
from rightsizer.advice.rules import cited_rules, rules
from rightsizer.terminal import tables as show
from rightsizer.terminal.advise_page import document, page, rules_page
from rightsizer.terminal.app import Exit, app, examples, print_json
from rightsizer.terminal.workload import described_by, with_flags

VERSION = 1
"""Of the document that --json prints; a field is only ever added to it."""


@app.command(
    name="advise",
    epilog=examples(
        "rightsizer advise --task real-time --kind llm --model llama-3-8b --rate 5 --first-token-ms 800",
        "rightsizer advise --file workload.yaml --json | jq '.advice.options[0]'",
    ),
)
@with_flags
def advise(
    file: Annotated[
        Path | None, typer.Option("--file", help="A description in YAML or JSON (docs/advise.md); flags go before it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output (docs/advise.md).")] = False,
    all_rules: Annotated[bool, typer.Option("--rules", help="Print the rules that reasons cite, and leave.")] = False,
    **given: Any,
) -> None:
    """Choose hardware and endpoint type for a new workload.

    Reads no account and no network: prices are those of the dated snapshot. Each figure comes with its interval, what
    is refused with its reason, and what only a measurement can tell with the measurement.
    """
    if all_rules:
        _print_rules(as_json)
    described = described_by(file, given)
    answer = advise_on(described)
    if as_json:
        cited = {rule: document(rules()[rule]) for rule in cited_rules(answer)}
        print_json({"version": VERSION, "workload": described, "advice": document(answer), "rules": cited})
    else:
        show.output().print(page(answer))
    raise typer.Exit(Exit.NOTHING_TO_DO if answer.options else Exit.INCOMPLETE)


def _print_rules(as_json: bool) -> NoReturn:
    """Every rule with its figure and source, and the end of the command."""
    if as_json:
        print_json({"version": VERSION, "rules": document(rules())})
    else:
        show.output().print(rules_page(rules()))
    raise typer.Exit(Exit.NOTHING_TO_DO)
