"""The whole DeploymentConfig of each way to deploy, and whole alarms: AWS takes what is written and asks nothing."""

from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.guardrail import (
    FleetExchange,
    WatchedConfig,
    choose_guardrail,
    component_alarms,
    rollback_alarms,
    rollback_deployment,
)
from rightsizer.domain.plan import StepKind

ALARMS = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}, {"AlarmName": "b"}]}}


def instances(count: int) -> dict[str, Any]:
    return {"Type": "INSTANCE_COUNT", "Value": count}


def test_one_instance_is_replaced_at_once_and_baked_with_both_fleets_up() -> None:
    made = choose_guardrail(FleetExchange([1], [1]), ["a", "b"], 600)
    assert made.config == ALARMS | {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
            "TerminationWaitInSeconds": 600,
            "MaximumExecutionTimeoutInSeconds": 4200,
        }
    }
    assert (made.limit_s, made.sentence) == (4200, "all at once (one instance), then baking for 600 s")


@pytest.mark.parametrize(("old", "new", "least"), [([2], [5], 2), ([5], [2], 2), ([9, 3], [9, 9], 3)])
def test_the_smaller_fleet_gets_a_canary_of_one_that_waits_once_and_then_bakes(
    old: list[int], new: list[int], least: int
) -> None:
    made = choose_guardrail(FleetExchange(old, new), ["a", "b"], 600)
    assert made.config == ALARMS | {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "CANARY",
                "WaitIntervalInSeconds": 600,
                "CanarySize": instances(1),
            },
            "TerminationWaitInSeconds": 600,
            "MaximumExecutionTimeoutInSeconds": 600 + 600 + 3600,
        }
    }
    assert made.limit_s == 4800
    assert made.sentence == f"canary of 1 of {least} instances for 600 s, then baking for 600 s"


def test_ten_instances_are_shifted_in_fifths_with_four_waits_and_a_bake() -> None:
    made = choose_guardrail(FleetExchange([10], [12]), ["a", "b"], 600)
    assert made.config == ALARMS | {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "LINEAR",
                "WaitIntervalInSeconds": 600,
                "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 20},
            },
            "TerminationWaitInSeconds": 600,
            "MaximumExecutionTimeoutInSeconds": 4 * 600 + 600 + 3600,
        }
    }
    assert (made.limit_s, made.sentence) == (6600, "linear, 20 % at a time with 600 s between")
    assert "CanarySize" in str(choose_guardrail(FleetExchange([9], [12]), [], 600).config), "nine are too few"


def test_a_fleet_whose_overlap_costs_more_than_allowed_gets_the_shorter_canary() -> None:
    """Five steps of 600 s at USD 12 an hour cost USD 10."""
    for limit, kind in ((None, "LINEAR"), (Decimal(10), "LINEAR"), (Decimal("9.99"), "CANARY")):
        made = choose_guardrail(FleetExchange([10], [10], usd_per_hour=Decimal(12)), [], 600, overlap_limit_usd=limit)
        assert made.config["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"] == kind
    free = choose_guardrail(FleetExchange([10], [10]), [], 600, overlap_limit_usd=Decimal(0))
    assert "LinearStepSize" in str(free.config), "without a price there is no cost to hold against it"


def test_where_guardrails_are_ignored_nothing_is_baked() -> None:
    made = choose_guardrail(
        FleetExchange([4], [4], excluded="AWS ignores guardrails for Marketplace images"), ["a", "b"], 600
    )
    assert made.config == ALARMS | {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
            "TerminationWaitInSeconds": 0,
            "MaximumExecutionTimeoutInSeconds": 3600,
        }
    }
    assert made.sentence == "all at once without baking: AWS ignores guardrails for Marketplace images"


def test_a_quota_with_less_room_than_the_fleet_rolls_it_in_batches_forward_and_back() -> None:
    made = choose_guardrail(FleetExchange([8], [7], headroom=2), ["a", "b"], 600)
    assert made.config == ALARMS | {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": instances(2),
            "WaitIntervalInSeconds": 600,
            "MaximumExecutionTimeoutInSeconds": 4 * 600 + 3600,
            "RollbackMaximumBatchSize": instances(2),
        }
    }
    assert made.limit_s == 6000
    assert made.sentence == "rolling, 2 of 7 instances at a time, because the quota leaves room for 2 more"


