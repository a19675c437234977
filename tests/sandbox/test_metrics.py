"""GetMetricData, ListMetrics: exact dimensions, aligned periods, percentiles, limits."""

import math
import random
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.cloudwatch.store import Sample, Series, _folded, _of_singles, statistic
from sandbox.refusals import NotSimulated
from sandbox.sagemaker.load import Served

PLAIN = {"EndpointName": "chat", "VariantName": "AllTraffic"}


def query(metric: str, stat: str, period: int = 3600, name: str = "q", **dimensions: str) -> Any:
    space = "/aws/sagemaker/Endpoints" if "Utilization" in metric else "AWS/SageMaker"
    rows = [{"Name": key, "Value": value} for key, value in (dimensions or PLAIN).items()]
    row = {"Namespace": space, "MetricName": metric, "Dimensions": rows}
    return {"Id": name, "MetricStat": {"Metric": row, "Period": period, "Stat": stat}}


def read(box: Sandbox, *queries: Any, hours: int = 3, **more: Any) -> Any:
    now = box.clock.now
    return box.client("cloudwatch").get_metric_data(
        MetricDataQueries=list(queries), StartTime=now - timedelta(hours=hours), EndTime=now, **more
    )


@pytest.fixture(autouse=True)
def day(box: Sandbox) -> None:
    start = box.clock.now - timedelta(days=1)
    box.put_series("chat", "AllTraffic", "GPUUtilization", start, 60, [float(m % 60) for m in range(1440)])
    box.put_series(
        "chat", "AllTraffic", "ModelLatency", start, 60, [100.0] * 1440, samples=50, minimum=[50.0] * 1440,
        maximum=[900.0] * 1440, percentiles={"p50": [80.0] * 1440, "p95": [400.0] * 1440},
    )  # fmt: skip


def test_periods_are_whole_hours_newest_first_unless_asked(box: Sandbox) -> None:
    result = read(box, query("GPUUtilization", "Average"))["MetricDataResults"][0]
    assert result["Values"] == [29.5, 29.5, 29.5]
    assert [moment.astimezone(box.clock.now.tzinfo).hour for moment in result["Timestamps"]] == [8, 7, 6]
    ascending = read(box, query("GPUUtilization", "Maximum"), ScanBy="TimestampAscending")["MetricDataResults"][0]
    assert ascending["Timestamps"][0] < ascending["Timestamps"][-1]
    assert ascending["Values"] == [59.0] * 3


def test_dimensions_match_exactly_and_in_any_order(box: Sandbox) -> None:
    turned = query("GPUUtilization", "Sum", VariantName="AllTraffic", EndpointName="chat")
    assert read(box, turned)["MetricDataResults"][0]["Values"] == [1770.0] * 3
    fewer = query("GPUUtilization", "Sum", EndpointName="chat")
    assert read(box, fewer)["MetricDataResults"][0]["Values"] == []


def test_percentiles_come_from_the_seeded_quantiles(box: Sandbox) -> None:
    values = read(box, query("ModelLatency", "p95"))["MetricDataResults"][0]["Values"]
    assert values == pytest.approx([400.0] * 3)
    single = read(box, query("GPUUtilization", "p50"))["MetricDataResults"][0]["Values"]
    assert single == pytest.approx([29.0] * 3, abs=1.0)


def test_a_percentile_that_cloudwatch_could_not_know_raises(box: Sandbox) -> None:
    start = box.clock.now - timedelta(hours=1)
    box.put_series("x", "v", "ModelLatency", start, 60, [1.0] * 60, samples=9, minimum=[0.0] * 60, maximum=[2.0] * 60)
    with pytest.raises(NotSimulated, match="quantiles"):
        read(box, query("ModelLatency", "p99", EndpointName="x", VariantName="v"))


