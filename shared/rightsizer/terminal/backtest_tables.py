"""A back-test for a person, as tables, or on a narrow terminal as a list."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.domain.backtest import Backtest, BacktestChange, Calibration, Hindsight, HindsightVerdict
from rightsizer.domain.endpoint import Unobserved
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import one_line
from rightsizer.render import sentences
from rightsizer.terminal import tables

SAID = {
    HindsightVerdict.HELD: ("held", "green"),
    HindsightVerdict.LATE: ("would have been late", "red"),
    HindsightVerdict.NO_MEMORY: ("would not have fitted", "red"),
    HindsightVerdict.UNKNOWN: ("cannot be told", "yellow"),
}
NOT_KNOWN = (
    "What no back-test knows: requests and service times are those that really were, and waiting is replayed. How fast"
    " another type would have been is known between a likely value and a limit only; late requests are counted at the"
    " limit. No shadow test is run, every start succeeds, and no type is out of capacity. Incidents, freezes and your"
    " real changes and tests are left out."
)


@dataclass(frozen=True, slots=True)
class BacktestedAccount:
    """The back-test of an account and Region."""

    region: str
    at: datetime
    days: int
    source: str
    """Where the limits come from, in words."""
    limits: ChangeLimits
    tried: tuple[Backtest, ...]
    unread: tuple[Unobserved, ...]
    calibration: Calibration


def backtest_page(backtested: BacktestedAccount, width: int) -> RenderableType:
    """Everything, the endpoints that would have saved most first."""
    if not backtested.tried and not backtested.unread:
        return Text("No endpoint exists in this account and Region.")
    parts: list[RenderableType] = []
    changed = [backtest for backtest in backtested.tried if backtest.changes]
    if changed:
        parts += [_changes(changed) if width >= tables.NARROW else _change_list(changed), Text()]
    left = [backtest for backtest in backtested.tried if not backtest.changes]
    if left:
        rows = [(backtest.endpoint, _left_reason(backtest)) for backtest in left]
        parts += [_rows("Left as it is", "Judgement of the last morning, and what would have held", rows), Text()]
    beside = [(backtest.endpoint, ", ".join(backtest.left_out)) for backtest in backtested.tried if backtest.left_out]
    if beside:
        parts += [_rows("In part", "Variants that were not played: only the first of an endpoint is", beside), Text()]
    missed = [
        (backtest.endpoint, f"{_missed_text(backtest)}. Why not: {backtest.missed.why.sentence}")
        for backtest in changed
        if backtest.missed
    ]
    if missed:
        parts += [_rows("Not dared", "What would have held and saved more", missed), Text()]
    return Group(
        *parts, *_calibration_lines(backtested.calibration), _total_line(backtested), Text(NOT_KNOWN, style="dim")
    )


def _changes(tried: list[Backtest]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Endpoint", "From", "Change"):
        table.add_column(title, overflow="fold")
    for title in ("USD/month", "Saved", "Days", "Late", "h >80 / >100 %", "p95 / may be", "GiB free"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Verdict", overflow="fold", ratio=1)
    for backtest in tried:
        for change in backtest.changes:
            table.add_row(Text(one_line(backtest.endpoint)), *_figures(change), _verdict(change))
    return table


def _figures(change: BacktestChange) -> tuple[str, ...]:
    after, strain = change.after, change.after.strain
    p95 = strain.worst_p95_s if strain else None
    margin = strain.memory_margin_gib if strain else None
    return (
        f"{change.first_day.day} {change.first_day:%b}",
        sentences.change(change.option).removeprefix("run on "),
        f"{change.option.saving_usd_per_month:,.0f}",
        f"{after.saved_usd:,.0f}" + (" by plan" if after.days and not after.was_replayed else ""),
        str(after.days),
        _late(after),
        f"{strain.hours_above_80:.0f} / {strain.hours_above_100:.0f}" if strain else "?",
        f"{sentences.seconds(p95)} / {sentences.seconds(after.objective_s)}" if p95 and after.objective_s else "?",
        f"{margin:.1f}" if margin is not None else "?" if _is_other_type(change) else "same card",
    )


def _is_other_type(change: BacktestChange) -> bool:
    return change.option.target.instance_type != change.recommendation.instance_type


def _late(after: Hindsight) -> str:
    if after.late is None or after.late_likely is None:
        return "?"
    share = sentences.percent(after.late / max(after.requests, 1))
    return f"{after.late:,} ({share})"


def _verdict(change: BacktestChange) -> Text:
    (word, style), after = SAID[change.after.verdict], change.after
    if after.verdict is HindsightVerdict.HELD:
        text = Text.assemble((word, style), f" ({after.late_before:,} late without the change)")
    else:
        text = Text.assemble((word, style), f": {after.reason.sentence}")
    if change.option.restores:
        text.append(f". It restores: {change.recommendation.reason.sentence}")
    if change.taken_back is not None and change.until is not None:
        last = change.until - timedelta(days=1)
        text.append(f". Taken back after {last.day} {last:%b}: {change.taken_back.sentence}")
    elif change.until is not None:
        text.append(f". Until the next change on {change.until.day} {change.until:%b}")
    return text


def _change_list(tried: list[Backtest]) -> RenderableType:
    parts: list[RenderableType] = []
    names = ("saves a month", "saved", "days", "late", "hours above 80 / 100 %", "worst p95 / may be", "GiB free")
    for backtest in tried:
        for change in backtest.changes:
            when, what, *figures = _figures(change)
            parts += [Text.assemble((backtest.endpoint, "bold"), f"  from {when}: {what}")]
            facts = "; ".join(f"{name}: {figure}" for name, figure in zip(names, figures, strict=True))
            parts += [Padding(Text(facts), (0, 0, 0, 2)), Padding(_verdict(change), (0, 0, 0, 2))]
    return Group(*parts)


def _rows(name: str, title: str, rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold", min_width=12)
    table.add_column(title, overflow="fold", ratio=1)
    for endpoint, text in rows:
        table.add_row(Text(endpoint), Text(text))
    return table


def _left_reason(backtest: Backtest) -> str:
    if backtest.last is None:
        return "no whole day with datapoints before the last morning"
    mornings = ", ".join(f"{gate} {number}" for gate, number in backtest.mornings.items())
    more = f". Missed: {_missed_text(backtest)}" if backtest.missed else ""
    return f"{backtest.last.gate_reason.sentence} (mornings: {mornings}){more}"


def _missed_text(backtest: Backtest) -> str:
    assert backtest.missed is not None
    option, after, since = backtest.missed.option, backtest.missed.after, backtest.missed.judged_at
    what = sentences.change(option).removeprefix("run on ")
    return (
        f"{what} from {since.day} {since:%b} on, USD {backtest.missed.regret_usd:,.0f} more in"
        f" {sentences.count(after.days, 'day')}, {_late(after)} requests late, {after.late_before or 0:,} without it"
    )


def _calibration_lines(seen: Calibration) -> Iterator[Text]:
    """Promised against seen, in a few lines; none where nothing was changed."""
    if not seen.changes:
        return
    numbers = {"held": seen.held, "did not": seen.told - seen.held, "cannot be told": seen.changes - seen.told}
    told = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    of = sentences.count(seen.changes, "change")
    yield Text(f"Promised against seen: of {of} that should save, {told}", style="bold")
    if seen.brier is not None and seen.brier_without is not None:
        yield Text(
            f"  stated risk: Brier score {seen.brier:.3f} (0 is best; calling each harmless: {seen.brier_without:.3f})"
        )
    if seen.promised_late is not None and seen.seen_late is not None:
        promised, late = (sentences.percent(share) for share in (seen.promised_late, seen.seen_late))
        yield Text(f"  late requests: {promised} promised by the look-back, {late} on the days after")
    if seen.replayed:
        usd = f"USD {seen.promised_usd:,.0f} promised for these days, USD {seen.saved_usd:,.0f} in the replay"
        without = seen.changes - seen.replayed
        out = f"; without {sentences.count(without, 'change')} that could not be replayed" if without else ""
        yield Text(f"  saving: {usd}{out}")


def _standing_saving(change: BacktestChange) -> Decimal:
    """US dollars that the change saved, where it held and still stands, or brought an earlier fleet back."""
    held = change.after.verdict is HindsightVerdict.HELD and change.taken_back is None
    restored = change.option.restores and change.after.was_replayed
    return change.after.saved_usd if held or restored else Decimal(0)


def _total_line(backtested: BacktestedAccount) -> Text:
    acted = sum(1 for backtest in backtested.tried if backtest.changes)
    more = (
        f"; USD {backtested.calibration.regret_usd:,.0f} more were missed" if backtested.calibration.regret_usd else ""
    )
    text = (
        f"{sentences.count(len(backtested.tried), 'endpoint')} in {backtested.region} over {backtested.days} days:"
        f" {acted} changed, {_saved_text(backtested)}{more} (by {backtested.source})"
    )
    return Text(text, style="bold")


def _saved_text(backtested: BacktestedAccount) -> str:
    """What was saved in the replay, apart from what only the plan says."""
    changes = [change for backtest in backtested.tried for change in backtest.changes if change.after.days]
    planned = sum((backtest.by_plan_usd for backtest in backtested.tried), Decimal(0))
    saved = sum((backtest.saved_usd for backtest in backtested.tried), Decimal(0)) - planned
    held = sum((_standing_saving(change) for change in changes), Decimal(0))
    unheld = f", of which USD {held:,.0f} on changes that held" if round(held) != round(saved) else ""
    parts = []
    if any(change.after.was_replayed for change in changes):
        parts.append(f"USD {saved:,.0f} saved in the replay, switches taken off{unheld}")
    if not all(change.after.was_replayed for change in changes):
        parts.append(f"USD {planned:,.0f} by plan alone, on days that could not be replayed")
    return "; ".join(parts) or "USD 0 saved"
