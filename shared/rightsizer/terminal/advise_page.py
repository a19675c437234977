"""The answer of `rightsizer advise` as a page for a person, as plain data and as a chart."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

import yaml
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.advice.answer import Action, Advice, AdvisedOption, Hosting, Purchase, Refused
from rightsizer.advice.comparisons import CURVE_POWERS, changes, costs_by_traffic
from rightsizer.advice.environments import in_production, policy_of
from rightsizer.advice.rules import Cited, Rule, cited_rules, rules
from rightsizer.advice.throughput import Interval
from rightsizer.advice.workload import Workload
from rightsizer.domain.price import CENT
from rightsizer.errors import InputError
from rightsizer.render.pictures import Line, LineChart

WIDE = 110
"""Columns from which the table of options has the price of an hour and of a unit too."""
SHOWN = 6
"""Options in the table; --json has all."""
SERVED = {
    Hosting.REALTIME: "real-time endpoint",
    Hosting.SERVERLESS: "serverless endpoint",
    Hosting.ASYNC: "asynchronous endpoint",
    Hosting.BATCH: "batch transform job",
    Hosting.PACKED: "shared endpoint",
    Hosting.LAMBDA: "Lambda function",
    Hosting.CONTAINERS: "container",
    Hosting.JOB: "job",
}
"""How a workload is carried, in words."""
BOUGHT = {
    Purchase.ON_DEMAND: "On-Demand",
    Purchase.SPOT: "managed Spot",
    Purchase.COMMIT: "Savings Plan",
    Purchase.AUTOSCALE: "On-Demand, autoscaled",
    Purchase.SCHEDULE: "On-Demand, scheduled",
}
"""How capacity is bought, in words."""
NEXT = {
    Action.APPLY: "go ahead",
    Action.PROPOSE: "decide",
    Action.TEST: "test first",
    Action.KEEP: "keep",
    Action.UNKNOWN: "unknown",
}
"""What may be done with an option, in a word or two."""
MEANING = {
    Action.APPLY: "nothing in the description stands against it",
    Action.PROPOSE: "it changes software, calls or habits",
    Action.TEST: "the figures are estimates that nobody has measured",
    Action.KEEP: "nothing better is known",
}
"""What the action asks of a person."""


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


def page(answer: Advice, width: int = WIDE) -> RenderableType:
    """The answer for a person: contradictions, then what to buy, then the options, the reasons and the rest."""
    parts: list[RenderableType] = [Text(f"! {text}", style="bold red") for text in answer.contradictions]
    if answer.options:
        parts += [*_headline(answer.options[0], bool(answer.contradictions)), Text(), table(answer, width)]
        if _wants_two(answer.options[1:SHOWN]) and not _wants_two(answer.options[:1]):
            two = f"A row of one instance is ranked with the second one that production wants [{Rule.PRODUCTION_TWO}]."
            parts.append(Text(two))
        parts += [Text(), *_detail(answer.options[0])]
    parts += list(_list("Not advised", list(_refusals(answer.refused))))
    parts += list(_list("Notes", [reason.text for reason in answer.notes]))
    parts += list(_list("Not known", list(answer.unknown)))
    if answer.costs_by_traffic:
        parts += [Text(), Text("USD a month by requests a month", style="bold"), by_traffic(answer)]
    if answer.environments:
        parts += [Text(), Text("In each environment", style="bold"), *_environments(answer)]
        parts += [Text(), Text("Their policy document, for rightsizer policy check (docs/policy.md)", style="bold")]
        parts.append(
            Padding(
                Text(yaml.safe_dump(policy_of(answer.environments), sort_keys=False).rstrip()),
                (0, 0, 0, 2),
                expand=False,
            )
        )
    for measurement in answer.measurements:
        parts += [Text(), Text(f"To measure {measurement.settles}: {measurement.operation}", style="bold")]
        parts.append(Padding(Text(json.dumps(document(measurement.parameters))), (0, 0, 0, 2), expand=False))
    if cited := cited_rules(answer):
        sources = [f"{rule}: {rules()[rule].url}" for rule in cited]
        parts += [*_list("Sources of the rules; rightsizer advise --rules says what they are", sources)]
    return Group(*parts)


def _headline(option: AdvisedOption, clashes: bool) -> Iterator[RenderableType]:
    """What to buy, what it costs, and what to do with it: the three lines that a hurried reader takes along."""
    if option.action is Action.UNKNOWN:
        yield Text("No advice before the size of the model is known: give --parameters or --model-gib.", style="bold")
        yield Text("Below are the cheapest types of each family; whether one holds the model is not known.")
        return
    yield Text(f"Advised: {hardware(option)}, {SERVED[option.hosting]}, {BOUGHT[option.purchase]}", style="bold green")
    yield Text(f"Cost:    {_price(option)}")
    if _wants_two((option,)) and option.cost.usd_per_month is not None:
        both = in_production(option)
        monthly = f"USD {both.cost.usd_per_month:,.2f} a month"
        yield Text(f"Safer:   {hardware(both)}, {monthly}, as production wants [{Rule.PRODUCTION_TWO}]")
    if clashes:
        yield Text(f"Next:    settle what is marked with ! above; then {NEXT[option.action]}")
    else:
        yield Text(f"Next:    {NEXT[option.action]}; {MEANING[option.action]}")


def _wants_two(options: Iterable[AdvisedOption]) -> bool:
    """Whether production wants a second instance of one of the options."""
    return any(reason.source == Rule.PRODUCTION_TWO for option in options for reason in option.reasons)


def _price(option: AdvisedOption) -> str:
    """The price of an hour, a month, a run and a unit, as far as they are known, and of which day."""
    cost = option.cost
    parts = [
        "" if cost.usd_per_hour is None else f"USD {cost.usd_per_hour:,.2f} an hour",
        "" if cost.usd_per_month is None else f"{'at most ' * cost.at_most}{_money_of(cost.usd_per_month)} a month",
        f"USD {per_unit(option)}" if per_unit(option) else "",
    ]
    listed = " ".join(filter(None, ("list price", cost.region, cost.as_of)))
    known = ", ".join(filter(None, parts))
    return f"{known} ({listed})" if known else "not known"


def _money_of(value: Decimal) -> str:
    """US dollars in cents; what is below one is said so."""
    return f"USD {value:,.2f}" if value >= CENT else f"less than USD {CENT}"


def rules_page(known: Mapping[str, Cited]) -> RenderableType:
    """Every rule, its figure and where it can be read; two lines each."""
    parts: list[RenderableType] = []
    for name, cited in known.items():
        parts.append(Text(f"{name}: {cited.rule}", style="bold"))
        figure = f"{cited.figure}; " if cited.figure else ""
        parts.append(Padding(Text(f"{figure}{cited.source}, {cited.url}"), (0, 0, 0, 2), expand=False))
    return Group(*parts)


def table(answer: Advice, width: int = WIDE) -> Table:
    """The first options, one a row; on a narrow terminal without the price of an hour and of a unit."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("#", "Hardware", "Served as", "Bought", "Next"):
        rows.add_column(name, overflow="fold")
    money = ("USD/hour", "USD/month", "USD per unit") if width >= WIDE else (_money(answer),)
    for name in money:
        rows.add_column(name, justify="right")
    for number, option in enumerate(answer.options[:SHOWN], 1):
        cost = option.cost
        known = {
            "USD/hour": "" if cost.usd_per_hour is None else f"{cost.usd_per_hour:,.2f}",
            "USD/month": "" if cost.usd_per_month is None else f"{cost.usd_per_month:,.2f}",
            "USD/run": "" if cost.usd_per_run is None else f"{cost.usd_per_run.middle:,.2f}",
            "USD per unit": per_unit(option),
        }
        words = (str(number), hardware(option), SERVED[option.hosting], BOUGHT[option.purchase], NEXT[option.action])
        rows.add_row(*(Text(word) for word in (*words, *(known[name] for name in money))))
    return rows


