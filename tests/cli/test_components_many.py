"""How many components one order may move, and what a stack that owns them is told."""

import pytest

from rightsizer.flows.orders import MOST
from rightsizer.terminal.app import Exit
from tests.changing.world import NAME, World
from tests.cli.test_components import OWNED, deployed, said

__all__ = ["deployed"]
PLACED = ("components", NAME, "--placement", "binpack", "--json")


def test_more_components_than_one_change_takes_are_left_to_be_named(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(MOST - 1):
        deployed.box.add_component(f"c{i}", NAME, copies=1)
    code, _, err = said(capsys, *PLACED)
    assert code == Exit.FAILED
    assert f"{MOST + 1} components are not placed so, and one change moves at most {MOST}: name them with" in err
    named = [word for i in range(MOST - 1) for word in ("--component", f"c{i}")]
    code, found, _ = said(capsys, *PLACED, *named, "--component", "small", "--component", "small")
    assert code == Exit.NOTHING_TO_DO
    assert f"the copies of {MOST} components" in found["proposal"]["recommended"]["change"]


def test_components_that_are_placed_so_already_have_nothing_to_ask_for(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in deployed.box.world.components.known.values():
        each.specification = {**each.specification, "SchedulingConfig": {"PlacementStrategy": "BINPACK"}}
    code, _, err = said(capsys, *PLACED)
    assert (code, f"every component of {NAME} is placed so already" in err) == (Exit.FAILED, True)


@pytest.mark.parametrize("deployed", [OWNED], indirect=True)
def test_a_stack_gets_the_placement_of_each_component(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, *PLACED)
    assert code == Exit.FAILED
    assert "# inference component small" in err
    assert "+ SchedulingConfig: {PlacementStrategy: BINPACK}" in err
