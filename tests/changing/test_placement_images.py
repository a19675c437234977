"""A tag of a component's image that moves while a placement is carried out: the next roll is not asked for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing import scenarios
from tests.changing.test_placement import SCENARIO, WHOLE, of, strategy, updates
from tests.changing.world import World
from tests.faults.drive import scenario_world

OWN = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
SMALL, LARGE = f"{OWN}:2.5.1", f"{OWN}:3.0.0"


def tagged() -> scenarios.Scenario:
    """Both components by a tag with a version."""

    def whole(image: str) -> dict[str, Any]:
        return {**WHOLE, "Container": {**WHOLE["Container"], "Image": image}}

    def seed(box: Sandbox) -> None:
        scenarios.components(box)
        known: Mapping[str, Any] = box.world.components.known
        known["small"].specification, known["large"].specification = whole(SMALL), whole(LARGE)

    return replace(SCENARIO, seed=seed)


def asked(w: World) -> list[tuple[str, str]]:
    return [(p["InferenceComponentName"], strategy(p)) for p in updates(w)]


def test_a_tag_that_moves_before_the_first_roll_stops_the_change_before_anything_is_touched() -> None:
    with scenario_world(tagged()) as w:
        w.start()
        w.box.move_image_tag(SMALL)
        change = w.run(6)
        assert asked(w) == []
    assert change.state is ChangeState.REFUSED, change.outcome
    assert f"the tag {SMALL} means " in change.outcome


def test_a_tag_that_moves_between_two_rolls_stops_the_second_and_brings_the_first_back() -> None:
    with scenario_world(tagged()) as w:
        w.start()
        while not updates(w):
            w.run(0.05)
        w.box.move_image_tag(LARGE)
        change = w.run(6)
        assert asked(w) == [("small", "BINPACK"), ("small", "SPREAD")]
        placed = {n: of(w, n).specification["SchedulingConfig"]["PlacementStrategy"] for n in ("small", "large")}
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert f"the tag {LARGE} means " in change.outcome
    assert "what was changed before goes back" in change.outcome
    assert placed == {"small": "SPREAD", "large": "SPREAD"}


def test_a_way_back_goes_on_and_tells_of_each_component_that_gets_another_image() -> None:
    with scenario_world(tagged()) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN, w.change.outcome
        w.box.move_image_tag(SMALL)
        w.box.move_image_tag(LARGE)
        w.told.clear()
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        told = [text for subject, text in w.told if "image" in subject]
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert [SMALL in text for text in told] == [True, False]
    assert [LARGE in text for text in told] == [False, True]
    assert all(f"the tag {name} means " in change.outcome for name in (SMALL, LARGE))


def test_the_registry_is_asked_once_for_each_component_before_its_roll() -> None:
    with scenario_world(tagged()) as w:
        w.start()
        before = len(w.box.calls.of("ecr"))
        assert w.run(12).state is ChangeState.PROVEN, w.change.outcome
        assert len(w.box.calls.of("ecr")) - before == 2
