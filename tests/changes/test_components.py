"""Another placement as steps: each component in turn with its alarms, and back to what it showed."""

from dataclasses import replace
from typing import Any

from rightsizer.changes import guardrail
from rightsizer.changes.dimension import PlannedChange
from rightsizer.changes.plan.components import placement_only
from rightsizer.domain.component import ComponentSight, rolling_update
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from tests.changes.account import MONDAY, NAME, OLD_TYPE
from tests.changes.memory import an_option
from tests.changes.test_capacity import BEFORE, approved, planned, why_not

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


SPREAD_NOW = replace(CHAT, specifications=({"ModelName": "m", "SchedulingConfig": {"PlacementStrategy": "SPREAD"}},))
SECOND = replace(SPREAD_NOW, name="rank", arn="arn:rank", desired=2)
BOTH = an_option(
    kind=OptionKind.PLACEMENT, target=Target(OLD_TYPE, 1, placement=(("chat", "BINPACK"), ("rank", "BINPACK")))
)
LIMITS = ChangeLimits(alarm_prefix="mine-", bake_s=700)


def of_both(**seen: ComponentSight) -> PlannedChange:
    given = approved(BOTH, components={"chat": SPREAD_NOW, "rank": SECOND, **seen})
    change = replace(given.change, baseline={"errors_per_minute": 3.0})
    return planned(placement_only(replace(given, change=change, limits=LIMITS)))


def request(live: ComponentSight, strategy: str, watched: tuple[str, ...]) -> Step:
    """The request that places a component anew, a part of its copies at a time."""
    return Step(
        StepKind.UPDATE_COMPONENT,
        f"{live.name} to {strategy}",
        {
            "InferenceComponentName": live.name,
            **live.placement_request(strategy),
            "DeploymentConfig": rolling_update(live.desired, 700, watched).config,
        },
    )


def test_each_component_is_placed_in_turn_under_alarms_of_its_own_and_back_without_them() -> None:
    made = of_both()
    alarms = {
        live.name: guardrail.component_alarms("c-1", live.name, "mine-", {"errors_per_minute": 3.0})
        for live in (SPREAD_NOW, SECOND)
    }
    names = {name: tuple(step.subject for step in steps) for name, steps in alarms.items()}
    assert made.plan.prepare == (*alarms["chat"], *alarms["rank"])
    assert made.plan.alarms == (*names["chat"], *names["rank"])
    assert made.plan.settle == (
        request(SPREAD_NOW, "BINPACK", names["chat"]),
        request(SECOND, "BINPACK", names["rank"]),
    )
    assert made.plan.restore == (request(SPREAD_NOW, "SPREAD", ()), request(SECOND, "SPREAD", ()))


def test_the_alarms_go_and_the_fleet_stays() -> None:
    made = of_both()
    tidy = Step(StepKind.DELETE_ALARMS, "mine-c-1", {"AlarmNames": list(made.plan.alarms)})
    assert made.plan.tidy == (tidy,)
    assert (made.before, made.plan.after, made.notes) == (BEFORE, BEFORE.variants, ())
    assert made.plan.guardrail == (
        "each component in turn, a part of its copies at a time; the rollback is the stored specification"
    )


def test_only_what_is_placed_otherwise_is_moved() -> None:
    there = replace(SECOND, specifications=({"SchedulingConfig": {"PlacementStrategy": "BINPACK"}},))
    assert [step.component for step in of_both(rank=there).plan.settle] == ["chat"]
    none = placement_only(approved(PACKED, components={"chat": replace(there, name="chat")}))
    assert none == (Reason(Code.CHANGED_SINCE, f"the components of {NAME} are placed as asked"),)


def test_a_component_that_showed_no_placement_may_show_none_again_and_is_named() -> None:
    bare = replace(SPREAD_NOW, specifications=({"ModelName": "m"},))
    made = of_both(chat=bare, rank=replace(bare, name="rank"))
    assert made.notes == ("chat, rank showed no placement; the rollback names SPREAD",)
    back = made.plan.restore[0]
    assert back.subject == "chat to SPREAD, or none as before"
    assert back.params == request(bare, "SPREAD", ()).params
