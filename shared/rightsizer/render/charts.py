"""Charts as SVG in the page's own colours, or as a line of text: two weeks of an endpoint, and the report."""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby, pairwise

from rightsizer.domain.money import DayMoney, MoneyRow, Totals, WeekHour
from rightsizer.domain.report import SHOWN
from rightsizer.render import report_tables, sentences
from rightsizer.render.html import Cell, HtmlNode, Markup, bars, join, table, tag

MOST_POINTS = 336
"""Hours of a fortnight; longer courses are folded to their highest values."""
BARS = "▁▂▃▄▅▆▇█"
GAP = "·"


def line_chart(values: Sequence[float | None], label: str, width: int = 640, height: int = 120) -> Markup:
    """A filled course from zero to its highest value, with a mark for each day. Gaps stay gaps."""
    return _course(values, label, width, height, lines=())


def load_chart(values: Sequence[float | None], label: str, width: int = 640, height: int = 120) -> Markup:
    """A course of shares of capacity, with lines at 80 % and 100 %."""
    return _course(values, label, width, height, lines=(0.8, 1.0))


def _course(values: Sequence[float | None], label: str, width: int, height: int, lines: tuple[float, ...]) -> Markup:
    shown = fold_values(values, MOST_POINTS)
    known = [value for value in shown if math.isfinite(value)]
    top = max([*known, *(line * 1.05 for line in lines)], default=0.0) or 1.0
    step = width / max(1, len(shown) - 1)
    points = [(index * step, _level(value, top, height)) for index, value in enumerate(shown)]
    days = max(1, round(len(values) / 24))
    grid = [
        tag("line", x1=_number(width * day / days), x2=_number(width * day / days), y1=0, y2=height - 4, class_="grid")
        for day in range(1, days)
    ]
    marks = [
        tag("line", x1=0, x2=width, y1=_number(y), y2=_number(y), class_="limit")
        for y in (height - 4 - (height - 10) * line / top for line in lines)
    ]
    drawn = [_stretch(stretch, height - 4) for stretch in _stretches(points)]
    return _picture(label, width, height, *grid, *drawn, *marks)


def _level(value: float, top: float, height: int) -> float:
    """How far down a value is drawn; what is not finite stays so, and is a gap."""
    return height - 4 - (height - 10) * max(0.0, value / top) if math.isfinite(value) else math.nan


def _stretches(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The runs of known points; NaN separates them."""
    runs = groupby(points, key=lambda point: math.isfinite(point[1]))
    return [list(run) for known, run in runs if known]


def _stretch(points: Sequence[tuple[float, float]], floor: int) -> Markup:
    line = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
    area = f"{_number(points[0][0])},{floor} {line} {_number(points[-1][0])},{floor}"
    return join(tag("polyline", points=area, class_="area"), tag("polyline", points=line, class_="line"))


def _picture(label: str, width: int, height: int, *drawn: Markup) -> Markup:
    """The label is what a screen reader says, and what the pointer shows."""
    return tag(
        "svg",
        tag("title", label),
        *drawn,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
        preserveAspectRatio="xMinYMid meet",
    )


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def fold_values(values: Sequence[float | None], width: int) -> list[float]:
    """At most `width` values: the highest of each stretch, so that no peak is hidden; NaN where all are unknown."""
    known = [math.nan if value is None else value for value in values]
    if len(known) <= width:
        return known
    edges = [round(i * len(known) / width) for i in range(width + 1)]
    return [_highest(known[a:b]) for a, b in pairwise(edges)]


def sparkline(values: Sequence[float | None], width: int = 56) -> str:
    """The values as bars from zero to their highest; a dot marks what is unknown. Empty without any value."""
    shown = fold_values(values, width)
    top = max((v for v in shown if math.isfinite(v)), default=0.0)
    return "".join(_bar(value, top) for value in shown)


def _bar(value: float, top: float) -> str:
    if not math.isfinite(value):
        return GAP
    height = min(1.0, max(0.0, value / top)) if top > 0 else 0.0
    return BARS[max(0, math.ceil(len(BARS) * height) - 1)]


def highest_value(values: Sequence[float | None]) -> float:
    """The highest value that is known; 0 where none is."""
    return max((v for v in values if v is not None and math.isfinite(v)), default=0.0)


def _highest(values: Sequence[float]) -> float:
    return max((v for v in values if math.isfinite(v)), default=math.nan)


LARGEST = 12
"""Endpoints that are drawn."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTS = (
    ("utilised", "works", "used"),
    ("reserve", "in reserve", "kept"),
    ("wasted", "wasted", "lost"),
    ("unsplit", "needed, use not known", "dim"),
)
"""Parts of the spend: the field, its name, and its look."""
METHOD = (
    "Wasted: what the recommended smaller option would not cost. Works: the rest times its mean load, which is that"
    " of the look-back run again on that option, or else requests of the mean hour over those of the busiest one."
    " In reserve: needed for peaks and failures."
)


