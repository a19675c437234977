"""Surveys and explanations for a person: rich tables and panels, on a screen that cleans what is printed.

No name or error message steers the terminal.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderableType, RenderHook, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rightsizer.domain.account_finding import AccountFinding
from rightsizer.domain.option import Excluded, Option, payback_text
from rightsizer.domain.price import Price
from rightsizer.domain.reason import UNREADABLE, Code, Reason, clean_text, one_line
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.recommender.other_endpoint import migration_phases
from rightsizer.render import effects, report_tables, rest_of_bill, sentences
from rightsizer.render.effects import later_text, target_facts
from rightsizer.terminal.plot import plot
from rightsizer.terminal.survey import Survey, SurveyPolicy

COLOURS = {
    Finding.IDLE: "red",
    Finding.OVER_PROVISIONED: "yellow",
    Finding.UNDER_PROVISIONED: "bold red",
    Finding.OPTIMIZED: "green",
    Finding.NOT_ENOUGH_DATA: "dim",
}
NOT_READ_BELOW = "its metrics were not read: see “not read” below"
MANY = 4
"""Types that one kind of reason rules out, from which on they share a line; --json has the reason of each."""
ASLEEP_NAMED = 5
"""Endpoints that a scan names as asleep; `doctor` lists them all."""
SLIM = 100
"""Columns below which a table of few columns becomes a list."""
NARROW, PIPED = 130, 160
"""Columns below which the table becomes a list, and of what goes into a pipe or a log."""


class Screen(Console):
    """A console of rich whose text holds no control characters but those of rich's own styles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_Cleaning())


class _Cleaning(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Cleaned(one) for one in renderables]


class _Cleaned:
    """Renders as what it holds, with the text of each segment cleaned; styles are added after that."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self._inner, options):
            yield part if part.control else Segment(clean_text(part.text, len(part.text)), part.style)


def output() -> Console:
    """Standard output. A pipe has no width: rich would take 80 columns and cut the names of types."""
    console = Screen()
    return console if console.is_terminal else Screen(width=max(console.width, PIPED))


def fits(console: Console, grid: Table) -> bool:
    """Whether no cell of the table has to be broken on this console."""
    return console.measure(grid, options=console.options.update(width=PIPED)).maximum <= console.width


def figures_list(rows: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> Group:
    """Rows of named figures on a narrow terminal: each name, and its figures below it."""
    parts: list[RenderableType] = []
    for name, figures in rows:
        said = ", ".join(f"{head.lower()} {figure}" for head, figure in figures)
        parts += [Text(one_line(name), style="bold"), Padding(Text(said or "nothing"), (0, 0, 0, 2))]
    return Group(*parts)


def say(text: str) -> None:
    """A line for standard output, as it is."""
    output().print(text, markup=False)


def say_commands(lines: Iterable[str]) -> None:
    """Command lines for standard output, indented and never broken, so that they can be copied."""
    for line in lines:
        output().print(f"      {line}", markup=False, soft_wrap=True)


def listing(found: Survey, width: int) -> RenderableType:
    """The scan as a table, or where that would not fit as a list, and the totals."""
    rest = _rest(rest_of_bill.listed_lines(found.rest.findings))
    return Group(table(found) if width >= NARROW else _lines(found), *rest)


def _rest(told: Sequence[str]) -> list[RenderableType]:
    """What else is paid for, below everything else; nothing without a line."""
    if not told:
        return []
    heading = Text(rest_of_bill.HEADING, style="bold")
    return [Text(), heading, *(Padding(Text(one_line(line)), (0, 0, 0, 2)) for line in told)]


def _lines(found: Survey) -> RenderableType:
    parts: list[RenderableType] = []
    for each in found.recommendations:
        option = each.chosen_option
        cost = "?" if each.usd_per_month is None else f"{each.usd_per_month:,.0f}"
        saves = f", {_saving_text(each)}, risk {int(option.risk)} of 4" if option else ""
        head = Text.assemble((each.ref.name, "bold"), "  ", (each.finding.value, COLOURS[each.finding]))
        parts += [head, Padding(Text(f"{_runs(each)}, USD {cost} a month{saves}"), (0, 0, 0, 2))]
        parts += [Padding(_reason_text(each, found.incomplete), (0, 0, 0, 2))]
    for lost in found.unobserved:
        parts += [Text.assemble((lost.ref.name, "bold"), ("  not read", "red"))]
        parts += [Padding(Text(lost.reason.sentence), (0, 0, 0, 2))]
    return Group(*parts, Text(), totals(found))


def _saving_text(recommendation: Recommendation) -> str:
    usd = recommendation.approval_usd_per_month
    return f"saves {usd:,.0f}" if usd >= 0 else f"costs {-usd:,.0f} more"


def table(found: Survey) -> RenderableType:
    """The scan as a table: what needs more, then the largest saving first, and the totals."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    rows.add_column("Endpoint", overflow="fold", min_width=12)
    rows.add_column("Runs", overflow="fold", min_width=12)
    rows.add_column("USD/month", justify="right", no_wrap=True)
    rows.add_column("Finding", no_wrap=True)
    rows.add_column("Saves", justify="right", no_wrap=True)
    rows.add_column("Risk", justify="right", no_wrap=True)
    rows.add_column("Recommendation and reason", overflow="fold", ratio=1)
    for each in found.recommendations:
        option = each.chosen_option
        rows.add_row(
            Text(each.ref.name),
            _runs(each),
            "?" if each.usd_per_month is None else f"{each.usd_per_month:,.0f}",
            Text(each.finding.value, style=COLOURS[each.finding]),
            f"{each.approval_usd_per_month:,.0f}" if option else "",
            str(int(option.risk)) if option else "",
            _reason_text(each, found.incomplete),
        )
    for lost in found.unobserved:
        rows.add_row(Text(lost.ref.name), "", "", Text("not read", style="red"), "", "", Text(lost.reason.sentence))
    return Group(rows, Text(), totals(found))


