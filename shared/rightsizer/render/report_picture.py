"""The report as one PNG picture. matplotlib is an extra of the package and is loaded by the function that draws.

Two signs of the dollar in a text are a formula to matplotlib, so every text of ours is drawn with `parse_math` off.
"""

import io
from typing import Any

from rightsizer.domain.report import Report
from rightsizer.render import report_tables, sentences
from rightsizer.render.charts import LARGEST
from rightsizer.render.pictures import DOTS_PER_INCH, figure_class

COLOURS = ("#0b6e4f", "#8fbfae", "#d9772b")
"""Spent, saved or needed, and wasted: as the page has them."""
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "frameon": False, "borderaxespad": 0.1}
"""Where a legend stands: above its panel, where it covers no bar."""


def report_png(report: Report) -> bytes:
    """Spend by day, waste by endpoint and the funnel as one PNG picture. InputError where matplotlib is missing."""
    made = io.BytesIO()
    report_figure(report).savefig(made, format="png", metadata={"Software": "rightsizer"})
    return made.getvalue()


def report_figure(report: Report) -> Any:
    """The picture before it is written. InputError where matplotlib is missing."""
    figure = figure_class()(figsize=(9, 12), dpi=DOTS_PER_INCH, layout="constrained")
    days, waste, funnel = figure.subplots(3, 1, height_ratios=(1.1, 1.6, 0.8))
    _draw_days(days, report)
    _draw_waste(waste, report)
    _draw_funnel(funnel, report)
    for axis in (days.yaxis, waste.xaxis, funnel.xaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    window = f"{sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    lead = f"{report_tables.lead_text(report)}\n{window} · account {report.account} · {report.region}"
    figure.suptitle(lead, wrap=True, parse_math=False)
    return figure


def _draw_days(axes: Any, report: Report) -> None:
    known = [(number, day) for number, day in enumerate(report.money.days) if day.spent is not None]
    places, spent = [number for number, _ in known], [float(day.spent or 0) for _, day in known]
    saved = [float(day.would_have_cost or 0) - usd for (_, day), usd in zip(known, spent, strict=True)]
    axes.bar(places, spent, color=COLOURS[0], label="spent")
    axes.bar(places, saved, bottom=spent, color=COLOURS[1], label="saved by changes in force")
    for number, day in enumerate(report.money.days):
        if day.spent is None:
            axes.axvspan(number - 0.4, number + 0.4, facecolor="#f2f2f2", hatch="///", edgecolor="#cfcfcf", linewidth=0)
    axes.set_xlim(-0.6, len(report.money.days) - 0.4)
    axes.set_xticks(range(len(report.money.days)), [f"{day.start:%d %b}" for day in report.money.days], rotation=45)
    axes.set_ylabel("US dollars a day")
    axes.set_title("Spend by day (hatched: not known)", loc="left")
    axes.legend(**ABOVE)


def _draw_waste(axes: Any, report: Report) -> None:
    rows = sorted((row for row in report.money.rows if row.wasted), key=lambda row: row.wasted or 0)[-LARGEST:]
    names, lost = [row.endpoint for row in rows], [float(row.wasted or 0) for row in rows]
    needed = [float(row.spend or 0) - usd for row, usd in zip(rows, lost, strict=True)]
    axes.barh(range(len(names)), needed, color=COLOURS[1], label="needed")
    axes.barh(range(len(names)), lost, left=needed, color=COLOURS[2], label="wasted")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_xlabel("US dollars a month")
    whole = f"{sentences.money(report.totals.wasted)} of {sentences.money(report.totals.spend)} a month is wasted"
    axes.set_title(whole, loc="left", parse_math=False)
    axes.legend(**ABOVE)


def _draw_funnel(axes: Any, report: Report) -> None:
    stages = list(reversed(report_tables.funnel(report.totals)))
    drawn = axes.barh([name for name, _ in stages], [float(usd) for _, usd in stages], color=COLOURS[0])
    axes.bar_label(drawn, [sentences.exact_money(usd) for _, usd in stages], padding=3, parse_math=False)
    axes.margins(x=0.2)
    axes.set_title("Savings, from found to proven, US dollars a month", loc="left")