def test_a_gap_is_a_gap_and_not_a_zero(box: Sandbox) -> None:
    values = [1.0] * 60 + [math.nan] * 60 + [1.0] * 60
    box.put_series("gap", "v", "CPUUtilization", box.clock.now - timedelta(hours=3), 60, values)
    result = read(box, query("CPUUtilization", "Average", EndpointName="gap", VariantName="v"))["MetricDataResults"][0]
    assert len(result["Values"]) == 2


def test_limits_are_refused_as_cloudwatch_does(box: Sandbox) -> None:
    many = [query("GPUUtilization", "Average", name=f"q{n}") for n in range(501)]
    with pytest.raises(ClientError, match="500"):
        read(box, *many)
    with pytest.raises(ClientError, match="not unique"):
        read(box, query("GPUUtilization", "Average"), query("GPUUtilization", "Sum"))
    with pytest.raises(ClientError, match="multiple of 60"):
        read(box, query("GPUUtilization", "Average", period=90))
    with pytest.raises(NotSimulated):
        read(box, {"Id": "e", "Expression": "SEARCH('x')"})


def test_pages_end_in_the_middle_of_a_series_and_say_partial_data(box: Sandbox) -> None:
    queries = [query("GPUUtilization", "Average", 60, "a"), query("ModelLatency", "Average", 60, "b")]
    pages = list(
        box.client("cloudwatch")
        .get_paginator("get_metric_data")
        .paginate(
            MetricDataQueries=queries,
            StartTime=box.clock.now - timedelta(hours=1),
            EndTime=box.clock.now,
            MaxDatapoints=50,
        )
    )
    assert len(pages) == 3
    first = pages[0]["MetricDataResults"]
    assert (first[0]["StatusCode"], len(first[0]["Values"])) == ("PartialData", 50)
    total = {"a": 0, "b": 0}
    for page in pages:
        for result in page["MetricDataResults"]:
            total[result["Id"]] += len(result["Values"])
    assert total == {"a": 60, "b": 60}


def test_a_series_can_be_told_to_be_partial_or_forbidden(box: Sandbox) -> None:
    box.world.metrics.answer_with("/aws/sagemaker/Endpoints", "GPUUtilization", PLAIN, "PartialData")
    result = read(box, query("GPUUtilization", "Average"))["MetricDataResults"][0]
    assert (result["StatusCode"], len(result["Values"])) == ("PartialData", 1)


def test_list_metrics_has_one_row_for_a_series_and_forgets_after_two_weeks(box: Sandbox) -> None:
    names = [row["MetricName"] for row in box.client("cloudwatch").list_metrics()["Metrics"]]
    assert sorted(names) == ["GPUUtilization", "ModelLatency"]
    box.clock.advance(timedelta(days=15))
    assert box.client("cloudwatch").list_metrics()["Metrics"] == []


def test_minutes_are_kept_for_fifteen_days_only(box: Sandbox) -> None:
    box.clock.advance(timedelta(days=20))
    end = box.clock.now - timedelta(days=20)
    for period, kept in ((60, 0), (300, 12)):
        answer = box.client("cloudwatch").get_metric_data(
            MetricDataQueries=[query("GPUUtilization", "Average", period)],
            StartTime=end - timedelta(hours=1),
            EndTime=end,
        )
        assert len(answer["MetricDataResults"][0]["Values"]) == kept


