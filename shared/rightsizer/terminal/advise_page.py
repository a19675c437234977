"""The answer of `rightsizer advise` as a page for a person and as plain data."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.advice.answer import Action, Advice, AdvisedOption
from rightsizer.advice.rules import Cited, cited_rules
from rightsizer.advice.throughput import Interval

NARROW = 120
"""Columns that the table of options needs."""
SHOWN = 6
"""Options in the table; --json has all."""


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


def page(answer: Advice, width: int = NARROW) -> RenderableType:
    """The answer for a person: contradictions first, then the options, the first one in full, and the rest.

    On fewer columns than `NARROW` the options are a list, since a table would break its words.
    """
    parts: list[RenderableType] = [Text(f"! {text}", style="bold red") for text in answer.contradictions]
    if answer.options:
        options = [table(answer)] if width >= NARROW else [Text(line) for line in short_lines(answer)]
        parts += [*options, Text(), *_detail(answer.options[0])]
    parts += list(_list("Not advised", [f"{each.subject}: {each.reason.text}" for each in answer.refused]))
    parts += list(_list("Notes", [each.text for each in answer.notes]))
    parts += list(_list("Not known", list(answer.unknown)))
    for each in answer.measurements:
        parts += [Text(), Text(f"To measure {each.settles}: {each.operation}", style="bold")]
        parts.append(Padding(Text(json.dumps(document(each.parameters), indent=1)), (0, 0, 0, 2)))
    if answer.costs_by_traffic:
        parts += [Text(), Text("USD a month by requests a month", style="bold"), by_traffic(answer)]
    if answer.environments:
        parts += [Text(), Text("In each environment", style="bold"), *_environments(answer)]
    if cited := cited_rules(answer):
        parts += [Text(), Text(f"Rules cited: {', '.join(cited)}. rightsizer advise --rules says what they are.")]
    return Group(*parts)


def rules_page(known: Mapping[str, Cited]) -> RenderableType:
    """Every rule, its figure and where it can be read; two lines each."""
    parts: list[RenderableType] = []
    for name, each in known.items():
        parts.append(Text(f"{name}: {each.rule}", style="bold"))
        figure = f"{each.figure}; " if each.figure else ""
        parts.append(Padding(Text(f"{figure}{each.source}, {each.url}"), (0, 0, 0, 2)))
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


def short_lines(answer: Advice) -> Iterator[str]:
    """The first options, one a line, without their estimates."""
    for number, each in enumerate(answer.options[:SHOWN], 1):
        hourly, monthly = each.cost.usd_per_hour, each.cost.usd_per_month
        hour = "" if hourly is None else f"USD {hourly:,.2f} an hour"
        month = "" if monthly is None else f"USD {monthly:,.2f} a month"
        bought = f"{each.purchase.value}, {each.action.value}"
        words = (hardware(each), each.hosting.value, bought, hour, month, per_unit(each))
        yield f"{number}. {', '.join(filter(None, words))}"


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
    known = each.action is not Action.UNKNOWN
    head = "Advised" if known else "No advice before the size of the model is known; the first type for a small one"
    yield Text(f"{head}: {hardware(each)}, {each.hosting.value}, {each.plan}", style="bold")
    lines = [f"{reason.text} [{reason.source}]" if reason.source else reason.text for reason in each.reasons]
    if each.memory:
        digits = 1 if each.memory.needed_gib >= 1 else 2
        parts = ", ".join(f"{name} {gib:.{digits}f}" for name, gib in each.memory.parts)
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


def _environments(answer: Advice) -> Iterator[RenderableType]:
    """What each environment gets, why, and the tags of its endpoint."""
    for each in answer.environments:
        option, monthly = each.option, each.option.cost.usd_per_month
        what = f"{hardware(option)}, {option.hosting.value}, {option.purchase.value}"
        price = "" if monthly is None else f", USD {monthly:,.2f} a month"
        lines = [f"{reason.text} [{reason.source}]" for reason in each.differs]
        lines.append("tags: " + ", ".join(f"{name}={value}" for name, value in each.tags.items()))
        yield Padding(Text(f"{each.environment}: {what}{price}"), (0, 0, 0, 2))
        yield from (Padding(Text(f"- {line}"), (0, 0, 0, 4)) for line in lines)
