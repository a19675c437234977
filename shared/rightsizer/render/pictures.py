"""Charts as PNG in one style: two weeks of a proposal, and the report. The function that draws loads matplotlib."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.option import OptionKind, fleet
from rightsizer.domain.reason import shorten
from rightsizer.domain.recommendation import Recommendation, WeekSignals
from rightsizer.errors import InputError
from rightsizer.render import sentences

EXTRA = "a chart needs matplotlib, which is not installed: pip install 'rightsizer[pictures]', or leave --png out"
DOTS_PER_INCH = 150
PAPER, INK, SOFT = "#ffffff", "#1d1c1d", "#616061"
TODAY, THEN, LIMIT = "#1264a3", "#b35900", "#c0143c"
"""Today's lines, those of the candidate, and limits: told apart in greys and by the colour-blind, since each is named
and drawn in a way of its own (filled, thin, dashed)."""
PHONE_INCHES, PHONE_DOTS = (7.2, 8.4), 100
"""Shown at half of its 720 points on a phone of 390 points: letters of 20 points are then 10 high."""
LETTERS = 17
HATCHED = 3
"""Hours without data from which a gap is hatched; a shorter one is a break in the line."""
ROOM = {"left": 0.14, "right": 0.945, "bottom": 0.06, "top": 0.832, "hspace": 0.34}
"""Parts of the picture around and between its panels: given, since finding them takes half of the drawing's time."""
WIDEST = 62
"""Letters of a line below the title that fit."""
FEW = 12
"""Points of a line up to which each is marked."""
AT_RIGHT, PLAIN = 3.0, 1e4
"""Part of the widest value above which a name stands at the left; a value below which digits need no commas."""


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


@dataclass(frozen=True, slots=True)
class Panel:
    """One signal over the two weeks, an hour each; None is a gap, and is drawn as one."""

    title: str
    unit: str
    """Behind the numbers of the axis: ``%``, ``GiB``, ``s``."""
    today: Sequence[float | None]
    then: Sequence[float | None] = ()
    """The same hours replayed on the candidate; () where nothing was replayed."""
    then_name: str = ""
    limit: float | None = None
    """What the candidate can give, or the objective."""
    limit_name: str = ""
    missing: str = "no data"
    """What is said where no hour is known."""


@dataclass(frozen=True, slots=True)
class TwoWeeks:
    """The picture of a proposal: its signals one below the other, on one axis of time."""

    title: str
    subtitle: str
    start: datetime
    """Of the first hour, UTC."""
    panels: Sequence[Panel]


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
    widest = max((x for line in chart.lines for x, _ in line.points), default=1.0)
    for x, y, name in chart.marks:
        right = x > widest / AT_RIGHT  # a name there stands before its place, or it would leave the picture
        axes.plot([x], [y], marker="o", markersize=9, markerfacecolor="none", markeredgecolor=INK, linestyle="none")
        place = {"xytext": (-6, 8), "ha": "right"} if right else {"xytext": (6, 8), "ha": "left"}
        axes.annotate(name, (x, y), textcoords="offset points", fontsize="small", parse_math=False, **place)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}" if value < PLAIN else f"{value:,.0f}")
    axes.set_title(chart.title, parse_math=False)
    axes.set_xlabel(chart.horizontal, loc="left")  # the foot stands at the right
    axes.set_ylabel(chart.vertical)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.text(0.99, 0.005, chart.foot, ha="right", va="bottom", fontsize="x-small")
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": "rightsizer"})
    return made.getvalue()


def two_weeks_png(picture: TwoWeeks) -> bytes:
    """The picture of a proposal as PNG. InputError names the extra to install where matplotlib is missing."""
    figure = figure_class()(figsize=PHONE_INCHES, dpi=PHONE_DOTS, facecolor=PAPER)
    every = figure.subplots(len(picture.panels), 1, sharex=True, gridspec_kw=ROOM)
    axes = list(every) if len(picture.panels) > 1 else [every]
    hours = max(len(panel.today) for panel in picture.panels)
    for panel, axis in zip(picture.panels, axes, strict=True):
        _draw_panel(axis, panel, hours)
    days = range(0, hours + 1, 48 if hours > 200 else 24)
    axes[-1].set_xticks(list(days), [_day(picture.start, at) for at in days])
    axes[-1].tick_params(axis="x", pad=11, labelsize=LETTERS - 2)
    figure.text(0.02, 0.985, picture.title, ha="left", va="top", fontsize=LETTERS + 3, fontweight="bold", color=INK)
    figure.text(0.02, 0.942, picture.subtitle, ha="left", va="top", fontsize=LETTERS - 1, color=SOFT)
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": "rightsizer"}, facecolor=PAPER)
    return made.getvalue()


