"""Guardrails respect every numeric limit of DeploymentConfig, whatever the fleet."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.guardrail import FleetExchange, choose_guardrail

COUNTS = st.lists(st.integers(1, 60), min_size=1, max_size=10)


def policy(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config.get("BlueGreenUpdatePolicy") or config["RollingUpdatePolicy"]
    return found


@given(
    counts=COUNTS,
    old=st.integers(1, 60),
    bake=st.integers(-10, 10_000),
    headroom=st.none() | st.integers(-5, 100),
    usd=st.decimals(0, 500, places=2),
    most=st.none() | st.decimals(0, 1000, places=2),
    alarms=st.integers(0, 20),
)
def test_every_field_is_within_the_limits_of_the_api(
    counts: list[int], old: int, bake: int, headroom: int | None, usd: Decimal, most: Decimal | None, alarms: int
) -> None:
    before = [old] * len(counts)
    made = choose_guardrail(
        FleetExchange(before, counts, headroom=headroom, usd_per_hour=usd),
        [f"a{i}" for i in range(alarms)],
        bake,
        overlap_limit_usd=most,
    )
    rules = policy(made.config)
    assert 600 <= rules["MaximumExecutionTimeoutInSeconds"] <= 28_800
    assert len(made.config.get("AutoRollbackConfiguration", {}).get("Alarms", [None])) <= 10
    if "BlueGreenUpdatePolicy" in made.config:
        routing = rules["TrafficRoutingConfiguration"]
        waits = routing["WaitIntervalInSeconds"]
        assert 0 <= waits <= 3600
        assert 0 <= rules["TerminationWaitInSeconds"] <= 3600
        if routing["Type"] == "CANARY":
            assert routing["CanarySize"]["Value"] * 2 <= min(*counts, old)
            assert rules["MaximumExecutionTimeoutInSeconds"] > waits + rules["TerminationWaitInSeconds"]
        if routing["Type"] == "LINEAR":
            assert 10 <= routing["LinearStepSize"]["Value"] <= 50
            steps = 100 // routing["LinearStepSize"]["Value"] - 1
            assert rules["MaximumExecutionTimeoutInSeconds"] > steps * waits + rules["TerminationWaitInSeconds"]
    else:
        count, batch = counts[0], rules["MaximumBatchSize"]["Value"]
        assert len(counts) == 1, "rolling excludes several variants"
        assert batch >= count * 0.05
        assert batch <= max(1, min(count, old) * 0.5, count * 0.05 + 1)
        assert 0 <= rules["WaitIntervalInSeconds"] <= 3600


def test_one_instance_is_replaced_at_once_and_baked() -> None:
    rules = choose_guardrail(FleetExchange([1], [1]), ["a"], 600).config["BlueGreenUpdatePolicy"]
    assert rules["TrafficRoutingConfiguration"] == {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
    assert rules["TerminationWaitInSeconds"] == 600


def test_two_instances_get_a_canary() -> None:
    rules = choose_guardrail(FleetExchange([2], [2]), ["a"], 600).config["BlueGreenUpdatePolicy"]
    assert rules["TrafficRoutingConfiguration"]["CanarySize"] == {"Type": "INSTANCE_COUNT", "Value": 1}


def test_a_quota_without_room_for_a_second_fleet_rolls() -> None:
    assert (
        choose_guardrail(FleetExchange([4], [4], headroom=1), ["a"], 600).config["RollingUpdatePolicy"][
            "MaximumBatchSize"
        ]["Value"]
        == 1
    )


def test_marketplace_is_told_that_nothing_is_baked() -> None:
    made = choose_guardrail(
        FleetExchange([4], [4], excluded="AWS ignores guardrails for Marketplace images"), ["a"], 600
    )
    assert made.config["BlueGreenUpdatePolicy"]["TerminationWaitInSeconds"] == 0
    assert "Marketplace" in made.sentence
