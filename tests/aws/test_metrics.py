"""GetMetricData: aligned windows, batches, pages, and one bad query alone. Request shapes are validated by botocore."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from rightsizer.aws.metrics import MAX_POINTS, CloudWatchMetrics
from rightsizer.aws.session import Session
from rightsizer.domain.reason import Code
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, align, unread_reason
from rightsizer.ports.evaluation import MetricRequest

START = datetime(2026, 1, 1, tzinfo=UTC)
GPU, CALLS = MetricStatistic("GPUUtilization", "Average"), MetricStatistic("Invocations", "Sum")
BERT = MetricRequest("bert", "v", (GPU, CALLS))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return Session("eu-west-1", attempts=1)


@pytest.fixture
def cloudwatch(session: Session) -> Iterator[Stubber]:
    with Stubber(session.client("cloudwatch", validated=False)) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def page(*results: tuple[str, dict[int, float], str], token: str = "") -> dict[str, Any]:
    rows = [
        {
            "Id": name,
            "Timestamps": [START + timedelta(minutes=minute) for minute in values],
            "Values": list(values.values()),
            "StatusCode": status,
        }
        for name, values, status in results
    ]
    return {"MetricDataResults": rows} | ({"NextToken": token} if token else {})


def read(session: Session, *requests: MetricRequest, minutes: int = 60) -> list[MetricWindow | NoMetrics]:
    return list(CloudWatchMetrics(session, workers=1).read(requests, START, START + timedelta(minutes=minutes), 300))


def test_the_window_is_aligned_outwards() -> None:
    grid = align(START + timedelta(seconds=61), START + timedelta(seconds=3599), 300)
    assert (grid.start, grid.end, grid.size) == (START, START + timedelta(hours=1), 12)
    assert align(START, START + timedelta(hours=1), 300).size == 12


def test_a_window_that_has_only_begun_is_not_asked_for(session: Session, cloudwatch: Stubber) -> None:
    (answer,) = CloudWatchMetrics(session, workers=1).read([BERT], START, START, 300)  # the stubber expects no call
    assert isinstance(answer, NoMetrics)
    assert answer.reason.code is Code.NO_DATAPOINTS
    assert unread_reason([answer]) is None, "that nothing was published yet is an answer"


def test_a_moment_after_a_boundary_the_window_is_the_period_that_has_begun() -> None:
    assert align(START, START + timedelta(microseconds=400_000), 300).size == 1


def test_a_gap_stays_a_gap_and_pages_are_folded(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 10.0}, "PartialData"), token="more"))
    cloudwatch.add_response("get_metric_data", page(("q0", {55: 30.0}, "Complete"), ("q1", {5: 7.0}, "Complete")))
    (window,) = read(session, BERT)
    assert isinstance(window, MetricWindow)
    assert (window.series[GPU].values[0], window.series[GPU].values[11]) == (10.0, 30.0)
    gpu, calls = ([value for value in window.series[name].values if value == value] for name in (GPU, CALLS))
    assert (gpu, calls) == ([10.0, 30.0], [7.0])
    assert window.notes == ()


def test_what_is_read_by_the_day_has_one_datapoint_a_day_in_the_same_request(
    session: Session, cloudwatch: Stubber
) -> None:
    cloudwatch.add_response("get_metric_data", page(("q0", {24 * 60: 10.0}, "Complete"), ("q1", {5: 7.0}, "Complete")))
    asked: list[int] = []
    session.client("cloudwatch", validated=False).meta.events.register(
        "provide-client-params.cloudwatch.GetMetricData",
        lambda params, **_: asked.extend(q["MetricStat"]["Period"] for q in params["MetricDataQueries"]),
    )
    request = MetricRequest("bert", "v", (GPU, CALLS), by_day=frozenset([GPU]))
    (window,) = read(session, request, minutes=2 * 24 * 60)
    assert isinstance(window, MetricWindow)
    assert asked == [86400, 300]
    assert (window.series[GPU].period_s, window.series[CALLS].period_s) == (86400, 300)
    assert (len(window.series[GPU].values), window.series[GPU].values[1]) == (2, 10.0)
    assert window.series[CALLS].values[1] == 7.0


def test_no_datapoint_is_said_and_is_not_zero(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_response("get_metric_data", page(("q0", {}, "Complete"), ("q1", {}, "Complete")))
    (answer,) = read(session, BERT)
    assert isinstance(answer, NoMetrics)
    assert answer.reason.code is Code.NO_DATAPOINTS


def test_partial_data_is_asked_once_more_and_then_told(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 1.0}, "InternalError"), ("q1", {0: 2.0}, "Complete")))
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 1.5}, "PartialData")))
    (window,) = read(session, BERT)
    assert isinstance(window, MetricWindow)
    assert window.series[GPU].values[0] == 1.5
    assert "PartialData" in window.notes[0].sentence
    assert "GPUUtilization Average of bert/v" in window.notes[0].sentence


def test_a_forbidden_metric_names_the_permission_and_spares_the_others(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_response("get_metric_data", page(("q0", {}, "Forbidden"), ("q1", {0: 2.0}, "Complete")))
    (window,) = read(session, BERT)
    assert isinstance(window, MetricWindow)
    assert set(window.series) == {CALLS}
    assert window.notes[0].code is Code.PERMISSION_MISSING


def test_a_refused_batch_is_halved_until_the_bad_query_stands_alone(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_client_error("get_metric_data", "ValidationError", "The value is invalid")
    cloudwatch.add_client_error("get_metric_data", "ValidationError", "The value is invalid")
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 3.0}, "Complete")))
    (window,) = read(session, BERT)
    assert isinstance(window, MetricWindow)
    assert set(window.series) == {CALLS}
    assert "ValidationError" in window.notes[0].sentence


def test_without_the_permission_every_variant_says_so(session: Session, cloudwatch: Stubber) -> None:
    cloudwatch.add_client_error("get_metric_data", "AccessDenied", "no")
    answers = read(session, BERT, MetricRequest("gpt", "v", (GPU,)))
    assert [answer.reason.code for answer in answers if isinstance(answer, NoMetrics)] == [Code.PERMISSION_MISSING] * 2


def test_batches_keep_to_the_datapoint_limit_and_answers_keep_their_order(
    session: Session, cloudwatch: Stubber
) -> None:
    minutes = 14 * 24 * 60
    assert MAX_POINTS // (minutes // 5) == 25
    requests = [MetricRequest(f"e{i}", "v", (GPU, CALLS)) for i in range(13)]
    expected = {"StartTime": ANY, "EndTime": ANY, "ScanBy": ANY, "MaxDatapoints": MAX_POINTS, "MetricDataQueries": ANY}
    first = page(*((f"q{i}", {0: float(i)}, "Complete") for i in range(25)))
    cloudwatch.add_response("get_metric_data", first, expected)
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 25.0}, "Complete")), expected)
    answers = read(session, *requests, minutes=minutes)
    assert [answer.endpoint for answer in answers] == [f"e{i}" for i in range(13)]
    last = answers[-1]
    assert isinstance(last, MetricWindow)
    assert (last.series[GPU].values[0], last.series[CALLS].values[0]) == (24.0, 25.0)


def test_backlog_is_asked_of_the_endpoint_and_utilisation_in_its_own_namespace(
    session: Session, cloudwatch: Stubber
) -> None:
    signals = (MetricStatistic("ApproximateBacklogSize", "Maximum"), GPU)
    dimension = {"Name": "EndpointName", "Value": "bert"}
    variant = {"Name": "VariantName", "Value": "v"}
    queries = [
        _stat("q0", "AWS/SageMaker", "ApproximateBacklogSize", [dimension], "Maximum"),
        _stat("q1", "/aws/sagemaker/Endpoints", "GPUUtilization", [dimension, variant], "Average"),
    ]
    expected = {"StartTime": ANY, "EndTime": ANY, "ScanBy": ANY, "MaxDatapoints": ANY, "MetricDataQueries": queries}
    cloudwatch.add_response("get_metric_data", page(("q0", {0: 1.0}, "Complete"), ("q1", {}, "Complete")), expected)
    (answer,) = read(session, MetricRequest("bert", "v", signals))
    assert isinstance(answer, MetricWindow)


def _stat(name: str, namespace: str, metric: str, dimensions: list[dict[str, str]], stat: str) -> dict[str, Any]:
    where = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": name, "MetricStat": {"Metric": where, "Period": 300, "Stat": stat}, "ReturnData": True}
