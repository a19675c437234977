"""Performance risk at its bounds: each figure that a level depends on, from both sides."""

from dataclasses import replace

import pytest

from rightsizer.domain.demand import Demand, Load, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import Accelerator, InstanceType
from rightsizer.domain.option import Risk
from rightsizer.domain.policy import Policy
from rightsizer.recommender.pricing import host_risk, load_risk, memory_risk, quota_risk, risk_level, vcpu_risk
from rightsizer.recommender.slowdown import expected_slowdown

LARGE = Accelerator("A", "NVIDIA", 100, 500, 48, 48.0, (8, 6))
SMALL = replace(LARGE, model="B", memory_gib=16, usable_gib=16.0)
NOW = InstanceType("ml.now", 16, 64, "x86_64", LARGE, 1)
THEN = InstanceType("ml.then", 8, 32, "x86_64", SMALL, 1)
NEED = MemoryNeed(kind=MemoryClass.STATIC, need_gib=10.0, peak_gib=9.0, lower_gib=9.0, margin=1.1, growing=False)
DEMAND = Demand(
    days=14.0,
    valid_share=1.0,
    requests=1e6,
    confidence=14.0,
    load=Load(2.0, 1.0, (1.0,) * 24, True, 0.5),
    latency=None,
    gpu_s_per_request=0.1,
    gpu_share=1.0,
    concurrency=1.0,
    memory=NEED,
    host_memory_gib=10.0,
    vcpu=4.0,
    cpu_p95=0.3,
    gpu_mean=0.1,
    gpu_peak=0.3,
    gpus_used=None,
    error_share=0.0,
    silent_days=0,
)


def needing(gib: float | None, **more: object) -> Demand:
    return replace(DEMAND, memory=replace(NEED, need_gib=gib, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("need_gib", "wanted"),
    [(16 / 1.151, Risk.VERY_LOW), (16 / 1.149, Risk.LOW), (None, Risk.HIGH)],
    ids=["15 % to spare", "a little less", "unknown"],
)
def test_a_smaller_card_is_no_risk_with_fifteen_percent_to_spare(need_gib: float | None, wanted: Risk) -> None:
    assert memory_risk(NOW, THEN, needing(need_gib), started=False) is wanted


@pytest.mark.parametrize(("need_gib", "wanted"), [(16 / 1.31, Risk.MEDIUM), (16 / 1.29, Risk.HIGH)])
def test_memory_that_grows_asks_for_thirty_percent_and_is_never_a_low_risk(need_gib: float, wanted: Risk) -> None:
    assert memory_risk(NOW, THEN, needing(need_gib, growing=True), started=False) is wanted


def test_a_model_that_holds_nothing_on_its_gpu_fits_any_card() -> None:
    assert memory_risk(NOW, THEN, needing(0.0), started=False) is Risk.VERY_LOW


def test_a_server_that_takes_all_memory_is_a_medium_risk_on_a_smaller_card_until_it_started_there() -> None:
    taken = needing(1.0, kind=MemoryClass.PREALLOCATED)
    assert memory_risk(NOW, THEN, taken, started=False) is Risk.MEDIUM
    assert memory_risk(NOW, THEN, taken, started=True) is Risk.VERY_LOW


def test_a_card_that_is_no_smaller_is_no_risk_whatever_is_known() -> None:
    assert memory_risk(NOW, replace(THEN, accelerator=LARGE), needing(None), started=False) is Risk.VERY_LOW


def test_a_type_without_a_card_cannot_hold_the_model() -> None:
    assert memory_risk(NOW, replace(THEN, accelerator=None), DEMAND, started=True) is Risk.VERY_HIGH


@pytest.mark.parametrize(
    ("used_gib", "wanted"),
    [(32 / 1.201, Risk.VERY_LOW), (32 / 1.199, Risk.LOW), (None, Risk.HIGH)],
    ids=["20 % to spare", "a little less", "unknown"],
)
def test_less_host_memory_is_no_risk_with_twenty_percent_to_spare(used_gib: float | None, wanted: Risk) -> None:
    assert host_risk(NOW, THEN, replace(DEMAND, host_memory_gib=used_gib)) is wanted
    assert host_risk(NOW, replace(THEN, memory_gib=64), replace(DEMAND, host_memory_gib=used_gib)) is Risk.VERY_LOW


@pytest.mark.parametrize(
    ("used", "wanted"),
    [(8 / 1.51, Risk.VERY_LOW), (8 / 1.49, Risk.LOW), (None, Risk.MEDIUM)],
    ids=["half of it to spare", "a little less", "unknown"],
)
def test_fewer_vcpus_are_no_risk_with_half_of_the_use_to_spare(used: float | None, wanted: Risk) -> None:
    assert vcpu_risk(NOW, THEN, replace(DEMAND, vcpu=used)) is wanted
    assert vcpu_risk(NOW, replace(THEN, vcpu=16), replace(DEMAND, vcpu=used)) is Risk.VERY_LOW


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        (0.6, Risk.VERY_LOW),
        (0.61, Risk.LOW),
        (0.85, Risk.LOW),
        (0.86, Risk.HIGH),
        (0.99, Risk.HIGH),
        (1.0, Risk.VERY_HIGH),
    ],
)
def test_the_planned_peak_is_a_risk_by_how_near_it_comes_to_the_workers(load: float, wanted: Risk) -> None:
    assert load_risk(load, Policy()) is wanted


@pytest.mark.parametrize(
    ("quota", "wanted"), [(None, Risk.LOW), (4, Risk.VERY_LOW), (5, Risk.VERY_LOW), (3, Risk.VERY_HIGH)]
)
def test_a_fleet_above_the_quota_cannot_start_and_an_unknown_quota_is_a_low_risk(
    quota: int | None, wanted: Risk
) -> None:
    assert quota_risk(4, quota) is wanted


@pytest.mark.parametrize(
    ("probability", "wanted"),
    [(0.0049, 0), (0.005, 1), (0.0199, 1), (0.02, 2), (0.0499, 2), (0.05, 3), (0.199, 3), (0.20, 4), (1.0, 4)],
)
def test_a_probability_of_harm_becomes_a_level(probability: float, wanted: int) -> None:
    assert risk_level(probability, Policy()) == Risk(wanted)


def test_a_gpu_that_is_faster_in_both_is_bounded_by_today_and_five_percent() -> None:
    faster = replace(LARGE, model="C", fp16_tflops=101, memory_bandwidth_gbps=505)
    assert expected_slowdown(LARGE, faster, Policy()).bound == 1.05
    much_faster = replace(LARGE, model="D", fp16_tflops=200, memory_bandwidth_gbps=1000)
    assert expected_slowdown(LARGE, much_faster, Policy()).bound == pytest.approx(0.5 * 1.25)


def test_a_gpu_that_is_slower_in_one_respect_is_bounded_by_the_worse_ratio_and_a_quarter() -> None:
    mixed = replace(LARGE, model="E", fp16_tflops=400, memory_bandwidth_gbps=250)
    found = expected_slowdown(LARGE, mixed, Policy())
    assert (found.phi, found.bound) == (2.0, 2.5)
    assert found.mid == pytest.approx(2.0 * 0.71)
    assert found.hopeful == pytest.approx(2.0 * 0.33)
