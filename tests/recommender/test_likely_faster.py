"""A newer card that is likely faster and not surely: the test of it goes before a long shot that would save more."""

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

from rightsizer.domain.history import History
from rightsizer.domain.option import Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Price
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.options import has_gpu_room
from rightsizer.recommender.slowdown import Ratio
from tests.recommender import kit, plain

TYPES = kit.catalogue({"ml.p3.2xlarge": (8, 61, 1, "3.825")})
V100 = Price("ml.p3.2xlarge", "us-east-1", Decimal("3.825"), "snapshot", "direct-hosting", "2026-09")
PRICES = replace(kit.prices(), prices={**kit.prices().prices, V100.instance_type: V100})


def on_a_v100(p95_s: float) -> Recommendation:
    """A request of 120 ms keeps it busy half of the time and waits for 40 ms."""
    load = kit.window(kit.steady(per_slot=1250.0, latency_s=0.16, gpu=50.0, memory=60.0))
    return kit.judge(
        kit.endpoint("ml.p3.2xlarge", p95_s=p95_s), [load], PRICES, TYPES, {}, History(), Policy(), kit.NOW
    )


def test_a_test_counts_the_chance_that_a_card_is_no_slower_than_todays() -> None:
    """An L40S is as fast as the V100 in four of five such moves, and in half of them faster than its middle."""
    found = on_a_v100(0.26)
    assert found.chosen_option is not None
    assert (found.gate, found.chosen_option.target.instance_type) == (Gate.TEST, "ml.g6e.xlarge")
    assert "(83 % likely to be fast and large enough)" in found.gate_reason.sentence, (
        "50 % where only its middle counts"
    )


def test_a_card_that_is_tried_as_slower_than_its_middle_does_less_work_in_the_busiest_hour() -> None:
    """Tried as slow as today's, it works twice as long as at its middle: 1.8 cards' work, and there is one card."""
    load = replace(plain.DEMAND.load, peak_busy_gpus=1.8)
    context = SimpleNamespace(demand=plain.demand(load=load, gpu_share=0.9))
    candidate = SimpleNamespace(
        speed=SimpleNamespace(mid=0.5), ratio=Ratio(0.55, 0.9), hardware=kit.catalogue().types["ml.g6e.xlarge"]
    )
    one = plain.option(target=Target("ml.g6e.xlarge", 1))
    rooms = [has_gpu_room(cast("Any", context), cast("Any", candidate), one, tried) for tried in (0.4, 0.55, 0.7, 1.0)]
    assert rooms == [True, True, False, False]
