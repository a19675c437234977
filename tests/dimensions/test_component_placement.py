"""The placement of components: watched by alarms, no configuration, and its words."""

from rightsizer.dimensions.component_placement import ComponentPlacement
from rightsizer.domain.option import OptionKind, Target
from tests.dimensions.kit import TYPE, said


def test_each_strategy_has_its_own_words() -> None:
    packed = Target(TYPE, 1, placement=(("chat", "BINPACK"), ("faces", "BINPACK")))
    spread = Target(TYPE, 1, placement=(("chat", "SPREAD"),))
    assert said(ComponentPlacement(), packed)[0] == "pack the copies of 2 components on few instances"
    assert said(ComponentPlacement(), spread) == (
        "spread the copies of 1 component",
        "gives the components their old placement again",
    )


def test_alarms_watch_it_although_no_configuration_is_deployed() -> None:
    one = ComponentPlacement()
    assert one.is_watched(OptionKind.PLACEMENT)
    assert not one.deploys
