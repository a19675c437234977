"""The dashboard: a valid body, and each metric exists in what sends it."""

import json
import re
from typing import Any

import pytest

from tests.house.test_own_metrics import PAGE, ROW, doors
from tests.template.stack import EVERYTHING, ROOT, stack

MOST_FREE = 50
"""Metrics of a dashboard that is free (Amazon CloudWatch pricing)."""
WIDTH = 24
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible": "QueueName", "ApproximateAgeOfOldestMessage": "QueueName"},
    "AWS/Lambda": {"IteratorAge": "FunctionName"},
}
"""Metrics of the services and their dimension (user guides of SQS and Lambda, "monitoring")."""
SEARCHED = re.compile(
    r"SEARCH\('\{AWS/Lambda,FunctionName\} "
    r"MetricName=\"(Errors|Duration|Throttles)\" \"rightsizer\"', '(Sum|Maximum)', 300\)"
)


@pytest.fixture(scope="module")
def widgets() -> list[dict[str, Any]]:
    (found,) = stack(**EVERYTHING).of("AWS::CloudWatch::Dashboard").values()
    body = json.loads(found["DashboardBody"])
    assert list(body) == ["widgets"]
    return list(body["widgets"])


def metrics(widgets: list[dict[str, Any]]) -> list[list[Any]]:
    return [one for widget in widgets for one in widget["properties"].get("metrics", [])]


def test_there_is_one_only_where_it_is_asked_for() -> None:
    assert stack().of("AWS::CloudWatch::Dashboard") == {}
    assert stack(Extras="grouped-alarm").of("AWS::CloudWatch::Dashboard") == {}
    assert len(stack(Extras="dashboard").of("AWS::CloudWatch::Dashboard")) == 1


def test_widgets_lie_side_by_side_without_a_gap(widgets: list[dict[str, Any]]) -> None:
    taken = [
        (x, y)
        for one in widgets
        for x in range(one["x"], one["x"] + one["width"])
        for y in range(one["y"], one["y"] + one["height"])
    ]
    assert len(taken) == len(set(taken)) == WIDTH * (1 + max(y for _, y in taken))


def test_each_widget_has_what_its_type_needs(widgets: list[dict[str, Any]]) -> None:
    for one in widgets:
        said = one["properties"]
        match one["type"]:
            case "text":
                assert said["markdown"]
            case "alarm":
                alarms = stack().of("AWS::CloudWatch::Alarm")
                assert {arn.removesuffix(".Arn") for arn in said["alarms"]} == alarms.keys()
            case kind:
                assert kind == "metric"
                assert said["region"] == "eu-west-1"
                assert said["title"]
                assert said["metrics"]
                assert said["view"] in {"timeSeries", "singleValue"}
                assert said["stat"] in {"Sum", "Maximum"}
                assert said["period"] % 60 == 0


def test_each_metric_is_sent_by_somebody(widgets: list[dict[str, Any]]) -> None:
    sent = {name: where for name, where, *_ in ROW.findall(PAGE)}
    for one in metrics(widgets):
        if isinstance(one[0], dict):
            assert SEARCHED.fullmatch(one[0]["expression"]), one
            continue
        namespace, name, *named = one[:-1]
        dimensions = dict(zip(named[::2], named[1::2], strict=True))
        if namespace != "rightsizer":
            assert [OF_AWS[namespace][name]] == list(dimensions), one
            continue
        assert dimensions.keys() == {"door", "service"}, one
        assert dimensions["service"] == "rightsizer"
        assert dimensions["door"] in (doors() if sent[name] == "all" else sent[name].split(", ")), one


def test_the_functions_of_the_dimension_exist() -> None:
    """The name of the service is the one that the logger and the metrics are made with."""
    text = (ROOT / "shared" / "rightsizer" / "telemetry.py").read_text()
    assert 'EphemeralMetrics(namespace="rightsizer", service="rightsizer")' in text
    assert 'add_dimension("door", name)' in text


def test_it_is_small_enough_to_be_free(widgets: list[dict[str, Any]]) -> None:
    functions = len(stack(**EVERYTHING).of("AWS::Lambda::Function"))
    found = metrics(widgets)
    assert sum(functions if isinstance(one[0], dict) else 1 for one in found) <= MOST_FREE
