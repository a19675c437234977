"""Charts as PNG. matplotlib is an extra of the package and is loaded by the function that draws."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rightsizer.errors import InputError

EXTRA = "a chart needs matplotlib, which is not installed: pip install 'rightsizer[pictures]', or leave --png out"
DOTS_PER_INCH = 150
FEW = 12
"""Points of a line up to which each is marked."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; points that are not known are left out."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over two logarithmic axes, and where one crosses another."""

    title: str
    horizontal: str
    vertical: str
    lines: Sequence[Line]
    marks: Sequence[tuple[float, float, str]] = ()
    """Places that are pointed at, with what they are."""
    foot: str = ""


def figure_class() -> Any:
    """The class of matplotlib that draws. InputError names the extra to install where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(EXTRA) from None
    return Figure


def line_chart_png(chart: LineChart) -> bytes:
    """The chart as a PNG picture. InputError names the extra to install where matplotlib is missing."""
    figure = figure_class()(figsize=(9, 5.5), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    for line in chart.lines:
        mark = "o" if len(line.points) <= FEW else ""
        axes.plot([x for x, _ in line.points], [y for _, y in line.points], marker=mark, label=line.name)
    for x, y, name in chart.marks:
        axes.plot([x], [y], marker="o", color="black", linestyle="none")
        axes.annotate(name, (x, y), xytext=(6, 8), textcoords="offset points", fontsize="small")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(chart.title)
    axes.set_xlabel(chart.horizontal)
    axes.set_ylabel(chart.vertical)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.text(0.99, 0.005, chart.foot, ha="right", va="bottom", fontsize="x-small")
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": "rightsizer"})
    return made.getvalue()
