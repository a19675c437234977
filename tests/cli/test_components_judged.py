"""Each inference component at a terminal: what was read, what it costs, and fewer copies where instances come back."""

import json
from typing import Any

import pytest

from rightsizer.terminal.run import run
from sandbox.account import Sandbox

NAME = "models"
MANAGED = {
    "Status": "ENABLED",
    "MinInstanceCount": 1,
    "MaxInstanceCount": 6,
    "ScaleInPolicy": {"Strategy": "CONSOLIDATION"},
}
GPU = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}


@pytest.fixture
def models(box: Sandbox) -> Sandbox:
    """Four instances of one GPU: three copies of chat that hardly work, one of tags that does, and an adapter."""
    box.add_endpoint(
        NAME,
        "ml.g5.xlarge",
        4,
        inference_components=True,
        variant_extra={"ManagedInstanceScaling": MANAGED},
        tags={"rightsizer:mode": "propose"},
    )
    for name, copies in (("chat", 3), ("tags", 1)):
        box.add_component(name, NAME, copies=copies, needs=GPU)
        box.world.tags.put(box.world.fleet.arn("inference-component", name), {"rightsizer:mode": "propose"})
    box.add_component("tone", NAME, copies=1, base="chat")
    box.use_component("chat", gpu=10.0, at_once=0.2)
    box.use_component("tags", gpu=60.0, at_once=0.8)
    box.use_component("tone", requests=4.0)
    return box


def explained(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    run(["explain", NAME, "--region", "eu-west-1", "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in found["components"]}


def test_each_is_told_with_its_figures_and_its_part_of_the_price(
    models: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(capsys)
    parts = by_name(found)
    said = {name: (one["finding"], one["copies"], one["needed"]) for name, one in parts.items()}
    assert said == {"chat": ("OverProvisioned", 3, 1), "tags": ("Optimized", 1, 1), "tone": ("Optimized", 1, None)}
    assert parts["tone"]["adapter_of"] == "chat"
    assert parts["chat"]["figures"]["GPU"] == "10 % (p99) and at most 10 % of what it reserved"
    assert {day["gpu"] for day in parts["chat"]["days"]} == {0.1}
    assert sum(day["requests"] for day in parts["tone"]["days"]) > 0
    assert float(parts["chat"]["usd_per_month"]) == pytest.approx(3 * float(parts["tags"]["usd_per_month"]), abs=0.02)
    assert found["packing"] == {"instances": 4, "least": 4, "most": 4, "unreserved_usd_per_month": "0.00"}


def test_fewer_copies_are_proposed_with_the_instances_that_come_back(
    models: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = explained(capsys)["recommended"]
    assert (chosen["kind"], chosen["target"]["copies"]) == ("component-copies", {"chat": 1})
    assert chosen["target"]["instance_count"] == 2
    run(["explain", NAME, "--region", "eu-west-1"])
    shown = capsys.readouterr().out
    assert "Component chat" in shown
    assert "2 of 4 instances come back for sure" in shown


def test_one_that_cannot_be_described_is_unknown_and_stops_no_other(
    models: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "User is not authorized to perform: sagemaker:DescribeInferenceComponent"
    models.gate.fail("sagemaker", "DescribeInferenceComponent", "AccessDeniedException", text)
    found = explained(capsys)
    parts = by_name(found)
    (lost,) = [one for one in parts.values() if one["copies"] is None]
    assert (lost["finding"], lost["reason"]["code"]) == ("NotEnoughData", "permission-missing")
    assert sum(one["finding"] != "NotEnoughData" for one in parts.values()) == 2
    assert found["packing"] is None
    assert (found["recommended"] or {}).get("kind") != "component-copies"


def test_components_that_cannot_be_listed_are_a_note_of_the_endpoint(
    models: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "User is not authorized to perform: sagemaker:ListInferenceComponents"
    models.gate.fail("sagemaker", "ListInferenceComponents", "AccessDeniedException", text)
    found = explained(capsys)
    assert found["components"] == []
    assert "permission-missing" in [note["code"] for note in found["notes"]]


def test_one_without_utilisation_is_unknown_and_never_idle(models: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    box = models
    box.add_component("quiet", NAME, copies=1, needs={"NumberOfCpuCoresRequired": 1, "MinMemoryRequiredInMb": 128})
    box.use_component("quiet", without=frozenset({"GPUUtilizationNormalized", "CPUUtilizationNormalized"}))
    quiet = by_name(explained(capsys))["quiet"]
    assert (quiet["finding"], quiet["reason"]["code"]) == ("NotEnoughData", "no-datapoints")