@pytest.mark.parametrize(
    ("count", "headroom", "batch"),
    [
        (8, 7, 4),  # never more than half of the fleet
        (8, 0, 1),  # nor fewer than one
        (40, 1, 2),  # nor fewer than 5 %
        (41, 1, 3),
    ],
)
def test_a_batch_is_what_the_quota_leaves_between_five_percent_and_half(count: int, headroom: int, batch: int) -> None:
    made = choose_guardrail(FleetExchange([count], [count], headroom=headroom), [], 60).config["RollingUpdatePolicy"]
    assert made["MaximumBatchSize"] == instances(batch)


@pytest.mark.parametrize(
    ("old", "new", "headroom"), [([4], [4], 4), ([4], [4], None), ([4, 4], [4, 4], 1), ([1], [4], 1), ([4], [1], 0)]
)
def test_only_one_variant_of_two_or_more_without_room_for_another_fleet_rolls(
    old: list[int], new: list[int], headroom: int | None
) -> None:
    assert "RollingUpdatePolicy" not in choose_guardrail(FleetExchange(old, new, headroom=headroom), [], 600).config
    assert "RollingUpdatePolicy" in choose_guardrail(FleetExchange([2], [2], headroom=1), [], 600).config


def test_the_waits_of_many_batches_are_shortened_to_what_a_deployment_may_take() -> None:
    made = choose_guardrail(FleetExchange([20], [20], headroom=1), [], 3600)
    policy = made.config["RollingUpdatePolicy"]
    assert policy["WaitIntervalInSeconds"] == (28_800 - 3_600) // 20
    assert (policy["MaximumExecutionTimeoutInSeconds"], made.limit_s) == (28_800, 28_800)


@pytest.mark.parametrize(("asked", "baked"), [(-5, 0), (0, 0), (1, 1), (3600, 3600), (3601, 3600)])
def test_a_bake_is_between_nothing_and_an_hour(asked: int, baked: int) -> None:
    policy = choose_guardrail(FleetExchange([2], [2]), [], asked).config["BlueGreenUpdatePolicy"]
    assert policy["TerminationWaitInSeconds"] == baked
    assert policy["TrafficRoutingConfiguration"]["WaitIntervalInSeconds"] == baked


def test_no_alarm_means_no_rollback_configuration_and_more_than_ten_are_cut() -> None:
    assert "AutoRollbackConfiguration" not in choose_guardrail(FleetExchange([1], [1]), [], 600).config
    names = [f"a{number}" for number in range(11)]
    made = choose_guardrail(FleetExchange([1], [1]), names, 600).config["AutoRollbackConfiguration"]["Alarms"]
    assert made == [{"AlarmName": name} for name in names[:10]]


def test_no_variant_at_all_counts_as_one_instance() -> None:
    assert (
        choose_guardrail(FleetExchange([], []), [], 600).sentence == "all at once (one instance), then baking for 600 s"
    )


ROLLED = {"RollingUpdatePolicy": {"MaximumBatchSize": instances(3)}}


def test_what_rolled_forward_rolls_back_in_batches_without_alarms_and_pauses() -> None:
    assert rollback_deployment(ROLLED, 8, 10) == {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": instances(3),
            "WaitIntervalInSeconds": 0,
            "MaximumExecutionTimeoutInSeconds": 28_800,
            "RollbackMaximumBatchSize": instances(3),
        }
    }


@pytest.mark.parametrize(
    ("live", "wanted", "headroom", "batch"),
    [
        (4, 10, None, 2),  # at most half of the smaller fleet
        (10, 4, None, 2),
        (8, 8, 1, 1),  # the quota of today, not that of the deployment
        (8, 8, 9, 3),
        (60, 8, 0, 3),  # 5 % of the larger fleet
        (2, 2, None, 1),
    ],
)
def test_the_batch_of_the_return_is_that_of_the_deployment_where_fleet_and_quota_allow_it(
    live: int, wanted: int, headroom: int | None, batch: int
) -> None:
    made = rollback_deployment(ROLLED, live, wanted, headroom)["RollingUpdatePolicy"]
    assert made["MaximumBatchSize"] == made["RollbackMaximumBatchSize"] == instances(batch)


@pytest.mark.parametrize(("forward", "live", "wanted"), [({}, 8, 8), (ROLLED, 1, 8), (ROLLED, 8, 1)])
def test_other_returns_go_all_at_once(forward: dict[str, Any], live: int, wanted: int) -> None:
    assert rollback_deployment(forward, live, wanted) == {}


