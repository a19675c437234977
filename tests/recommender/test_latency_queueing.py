"""What a request takes without its waiting, and how many vCPUs its host part keeps busy."""

import heapq
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import demand_of, latency_of
from rightsizer.recommender.fit import memory_need
from rightsizer.recommender.latency import find_service_time, rates_of
from rightsizer.recommender.slowdown import host_factor
from tests.recommender import kit
from tests.recommender.kit import judge


def queued(workers: int, load: float, spread: float, seed: int) -> Latency:
    """Latency of 40,000 requests of one second on average in one queue before `workers`."""
    chance = random.Random(seed)
    sigma = math.sqrt(math.log1p(spread))
    free, now, found = [0.0] * workers, 0.0, []
    for _ in range(40_000):
        now += chance.expovariate(load * workers)
        work = chance.lognormvariate(-sigma * sigma / 2, sigma)
        start = max(heapq.heappop(free), now)
        heapq.heappush(free, start + work)
        found.append(start - now + work)
    mean = sum(found) / len(found)
    variance = sum((v - mean) ** 2 for v in found) / len(found)
    return Latency(mean, mean, mean, mean, variance / mean**2)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("load", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("spread", [0.04, 0.45])
def test_the_service_behind_a_waiting_queue_is_found_to_a_tenth(workers: int, load: float, spread: float) -> None:
    latency = queued(workers, load, spread, seed=workers)
    found = find_service_time(latency, [(load * workers, 40_000.0)], workers)
    assert found.mean_s == pytest.approx(1.0, rel=0.1)
    assert found.mean_s <= latency.mean_s


def test_busy_hours_explain_waiting_that_the_mean_rate_does_not() -> None:
    latency = Latency(1.5, 1.0, 3.0, 4.0, 1.0)
    smooth = find_service_time(latency, [(0.3, 1000.0)], 1)
    rough = find_service_time(latency, [(0.05, 500.0), (0.55, 500.0)], 1)
    assert rough.mean_s < smooth.mean_s


@given(st.floats(0.01, 100), st.floats(0.0, 4.0), st.floats(0.0, 50), st.integers(1, 16))
def test_a_service_is_never_longer_than_its_latency(mean: float, spread: float, rate: float, workers: int) -> None:
    found = find_service_time(Latency(mean, mean, mean, mean, spread), [(rate, 100.0)], workers)
    assert 0 <= found.mean_s <= mean
    assert 0 <= found.power <= 1


def demand(
    threads: float,
    level: float,
    gpu: Callable[[int], float] = lambda i: 5.0 + 20 * ((i // 12) % 3),
    count: int = 1,
) -> Demand:
    """A service of 0.5 s, half of it on the GPU, whose host part keeps `threads` of 8 vCPUs busy; `level` always."""
    hardware = kit.catalogue().types["ml.g6e.2xlarge"]
    metrics = kit.steady(latency_s=0.5) | {
        ("Invocations", "Sum"): lambda i: gpu(i) / 100 * 300 / 0.25 * count,
        ("GPUUtilization", "Average"): gpu,
        ("CPUUtilization", "Average"): lambda i: 100 * level + threads * gpu(i),
    }
    days = daily_usage(kit.window(metrics), VariantSetup(hardware, count))
    memory = memory_need(days, kit.catalogue(), Policy(), "pytorch", None)
    latency = latency_of(days)
    assert latency is not None
    return demand_of(days, days, hardware, memory, Policy())


@pytest.mark.parametrize("threads", [1.0, 2.0, 6.0])
@pytest.mark.parametrize("level", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("count", [1, 3])
def test_the_vcpus_of_a_request_are_told_from_what_the_machine_does_anyway(
    threads: float, level: float, count: int
) -> None:
    found = demand(threads, level, count=count).host_threads
    assert found is not None
    assert threads <= found <= 1.3 * threads


def test_a_load_that_never_changes_leaves_the_vcpus_to_a_bound() -> None:
    found = demand(1.0, 2.0, gpu=lambda i: 20.0).host_threads
    assert found is not None
    assert found > 10


def test_cpu_work_that_has_nothing_to_do_with_requests_is_not_charged_to_them() -> None:
    found = demand(1.0, 0.0, gpu=lambda i: 5.0 + 20 * ((i // 12) % 3))
    chance = random.Random(5)
    noise = [chance.uniform(0, 3) for _ in range(14 * 288)]
    hardware = kit.catalogue().types["ml.g6e.2xlarge"]
    gpu = [5.0 + 20 * ((i // 12) % 3) for i in range(14 * 288)]
    metrics = kit.steady(latency_s=0.5) | {
        ("Invocations", "Sum"): lambda i: gpu[i] / 100 * 300 / 0.25,
        ("GPUUtilization", "Average"): lambda i: gpu[i],
        ("CPUUtilization", "Average"): lambda i: 100 * noise[i] + gpu[i],
    }
    days = daily_usage(kit.window(metrics), VariantSetup(hardware, 1))
    memory = memory_need(days, kit.catalogue(), Policy(), "pytorch", None)
    noisy = demand_of(days, days, hardware, memory, Policy()).host_threads
    assert found.host_threads is not None
    assert noisy is not None
    assert noisy > found.host_threads  # a line through noise is surer of less, never of more


def test_fewer_vcpus_cost_nothing_while_the_request_uses_no_more_of_them() -> None:
    types = kit.catalogue().types
    few, many = demand(2.0, 0.3), demand(6.0, 0.3)
    assert host_factor(types["ml.g6e.2xlarge"], types["ml.g6e.xlarge"], few) == 1.0
    assert host_factor(types["ml.g6e.2xlarge"], types["ml.g6e.xlarge"], many) >= 1.5


def test_a_smaller_size_of_the_same_gpu_is_offered_without_a_test_where_the_host_has_room() -> None:
    gpu: Callable[[int], float] = lambda i: 0.5 + 1.0 * ((i // 12) % 3)  # noqa: E731
    found = {}
    for threads in (1.5, 8.0):
        metrics = kit.steady(latency_s=0.5, memory=60.0) | {
            ("Invocations", "Sum"): lambda i: gpu(i) / 100 * 300 / 0.25,
            ("GPUUtilization", "Average"): gpu,
            ("CPUUtilization", "Average"): lambda i, threads=threads: 30 + threads * gpu(i),  # type: ignore[misc]
        }
        given_ = kit.endpoint("ml.g6e.2xlarge", p95_s=0.8)
        found[threads] = judge(
            given_, [kit.window(metrics)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
        )
    chosen = found[1.5].chosen_option
    assert chosen is not None
    assert chosen.target.instance_type == "ml.g6e.xlarge"
    assert found[1.5].gate.value == "apply"
    busy = found[8.0]
    assert busy.gate.value != "apply"


def test_a_lonely_request_meets_nobody_and_a_crowd_meets_itself() -> None:
    hardware = kit.catalogue().types["ml.g6e.2xlarge"]

    def rates(calls: Callable[[int], float]) -> list[float]:
        days = daily_usage(kit.window(kit.steady() | {("Invocations", "Sum"): calls}), VariantSetup(hardware, 1))
        return [rate for rate, _ in rates_of(days, 1.0)]

    rare = rates(lambda i: 1.0 if i % 96 == 0 else 0.0)
    assert max(rare) == pytest.approx(2 / 86400)  # three a day: each meets the other two
    crowd = rates(lambda i: 60.0 if i % 96 == 0 else 0.0)
    assert min(crowd) == pytest.approx(59 / 300)