def _money(answer: Advice) -> str:
    """The one column of money that a narrow table has: the run or the month where one is known, else the hour."""
    if any(option.cost.usd_per_run is not None for option in answer.options):
        return "USD/run"
    return "USD/month" if any(option.cost.usd_per_month is not None for option in answer.options) else "USD/hour"


def hardware(option: AdvisedOption) -> str:
    """The type and its count, or what the service hides."""
    return f"{option.count} x {option.instance_type}" if option.instance_type else option.plan


def per_unit(option: AdvisedOption) -> str:
    """The price of a million tokens, a run or 1,000 requests, whichever is known first."""
    cost = option.cost
    if cost.usd_per_million_tokens:
        return f"{span(cost.usd_per_million_tokens)} a million tokens"
    if cost.usd_per_run:
        return f"{span(cost.usd_per_run)} a run"
    return f"{span(cost.usd_per_1000_requests)} per 1,000 requests" if cost.usd_per_1000_requests else ""


def span(figure: Interval) -> str:
    """An interval in three figures."""
    if figure.low == figure.high:
        return _short(figure.middle)
    return f"{_short(figure.middle)} ({_short(figure.low)} to {_short(figure.high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _detail(option: AdvisedOption) -> Iterator[RenderableType]:
    """Why, what it holds and serves, and what it asks for."""
    if option.action is Action.UNKNOWN:
        return
    yield Text(f"Why {option.instance_type or SERVED[option.hosting]}", style="bold")
    reasons = [reason for reason in option.reasons if reason.source != Rule.PRODUCTION_TWO]  # the headline has it
    lines = [f"{reason.text} [{reason.source}]" if reason.source else reason.text for reason in reasons]
    text = " ".join(lines)
    lines += [f"layout: {option.plan}"] if option.instance_type and option.plan and option.plan not in text else []
    if option.memory:
        digits = 1 if option.memory.needed_gib >= 1 else 2
        parts = ", ".join(f"{name} {gib:.{digits}f}" for name, gib in option.memory.parts)
        words = "" if option.memory.words in text else option.memory.words
        lines.append(f"memory: {parts} GiB; {words}".rstrip("; "))
    lines += [f"{figure.name}: {span(figure.interval)} {figure.unit}".rstrip() for figure in option.estimates]
    why = next((figure.interval.reasons for figure in option.estimates), ())
    lines += [f"the range: {'; '.join(why)}"] if why else []
    lines += [f"effort: {option.effort}"] if option.effort else []
    lines += [f"phases: {'; '.join(option.phases)}"] if option.phases else []
    lines += [f"risk: {option.risk}"] + ([f"to be sure: {option.measure}"] if option.measure else [])
    for line in lines:
        yield Padding(Text(f"- {line}"), (0, 0, 0, 2), expand=False)


