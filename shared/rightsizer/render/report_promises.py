"""The report's parts on what was promised and what came of it: dollars, slowdowns, and the stated performance risk."""

from collections.abc import Sequence

from rightsizer.domain.option import Risk
from rightsizer.domain.report import Report
from rightsizer.domain.track_record import SpeedOutcome, SpeedSummary, TrackRecord
from rightsizer.render import promise_words, sentences
from rightsizer.render import report_tables as report_parts
from rightsizer.render.html import Cell, badge, table
from rightsizer.render.markup import Markup, join, tag

UNKNOWN = "not known"
HOW = (
    "A slowdown of 1.2 × says that a request takes 1.2 times the GPU seconds that it took on the old type. Two are"
    " promised: the most likely one, and a limit. Latency is the mean after the change over the mean before it; in a"
    " shadow test, the shadow's over production's."
)
NOT_RECONCILED = "not reconciled"
"""Both figures are our prices times hours: only the bill tells how wrong an estimate was, and no bill was read."""
WENT_BACK = (
    "Rolled back: for latency, failed requests, memory or an alarm, or because the model did not start; also where"
    " the rollback failed, and where a later change had to restore what ran before. Changes that are not proven, or"
    " were rolled back for lack of capacity or because somebody asked, say nothing about the risk."
)


def savings(told: Report) -> Markup:
    """Dollars, by change."""
    rows = [
        [
            Cell(tag("b", one.endpoint), one.endpoint, "nowrap"),
            Cell(one.change_id, look="nowrap"),
            Cell(sentences.money(one.promised), float(one.promised), "n"),
            Cell(sentences.money(one.realised), float(one.realised), "n"),
            Cell(NOT_RECONCILED),
        ]
        for one in report_parts.kept(told)
    ]
    heads = ("Endpoint", "Change", "Promised for the hours", "Saved by price and hours", "Against the bill")
    return table("Promised and kept", heads, rows, "No change has been billed in this window yet.")


def slowdowns(record: TrackRecord | None) -> Markup:
    """Slowdowns: in a sentence, by framework, by endpoint, and by change or test."""
    if record is None:
        return tag("p", promise_words.UNREAD, class_="soft")
    said = tag("p", promise_words.slowdown(record))
    if not record.outcomes:
        return said
    groups = [_groups("Framework", record.frameworks), _groups("Endpoint", record.endpoints)]
    listed = [part for part in groups if part is not None]
    each = table("Slowdown by change", EACH, [_outcome(one) for one in record.outcomes], "")
    spaced = [tag("div", part, style="margin-top:12px") for part in (*listed, each)]
    return tag("div", said, tag("p", HOW, class_="note"), *spaced)


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


def _outcome(one: SpeedOutcome) -> list[Cell]:
    beyond = tag("div", "beyond the limit", class_="note") if one.beyond else None
    return [
        Cell(join(tag("b", one.endpoint), tag("div", one.change_id, class_="note")), one.endpoint, "name"),
        Cell(badge(promise_words.ENDED[one.ended]), promise_words.ENDED[one.ended]),
        Cell(join(tag("div", f"from {one.from_type}", class_="note"), one.to_type), one.to_type, "nowrap"),
        Cell(one.framework or UNKNOWN),
        _factor(one.promised),
        _factor(one.bound),
        Cell(join(promise_words.factor(one.measured), beyond), one.measured, "n"),
        Cell("not defined" if one.ratio is None else promise_words.factor(one.ratio), one.ratio or -1.0, "n"),
        _factor(one.latency_ratio),
    ]


def _groups(what: str, groups: Sequence[SpeedSummary]) -> Markup | None:
    heads = (what, "Outcomes", "Measured over promised", "Spread, a factor of", "Beyond the limit")
    rows = [
        [
            Cell(one.name or UNKNOWN, look="name"),
            Cell(one.n, one.n, "n"),
            _factor(one.bias),
            Cell("one outcome has none" if one.spread is None else f"{one.spread:.2f}", one.spread or 0.0, "n"),
            Cell(f"{one.beyond} of {one.bounded}" if one.bounded else "no limit recorded", one.beyond, "n"),
        ]
        for one in groups
    ]
    return table(f"Slowdown by {what.lower()}", heads, rows, "") if rows else None


def _factor(value: float | None) -> Cell:
    return Cell(UNKNOWN, -1.0, "n") if value is None else Cell(promise_words.factor(value), value, "n")


def risks(record: TrackRecord | None) -> Markup:
    """What became of changes by the performance risk that was stated of them."""
    if record is None:
        return tag("p", promise_words.UNREAD, class_="soft")
    said = tag("p", promise_words.risk(record))
    if not record.levels:
        return said
    rows = [
        [
            Cell(sentences.risk(Risk(level.risk)), level.risk),
            Cell(promise_words.stated(level), level.chance, "nowrap"),
            Cell(promise_words.seen(level), level.share),
            Cell(promise_words.judged(level)),
        ]
        for level in record.levels
    ]
    heads = ("Stated risk", "Stated chance of a rollback", "Rolled back", "Against what was stated")
    return tag("div", said, tag("p", WENT_BACK, class_="note"), table("Stated risk", heads, rows, ""))
