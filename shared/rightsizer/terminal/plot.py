"""A course of hours as bars on a terminal: days below, the highest value at the left, unknown hours as gaps.

Written here and not by a library: rich, which draws everything else, has no plot, and it takes only these lines.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.text import Text

from rightsizer.render.charts import GAP, fold_values

EIGHTHS = " ▁▂▃▄▅▆▇█"
NARROWEST, WIDEST = 28, 112
"""Columns of bars; a fortnight on 112 has three hours in a column, the highest of which is drawn."""
LABEL = 8
"""Columns of the scale."""
LEGEND_H = 24 * 2
"""Hours between two days that are named."""


def plot(values: Sequence[float | None], start: datetime, columns: int, *, unit: str, rows: int = 5) -> list[Text]:
    """Lines of a chart of hourly values from `start` on; none where no value is known.

    `columns`: of the terminal. The scale begins at zero.
    """
    width = max(NARROWEST, min(WIDEST, columns - LABEL - 4, len(values)))
    shown = fold_values(values, width)
    top = max((value for value in shown if math.isfinite(value)), default=0.0)
    if not shown or not any(math.isfinite(value) for value in shown):
        return []
    drawn = []
    for row in range(rows - 1, -1, -1):
        label = f"{scale_text(top)}{unit}" if row == rows - 1 else "0" if row == 0 else ""
        bars = "".join(_cell(value, top, row, rows) for value in shown)
        drawn.append(Text.assemble((f"{label:>{LABEL}} ", "dim"), (bars, "cyan")))
    hours = len(values) / len(shown)
    return [*drawn, Text(" " * (LABEL + 1) + _days(start, len(shown), hours), style="dim")]


def _cell(value: float, top: float, row: int, rows: int) -> str:
    if not math.isfinite(value):
        return GAP if row == 0 else " "
    eighths = math.ceil(value / top * rows * 8) if top > 0 else 0
    return EIGHTHS[max(0, min(8, eighths - 8 * row))]


def _days(start: datetime, width: int, hours: float) -> str:
    """The names of every second day, below its first hour."""
    line = [" "] * (width + 8)
    for number in range(0, int(width * hours), LEGEND_H):
        name = f"{start + timedelta(hours=number):%a %-d}"
        at = round(number / hours)
        if at + len(name) <= width + 2:
            line[at : at + len(name)] = name
    return "".join(line).rstrip()


def scale_text(top: float) -> str:
    """The highest value in at most three figures."""
    if top >= 1_000_000:
        return f"{top / 1_000_000:.3g}M"
    return f"{top / 1000:.3g}k" if top >= 1000 else f"{top:.3g}"
