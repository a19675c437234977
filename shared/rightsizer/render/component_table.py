"""The report's table of inference components: what each costs and whether it has copies too many."""

from collections.abc import Sequence

from rightsizer.domain.recommendation import ComponentFinding, Recommendation
from rightsizer.domain.report import SHOWN
from rightsizer.render import sentences
from rightsizer.render.html import Cell, Markup, badge, table, tag

TITLE = "Inference components"
HEADS = ("Endpoint", "Component", "Finding", "Copies", "Needed", "Part of the price", "Why")


def section_content(found: Sequence[Recommendation]) -> Markup | None:
    """Components of all endpoints, the dearest first; None where no endpoint has any."""
    rows = sorted(
        ((each, one) for each in found for one in each.components),
        key=lambda row: (-(row[1].usd_per_month or 0), row[0].ref.name, row[1].name),
    )
    if not rows:
        return None
    packed = [f"{one.ref.name}: {sentences.packing_sentence(one.packing)}." for one in found if one.packing]
    said = "A month, by what the copies reserve of their instances. " + " ".join(packed[:SHOWN])
    cells = [_row(each, one) for each, one in rows[:SHOWN]]
    return tag("div", tag("p", said, class_="note"), table(TITLE, HEADS, cells, ""))


def _row(found: Recommendation, one: ComponentFinding) -> list[Cell]:
    usd = one.usd_per_month
    cost = "of its base" if one.base else "not known" if usd is None else sentences.exact_money(usd)
    return [
        Cell(found.ref.name, found.ref.name),
        Cell(one.name, one.name),
        Cell(badge(sentences.FINDINGS[one.finding], "")),
        Cell("not read" if one.copies is None else f"{one.copies}", one.copies or 0, "n"),
        Cell("" if one.needed is None else f"{one.needed}", one.needed or 0, "n"),
        Cell(cost, float(usd or 0), "n"),
        Cell(one.reason.sentence, look="why"),
    ]
