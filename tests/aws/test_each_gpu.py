"""Single GPUs through the real reading, on the sandbox: found, bounded, and no harm where they cannot be read."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws.account import FOR_A_DECISION, EndpointQuotas
from rightsizer.aws.detailed_metrics import MOST_INSTANCES, places_of
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.prices import OrderedPrices, PriceList, Snapshot
from rightsizer.aws.session import Session
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import DailyUsage, VariantUsage
from rightsizer.flows.evaluate import Evaluated, EvaluatePorts, ProgressWatcher, recommendations
from rightsizer.flows.read_usage import UsageReader
from sandbox.account import Sandbox
from sandbox.sagemaker.load import Served
from sandbox.traffic import Workload, hardware, write_past

NAME, TYPE, DAYS = "replicas", "ml.g5.12xlarge", 3
SPACE = "/aws/sagemaker/Endpoints"
WORK = Workload(lambda _: 30.0, TYPE, gpu_s=0.5, gpu_memory_gib=6.0)
SEEN = ("uses 1 of the 4 GPUs of ml.g5.12xlarge", "L2")
BOUND = ("uses at most 1 of the 4 GPUs of ml.g5.12xlarge", "L1")


def add(box: Sandbox, *, enhanced: bool = True, home: str = TYPE, count: int = 1) -> None:
    config = {"MetricsConfig": {"EnableEnhancedMetrics": enhanced}}
    box.add_endpoint(NAME, home, count, config_extra=config)
    work = Workload(WORK.shape, home, gpu_s=WORK.gpu_s, gpu_memory_gib=WORK.gpu_memory_gib)
    write_past(box, NAME, work, count, days=DAYS)


def found(box: Sandbox, account: Session) -> tuple[tuple[str, str], list[Reason]]:
    """The figure of the GPUs and the rung, through fleet, metrics and rules, and what was told beside them."""
    fleet, told = SageMakerFleet(account), list[Reason]()
    metrics, prices = (
        CloudWatchMetrics(account),
        OrderedPrices([PriceList(account, lambda: box.clock.now), Snapshot()], lambda: box.clock.now),
    )
    quotas = EndpointQuotas(account, lambda: box.clock.now, FOR_A_DECISION)
    ports = EvaluatePorts(fleet, metrics, prices, quotas, hardware(), DIMENSIONS)
    watcher, policy = ProgressWatcher(told=told.append), Policy(lookback_days=DAYS)
    (one,) = recommendations(ports, list(fleet.list_endpoints()), policy, box.clock.now, watcher)
    assert isinstance(one, Evaluated), one
    evidence = one.recommendation.evidence
    assert evidence is not None
    return (evidence.figures.get("GPUs", ""), evidence.rung), told


def last_day(box: Sandbox, account: Session) -> DailyUsage:
    fleet, policy = SageMakerFleet(account), Policy(lookback_days=DAYS)
    (endpoint,) = fleet.observe(list(fleet.list_endpoints()))
    assert isinstance(endpoint, Endpoint)
    reader = UsageReader(CloudWatchMetrics(account), hardware(), lambda _: History(), policy)
    usage = reader.read([endpoint], box.clock.now)[NAME]
    assert isinstance(usage, VariantUsage)
    return usage.days[-1]


def test_the_gpus_that_work_are_counted_where_the_configuration_enables_it(box: Sandbox, account: Session) -> None:
    add(box)
    assert found(box, account) == (SEEN, [])
    day = last_day(box, account)
    assert day.each_gpu is not None
    assert day.each_gpu.peaks[0] > 0.2
    assert day.each_gpu.peaks[1:] == (0.0, 0.0, 0.0)
    assert day.gpu_memory is not None
    assert day.gpu_memory.peak == pytest.approx(6 / 22.352, rel=0.1), "the one that holds it, not the mean of four"


@pytest.mark.parametrize(("enhanced", "home"), [(False, TYPE), (True, "ml.g5.2xlarge")])
def test_nothing_more_is_asked_of_other_endpoints(box: Sandbox, account: Session, enhanced: bool, home: str) -> None:
    add(box, enhanced=enhanced, home=home)
    assert found(box, account)[0] == (BOUND if home == TYPE else ("", "L1"))
    assert box.calls.of("cloudwatch", "ListMetrics") == []
    asked = [q["MetricStat"]["Metric"]["Dimensions"] for q in queries(box)]
    assert asked
    assert {len(dimensions) for dimensions in asked} <= {1, 2}


def queries(box: Sandbox) -> list[dict[str, Any]]:
    return [q for call in box.calls.of("cloudwatch", "GetMetricData") for q in call.params["MetricDataQueries"]]


def test_a_missing_permission_leaves_the_judgement_as_it_is_and_says_its_name(box: Sandbox, account: Session) -> None:
    add(box)
    box.deny("cloudwatch:ListMetrics")
    seen, told = found(box, account)
    assert seen == BOUND
    assert [reason.code for reason in told] == [Code.PERMISSION_MISSING]
    assert "cloudwatch:ListMetrics" in told[0].sentence


def test_throttling_leaves_the_judgement_as_it_is_and_is_told(box: Sandbox, account: Session) -> None:
    add(box)
    box.gate.fail("cloudwatch", "ListMetrics", "ThrottlingException", "Rate exceeded", times=99)
    seen, told = found(box, account)
    assert (seen, [reason.code for reason in told]) == (BOUND, [Code.THROTTLED])


def test_one_gpu_that_may_not_be_read_is_no_idle_gpu(box: Sandbox, account: Session) -> None:
    add(box)
    gpu = {"EndpointName": NAME, "VariantName": "AllTraffic", "InstanceId": f"i-{NAME}-0", "AcceleratorId": "3"}
    box.world.metrics.answer_with(SPACE, "GPUUtilization", gpu, "Forbidden")
    seen, told = found(box, account)
    assert (seen, [reason.code for reason in told]) == (BOUND, [Code.PERMISSION_MISSING])


def test_enhanced_metrics_that_are_not_there_are_told(box: Sandbox, account: Session) -> None:
    add(box)
    box.world.metrics.forget("InstanceId", f"i-{NAME}-0")
    seen, told = found(box, account)
    assert (seen, [reason.code for reason in told]) == (BOUND, [Code.NO_DATAPOINTS])
    assert f"no GPU of {NAME}/AllTraffic published by itself" in told[0].sentence


def test_four_instances_stand_for_all(box: Sandbox, account: Session) -> None:
    add(box, count=6)
    assert found(box, account) == (SEEN, [])
    asked = {
        d["Value"] for q in queries(box) for d in q["MetricStat"]["Metric"]["Dimensions"] if "Instance" in d["Name"]
    }
    assert len(asked) == MOST_INSTANCES


def publish(box: Sandbox, hours: float = 0.5, **dimensions: str) -> None:
    start = box.clock.now - timedelta(hours=hours)
    box.put_series(NAME, "AllTraffic", "GPUUtilization", start, 300, [50.0], dimensions=dimensions)


def test_the_gpu_is_found_whatever_its_dimension_is_called(box: Sandbox, account: Session) -> None:
    publish(box, InstanceId="i-1", GpuId="0")
    publish(box, InstanceId="i-1", ContainerId="c", AcceleratorId="1")
    publish(box, InstanceId="i-1")
    publish(box, ContainerId="c", GpuId="0")
    places = places_of(account.client("cloudwatch"), NAME, "AllTraffic")
    assert [(place.instance, place.gpu) for place in places] == [("i-1", "0"), ("i-1", "1")]
    assert places[1].dimensions == (("AcceleratorId", "1"), ("ContainerId", "c"), ("InstanceId", "i-1"))


def test_a_gpu_is_read_once_unless_only_its_containers_publish(box: Sandbox, account: Session) -> None:
    publish(box, InstanceId="i-1", GpuId="0")
    publish(box, InstanceId="i-1", GpuId="0", ContainerId="a")
    publish(box, InstanceId="i-1", GpuId="1", ContainerId="a")
    publish(box, InstanceId="i-1", GpuId="1", ContainerId="b")
    places = places_of(account.client("cloudwatch"), NAME, "AllTraffic")
    assert [(place.gpu, len(place.dimensions)) for place in places] == [("0", 2), ("1", 3), ("1", 3)]


def test_instances_that_are_gone_are_not_looked_at(box: Sandbox, account: Session) -> None:
    publish(box, hours=5, InstanceId="i-gone", GpuId="0")
    publish(box, InstanceId="i-1", GpuId="0")
    places = places_of(account.client("cloudwatch"), NAME, "AllTraffic")
    assert {place.instance for place in places} == {"i-1"}


def test_minutes_that_pass_publish_single_gpus_too(box: Sandbox, account: Session) -> None:
    box.add_endpoint(NAME, TYPE, 2, config_extra={"MetricsConfig": {"EnableEnhancedMetrics": True}})
    box.load(NAME, lambda *_: Served(requests=60, gpu=80.0, gpu_memory=100.0, each_gpu=(0.75, 0.25, 0.0, 0.0)))
    box.clock.advance(timedelta(minutes=10))
    places = places_of(account.client("cloudwatch"), NAME, "AllTraffic")
    assert [(place.instance, place.gpu) for place in places] == [(f"i-{NAME}-{n}", g) for n in (0, 1) for g in "0123"]
    key = frozenset({("EndpointName", NAME), ("VariantName", "AllTraffic"), *places[1].dimensions})
    now = int(box.clock.now.timestamp())
    rows = box.world.metrics.read((SPACE, "GPUUtilization", key), now - 600, now, 300, "Average")
    assert {value for _, value in rows} == {20.0}