def _draw_panel(axis: Any, panel: Panel, hours: int) -> None:
    nothing = float("nan")
    today = [nothing if one is None else one for one in panel.today]
    known = [one for one in panel.today if one is not None]
    axis.fill_between(range(len(today)), today, step="mid", alpha=0.18, color=TODAY, linewidth=0)
    axis.plot(range(len(today)), today, color=TODAY, linewidth=1.6, drawstyle="steps-mid", label="today")
    for begin, end in gaps(panel.today):
        if end - begin + 1 < HATCHED:
            continue
        axis.axvspan(begin - 0.5, end + 0.5, facecolor="#e8e8e8", hatch="///", edgecolor="#cfcfcf", linewidth=0)
    if panel.then:
        then = [nothing if one is None else one for one in panel.then]
        axis.plot(range(len(then)), then, color=THEN, linewidth=1.1, alpha=0.95, label=panel.then_name)
        known += [one for one in panel.then if one is not None]
    if panel.limit is not None:
        axis.axhline(panel.limit, color=LIMIT, linewidth=2.0, linestyle=(0, (5, 3)), label=panel.limit_name)
        known.append(panel.limit)
    top = max(known, default=1.0) or 1.0
    axis.set_xlim(-0.5, hours - 0.5)
    axis.set_ylim(0, top * 1.12)
    text = panel.title if any(one is not None for one in panel.today) else f"{panel.title}: {panel.missing}"
    axis.set_title(text, loc="left", fontsize=LETTERS, color=INK, pad=6, y=1.0)
    for side in (axis.xaxis, axis.yaxis):
        side.set_label_coords(0.5, 0.0)  # no axis has a label, and looking for its place takes time
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g} {panel.unit}")
    axis.locator_params(axis="y", nbins=4)
    axis.tick_params(labelsize=LETTERS - 1, colors=INK, length=0)
    axis.grid(visible=True, axis="y", color="#e3e3e3", linewidth=0.8)
    axis.set_axisbelow(True)
    for side in axis.spines.values():
        side.set_visible(False)
    handles, names = axis.get_legend_handles_labels()
    if len(names) > 1:
        place = {"loc": "lower right", "bbox_to_anchor": (1.01, 0.97), "borderaxespad": 0.2, "handlelength": 1.4}
        axis.legend(handles, names, fontsize=LETTERS - 1.5, frameon=False, ncols=len(names), columnspacing=0.9, **place)


def gaps(values: Sequence[float | None]) -> list[tuple[int, int]]:
    """First and last hour of each stretch without data."""
    found: list[tuple[int, int]] = []
    for at, value in enumerate(values):
        if value is not None:
            continue
        if found and found[-1][1] == at - 1:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


def _day(start: datetime, hours: int) -> str:
    at = start + timedelta(hours=hours)
    return f"{at:%a} {at.day}"


def draw(recommendation: Recommendation, week_signals: WeekSignals) -> bytes:
    """The picture as PNG. InputError names the extra to install where matplotlib is missing."""
    return two_weeks_png(two_weeks(recommendation, week_signals))


def two_weeks(recommendation: Recommendation, week_signals: WeekSignals) -> TwoWeeks:
    """The panels of the picture, with what their limits are called."""
    option = recommendation.chosen_option
    moves = option is not None and option.target.instance_type != recommendation.instance_type
    end = week_signals.start + timedelta(hours=len(week_signals.gpu_percent))
    days = f"{week_signals.start.day} {week_signals.start:%b} to {end.day} {end:%b}, UTC · hatched: no data"
    is_moved = option is not None and option.kind is not OptionKind.DELETE
    now = sentences.today(recommendation)
    change = f"today {now}, then {fleet(option.target)}" if option is not None and is_moved else f"today {now}"
    objective = recommendation.replay.objective_s if recommendation.replay is not None else None
    named = f"objective {sentences.seconds(objective)}" if objective is not None else ""
    memory = week_signals.then_gib if moves else None
    return TwoWeeks(
        shorten(recommendation.ref.name, 44),
        f"{shorten(change.replace('ml.', ''), WIDEST)}\n{days}",
        week_signals.start,
        (
            Panel("GPU use", "%", week_signals.gpu_percent, week_signals.then_percent, "then", 100.0, "full"),
            Panel(
                "GPU memory", "GiB", week_signals.gpu_gib, (), "", memory, f"{memory:.0f} GiB then" if memory else ""
            ),
            Panel("p95 latency", "s", week_signals.p95_s, (), "", objective, named, "no requests"),
        ),
    )