def totals(found: Survey) -> Text:
    """The last line of a scan."""
    number = len(found.recommendations) + len(found.unobserved)
    if number == 0:
        return Text(f"No endpoint exists in this account and Region.{_asleep_note(found)}")
    short = report_tables.shortage_text(sum(each.is_short for each in found.recommendations))
    needs = f"{short}; " if short else ""
    small = len(found.possible_savings) - len(found.large_enough)
    below = f", {small} of them less than USD {found.minimum_saving:,f} each" if small else ""
    return Text(
        f"{sentences.count(number, 'endpoint')} in {found.region}: USD {found.spend:,.0f} per month; "
        f"{needs}{len(found.possible_savings)} could save USD {found.identified_saving:,.2f} per month{below} "
        f"(On-Demand prices){'.' if found.asleep else ''}{_asleep_note(found)}",
        style="bold",
    )


def _asleep_note(found: Survey) -> str:
    """Who is in no line and no sum, since office hours stopped it."""
    more = len(found.asleep) - ASLEEP_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    names = ", ".join(each.ref.name for each in found.asleep[:ASLEEP_NAMED])
    return f" Asleep by office hours, and in no sum: {names}{rest}." if found.asleep else ""


def _plots(each: Recommendation, width: int) -> list[RenderableType]:
    """The requests of the look-back by the hour, and below them how full the proposed fleet would have been."""
    if each.evidence is None or not any(each.hourly_requests):
        return []
    start = each.evidence.start
    parts: list[RenderableType] = [Text(), Text("Requests an hour, UTC", style="bold")]
    parts += plot(each.hourly_requests, start, width, unit="")
    option, replay = each.chosen_option, each.replay
    if option is not None and replay is not None and any(replay.hourly_load):
        load = [None if one is None else 100 * one for one in replay.hourly_load]
        told = f"The same hours on what is proposed ({sentences.change(option)}): load in percent of its capacity"
        parts += [Text(), Text(told, style="bold"), *plot(load, start, width, unit=" %")]
    return parts


