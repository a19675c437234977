"""What the owner set while a change of copies is open: found by what AWS is asked for, never written over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.reconcile.drift import forward_obstacle, owners_figures, without_owners
from rightsizer.domain.change import Change, Course, Entry
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import Plan, Step, StepKind
from tests.changes.test_reconcile import NOW, change_after
from tests.changes.test_rollback_size_in_place import copies
from tests.changing.world import OLD_TYPE, an_option
from tests.recommender.component_kit import sight

DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
SERVES = EndpointSight("InService", "old", NOW, "", "", ())


def bounds(least: int, most: int = 6) -> Step:
    who = {"ResourceId": "inference-component/chat", "ScalableDimension": DIMENSION}
    params = {**who, "MinCapacity": least, "MaxCapacity": most}
    return Step(StepKind.REGISTER_TARGET, "inference-component/chat", params)


def open_change(*settle: Step, back: tuple[Step, ...], target: Target, **given: Any) -> Change:
    option = an_option(kind=OptionKind.COPIES, target=target)
    return replace(change_after(), option=option, plan=Plan(settle=settle, restore=back), **given)


def fixed(**given: Any) -> Change:
    target = Target(OLD_TYPE, 1, copies=(("chat", 1),))
    return open_change(copies(1, "chat"), back=(copies(3, "chat"),), target=target, **given)


def lowered(**given: Any) -> Change:
    target = Target(OLD_TYPE, 1, least_copies=(("chat", 1),))
    return open_change(bounds(1), back=(bounds(3), copies(3, "chat")), target=target, **given)


def shown(desired: int, status: str = "InService") -> LiveState:
    return LiveState(SERVES, components={"chat": sight("chat", desired, status=status)})


@pytest.mark.parametrize(("desired", "theirs"), [(1, False), (3, False), (0, True), (2, True), (7, True)])
def test_a_figure_that_neither_was_nor_was_asked_is_the_owners(desired: int, theirs: bool) -> None:
    change = fixed(course=Course.BACK)
    assert bool(owners_figures(change, shown(desired))) == theirs
    assert without_owners(change, shown(desired)) == (() if theirs else change.plan.restore)


def test_a_component_that_is_gone_is_left() -> None:
    assert owners_figures(fixed(), LiveState(SERVES)) == {"chat": "somebody deleted component chat"}


def test_fewer_copies_than_the_way_back_asked_for_are_want_of_room() -> None:
    assert owners_figures(fixed(course=Course.BACK), shown(2, "Failed")) == {}
    assert owners_figures(fixed(course=Course.FORWARD), shown(2, "Failed"))
    assert owners_figures(fixed(course=Course.BACK), shown(5, "Failed"))


def test_the_old_figure_is_the_owners_only_some_minutes_after_the_new_one_was_accepted() -> None:
    step = copies(1, "chat")

    def after(minutes: int) -> str:
        entry = Entry(NOW - timedelta(minutes=minutes), step.key, "done")
        return forward_obstacle(fixed(journal=(entry,)), shown(3), step, NOW)

    assert after(1) == ""
    assert after(3) == "somebody set 3 copies of component chat again, and that is left"
    assert forward_obstacle(fixed(journal=()), shown(3), step, NOW) == ""


@pytest.mark.parametrize(
    ("target", "said"),
    [((1, 6), ""), ((3, 6), ""), ((2, 6), "to 2 to 6 copies"), ((1, 4), "to 1 to 4 copies"), (None, "ended")],
)
def test_bounds_that_neither_were_nor_were_asked_are_the_owners(target: tuple[int, int] | None, said: str) -> None:
    rows = () if target is None else (ScalableTarget("inference-component/chat", DIMENSION, *target),)
    live = replace(shown(3), scaling=rows)
    change = lowered(course=Course.BACK)
    assert said in owners_figures(change, live).get("chat", "")
    assert without_owners(change, live) == (() if said else change.plan.restore)
    assert bool(forward_obstacle(lowered(), live, bounds(1), NOW)) == bool(said)


def test_changes_of_other_kinds_have_no_such_owner() -> None:
    other = replace(fixed(), option=an_option(target=Target(OLD_TYPE, 1)))
    assert owners_figures(other, shown(9)) == {}