WHERE = [
    {"Name": "EndpointName", "Value": "chat"},
    {"Name": "VariantName", "Value": "v"},
    {"Name": "EndpointConfigName", "Value": "new"},
]
ALWAYS = {
    "Namespace": "AWS/SageMaker",
    "Dimensions": WHERE,
    "Period": 60,
    "EvaluationPeriods": 3,
    "DatapointsToAlarm": 2,
    "TreatMissingData": "notBreaching",
    "Tags": [{"Key": "rightsizer:change", "Value": "c-1"}],
}


def errors_alarm(label: str, metric: str, threshold: float) -> dict[str, Any]:
    return ALWAYS | {
        "AlarmName": f"rs-c-1-v-{label}",
        "AlarmDescription": f"{metric} of at least {threshold:.0f} in a minute on chat during change c-1 (temporary)",
        "MetricName": metric,
        "Statistic": "Sum",
        "Threshold": threshold,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }


def test_each_alarm_watches_the_new_configuration_for_two_bad_minutes_of_three() -> None:
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", ["v"]), "rs-", 0.3, {})
    slow = ALWAYS | {
        "AlarmName": "rs-c-1-v-p95",
        "AlarmDescription": "p95 latency above 300 ms on chat during change c-1 (temporary)",
        "MetricName": "ModelLatency",
        "ExtendedStatistic": "p95",
        "Threshold": 300_000.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "EvaluateLowSampleCountPercentile": "ignore",
    }
    wanted = [
        errors_alarm("5xx", "Invocation5XXErrors", 5.0),
        slow,
        errors_alarm("model-errors", "InvocationModelErrors", 5.0),
    ]
    assert [step.params for step in steps] == wanted
    assert [(step.kind, step.subject) for step in steps] == [(StepKind.PUT_ALARM, p["AlarmName"]) for p in wanted]


@pytest.mark.parametrize(
    ("objective", "baseline", "errors", "slow_us"),
    [
        (None, {}, 5.0, None),  # how fast it was is not known, and nothing is promised
        (None, {"p95_s": 0.2}, 5.0, 400_000.0),
        (0.3, {"p95_s": 0.2}, 5.0, 300_000.0),
        (None, {"errors_per_minute": 1.0}, 5.0, None),
        (None, {"errors_per_minute": 4.0}, 12.0, None),
    ],
)
def test_thresholds_are_those_of_the_endpoint_and_not_constants(
    objective: float | None, baseline: dict[str, float], errors: float, slow_us: float | None
) -> None:
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", ["v"]), "rs-", objective, baseline)
    found = {step.params["MetricName"]: step.params["Threshold"] for step in steps}
    assert found.pop("ModelLatency", None) == (pytest.approx(slow_us) if slow_us else None)
    assert found == {"Invocation5XXErrors": errors, "InvocationModelErrors": errors}


def test_mistakes_that_callers_made_before_ring_no_alarm_for_what_the_container_does_not_serve() -> None:
    usual = {"errors_per_minute": 2.0, "refused_per_minute": 10.0}
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", ["v"]), "rs-", None, usual)
    found = {step.params["MetricName"]: step.params["Threshold"] for step in steps}
    assert found == {"Invocation5XXErrors": 6.0, "InvocationModelErrors": 36.0}
    of_component = component_alarms("c-1", "v", "rs-", usual)
    assert {step.params["MetricName"]: step.params["Threshold"] for step in of_component} == found


def test_of_many_variants_the_first_ten_alarms_are_made_and_model_errors_come_last() -> None:
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", list("abcd")), "rs-", 0.3, {})
    labels = [step.subject.removeprefix("rs-c-1-") for step in steps]
    assert labels == [f"{v}-{what}" for v in "abcd" for what in ("5xx", "p95")] + ["a-model-errors", "b-model-errors"]


@pytest.mark.parametrize(("baseline", "threshold"), [({}, 5.0), ({"errors_per_minute": 4.0}, 12.0)])
def test_a_component_has_alarms_under_its_own_dimension(baseline: dict[str, float], threshold: float) -> None:
    steps = component_alarms("c-1", "v", "rs-", baseline)
    own = {"Dimensions": [{"Name": "InferenceComponentName", "Value": "v"}]}
    wanted = [
        errors_alarm("5xx", "Invocation5XXErrors", threshold),
        errors_alarm("model-errors", "InvocationModelErrors", threshold),
    ]
    for row in wanted:
        row |= own
        row["AlarmDescription"] = row["AlarmDescription"].replace("on chat", "on v")
    assert [step.params for step in steps] == wanted
    assert [step.kind for step in steps] == [StepKind.PUT_ALARM] * 2
