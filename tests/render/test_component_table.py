"""The report lists inference components with their part of the price; without any it has no such table."""

from decimal import Decimal

from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentFinding, ComponentPacking, Finding
from rightsizer.render.report_money import section_content
from tests.samples import recommendation

EVIL = "<script>x</script>"
WHY = Reason(Code.IDLE, f"no request of {EVIL}")
PARTS = (
    ComponentFinding("small", 1, Finding.OPTIMIZED, WHY, 1, Decimal("10.00")),
    ComponentFinding("dear", 4, Finding.OVER_PROVISIONED, WHY, 2, Decimal("4111.36")),
    ComponentFinding("tone", 1, Finding.IDLE, WHY, base="small"),
    ComponentFinding("lost", None, Finding.NOT_ENOUGH_DATA, WHY),
)


def test_each_has_a_row_the_dearest_first_and_names_are_escaped() -> None:
    page = str(section_content([recommendation(components=PARTS, packing=ComponentPacking(4, 2, 3, None))]))
    assert page.index("dear") < page.index("small")
    for text in ("4,111.36", "of its base", "not read", "the copies fit on 2 to 3 of 4 instances", "Over-provisioned"):
        assert text in page
    assert EVIL not in page


def test_no_component_is_no_table() -> None:
    assert section_content([recommendation()]) is None