def figure(caption: str, drawn: HtmlNode, behind: HtmlNode, note: str = "") -> Markup:
    """A picture with its caption, and the table behind it, folded."""
    markup = tag("figcaption", caption, tag("div", note, class_="note") if note else None)
    folded = tag("details", tag("summary", "The figures"), behind)
    return tag("figure", markup, drawn, folded, class_="panel")


def spend_by_day(days: Sequence[DayMoney], endpoints: int) -> Markup:
    """Spend of each day of the window, and above it what our changes saved."""
    known = [day for day in days if day.spent is not None]
    if not known:
        return tag("p", "No day of this window is known for long enough to be drawn.", class_="soft")
    top = max(day.would_have_cost or Decimal(0) for day in known) or Decimal(1)
    step = max(1, round(len(days) / 7))
    drawn = tag(
        "div",
        tag("div", f"{sentences.money(top)} a day", class_="note"),
        tag("div", *(_day(day, top, number % step == 0) for number, day in enumerate(days)), class_="days"),
        role="img",
        aria_label=f"Spend by day, from zero to {sentences.money(top)} a day",
    )
    rows = [
        [
            Cell(sentences.day_text(day.start), day.start.timestamp(), "nowrap"),
            _usd(day.spent),
            _usd(day.would_have_cost),
            Cell(day.endpoints, day.endpoints, "n"),
        ]
        for day in days
    ]
    listed = table("Spend by day", ("Day", "Spent", "Without our changes", "Endpoints known"), rows, "")
    missing = len(days) - len(known)
    gaps = (
        f" {sentences.count(missing, 'day')} hatched: too few endpoints were evaluated for it, or it is not over."
        if missing
        else ""
    )
    most = max(day.endpoints for day in known)
    if most < endpoints:
        gaps += (
            f" Of {sentences.count(endpoints, 'endpoint')} at most {most} are known of a day; the others are not in it."
        )
    legend = _legend([("used", "spent"), ("saved", "saved by changes in force")])
    return figure("Spend by day, and what it would have been", join(legend, drawn), listed, f"By our prices.{gaps}")


def _day(day: DayMoney, top: Decimal, is_labelled: bool) -> Markup:
    label = tag("span", f"{day.start.day}", class_="tick" if is_labelled else "tick quiet")
    if day.spent is None or day.would_have_cost is None:
        return tag(
            "div",
            tag("i", class_="gap", style="height:100%"),
            label,
            title=f"{day.start:%d %b}: {report_tables.UNKNOWN}",
        )
    saved = day.would_have_cost - day.spent
    text = f"{day.start:%d %b}: {sentences.money(day.spent)} spent, {sentences.money(saved)} saved"
    parts = [tag("i", class_=look, style=f"height:{_share(usd, top)}%") for look, usd in _stack(saved, day.spent)]
    return tag("div", *parts, label, title=text)


def _stack(saved: Decimal, spent: Decimal) -> list[tuple[str, Decimal]]:
    return [("saved", saved), ("used", spent)] if saved else [("used", spent)]


def waste_by_endpoint(rows: Sequence[MoneyRow], totals: Totals) -> Markup:
    """The endpoints with the largest waste, and the parts of their spend."""
    wasting = sorted((row for row in rows if row.wasted), key=lambda row: (-(row.wasted or Decimal(0)), row.endpoint))
    shown = wasting[:LARGEST]
    top = max((row.spend or Decimal(0) for row in shown), default=Decimal(0)) or Decimal(1)
    drawn = [
        join(
            tag("span", row.endpoint),
            tag("div", *(_part(row, field, name, look, top) for field, name, look in PARTS), class_="stack"),
            tag("b", sentences.money(row.wasted or Decimal(0))),
        )
        for row in shown
    ]
    listed = [
        [
            Cell(join(tag("b", row.endpoint), tag("div", row.owner, class_="note")), row.endpoint, "name"),
            _usd(row.spend),
            _usd(row.utilised),
            _usd(row.reserve),
            _usd(row.wasted),
        ]
        for row in sorted(rows, key=lambda row: -(row.wasted or Decimal(0)))[:SHOWN]
        if row.judged
    ]
    behind = table("Waste by endpoint", ("Endpoint", "Spend a month", "Works", "In reserve", "Wasted"), listed, "")
    if not shown:
        return tag("p", "No endpoint wastes anything that we could name.", class_="soft")
    legend = _legend([(look, name) for field, name, look in PARTS if getattr(totals, field)])
    more = f" The {len(shown)} largest of {len(wasting)}." if len(wasting) > len(shown) else ""
    caption = f"{sentences.money(totals.wasted)} of {sentences.money(totals.spend)} a month is wasted"
    picture = tag("div", *drawn, class_="bars wide", role="img", aria_label=caption)
    behind = join(tag("p", METHOD, class_="note"), behind)
    return figure(caption, join(legend, picture), behind, f"A smaller option would do without the wasted part.{more}")


