"""A plain freeze keeps alive what serves; a hard one stops the replacement of Spot capacity too."""

from dataclasses import replace

from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code
from rightsizer.domain.scaling_group import LeaveAlone, Replace
from rightsizer.errors import ThrottledError
from tests.flows.spot_scene import Scene, scene

__all__ = ["scene"]


def warned(scene: Scene, switch: Switch) -> object:
    scene.ports = replace(scene.ports, switch=lambda: switch)
    scene.spot.group("gpu")
    scene.sweep()
    return scene.warn(scene.spot.members("gpu")[0])


def test_a_plain_freeze_does_not_stop_a_replacement(scene: Scene) -> None:
    assert isinstance(warned(scene, Switch(True, False, "cli:ada")), Replace)
    assert scene.replaced() == ["DetachInstances"]


def test_a_hard_freeze_stops_a_replacement_and_says_who_froze(scene: Scene) -> None:
    reaction = warned(scene, Switch(True, True, "cli:ada"))
    assert isinstance(reaction, LeaveAlone)
    assert reaction.reason.code is Code.FROZEN
    assert "frozen hard by ada" in reaction.reason.sentence
    assert scene.replaced() == []
    assert any("frozen hard by ada" in text for _, text in scene.told.said)


def test_a_switch_that_cannot_be_read_stops_no_replacement(scene: Scene) -> None:
    def unread() -> Switch:
        raise ThrottledError("the table is throttled")

    scene.ports = replace(scene.ports, switch=unread)
    scene.spot.group("gpu")
    scene.sweep()
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
