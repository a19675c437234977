"""The adapter to the referee acts only on what is done on the same endpoint."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.policy import _action
from rightsizer.flows.judge import judge
from rightsizer.model.history import History
from rightsizer.model.option import OptionKind, Risk
from rightsizer.model.policy import Policy
from rightsizer.model.recommendation import Gate
from tests.rules import kit

VIEW = SimpleNamespace(scale_to_zero_minutes=None, autoscale_max=None)
ACTIONS = SimpleNamespace(Deploy=lambda *_, **__: "deployed")


@pytest.mark.parametrize("kind", [OptionKind.ASYNC, OptionKind.OTHER_ARCHITECTURE, OptionKind.PACKING])
def test_what_is_not_done_in_place_is_no_action_however_small_its_risk(kind: OptionKind) -> None:
    endpoint, window = kit.endpoint(), [kit.window(kit.steady())]
    found = judge(endpoint, window, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.chosen is not None
    assert _action(ACTIONS, found, VIEW) == "deployed"
    away = replace(found.chosen, kind=kind, in_place=False, risk=Risk.LOW)
    for verdict in (Gate.PROPOSE, Gate.APPLY):
        assert _action(ACTIONS, replace(found, options=(away,), gate=verdict), VIEW) is None
