"""The report as one PNG picture. matplotlib is an extra of the package and is loaded by the function that draws."""

import io

from rightsizer.domain.report import Report
from rightsizer.render import report_tables, sentences
from rightsizer.render.charts import LARGEST
from rightsizer.render.pictures import DOTS_PER_INCH, figure_class

COLOURS = ("#0b6e4f", "#8fbfae", "#d9772b")
"""Spent, saved or needed, and wasted: as the page has them."""


def report_png(report: Report) -> bytes:
    """Spend by day, waste by endpoint and the funnel as one PNG picture. InputError where matplotlib is missing."""
    figure = figure_class()(figsize=(9, 12), dpi=DOTS_PER_INCH, layout="constrained")
    days, waste, funnel = figure.subplots(3, 1, height_ratios=(1.1, 1.6, 0.8))
    known = [(number, day) for number, day in enumerate(report.money.days) if day.spent is not None]
    places, spent = [number for number, _ in known], [float(day.spent or 0) for _, day in known]
    saved = [float(day.would_have_cost or 0) - usd for (_, day), usd in zip(known, spent, strict=True)]
    days.bar(places, spent, color=COLOURS[0], label="spent")
    days.bar(places, saved, bottom=spent, color=COLOURS[1], label="saved by changes in force")
    days.set_xlim(-0.6, len(report.money.days) - 0.4)
    days.set_xticks(range(len(report.money.days)), [f"{day.start:%d %b}" for day in report.money.days], rotation=45)
    days.set_ylabel("US dollars a day")
    days.set_title("Spend by day, and what it would have been (days without a bar are not known)")
    days.legend(loc="lower right")
    wasting = sorted((row for row in report.money.rows if row.wasted), key=lambda row: row.wasted or 0)[-LARGEST:]
    names, lost = [row.endpoint for row in wasting], [float(row.wasted or 0) for row in wasting]
    needed = [float(row.spend or 0) - usd for row, usd in zip(wasting, lost, strict=True)]
    waste.barh(range(len(names)), needed, color=COLOURS[1], label="needed")
    waste.barh(range(len(names)), lost, left=needed, color=COLOURS[2], label="wasted")
    waste.set_yticks(range(len(names)), names, parse_math=False)
    waste.set_xlabel("US dollars a month")
    waste.set_title(
        f"{sentences.money(report.totals.wasted)} of {sentences.money(report.totals.spend)} a month is wasted"
    )
    waste.legend()
    stages = list(reversed(report_tables.funnel(report.totals)))
    drawn = funnel.barh([name for name, _ in stages], [float(usd) for _, usd in stages], color=COLOURS[0])
    funnel.bar_label(drawn, [sentences.exact_money(usd) for _, usd in stages], padding=3, parse_math=False)
    funnel.margins(x=0.2)
    funnel.set_title("Savings, US dollars a month")
    figure.suptitle(report_tables.lead_text(report), wrap=True, parse_math=False)
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": "rightsizer"})
    return made.getvalue()
