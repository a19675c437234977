"""What must hold: the owner's tags first, then what the owner's own scaling holds, then what users are used to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.plan import alarm_steps
from rightsizer.changes.proof import proof_verdict as proven
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Objective, ScalableTarget, tracked_p95_s
from rightsizer.domain.history import History
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.tags import allowed_errors
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.latency import latency_objective
from tests import samples
from tests.changes.test_proof import LIMITS, START, window
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_reaction import day

LATENCY = latency_of([day(0, 60.0)])


def query(stat: str = "p95", metric: str = "ModelLatency") -> dict[str, Any]:
    return {"Id": "m", "MetricStat": {"Metric": {"MetricName": metric, "Namespace": "AWS/SageMaker"}, "Stat": stat}}


def tracking(*queries: Mapping[str, Any], target: float = 2_000_000.0) -> dict[str, Any]:
    """A target-tracking policy as Application Auto Scaling describes it."""
    specification = {"Metrics": list(queries)}
    return {
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": target,
            "CustomizedMetricSpecification": specification,
        },
    }


def scaled(*policies: Mapping[str, Any]) -> tuple[ScalableTarget, ...]:
    return (ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4, policies=policies),)


def test_the_tag_comes_before_the_scaling_and_that_before_what_is_usual() -> None:
    assert LATENCY is not None
    own = replace(kit.endpoint(p95_s=None), scaling=scaled(tracking(query())))
    tagged = latency_objective(replace(own, objective=Objective(0.7)), LATENCY, Policy())
    assert (tagged.p95_s, tagged.declared) == (0.7, True)
    held = latency_objective(own, LATENCY, Policy())
    assert (held.p95_s, held.declared) == (2.0, False), "automatic mode wants the owner's word"
    assert "scaling policy holds the p95 of ModelLatency at 2000 ms" in held.source
    usual = latency_objective(kit.endpoint(p95_s=None), LATENCY, Policy())
    assert usual.p95_s == pytest.approx(1.1, rel=0.03)


def test_no_more_than_a_minute_is_kept_of_a_longer_promise_but_of_queues_and_of_streams() -> None:
    assert LATENCY is not None
    long = replace(kit.endpoint(), objective=Objective(300.0))
    kept = latency_objective(long, LATENCY, Policy())
    assert (kept.p95_s, kept.declared) == (60.0, True)
    assert "says 300.00 s, and a real-time request ends before that" in kept.source
    queued = replace(long, kinds=(EndpointKind.ASYNC,))
    assert latency_objective(queued, LATENCY, Policy()).p95_s == 300.0
    streams = replace(LATENCY, p99_s=200.0)
    assert latency_objective(long, streams, Policy()).p95_s == 300.0


def test_of_two_policies_the_stricter_counts() -> None:
    assert tracked_p95_s(scaled(tracking(query()), tracking(query(), target=900_000.0))) == 0.9


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(tracking(query("Average")), id="no p95 follows from an average"),
        pytest.param(tracking(query("p99")), id="nor from a p99"),
        pytest.param(tracking(query(metric="OverheadLatency")), id="another latency"),
        pytest.param(tracking(query(), query()), id="metric math"),
        pytest.param(tracking(), id="nothing asked"),
        pytest.param({"PolicyType": "StepScaling"}, id="steps, whose alarms hold the numbers"),
        pytest.param(
            {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0, "PredefinedMetricSpecification": {}}},
            id="invocations per instance",
        ),
    ],
)
def test_other_policies_say_nothing_of_the_p95(policy: dict[str, Any]) -> None:
    assert tracked_p95_s(scaled(policy)) is None


def test_a_metric_of_the_same_name_in_another_namespace_is_no_latency_of_the_endpoint() -> None:
    other = query()
    other["MetricStat"]["Metric"]["Namespace"] = "MyApp"
    assert tracked_p95_s(scaled(tracking(query()))) == 2.0
    assert tracked_p95_s(scaled(tracking(other))) is None


def test_proof_and_roll_back_alarms_do_not_go_by_what_a_policy_hovers_about() -> None:
    """A fleet that tracks 2 s is over it half of the time, before a change as after it."""
    slow = window(requests=[20.0] * 12, latency=[3_000_000.0] * 12)
    runs = VariantCount("AllTraffic", "ml.g5.xlarge", 2, 1.0)
    before = Before("old", START, "", (runs,), scaling=scaled(tracking(query())))
    change = samples.change(START, turned_at=START, baseline={"p95_s": 2.9}, before=before)
    found = proven(change, [slow], START.replace(hour=13), LIMITS)
    assert found.judgement != "bad"
    steps = alarm_steps(change, "new", (runs,), ChangeLimits())
    assert [s.params["Threshold"] for s in steps if s.params["MetricName"] == "ModelLatency"] == [2 * 2_900_000.0]


def failing(errors_per_slot: float, tags: Objective, gpu: float = 1.0, runs: str = "ml.g6e.xlarge") -> Recommendation:
    endpoint: Endpoint = replace(kit.endpoint(runs), objective=tags)
    usage = kit.steady(gpu=gpu) | {("Invocation5XXErrors", "Sum"): errors_per_slot}
    window = [kit.window(usage)]
    return judge(endpoint, window, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def test_an_endpoint_that_fails_more_than_its_owner_allows_is_not_changed_by_itself() -> None:
    loose, tight = Objective(60.0, error_share=0.05), Objective(60.0, error_share=0.005)
    assert failing(0.06, loose).gate is Gate.APPLY
    found = failing(0.06, tight)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.TOO_MANY_ERRORS)
    assert "1.00 % of its requests fail, and 0.5 % may (tag rightsizer:error-percent)" in found.gate_reason.sentence


def test_errors_of_a_busy_gpu_are_want_of_capacity_from_the_share_that_the_owner_names() -> None:
    usual, tolerant = Objective(0.6), Objective(0.6, error_share=0.05)
    found = failing(0.06, usual, gpu=99.0, runs="ml.g4dn.xlarge")
    assert found.finding is Finding.UNDER_PROVISIONED
    assert "1.00 % of the requests failed (0.5 % are allowed)" in found.reason.sentence
    assert failing(0.06, tolerant, gpu=99.0, runs="ml.g4dn.xlarge").finding is not Finding.UNDER_PROVISIONED


@pytest.mark.parametrize(
    ("percent", "errors", "verdict"),
    [
        pytest.param("", 8.0, "not-yet", id="6.7 %, and a tenth may fail without the tag"),
        pytest.param("2", 8.0, "bad", id="6.7 % are more than 2"),
        pytest.param("20", 16.0, "not-yet", id="13 % are fewer than 20"),
        pytest.param("none", 8.0, "not-yet", id="nonsense counts as no tag"),
    ],
)
def test_the_proof_allows_as_many_errors_as_the_owner_does(percent: str, errors: float, verdict: str) -> None:
    tags = {"rightsizer:error-percent": percent} if percent else {}
    before = Before("old", START, "", (VariantCount("AllTraffic", "ml.g5.xlarge", 1, 1.0),), tags=tags)
    change = samples.change(START, turned_at=START, objective_p95_s=0.5, baseline={}, before=before)
    found = proven(change, [window(requests=[20.0] * 6, errors=[errors, *[0.0] * 5])], START.replace(hour=11), LIMITS)
    assert found.judgement == verdict
    assert ("allows 2 %" in found.reason.sentence) is (verdict == "bad")


@pytest.mark.parametrize(("text", "share"), [("0.5", 0.005), ("0", 0.0), ("100", 1.0), ("101", None), ("nan", None)])
def test_the_tag_is_a_percentage(text: str, share: float | None) -> None:
    assert allowed_errors({"rightsizer:error-percent": text}) == share