def _part(row: MoneyRow, field: str, name: str, look: str, top: Decimal) -> Markup | None:
    spend, wasted = row.spend or Decimal(0), row.wasted or Decimal(0)
    if field == "unsplit":
        usd = spend - wasted if row.utilised is None else Decimal(0)
    else:
        usd = getattr(row, field) or Decimal(0)
    return (
        tag("i", class_=look, style=f"width:{_share(usd, top)}%", title=f"{name}: {sentences.money(usd)}")
        if usd
        else None
    )


def hours_of_week(week: Sequence[WeekHour]) -> Markup:
    """How busy the paid capacity is, by hour of the week."""
    if not week:
        return tag("p", "Requests by hour are not known of any priced endpoint.", class_="soft")
    cells: list[HtmlNode] = [tag("span"), *(tag("span", hour if hour % 6 == 0 else "") for hour in range(24))]
    for day, name in enumerate(DAYS):
        cells.append(tag("span", name))
        cells += [_hour(one) for one in week[24 * day : 24 * day + 24]]
    picture = tag("div", *cells, class_="week", role="img", aria_label="Load by hour of the week")
    rows = [
        [Cell(name, day), *(Cell(_load(one), one.load if one.load is not None else -1.0, "n") for one in hours)]
        for day, name in enumerate(DAYS)
        for hours in [week[24 * day : 24 * day + 24 : 3]]
    ]
    heads = ("Day", *(f"{hour:02d}:00" for hour in range(0, 24, 3)))
    note = "Requests against each endpoint's busiest hour, weighted by spend; UTC. Pale hours are paid for too."
    legend = _legend([("heat0", "idle"), ("heat1", "busiest hour")])
    listed = table("Load by hour of the week", heads, rows, "")
    return figure("When the capacity works", join(legend, picture), listed, note)


def _hour(hour: WeekHour) -> Markup:
    text = f"{DAYS[hour.weekday]} {hour.hour:02d}:00 UTC: {_load(hour)}"
    if hour.load is None:
        return tag("i", class_="gap", title=text)
    return tag("i", style=f"--load:{100 * hour.load:.0f}%", title=text)


def _load(hour: WeekHour) -> str:
    return report_tables.UNKNOWN if hour.load is None else sentences.percent(hour.load)


def funnel(totals: Totals) -> Markup:
    """The stages of the savings, each a part of the one before."""
    steps = report_tables.funnel(totals)
    drawn = bars([(name, float(usd), sentences.exact_money(usd)) for name, usd in steps], "Savings by stage")
    ends = (
        ("waits for an answer", totals.waiting),
        ("could still be saved", totals.open),
        ("declined", totals.declined),
        ("rolled back", totals.went_back),
    )
    rows = [[Cell(name), _usd(usd)] for name, usd in (*steps, *ends)]
    note = "US dollars a month, at the end of the window; each stage is a part of the one before."
    behind = table("Savings by stage", ("Stage", "A month"), rows, "")
    return figure("Savings, from found to proven", drawn, behind, note)


def _legend(parts: Sequence[tuple[str, str]]) -> Markup:
    return tag("p", *(tag("span", tag("i", class_=f"key {look}"), name) for look, name in parts), class_="legend")


def _usd(usd: Decimal | None) -> Cell:
    return Cell(report_tables.UNKNOWN, -1.0, "n") if usd is None else Cell(sentences.exact_money(usd), float(usd), "n")


def _share(usd: Decimal, top: Decimal) -> str:
    return f"{max(0.0, min(100.0, float(100 * usd / top))):.1f}"
