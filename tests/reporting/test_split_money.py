"""The money of endpoints by inference component: the parts add up, and waste stands where copies are too many."""

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.money import MoneyRow, MoneyTable, Stage, Totals
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentFinding, ComponentPacking, Finding, Recommendation
from rightsizer.reporting.split_money import UNRESERVED, by_component, share_out
from tests import samples

WHY = Reason(Code.ALREADY_RIGHT, "so it is")
OVER, RIGHT = Finding.OVER_PROVISIONED, Finding.OPTIMIZED


def component(name: str, copies: int, usd: str | None, **more: Any) -> ComponentFinding:
    return ComponentFinding(name, copies, RIGHT, WHY, usd_per_month=None if usd is None else Decimal(usd), **more)


def judged(
    *components: ComponentFinding, copies: tuple[tuple[str, int], ...] = (), rest: str = "100"
) -> Recommendation:
    option = samples.option()
    if copies:
        option = replace(option, kind=OptionKind.COPIES, target=replace(option.target, copies=copies))
    packing = ComponentPacking(4, 2, 2, Decimal(rest))
    return replace(samples.recommendation(), components=components, packing=packing, options=(option,))


def table(found: Recommendation, **changes: Any) -> MoneyTable:
    row = MoneyRow(
        found.ref.account,
        found.ref.region,
        found.ref.name,
        judged=True,
        spend=Decimal("1000.00"),
        without_changes=Decimal("1200.00"),
        utilised=Decimal("200.00"),
        reserve=Decimal("300.00"),
        wasted=Decimal("500.00"),
        savings={Stage.WAITING: Decimal("500.00"), Stage.PROVEN: Decimal("200.00")},
        realised=Decimal("33.34"),
        spent=Decimal("99.99"),
        would_have_cost=Decimal("133.33"),
    )
    return MoneyTable(rows=(replace(row, **changes),))


CHAT, SEARCH = component("chat", 4, "600"), component("search", 2, "300")


@pytest.mark.parametrize("copies", [(), (("chat", 1),), (("chat", 1), ("search", 1))])
def test_the_parts_of_an_endpoint_add_up_to_it_in_every_amount(copies: tuple[tuple[str, int], ...]) -> None:
    found = judged(CHAT, SEARCH, component("adapter", 0, None, base="chat"), copies=copies)
    money = table(found)
    groups, whole = by_component(money, [found]), money.totals()
    assert list(groups) == [f"{found.ref.name}/{name}" for name in ("chat", "search", UNRESERVED)]
    for each in fields(Totals):
        if each.name != "endpoints":
            assert sum(getattr(one, each.name) for one in groups.values()) == getattr(whole, each.name), each.name
    for one in groups.values():
        assert one.spend == one.utilised + one.reserve + one.wasted
        assert min(one.utilised, one.reserve, one.wasted) >= 0


def test_waste_stands_with_the_component_that_loses_copies() -> None:
    found = judged(CHAT, SEARCH, copies=(("chat", 1),))
    groups = by_component(table(found), [found])
    wasted = {name.partition("/")[2]: (one.wasted, one.waiting, one.proven) for name, one in groups.items()}
    assert wasted == {
        "chat": (Decimal("450.00"), Decimal("450.00"), Decimal("120.00")),
        "search": (Decimal("0.00"), Decimal("0.00"), Decimal("60.00")),
        UNRESERVED: (Decimal("50.00"), Decimal("50.00"), Decimal("20.00")),
    }


def test_another_type_saves_each_component_its_part() -> None:
    found = judged(CHAT, SEARCH)
    groups = by_component(table(found), [found])
    assert [one.wasted for one in groups.values()] == [Decimal("300.00"), Decimal("150.00"), Decimal("50.00")]


@pytest.mark.parametrize(
    "found",
    [samples.recommendation(), judged(CHAT, component("search", 2, None)), replace(judged(CHAT), packing=None)],
    ids=["no components", "a part is not known", "not packed"],
)
def test_an_endpoint_of_which_a_part_is_not_known_stays_whole(found: Recommendation) -> None:
    money = table(found)
    assert by_component(money, [found]) == {found.ref.name: money.totals()}
    assert by_component(money, []) == {found.ref.name: money.totals()}, "left out of a stored report"


def test_an_amount_is_shared_out_to_the_cent_and_an_unknown_one_stays_unknown() -> None:
    thirds = [Decimal(1)] * 3
    assert share_out(Decimal("100.00"), thirds) == [Decimal("33.33"), Decimal("33.34"), Decimal("33.33")]
    assert share_out(None, thirds) == [None] * 3
