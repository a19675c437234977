"""Two weeks as a small picture, whose colours come from the page's style sheet, or in one line of text."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise

from rightsizer.render.html import Markup, join, tag

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
