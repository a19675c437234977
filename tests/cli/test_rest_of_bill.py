"""The rest of the bill at a terminal: one list, few calls, and nothing lost when a part cannot be read."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.spot import add_spot
from sandbox.training_history import seed_training
from tests.cli.conftest import use

HARDWARE = {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}


def scan(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    code = run(["scan", "--region", "eu-west-1", "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def by_code(document: dict[str, Any]) -> dict[str, Any]:
    return {each["code"]: each for each in document["account_findings"]}


def names(document: dict[str, Any], code: str) -> list[str]:
    return [item["name"] for item in by_code(document)[code]["items"]]


def sagemaker(box: Sandbox) -> Any:
    return box.world.api("sagemaker")


def left_behind(box: Sandbox, name: str, days: int) -> None:
    """A model and a configuration of `days` ago that no endpoint uses."""
    fleet, api = box.world.fleet, sagemaker(box)
    container = {"Image": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/x:1", "ModelDataUrl": "s3://m/x.tar.gz"}
    role = "arn:aws:iam::111122223333:role/model"
    api.CreateModel({"ModelName": f"{name}-model", "PrimaryContainer": container, "ExecutionRoleArn": role})
    variant = {"VariantName": "a", "ModelName": f"{name}-model", "InitialVariantWeight": 1.0, **HARDWARE}
    api.CreateEndpointConfig({"EndpointConfigName": f"{name}-config", "ProductionVariants": [variant]})
    born = box.clock.now - timedelta(days=days)
    fleet.models[f"{name}-model"].created = fleet.configs[f"{name}-config"].created = born


def test_what_no_endpoint_uses_is_listed_and_what_one_uses_is_not(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    long_ago = box.clock.now - timedelta(days=90)
    shadow = {"VariantName": "shadow", "ModelName": "second-model", "InitialVariantWeight": 1.0, **HARDWARE}
    left_behind(box, "second", 90)
    box.add_endpoint("chat", created=long_ago, config_extra={"ShadowProductionVariants": [shadow]})
    use(box, "chat", 30.0, 200.0)
    left_behind(box, "old", 60)
    left_behind(box, "new", 3)
    code, found, _ = scan(capsys)
    assert names(found, "orphan-endpoint-configurations") == ["second-config", "old-config"]
    assert names(found, "orphan-models") == ["old-model"]
    assert by_code(found)["orphan-models"]["advice_only"] is True
    assert found["account_unread"] == []
    assert code in (Exit.NOTHING_TO_DO, Exit.SAVINGS_FOUND)


def test_a_configuration_that_an_unread_or_updating_endpoint_uses_is_no_orphan(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    box.add_endpoint("chat", created=box.clock.now - timedelta(days=90))
    left_behind(box, "next", 60)
    sagemaker(box).UpdateEndpoint({"EndpointName": "chat", "EndpointConfigName": "next-config"})
    found = scan(capsys)[1]
    assert "orphan-endpoint-configurations" not in by_code(found)
    assert "orphan-models" not in by_code(found)


def test_instances_without_a_gpu_that_nobody_calls_are_told_once_a_fortnight_was_seen(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, days in (("old", 15), ("young", 6)):
        box.add_endpoint(name, "ml.m5.xlarge", created=box.clock.now - timedelta(days=60))
        start = box.clock.now - timedelta(days=days)
        box.put_series(name, "AllTraffic", "MemoryUtilization", start, 300, [10.0] * (days * 288))
    told = [one["what"] for one in scan(capsys)[1]["account_findings"] if one["code"] == "serverless-or-real-time"]
    assert [text.split(" (1 × ")[0] for text in told] == ["old"]
    assert "had no request in 14 days and costs USD" in told[0]


def test_a_configuration_that_served_lately_says_so(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    left_behind(box, "before", 60)
    left_behind(box, "never", 60)
    start, of = box.clock.now - timedelta(days=5), {"EndpointConfigName": "before-config"}
    box.put_series("chat", "AllTraffic", "Invocations", start, 300, [10.0] * 12, dimensions=of)
    items = by_code(scan(capsys)[1])["orphan-endpoint-configurations"]["items"]
    used = {item["name"]: item["last_used"] for item in items}
    assert used == {"before-config": "within the last two weeks", "never-config": None}


def test_models_of_inference_components_serve(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    long_ago = box.clock.now - timedelta(days=90)
    box.add_endpoint("shared", created=long_ago, inference_components=True)
    left_behind(box, "tiny", 80)
    left_behind(box, "gone", 80)
    needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    specification = {"ModelName": "tiny-model", "ComputeResourceRequirements": needs}
    sagemaker(box).CreateInferenceComponent(
        {"InferenceComponentName": "tiny", "EndpointName": "shared", "VariantName": "AllTraffic",
         "Specification": specification, "RuntimeConfig": {"CopyCount": 1}}
    )  # fmt: skip
    assert names(scan(capsys)[1], "orphan-models") == ["gone-model"]


def test_two_hundred_orphans_cost_a_call_for_each_hundred(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(201):
        left_behind(box, f"try-{number:03d}", 60)
    found = scan(capsys)[1]
    assert len(names(found, "orphan-endpoint-configurations")) == len(names(found, "orphan-models")) == 201
    calls = Counter(call.operation for call in box.calls.of("sagemaker"))
    assert (calls["ListEndpointConfigs"], calls["ListModels"]) == (3, 3)
    assert calls["DescribeEndpointConfig"] == calls["DescribeModel"] == 0


@pytest.mark.parametrize(
    ("action", "lost"),
    [
        ("sagemaker:ListEndpointConfigs", "orphan-endpoint-configurations"),
        ("sagemaker:ListInferenceComponents", "orphan-models"),
        ("sagemaker:ListTrainingJobs", "training-warm-pools"),
    ],
)
def test_a_part_that_cannot_be_read_is_named_and_stops_no_other(
    box: Sandbox, capsys: pytest.CaptureFixture[str], action: str, lost: str
) -> None:
    spot = add_spot(box)
    seed_training(box, spot.jobs)
    left_behind(box, "old", 60)
    assert len(by_code(scan(capsys)[1])) == 3
    box.deny(action)
    code, found, err = scan(capsys)
    assert lost not in by_code(found)
    assert by_code(found)
    assert action in err
    assert [each["code"] for each in found["account_unread"]] == ["permission-missing"]
    assert code == Exit.NOTHING_TO_DO  # no saving of an endpoint was missed


def test_warm_pools_of_a_month_are_priced_without_describing_every_job(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    spot = add_spot(box)
    seed_training(box, spot.jobs)
    found = by_code(scan(capsys)[1])["training-warm-pools"]
    assert [(item["name"], item["owner"]) for item in found["items"]] == [("segment-study", "imaging")]
    assert "0 of 24 taken over, 12.0 instance hours" in found["items"][0]["detail"]
    assert float(found["usd_per_month"]) > 20
    calls = Counter(call.operation for call in box.calls.of("sagemaker"))
    assert calls["DescribeTrainingJob"] == 1


def test_a_nightly_batch_is_told_by_scan_and_by_explain(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.add_endpoint("score", "ml.g5.xlarge", 2, created=box.clock.now - timedelta(days=60))
    use(box, "score", 30.0, 0.0)
    start = box.clock.now - timedelta(days=14)
    start -= timedelta(seconds=start.timestamp() % 300)
    night = [200.0 if (start + timedelta(minutes=5 * i)).hour in (1, 2) else 0.0 for i in range(14 * 288)]
    box.put_series("score", "AllTraffic", "Invocations", start, 300, night)
    box.put_series("score", "AllTraffic", "ModelLatency", start, 300, [80_000.0] * len(night), samples=20.0)
    told = by_code(scan(capsys)[1])["batch-transform"]
    assert told["endpoint"] == "score"
    assert run(["explain", "score", "--region", "eu-west-1"]) in (Exit.SAVINGS_FOUND, Exit.NOTHING_TO_DO)
    page = capsys.readouterr().out
    assert "The rest of the bill (advice only: rightsizer carries none of it out)" in page
    assert "between 01:00 and 03:00 UTC" in page


def ask_all_day(box: Sandbox, name: str, calls: float, latency_us: float, memory: float) -> None:
    """A fortnight of even requests, by five minutes."""
    start = box.clock.now - timedelta(days=14)
    start -= timedelta(seconds=start.timestamp() % 300)
    periods = 14 * 288
    box.put_series(name, "AllTraffic", "Invocations", start, 300, [calls] * periods)
    box.put_series(name, "AllTraffic", "ModelLatency", start, 300, [latency_us] * periods, samples=calls)
    box.put_series(name, "AllTraffic", "MemoryUtilization", start, 300, [memory] * periods, samples=5.0)


def test_serverless_and_real_time_are_weighed_both_ways(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with Sandbox(region="us-east-1") as box:
        bootstrap.set_clock(lambda: box.clock.now)
        ago, size = box.clock.now - timedelta(days=60), {"MemorySizeInMB": 4096, "MaxConcurrency": 20}
        box.add_endpoint("busy", None, serverless=size, created=ago)
        box.add_endpoint("rare", None, serverless=size, created=ago)
        box.add_endpoint("quiet", "ml.m5.xlarge", 1, created=ago)
        ask_all_day(box, "busy", 600.0, 500_000.0, 40.0)
        ask_all_day(box, "rare", 1.0, 500_000.0, 40.0)
        ask_all_day(box, "quiet", 2.0, 200_000.0, 20.0)
        assert run(["scan", "--region", "us-east-1", "--json"]) == Exit.NOTHING_TO_DO
        found = json.loads(capsys.readouterr().out)["account_findings"]
        told = {each["endpoint"]: each for each in found if each["code"] == "serverless-or-real-time"}
        assert sorted(told) == ["busy", "quiet", "rare"]
        assert float(told["busy"]["usd_per_month"]) > 0
        assert told["rare"]["usd_per_month"] == "0"
        assert float(told["quiet"]["usd_per_month"]) > 0
        run(["scan", "--region", "us-east-1"])
        assert "leave it serverless" not in capsys.readouterr().out
        run(["explain", "rare", "--region", "us-east-1"])
        assert "leave it serverless" in capsys.readouterr().out
    bootstrap.reset()


@pytest.mark.parametrize("denied", [False, True])
def test_a_plan_is_advised_by_the_rates_of_the_region_or_as_a_what_if(
    box: Sandbox, capsys: pytest.CaptureFixture[str], denied: bool
) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", 2, created=box.clock.now - timedelta(days=60))
    use(box, "chat", 80.0, 2000.0, memory=90.0)
    if denied:
        box.deny("savingsplans:DescribeSavingsPlansOfferingRates")
    code, found, err = scan(capsys)
    plan = by_code(found)["savings-plan"]
    assert (plan["usd_per_month"] is None) is denied
    assert ("savingsplans:DescribeSavingsPlansOfferingRates" in err) is denied
    assert ("discount" in plan["evidence"]) is not denied
    if not denied:
        assert plan["evidence"]["discount"].startswith("28.0 %")
        assert len(box.calls.of("savingsplans", "DescribeSavingsPlansOfferingRates")) < 5
    assert code in (Exit.NOTHING_TO_DO, Exit.SAVINGS_FOUND)
