"""The best step that may be taken now, where the best option of all waits for a person."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, Mode, Objective, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import MetricWindow
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.recommend import add_daily_usage
from rightsizer.recommender.stages import put_allowed_first
from rightsizer.recommender.workload import evaluation_context
from tests.recommender import kit
from tests.recommender.kit import judge


def judged(count: int, mode: Mode = Mode.AUTO, least: int | None = None, **usage: Any) -> Recommendation:
    endpoint = replace(kit.endpoint(count=count, mode=mode), objective=Objective(60.0, min_instances=least))
    window = kit.window(kit.steady(memory=90.0, **usage))
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(()), Policy(), kit.NOW)


def chosen(found: Recommendation) -> Option:
    assert found.chosen_option is not None, found.reason.sentence
    return found.chosen_option


def test_half_of_the_instances_go_now_and_the_rest_is_named() -> None:
    found = judged(16, least=1)
    assert (found.gate, chosen(found).target.instance_count) == (Gate.APPLY, 8)
    assert "more than half in one step" in chosen(found).notes[-1]
    assert found.options[1].target.instance_count < 8, "the best stands behind it"


def test_two_instances_stay_where_nobody_accepted_one_zone() -> None:
    found = judged(3)
    assert (found.gate, chosen(found).target.instance_count) == (Gate.APPLY, 2)
    assert "in one Availability Zone only" in chosen(found).notes[-1]


def test_what_passes_the_gate_needs_no_smaller_step() -> None:
    found = judged(2, least=1)
    assert (found.gate, chosen(found).target.instance_count) == (Gate.APPLY, 1)
    assert not any("a first step" in note for note in chosen(found).notes)


def test_a_person_is_asked_first_about_a_low_risk_that_saves_at_least_half() -> None:
    found = judged(4, Mode.PROPOSE)
    assert found.gate is Gate.PROPOSE
    assert (chosen(found).target.instance_count, chosen(found).risk <= Risk.LOW) == (2, True)
    assert found.options[1].risks[RiskResource.AVAILABILITY] is Risk.MEDIUM
    assert chosen(found).notes[-1].endswith("; it is in one Availability Zone only")
    assert "(instance" not in chosen(found).notes[-1], "a count alone needs no word for its kind"


def _one(mode: Mode) -> tuple[Endpoint, list[MetricWindow]]:
    return kit.endpoint(count=1, mode=mode), [kit.window(kit.steady())]


def weighed(mode: Mode) -> EvaluationContext:
    """One instance that uses little of its card; other types cost less than half."""
    endpoint, windows = _one(mode)
    hardware = kit.catalogue().types["ml.g6e.xlarge"]
    usage = add_daily_usage(endpoint, windows, hardware, History(()), Policy())
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(()), Policy(), kit.NOW)
    found = evaluation_context(endpoint, usage.days, inputs)
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.PROPOSE])
def test_one_instance_never_becomes_two_for_the_sake_of_a_zone(mode: Mode) -> None:
    small = judge(*_one(mode), kit.prices(), kit.catalogue(), {}, History(()), Policy(), kit.NOW)
    option = next(o for o in small.options if 2 * o.usd_per_month < (small.usd_per_month or 0))
    risky = replace(option, risk=Risk.MEDIUM, risks={RiskResource.LATENCY: Risk.MEDIUM})
    assert put_allowed_first(weighed(mode), [risky]) == (risky,)


def scaled(low: int, high: int, runs: int) -> Recommendation:
    tracking = {
        "PolicyName": "follow",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": 40.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        },
    }
    target = ScalableTarget("endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", low, high)
    made = kit.endpoint("ml.g6.xlarge", runs, p95_s=2.0)
    owned = replace(made, objective=Objective(2.0, min_instances=1), scaling=(replace(target, policies=(tracking,)),))
    load = kit.steady(per_slot=900.0, memory=90.0, latency_s=0.5)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        value = load[key]
        assert isinstance(value, float)
        load[key] = lambda i, value=value: value if 96 <= i % 288 < 216 else value / 10  # type: ignore[misc]
    alone = kit.prices(without=[name for name in kit.prices().prices if name != "ml.g6.xlarge"])
    return judge(owned, [kit.window(load)], alone, kit.catalogue(), {}, History(()), Policy(), kit.NOW)


@pytest.mark.parametrize(("low", "high", "runs"), [(4, 10, 8), (3, 10, 8), (5, 10, 10)])
def test_a_minimum_is_never_raised_or_kept_as_a_saving(low: int, high: int, runs: int) -> None:
    """More instances run than the minimum: half of those that run may be more than what is registered."""
    found = scaled(low, high, runs)
    bounds = [o.target.minimum or 0 for o in found.options if o.kind is OptionKind.AUTOSCALING]
    assert [least for least in bounds if least >= low] == []
    assert found.gate is not Gate.APPLY or (chosen(found).target.minimum or 0) < low


def test_no_step_takes_the_place_of_a_saving_that_ends_a_shortage() -> None:
    """One faster card in place of four slow ones is cheaper and in time; fewer of the slow ones stay late."""
    tested = PastChange(
        kit.NOW - timedelta(days=5),
        "ml.g4dn.2xlarge",
        "ml.g6.xlarge",
        1,
        1,
        PastEnd.TESTED,
        latency_ratio=0.5,
        realised_slowdown=0.5,
        memory_gib=10.0,
    )
    made = kit.endpoint("ml.g4dn.2xlarge", 4, p95_s=2.0)
    short = replace(made, objective=Objective(2.0, min_instances=1))
    load = kit.steady(per_slot=60.0, latency_s=0.8, gpu=20.0, memory=90.0)
    load |= {("ModelLatency", "p95"): 2.6e6, ("ModelLatency", "p99"): 3.1e6}
    found = judge(short, [kit.window(load)], kit.prices(), kit.catalogue(), {}, History((tested,)), Policy(), kit.NOW)
    assert chosen(found).target.instance_type == "ml.g6.xlarge"
    assert (chosen(found).p95_s or 9.0) <= 2.0