@pytest.mark.parametrize("blocks", [(0, 90), (0, 37, 90), (0, 60, 90)])
@pytest.mark.parametrize("stat", ["Sum", "Average", "SampleCount", "Maximum", "Minimum", "p95"])
@pytest.mark.parametrize("period", [60, 300, 3600])
def test_slices_and_statistic_sets_tell_the_same(box: Sandbox, stat: str, period: int, blocks: tuple[int, ...]) -> None:
    """The fast way through whole blocks and the slow one through periods agree, gaps and live minutes included."""
    start = box.clock.now - timedelta(hours=2)
    dice = random.Random(7)
    every = [math.nan if n in {3, 70, 71} else dice.uniform(10, 90) for n in range(90)]
    for first, after in pairwise(blocks):
        means = every[first:after]
        box.put_series(
            "x", "v", "ModelLatency", start + timedelta(minutes=first), 60, means,
            samples=[float(dice.randint(1, 9)) for _ in means], minimum=[v * 0.5 for v in means],
            maximum=[v * 2 for v in means], percentiles={"p95": [v * 1.5 for v in means]},
        )  # fmt: skip
    dimensions = {"EndpointName": "x", "VariantName": "v"}
    live = Sample(300.0, 50.0, 200.0, 3, {95.0: 150.0})
    box.world.metrics.add("AWS/SageMaker", "ModelLatency", dimensions, start + timedelta(minutes=95), live)
    fast = read(box, query("ModelLatency", stat, period, EndpointName="x", VariantName="v"))["MetricDataResults"][0]
    series = box.world.metrics._series[("AWS/SageMaker", "ModelLatency", frozenset(dimensions.items()))]
    buckets: dict[int, list[Sample]] = {}
    for at, sample in series.between(0, 2**40):
        buckets.setdefault(at - at % period, []).append(sample)
    slow = [statistic(stat, samples) for _, samples in sorted(buckets.items(), reverse=True)]
    assert fast["Values"] == pytest.approx(slow)


@pytest.mark.parametrize("stat", ["Sum", "Average", "Maximum", "p95"])
@pytest.mark.parametrize("period", [10, 60, 300])
def test_single_minutes_are_read_as_the_slow_way_reads_them(period: int, stat: str) -> None:
    dice = random.Random(period)
    times = sorted(dice.choices(range(0, 3600, 5), k=200))
    series = Series(times=times, samples=[Sample.even(dice.uniform(0, 9), dice.randint(1, 4)) for _ in times])
    for start, end in ((0, 3600), (600, 1200), (1205, 1210), (3600, 7200)):
        assert _of_singles(series, start, end, period, stat) == _folded(series, start, end, period, stat)


def test_a_queue_counts_what_is_processed_and_what_waits_for_an_instance(box: Sandbox) -> None:
    box.add_endpoint("queue", asynchronous=True, count=2)
    box.load("queue", lambda at, kind, count: Served(60, latency_ms=2000))

    def seen(metric: str, statistic: str) -> float | None:
        box.clock.advance(timedelta(minutes=1))
        end, start = box.clock.now, box.clock.now - timedelta(minutes=1)
        (row,) = box.client("cloudwatch").get_metric_data(
            StartTime=start,
            EndTime=end,
            MetricDataQueries=[
                {
                    "Id": "m",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "AWS/SageMaker",
                            "MetricName": metric,
                            "Dimensions": [{"Name": "EndpointName", "Value": "queue"}],
                        },
                        "Period": 60,
                        "Stat": statistic,
                    },
                }
            ],
        )["MetricDataResults"]
        return next(iter(row["Values"]), None)

    assert seen("ApproximateBacklogSize", "Average") == pytest.approx(2.2), "60 requests of 2.2 s in a minute"
    assert seen("ApproximateBacklogSize", "Maximum") == 3
    assert seen("ApproximateBacklogSizePerInstance", "Average") == pytest.approx(1.1)
    assert seen("HasBacklogWithoutCapacity", "Maximum") == 0
    (variant,) = box.world.fleet.endpoint("queue").variants.values()
    variant.count = variant.desired_count = 0
    assert seen("ApproximateBacklogSize", "Minimum") == 60
    assert seen("HasBacklogWithoutCapacity", "Maximum") == 1
    assert seen("ApproximateBacklogSizePerInstance", "Average") is None
    assert seen("ApproximateBacklogSize", "Maximum") == 240
    variant.count = variant.desired_count = 1
    assert seen("ApproximateBacklogSize", "Minimum") == 0