def _refusals(refused: Iterable[Refused]) -> Iterator[str]:
    """What is not advised and why: each name once, and types that fail for the same reason together."""
    subjects: dict[str, list[Refused]] = {}
    for each in refused:
        text = each.reason.text
        subjects.setdefault(text.removeprefix(each.subject), []).append(each)
    for why, some in subjects.items():
        names, begins_with_it = ", ".join(each.subject for each in some), why != some[0].reason.text
        if len(some) > 1:
            yield f"{names}: each {why.lstrip(' :')}"
        else:
            yield f"{names}{why}" if begins_with_it else f"{names}: {why}"


def _list(title: str, lines: list[str]) -> Iterator[RenderableType]:
    if lines:
        yield Text()
        yield Text(title, style="bold")
        yield from (Padding(Text(f"- {line}"), (0, 0, 0, 2), expand=False) for line in lines)


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
    for variant in answer.environments:
        option, monthly = variant.option, variant.option.cost.usd_per_month
        what = f"{hardware(option)}, {SERVED[option.hosting]}, {BOUGHT[option.purchase]}"
        price = "" if monthly is None else f", USD {monthly:,.2f} a month"
        lines = [f"{reason.text} [{reason.source}]" for reason in variant.differs]
        lines.append("tags: " + ", ".join(f"{name}={value}" for name, value in variant.tags.items()))
        yield Padding(Text(f"{variant.environment}: {what}{price}"), (0, 0, 0, 2), expand=False)
        yield from (Padding(Text(f"- {line}"), (0, 0, 0, 4), expand=False) for line in lines)


CHEAPEST, REQUESTS = "cheapest_online", "requests_per_month"


def break_even_chart(workload: Workload, answer: Advice) -> LineChart:
    """The chart of a service; InputError where the workload is a job or nothing holds the model."""
    rows = costs_by_traffic(workload, answer.options, CURVE_POWERS) if answer.costs_by_traffic else ()
    if not rows:
        raise InputError("a chart over traffic belongs to a service that something can hold; ask for --task real-time")
    names = [name for name in rows[0] if name not in (REQUESTS, CHEAPEST)]
    first = next(option for option in answer.options if option.cost.usd_per_hour is not None)
    return LineChart(
        f"What hosting costs over traffic, real-time on {first.instance_type}",
        "requests a month",
        "US dollars a month",
        [Line(name, [(row[REQUESTS], row[name]) for row in rows if row[name] > 0]) for name in names],
        [(at, usd, f"{name} from {at:,.0f}") for at, usd, name in changes(workload, answer.options)],
        f"On-Demand list prices, {first.cost.region}, {first.cost.as_of}; batch answers nobody who waits",
    )
