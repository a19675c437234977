"""Promises and results, in words and as parts of the report: dollars, slowdowns, and stated risks.

What is not known is said.
"""

from collections.abc import Sequence

from rightsizer.domain.history import PastEnd
from rightsizer.domain.option import Risk
from rightsizer.domain.outcome import RiskLevel, SpeedOutcome, SpeedSummary, TrackRecord
from rightsizer.domain.report import Report
from rightsizer.domain.usage import CONFORMAL
from rightsizer.render import bill, report_tables, sentences
from rightsizer.render.html import Cell, Markup, badge, join, table, tag
from rightsizer.render.report_tables import UNKNOWN

HOW = (
    "A slowdown of 1.2 × says that a request takes 1.2 times the GPU seconds that it took on the old type. Two are"
    " promised: the most likely one, and a limit. Latency is the mean after the change over the mean before it; in a"
    " shadow test, the shadow's over production's."
)
WENT_BACK = (
    "Rolled back: for latency, failed requests, memory or an alarm, or because the model did not start; also where"
    " the rollback failed, and where a later change had to restore what ran before. Changes that are not proven, or"
    " were rolled back for lack of capacity or because somebody asked, say nothing about the risk."
)
ENDED = {
    PastEnd.PROVEN: "proven",
    PastEnd.APPLIED: "applied, not proven",
    PastEnd.ROLLED_BACK: "rolled back",
    PastEnd.UPDATE_FAILED: "update failed",
    PastEnd.HANDED_OVER: "handed over",
    PastEnd.TESTED: "shadow test",
}
UNREAD = "Not part of this report: it was made before this was kept."


def savings_section(report: Report) -> Markup:
    """Dollars, by change."""
    rows = [
        [
            Cell(tag("b", kept_promise.endpoint), kept_promise.endpoint, "nowrap"),
            Cell(kept_promise.change_id, look="nowrap"),
            Cell(sentences.money(kept_promise.promised), float(kept_promise.promised), "n"),
            Cell(sentences.money(kept_promise.realised), float(kept_promise.realised), "n"),
            Cell(bill.change_cell(report, kept_promise.endpoint)),
        ]
        for kept_promise in report_tables.kept_promises(report)
    ]
    heads = ("Endpoint", "Change", "Promised for the hours", "Saved by price and hours", "Against the bill")
    return table("Promised and kept", heads, rows, "No change has been billed in this window yet.")


def slowdowns_section(record: TrackRecord | None) -> Markup:
    """Slowdowns: in a sentence, by framework, by endpoint, and by change or test."""
    if record is None:
        return tag("p", UNREAD, class_="soft")
    markup = tag("p", slowdown_text(record))
    if not record.outcomes:
        return markup
    groups = [_groups("Framework", record.frameworks), _groups("Endpoint", record.endpoints)]
    listed = [part for part in groups if part is not None]
    each = table("Slowdown by change", EACH, [_outcome(outcome) for outcome in record.outcomes], "")
    spaced = [tag("div", part, style="margin-top:12px") for part in (*listed, each)]
    return tag("div", markup, tag("p", HOW, class_="note"), *spaced)


EACH = (
    "Endpoint",
    "Ended",
    "Change",
    "Framework",
    "Promised",
    "Limit",
    "Measured",
    "Measured over promised",
    "Latency",
)


def _outcome(outcome: SpeedOutcome) -> list[Cell]:
    beyond = tag("div", "beyond the limit", class_="note") if outcome.beyond else None
    return [
        Cell(join(tag("b", outcome.endpoint), tag("div", outcome.change_id, class_="note")), outcome.endpoint, "name"),
        Cell(badge(ENDED[outcome.ended]), ENDED[outcome.ended]),
        Cell(join(tag("div", f"from {outcome.from_type}", class_="note"), outcome.to_type), outcome.to_type, "nowrap"),
        Cell(outcome.framework or UNKNOWN),
        _factor(outcome.promised),
        _factor(outcome.bound),
        Cell(join(factor(outcome.measured), beyond), outcome.measured, "n"),
        Cell("not defined" if outcome.ratio is None else factor(outcome.ratio), outcome.ratio or -1.0, "n"),
        _factor(outcome.latency_ratio),
    ]


def _groups(what: str, groups: Sequence[SpeedSummary]) -> Markup | None:
    heads = (what, "Outcomes", "Measured over promised", "Spread, a factor of", "Beyond the limit")
    rows = [
        [
            Cell(summary.name or UNKNOWN, look="name"),
            Cell(summary.n, summary.n, "n"),
            _factor(summary.bias),
            Cell(
                "one outcome has none" if summary.spread is None else f"{summary.spread:.2f}",
                summary.spread or 0.0,
                "n",
            ),
            Cell(
                f"{summary.beyond} of {summary.bounded}" if summary.bounded else "no limit recorded",
                summary.beyond,
                "n",
            ),
        ]
        for summary in groups
    ]
    return table(f"Slowdown by {what.lower()}", heads, rows, "") if rows else None


def _factor(value: float | None) -> Cell:
    return Cell(UNKNOWN, -1.0, "n") if value is None else Cell(factor(value), value, "n")


