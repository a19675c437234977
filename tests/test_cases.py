"""Every labelled case of tests/cases: a configuration, a fortnight of metrics in short, and what must be said of it."""

from array import array
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.flows.judge import judge
from rightsizer.model.history import History, PastChange
from rightsizer.model.observation import Endpoint, EndpointKind, Mode, Objective, ScalableTarget
from rightsizer.model.policy import Policy
from rightsizer.model.price import Commitment, ServerlessPrice
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.usage import MetricWindow, Series, Signal
from tests.rules import kit

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
USAGE = {"per_slot", "latency_s", "gpu", "memory", "host", "cpu", "swing"}


def _endpoint(given: Mapping[str, Any]) -> Endpoint:
    kind = EndpointKind(given.get("kind", "real-time"))
    made = kit.endpoint(
        given.get("type", "ml.g6e.xlarge"),
        given.get("count", 1),
        Mode(given.get("mode", "auto")),
        given.get("p95_s"),
        kind,
        given.get("framework", "pytorch"),
        given.get("routing", "LEAST_OUTSTANDING_REQUESTS"),
    )
    age = timedelta(days=given.get("changed_days_ago", 60))
    scaled = given.get("scaled")
    return replace(
        made,
        status=given.get("status", "InService"),
        objective=Objective(given.get("p95_s"), min_instances=given.get("min_instances")),
        modified_at=kit.NOW - age,
        owned_by=given.get("owned_by", ""),
        unknown_fields=tuple(given.get("unknown_fields", ())),
        configuration_replaced=given.get("configuration_replaced", False),
        tags={**made.tags, **given.get("tags", {})},
        model_data_bytes=int(given["model_gib"] * 1024**3) if "model_gib" in given else None,
        scaling=(_scaled(scaled[0], scaled[1], given.get("policies", {})),) if scaled else (),
        variants=() if given.get("no_variant") else made.variants,
    )


def _scaled(minimum: int, maximum: int, policies: Mapping[str, float]) -> ScalableTarget:
    """Autoscaling whose target-tracking policies keep each predefined metric at a value."""
    rows = tuple(
        {
            "PolicyName": f"keep-{metric}",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": value,
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
            },
        }
        for metric, value in policies.items()
    )
    return ScalableTarget("endpoint/e/variant/AllTraffic", "d", minimum, maximum, policies=rows)


def _window(given: Mapping[str, Any]) -> MetricWindow:
    days = given.get("days", 14)
    made = kit.window(kit.steady(**{k: v for k, v in given.items() if k in USAGE}), days=days)
    series = {key: _shaped(key, value, given) for key, value in made.series.items()}
    for name in given.get("omit", ()):
        series = {key: value for key, value in series.items() if key.metric != name}
    return replace(made, series=series)


def _shaped(key: Signal, series: Series, given: Mapping[str, Any]) -> Series:
    """The series with its hours of traffic, its gap and its growth."""
    values = array("d", series.values)
    quiet = {"Invocations": 0.0, "GPUUtilization": 0.0, "ModelLatency": float("nan")}
    size, gap = len(values), given.get("gap_hours", 0) * 12
    for i in range(size):
        if key.metric in quiet and not _busy(i, given):
            values[i] = quiet[key.metric]
        if key.metric == "GPUMemoryUtilization" and given.get("leak_per_day"):
            values[i] *= 1 + given["leak_per_day"] * (i // 288)
        if gap and size // 2 <= i < size // 2 + gap:
            values[i] = float("nan")
    return Series(series.start, series.period_s, values)


def _busy(i: int, given: Mapping[str, Any]) -> bool:
    day, hour = i // 288, i % 288 // 12
    low, high = given.get("hours", (0, 24))
    last = given.get("stops_after_days")
    return low <= hour < high and day in given.get("on_days", range(400)) and (last is None or day < last)


def _history(given: Mapping[str, Any]) -> History:
    past = tuple(
        PastChange(
            kit.NOW - timedelta(days=row["days_ago"]),
            row.get("from", "ml.g6e.xlarge"),
            row["to"],
            row.get("from_count", 1),
            row.get("to_count", 1),
            row["ended"],
            failure=row.get("failure", ""),
            realised_slowdown=row.get("slowdown"),
            latency_ratio=row.get("latency_ratio"),
            demand=row.get("demand"),
        )
        for row in given.get("history", ())
    )
    return History(past, tests_this_month=given.get("tests_this_month", 0))


def judged(case: Mapping[str, Any]) -> Recommendation:
    account = case.get("account", {})
    plan = Commitment(Decimal(str(account.get("plan_usd_per_hour", 0))), account.get("plan_used", 0.0), known=True)
    prices = kit.prices(account.get("no_price", ()), plan)
    if account.get("serverless"):
        rate = ServerlessPrice("us-east-1", Decimal(account["serverless"]), "2026-09", "test")
        prices = replace(prices, serverless=rate)
    policy = replace(Policy(), **case.get("policy", {}))
    endpoint = _endpoint(case.get("endpoint", {}))
    window = _window(case.get("usage", {}))
    types = kit.catalogue(kit.OTHERS if account.get("other_chips") else None)
    return judge(endpoint, [window], prices, types, account.get("quota", {}), _history(case), policy, kit.NOW)


def said(found: Recommendation) -> dict[str, Any]:
    """What a case may expect, in its own words."""
    chosen = found.chosen
    return {
        "finding": found.finding.value,
        "gate": found.gate.value,
        "reason": found.reason.code.value,
        "gate_reason": found.gate_reason.code.value,
        "option": chosen.kind.value if chosen else "none",
        "to": chosen.target.instance_type if chosen else "none",
        "count": chosen.target.instance_count if chosen else None,
        "rung": found.evidence.rung if found.evidence else "L0",
        "target_value": chosen.target.target_value if chosen else None,
        "behind": [option.kind.value for option in found.options[1:]],
        "ruled_out": {e.dimension.value: e.reason.code.value for e in found.excluded if e.dimension},
    }


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_case_is_judged_as_labelled(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    found = said(judged(case))
    expected = case["expect"]
    plain = {key: value for key, value in expected.items() if key not in ("not_to", "ruled_out")}
    assert {key: found[key] for key in plain} == plain, (case["why"], found)
    assert expected.get("ruled_out", {}).items() <= found["ruled_out"].items(), (case["why"], found)
    assert found["to"] not in expected.get("not_to", []), case["why"]


def test_there_are_two_hundred_cases_and_each_says_why() -> None:
    reasons = [yaml.safe_load(path.read_text())["why"] for path in CASES]
    assert len(reasons) >= 200
    assert len(set(reasons)) == len(reasons)
