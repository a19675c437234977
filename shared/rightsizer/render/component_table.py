"""The report's table of inference components: what each costs and whether it has copies too many."""

from collections.abc import Sequence

from rightsizer.domain.recommendation import ComponentFinding, Recommendation
from rightsizer.domain.report import SHOWN
from rightsizer.render import sentences
from rightsizer.render.html import Cell, Markup, badge, table, tag

TITLE = "Inference components"
HEADS = ("Endpoint", "Component", "Finding", "Copies", "Needed", "Part of the price", "Why")


def section_content(recommendations: Sequence[Recommendation]) -> Markup | None:
    """Components of all endpoints, the dearest first; None where no endpoint has any."""
    rows = sorted(
        ((recommendation, finding) for recommendation in recommendations for finding in recommendation.components),
        key=lambda row: (-(row[1].usd_per_month or 0), row[0].ref.name, row[1].name),
    )
    if not rows:
        return None
    packed = [f"{one.ref.name}: {sentences.packing_sentence(one.packing)}." for one in recommendations if one.packing]
    text = "A month, by what the copies reserve of their instances. " + " ".join(packed[:SHOWN])
    cells = [_row(recommendation, finding) for recommendation, finding in rows[:SHOWN]]
    return tag("div", tag("p", text, class_="note"), table(TITLE, HEADS, cells, ""))


def _row(recommendation: Recommendation, finding: ComponentFinding) -> list[Cell]:
    usd = finding.usd_per_month
    cost = "of its base" if finding.base else "not known" if usd is None else sentences.exact_money(usd)
    return [
        Cell(recommendation.ref.name, recommendation.ref.name),
        Cell(finding.name, finding.name),
        Cell(badge(sentences.FINDINGS[finding.finding], "")),
        Cell("not read" if finding.copies is None else f"{finding.copies}", finding.copies or 0, "n"),
        Cell("" if finding.needed is None else f"{finding.needed}", finding.needed or 0, "n"),
        Cell(cost, float(usd or 0), "n"),
        Cell(finding.reason.sentence, look="why"),
    ]