def risks_section(record: TrackRecord | None) -> Markup:
    """Outcomes of changes by their stated performance risk."""
    if record is None:
        return tag("p", UNREAD, class_="soft")
    markup = tag("p", risk_text(record))
    if not record.levels:
        return markup
    rows = [
        [
            Cell(sentences.risk(Risk(level.risk)), level.risk),
            Cell(stated_chance(level), level.chance, "nowrap"),
            Cell(observed_share(level), level.share),
            Cell(risk_assessment(level)),
        ]
        for level in record.levels
    ]
    heads = ("Stated risk", "Stated chance of a rollback", "Rolled back", "Against what was stated")
    return tag("div", markup, tag("p", WENT_BACK, class_="note"), table("Stated risk", heads, rows, ""))


def factor(value: float) -> str:
    """How many times: ``1.40 ×``, ``0.05 ×``."""
    return f"{value:.2f} ×" if value >= 0.1 else f"{value:.2g} ×"


def slowdown_text(record: TrackRecord) -> str:
    """How the slowdowns that were measured compare with the promised ones, in one or two sentences."""
    if not record.ended:
        return f"No change and no shadow test ended {_window_text(record)}, so there is no speed to compare."
    ended = f"Of {sentences.count(record.ended, 'change or shadow test', 'changes and shadow tests')} that ended"
    ended += f" {_window_text(record)}"
    measured, every = len(record.outcomes), record.overall
    if not measured:
        return (
            f"{ended}, none shows how fast the new type is: that takes another type, one variant and enough requests."
        )
    if every.bias is None:
        return f"{ended}, {measured} showed how fast the new type is, and none of them was promised a speed."
    pace = f"It ran {_pace(every.bias)}" if every.n == 1 else f"They ran {_pace(every.bias)} on average"
    text = f"{ended}, {every.n} showed how fast the new type is. {pace}; {bound_text(every)}."
    return f"{text} One outcome tells nothing about the next." if every.spread is None else text


def _pace(ratio: float) -> str:
    """Measured slowdowns over promised ones, as a pace: ``11 % slower than promised``."""
    slower = round(100 * (ratio - 1))
    if not slower:
        return "as fast as promised"
    return f"{abs(slower)} % {'slower' if slower > 0 else 'faster'} than promised"


def bound_text(group: SpeedSummary) -> str:
    """How many outcomes were slower than the bound that was promised."""
    if not group.bounded:
        return "no limit was promised"
    number = group.beyond or "none"
    was = "was" if group.beyond <= 1 else "were"
    text = f"{number} of {group.bounded} {was} slower than the limit that was promised"
    if group.bounded >= CONFORMAL:
        return text
    return f"{text} (it takes {CONFORMAL} outcomes to see whether 97.5 % stay within it)"


def risk_text(record: TrackRecord) -> str:
    """How the stated performance risk compares with what happened, in a few sentences."""
    if not record.changes:
        return f"No change ended {_window_text(record)}."
    ended = f"{sentences.count(record.changes, 'change')} ended {_window_text(record)}"
    if record.brier is None or record.brier_without is None:
        of = "and it does not tell" if record.changes == 1 else "and none tells"
        why = "a change shows that once it is proven, or is rolled back for how it served"
        return f"{ended}, {of} whether a stated risk was right: {why}."
    stood, back = record.rated_changes - record.short_changes, record.short_changes
    it = "it" if back == 1 else "they"
    parts = [f"{stood} proven"] * bool(stood) + [f"{back} rolled back for how {it} served"] * bool(back)
    tell = "tells" if record.rated_changes == 1 else "tell"
    text = f"{ended}; {record.rated_changes} {tell} whether the stated risk was right: {', '.join(parts)}."
    if all(level.missing for level in record.levels):
        least = min(level.missing for level in record.levels)
        return f"{text} That is too few to say anything of the stated risk: at least {least} more are needed."
    score = f"Brier score {record.brier:.3f} (0 is best; calling each harmless: {record.brier_without:.3f})."
    return f"{text} {score}"


def _window_text(record: TrackRecord) -> str:
    return f"between {sentences.day_text(record.since)} and {sentences.day_text(record.until)}"


def stated_chance(level: RiskLevel) -> str:
    """The chance of harm that a risk states: ``0.5 to 2 %``."""
    return f"{100 * level.chance_from:g} to {100 * level.chance:g} %"


def observed_share(level: RiskLevel) -> str:
    """The share that went back, with the range in which the chance lies."""
    share = f"{level.fell_short} of {level.n} ({sentences.percent(level.share)})"
    return f"{share}; at 95 % confidence {sentences.percent(level.low)} to {sentences.percent(level.high)}"


def risk_assessment(level: RiskLevel) -> str:
    """Whether what was seen contradicts what was stated; where it is too little to tell, how much is missing."""
    if level.missing:
        return f"too few to tell: {level.missing} more are needed"
    if level.low > level.chance:
        return "more often than stated"
    if level.high < level.chance_from:
        return "less often than stated"
    if level.chance_from <= level.low and level.high <= level.chance:
        return "as stated"
    return f"not contradicted by {sentences.count(level.n, 'change')}"
