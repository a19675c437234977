"""Equal endpoints, and one endpoint at any second of an hour, get the same answer."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from rightsizer.domain.endpoint import Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind, Risk, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.stages import in_order
from tests.recommender import kit
from tests.recommender.plain import option


@dataclass(frozen=True)
class Sample:
    """An endpoint that is judged again and again."""

    instance_type: str
    count: int
    p95_s: float
    per_slot: Callable[[int], float]
    steady: dict[str, float]


SAMPLES = {
    "two instances for little": Sample("ml.g6e.2xlarge", 2, 2.0, lambda i: 20.0, {"gpu": 2.0}),
    "a fleet with quiet nights": Sample(
        "ml.g5.2xlarge", 4, 1.5, lambda i: 900.0 if i // 12 % 24 in range(9, 19) else 60.0, {"gpu": 30.0}
    ),
    "one instance on a larger host than it needs": Sample("ml.g4dn.2xlarge", 1, 2.0, lambda i: 40.0, {"gpu": 5.0}),
}


SLOW = "a fleet with quiet nights"
"""Its counts by the hour take the longest to decide."""


def judged(sample: Sample, load: float = 1.0, seed: int = 0, seconds: int = 0) -> Recommendation:
    """The judgement with `load` times the requests, each period with chance of its own, `seconds` after midnight."""
    dice = random.Random(seed)
    signals = kit.steady(**sample.steady)
    calls = [sample.per_slot(i) * load * (1 + 0.02 * dice.uniform(-1, 1)) for i in range(14 * 288)]
    window = kit.window({**signals, ("Invocations", "Sum"): lambda i: round(calls[i])})
    endpoint = kit.endpoint(sample.instance_type, sample.count)
    endpoint = replace(endpoint, objective=Objective(sample.p95_s, min_instances=1))
    now = kit.NOW + timedelta(seconds=seconds)
    return kit.judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), now)


def told(found: Recommendation) -> tuple[Any, ...]:
    chosen = found.chosen_option
    target = chosen.target if chosen else None
    return found.finding, found.gate, chosen.kind if chosen else None, target


@pytest.mark.parametrize("name", SAMPLES)
def test_two_endpoints_whose_load_differs_by_two_per_cent_get_the_same_answer(name: str) -> None:
    first = told(judged(SAMPLES[name]))
    assert first[2] is not None
    for load, seed in ((1.015, 1),) if name == SLOW else ((1.01, 1), (0.98, 2)):
        assert told(judged(SAMPLES[name], load, seed)) == first


def test_an_endpoint_gets_the_same_answer_at_any_second_of_the_hour() -> None:
    sample = SAMPLES["one instance on a larger host than it needs"]
    first = told(judged(sample))
    assert [told(judged(sample, seconds=at)) for at in (1, 299, 2_101, 3_599)] == [first] * 4


CONTEXT: Any = SimpleNamespace(
    types_without_capacity=frozenset({"ml.g6.xlarge"}), runs=SimpleNamespace(name="ml.g6e.2xlarge")
)


def costing(usd: str, kind: OptionKind, name: str = "ml.g4dn.xlarge", **more: Any) -> Option:
    return option(usd_per_month=Decimal(usd), kind=kind, target=Target(name, more.pop("count", 1)), **more)


def test_of_options_that_cost_the_same_but_for_chance_the_safer_and_then_the_simpler_comes_first() -> None:
    count = costing("1010", OptionKind.INSTANCE_COUNT)
    schedule = costing("1000", OptionKind.SCHEDULE)
    assert in_order(CONTEXT, (schedule, count))[0] is count
    assert (
        in_order(CONTEXT, (replace(schedule, risk=Risk.VERY_LOW), replace(count, risk=Risk.LOW)))[0].kind
        is schedule.kind
    )
    assert in_order(CONTEXT, (schedule, replace(count, usd_per_month=Decimal("1021"))))[0] is schedule


def test_neither_noise_nor_the_order_in_which_they_were_found_decides_between_two_types() -> None:
    small = costing("1000", OptionKind.INSTANCE_TYPE, "ml.g4dn.xlarge")
    other = costing("995", OptionKind.INSTANCE_TYPE, "ml.g5.xlarge")
    for found in ((small, other), (other, small), (small, replace(other, usd_per_month=Decimal("1005")))):
        assert in_order(CONTEXT, found)[0].target.instance_type == "ml.g4dn.xlarge"


def test_a_near_tie_puts_nothing_before_what_can_be_carried_out_and_has_capacity() -> None:
    here = costing("1000", OptionKind.SCHEDULE)
    elsewhere = costing("1000", OptionKind.INSTANCE_COUNT, in_place=False)
    short = costing("990", OptionKind.INSTANCE_TYPE, "ml.g6.xlarge")
    scarce = costing("900", OptionKind.INSTANCE_TYPE, "ml.p4d.24xlarge")
    assert in_order(CONTEXT, (elsewhere, short, scarce, here)) == (here, scarce, short, elsewhere)
    assert in_order(CONTEXT, ()) == ()


FLEETS = {"the same at all hours": (6, 6376, None, 0.585, 8), "office hours": (4, 1571, (8, 18), 0.429, 29)}
"""Instances, requests in five minutes, busy hours with a fifth of that outside, p95 in seconds, seed of the chance."""


def fleet_judged(which: str, name: str = "chat", days_on: int = 0) -> Recommendation:
    """A fleet with the same load in each week, `days_on` days later, under that name."""
    count, calls, hours, p95_s, seed = FLEETS[which]
    noise = random.Random(seed)
    busy = [1.0 if hours is None or hours[0] <= i // 12 % 24 < hours[1] else 0.202 for i in range(7 * 288)]
    week = [round(calls * share * (1 + 0.05 * noise.uniform(-1, 1))) for share in busy]

    def at(i: int) -> int:
        return week[(i + 288 * days_on) % len(week)]

    signals = kit.steady(latency_s=0.15) | {("Invocations", "Sum"): at}
    for key in (("GPUUtilization", "Average"), ("GPUUtilization", "Maximum")):
        signals[key] = lambda i: 100 * at(i) * 0.135 / (300 * count)
    endpoint = replace(kit.endpoint("ml.g6.xlarge", count), objective=Objective(p95_s, min_instances=1))
    later, window = timedelta(days=days_on), kit.window(signals)
    series = {key: replace(one, start=one.start + later) for key, one in window.series.items()}
    window = replace(window, endpoint=name, start=window.start + later, end=window.end + later, series=series)
    endpoint = replace(endpoint, ref=replace(endpoint.ref, name=name))
    return kit.judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW + later)


@pytest.mark.parametrize("which", FLEETS)
def test_two_endpoints_with_the_same_load_and_other_names_get_the_same_answer(which: str) -> None:
    assert told(fleet_judged(which, "a")) == told(fleet_judged(which, "search-production-2"))


@pytest.mark.parametrize("which", FLEETS)
def test_days_without_news_change_neither_kind_nor_type_nor_count(which: str) -> None:
    first = told(fleet_judged(which))
    assert first[2] is not None
    assert [told(fleet_judged(which, days_on=days)) for days in (1, 2)] == [first] * 2
