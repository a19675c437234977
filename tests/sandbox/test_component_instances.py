"""Copies stand on instances by what they reserve; managed instances follow them, and what has no room fails."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sandbox.account import Sandbox
from sandbox.sagemaker.placement import NO_ROOM

NAME = "hub"
GPU = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 128}
CORE = {"NumberOfCpuCoresRequired": 1, "MinMemoryRequiredInMb": 128}
MANAGED = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox() as account:
        yield account


def hub(box: Sandbox, count: int, copies: int, needs: dict[str, int], managed: dict[str, Any] | None) -> None:
    extra = {"ManagedInstanceScaling": managed} if managed else {}
    box.add_endpoint(NAME, "ml.g5.xlarge", count, inference_components=True, variant_extra=extra)
    box.add_component("small", NAME, copies=copies, needs=needs)


def settled(box: Sandbox, copies: int) -> tuple[int, str, str]:
    """Instances, status and reason after that many copies were asked for."""
    api = box.client("sagemaker")
    api.update_inference_component_runtime_config(
        InferenceComponentName="small", DesiredRuntimeConfig={"CopyCount": copies}
    )
    box.clock.advance(timedelta(hours=1))
    seen = api.describe_inference_component(InferenceComponentName="small")
    variant = api.describe_endpoint(EndpointName=NAME)["ProductionVariants"][0]
    return variant["CurrentInstanceCount"], seen["InferenceComponentStatus"], seen.get("FailureReason", "")


def test_an_instance_leaves_with_its_last_copy_and_comes_with_the_next(box: Sandbox) -> None:
    hub(box, 3, 3, GPU, MANAGED)
    assert settled(box, 1) == (1, "InService", "")
    assert settled(box, 4) == (4, "InService", "")


def test_the_minimum_stays(box: Sandbox) -> None:
    hub(box, 3, 3, GPU, {**MANAGED, "MinInstanceCount": 2})
    assert settled(box, 1) == (2, "InService", "")


def test_a_policy_that_releases_empty_ones_keeps_what_consolidation_frees(box: Sandbox) -> None:
    hub(box, 2, 8, CORE, MANAGED)
    assert settled(box, 4)[0] == 2
    assert settled(box, 1)[0] == 1


def test_consolidation_moves_copies_together(box: Sandbox) -> None:
    hub(box, 2, 8, CORE, {**MANAGED, "ScaleInPolicy": {"Strategy": "CONSOLIDATION"}})
    assert settled(box, 4)[0] == 1


@pytest.mark.parametrize("managed", [None, MANAGED])
def test_a_copy_for_which_nothing_has_room_fails_with_the_reason(box: Sandbox, managed: dict[str, Any] | None) -> None:
    hub(box, 2, 2, GPU, managed)
    most = 4 if managed else 2
    assert settled(box, 5) == (most, "Failed", NO_ROOM)
