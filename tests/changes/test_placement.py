"""Another placement as steps: each component in turn with its alarms, and back to what it showed."""

from dataclasses import replace
from typing import Any

from rightsizer.changes.dimension import PlannedChange
from rightsizer.changes.plan.placement import placement_only
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from tests.changes.account import MONDAY, NAME, OLD_TYPE
from tests.changes.memory import an_option
from tests.changes.test_capacity import approved, planned, why_not

CHAT = ComponentSight("chat", "arn:chat", NAME, "InService", MONDAY, 4, ({"ModelName": "m"},))
PACKED = an_option(kind=OptionKind.PLACEMENT, target=Target(OLD_TYPE, 1, placement=(("chat", "BINPACK"),)))


def found(component: ComponentSight) -> PlannedChange | Any:
    return placement_only(approved(PACKED, components={"chat": component}))


def test_what_showed_no_placement_goes_back_to_the_one_that_aws_takes_then() -> None:
    made = planned(found(CHAT))
    (there,), (back,) = made.plan.settle, made.plan.restore
    assert there.params["Specification"]["SchedulingConfig"]["PlacementStrategy"] == "BINPACK"
    assert back.params["Specification"]["SchedulingConfig"]["PlacementStrategy"] == "SPREAD"
    assert {step.kind for step in made.plan.prepare} == {StepKind.PUT_ALARM}
    assert "chat showed no placement" in made.notes[0]
    assert not made.plan.new_config


def test_a_component_that_is_placed_so_already_gives_no_plan() -> None:
    there = replace(CHAT, specifications=({"SchedulingConfig": {"PlacementStrategy": "BINPACK"}},))
    assert why_not(found(there)) is Code.CHANGED_SINCE
