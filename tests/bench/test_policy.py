"""The adapter to the referee acts only on what is done on the same endpoint."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench.policy import _action, _Memory, _tested
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Gate
from tests.recommender import kit
from tests.recommender.kit import judge

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


def test_a_shadow_of_a_single_instance_waited_in_a_queue_like_the_one_it_copies() -> None:
    """Alone, routing decides nothing: what both waited is taken out of both, or the shadow would look faster."""
    trial = SimpleNamespace(
        day=1,
        production_type="ml.g5.xlarge",
        instance_type="ml.g6.xlarge",
        hours=2,
        requests=1100,
        fits=True,
        latency_mean_ms=4000.0,
        production_latency_mean_ms=3400.0,
        gpu_busy_s_per_request=None,
        gpu_memory_max_gib=10.0,
    )
    alone = _tested(trial, _Memory(now=("ml.g5.xlarge", (1,) * 24), routing=LEAST))
    fleet = _tested(trial, _Memory(now=("ml.g5.xlarge", (2,) * 24), routing=LEAST))
    assert alone.latency_ratio is not None
    assert fleet.latency_ratio is not None
    assert fleet.latency_ratio < 1.0 < alone.latency_ratio < 4000 / 3400