def explanation(each: Recommendation, findings: Sequence[AccountFinding] = (), width: int = PIPED) -> RenderableType:
    """Everything that one recommendation rests on, and the account findings about its endpoint."""
    parts: list[RenderableType] = [
        Text(f"{each.ref.name}  {each.finding.value}", style=f"bold {COLOURS[each.finding]}"),
        Text(each.reason.sentence),
        Text(),
        _facts("Runs", _current_facts(each)),
    ]
    if each.evidence is not None:
        window = f"{sentences.time_text(each.evidence.start)} to {sentences.time_text(each.evidence.end)}"
        facts = {
            "window": f"{window}, {sentences.percent(each.evidence.valid_share)} of it with datapoints",
            "requests": f"{each.evidence.requests:,}",
        }
        parts += [Text(), _facts("Evidence", facts | dict(sentences.figures(each.evidence)))]
    parts += _plots(each, width)
    for one in each.variants:
        parts += [Text(), _facts(f"Variant {one.name}", dict(sentences.variant_facts(one)))]
    if each.packing is not None:
        parts += [Text(), _facts("Components", {"packing": sentences.packing_sentence(each.packing)})]
    for part in each.components:
        parts += [Text(), _facts(f"Component {part.name}", dict(sentences.component_facts(part)))]
    for rank, option in enumerate(each.options, start=1):
        parts += [Text(), _facts(f"Option {rank}", _option(option, not each.owned_by))]
    why = "for the reason at the top" if each.gate_reason == each.reason else each.gate_reason.sentence
    follows = {sentences.gate_heading(each) or "now": why, "later": later_text(each)}
    parts += [Text(), _facts("What follows", {name: said for name, said in follows.items() if said})]
    if each.replay is not None:
        parts += [Text(), _facts(sentences.replay_heading(each), dict(sentences.replay_figures(each)))]
    for title, lines in _lists(each):
        parts += [Text(), Text(title, style="bold"), *(Padding(Text(one_line(line)), (0, 0, 0, 2)) for line in lines)]
    about = [line for one in findings if one.endpoint == each.ref.name for line in rest_of_bill.lines(one)]
    return Group(*parts, *_rest(about))


def policy_of_endpoint(obeyed: SurveyPolicy, each: Recommendation) -> RenderableType:
    """Values that the policy says for the endpoint of a recommendation; nothing where only the defaults hold."""
    rows = {row.key: f"{row.value} ({row.source})" for row in obeyed.rows(each)}
    held = {"no change begins": "; ".join(obeyed.hold_reasons(each))} if obeyed.hold_reasons(each) else {}
    return Group(Text(), _facts("Policy here", held | rows)) if rows or held else Group()


def print_policy_problems(obeyed: SurveyPolicy, console: Console) -> None:
    """Print what of the policy could not be understood or read, each with its place, on the error stream."""
    for problem in obeyed.problems:
        console.print(f"warning: {problem}", style="yellow", markup=False)


def print_warnings(found: Survey, console: Console) -> None:
    """Print unread endpoints on the error stream."""
    for reason in found.incomplete:
        console.print(Text.assemble(("not read: ", "red"), reason.sentence))
    for reason in found.rest.unread:
        console.print(Text(rest_of_bill.unread_line(reason), style="yellow"))


def _runs(each: Recommendation) -> Text:
    return Text(sentences.today(each) if each.instance_type else each.kind.value)


def _reason_text(each: Recommendation, told_below: Sequence[Reason]) -> Text:
    """The reason of a row; what could not be read for the whole account is told once, below the table."""
    option = each.chosen_option
    if option is None:
        told = each.reason.code in UNREADABLE and each.reason.code in {one.code for one in told_below}
        return Text(NOT_READ_BELOW if told else each.reason.sentence)
    heading = sentences.gate_heading(each)
    follows = f"{heading}: {each.gate_reason.sentence}" if heading else each.gate_reason.sentence
    return Text.assemble((", ".join(sentences.planned_changes(each)), "bold"), f"; {follows}")


def _current_facts(each: Recommendation) -> dict[str, str]:
    facts = {"kind": each.kind.value, "fleet": _runs(each).plain, "variant": each.variant, "mode": each.mode.value}
    if each.price is not None:
        facts["price"] = _price(each.price)
    facts["cost"] = "unknown" if each.usd_per_month is None else f"USD {each.usd_per_month:,.2f} per month"
    if each.environment is not None:
        facts["environment"] = sentences.environment(each.environment)
    facts["owner"] = each.owner or "nobody is named (tag rightsizer:owner)"
    return {name: value for name, value in facts.items() if value}


def _price(price: Price) -> str:
    return f"USD {sentences.hourly_price(price.usd_per_hour)} per hour ({price.source}, {price.basis}, {price.as_of})"


def _option(option: Option, ours: bool) -> dict[str, str]:
    risks = ", ".join(f"{resource} {int(level)}" for resource, level in option.risks.items())
    facts = {
        "change": sentences.change(option),
        **{name[0].lower() + name[1:]: said for name, said in target_facts(option.target)},
        "costs more" if option.grows else "saves": _money_text(option),
        "price": _price(option.price),
        "shadow test": _test_cost(option),
        "what a test does": f"{effects.TEST_DEPLOYS}; {effects.TEST_ENDS}" if option.test_usd else "",
        "switch": _switch(option),
        "risk": effects.risk_text(option),
        "risk by resource": risks,
        "evidence": sentences.days_of_evidence(option.confidence),
        "p95 then": "" if option.p95_s is None else f"{sentences.seconds(option.p95_s)}, predicted",
        "effort": f"{sentences.EFFORTS[option.effort]}; {effects.restart_text(option)}",
        "rollback": effects.rollback_text(option, ours),
        "callers": option.client_change,
        "note": "; ".join(option.notes),
        **dict(sentences.option_facts(option)),
        **migration_phases(option),
    }
    return {name: value for name, value in facts.items() if value}


def _money_text(option: Option) -> str:
    usd = -option.saving_usd_per_month if option.grows else option.saving_usd_per_month
    return f"USD {usd:,.2f} per month; it then costs USD {option.usd_per_month:,.2f}"


def _test_cost(option: Option) -> str:
    """What a shadow test before the option costs, and tells; empty where there is none."""
    if not option.test_usd:
        return ""
    told = f"; it tells {option.test_tells}" if option.test_tells else ""
    return f"USD {option.test_usd:,.2f} once, whatever it shows{told}"


def _switch(option: Option) -> str:
    """What the change costs once; of a test before it both are paid back."""
    once = "once; with the test" if option.test_usd else "once,"
    return f"USD {option.switch_usd:,.2f} {once} {payback_text(option)}"


def _lists(each: Recommendation) -> list[tuple[str, list[str]]]:
    found = [
        ("Not checked", list(each.open_questions)),
        ("Notes", [note.sentence for note in each.notes]),
        ("Excluded", _exclusion_lines(each)),
    ]
    return [(title, lines) for title, lines in found if lines]


def _exclusion_lines(each: Recommendation) -> list[str]:
    """A line for each reason, some kinds of reason together, and one for all types that have no price."""
    unpriced = [out.instance_type for out in each.excluded if _is_unpriced(out)]
    types = [out for out in each.excluded if out.dimension is None and not _is_unpriced(out)]
    others: dict[str, list[str]] = {}
    for out in each.excluded:
        if out.dimension is not None:
            name = out.dimension.value if out.instance_type == each.instance_type else out.title
            others.setdefault(out.reason.sentence, []).append(name)
    found = [line for code in dict.fromkeys(out.reason.code for out in types) for line in _likewise(types, code)]
    found += [f"{', '.join(dict.fromkeys(names))}: {sentence}" for sentence, names in others.items()]
    return found + ([f"no price is known here: {', '.join(unpriced)}"] if unpriced else [])


def _likewise(types: Sequence[Excluded], code: Code) -> list[str]:
    """The types that one kind of reason rules out: each with its own sentence, or of many the first and the names."""
    some = [out for out in types if out.reason.code is code]
    if len(some) < MANY:
        return [_exclusion_text(out) for out in some]
    names = ", ".join(out.instance_type for out in some[1:])
    return [f"{_exclusion_text(some[0])}; ruled out for the same kind of reason: {names}"]


def _exclusion_text(out: Excluded) -> str:
    """The reason of a type, behind its name where it does not say the name itself."""
    return out.reason.sentence if out.instance_type in out.reason.sentence else f"{out.title}: {out.reason.sentence}"


def _is_unpriced(out: Excluded) -> bool:
    """A type without a price; a dimension without one says what that means."""
    return out.reason.code is Code.NO_PRICE and out.dimension is None


def _facts(title: str, facts: dict[str, str]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", min_width=18)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(Text(one_line(name)), Text(one_line(value)))
    return Group(Text(title, style="bold"), Padding(grid, (0, 0, 0, 2))) if title else Padding(grid, (0, 0, 0, 2))
