"""CloudWatch's Prometheus-compatible API in the sandbox: quoting, windows and limits as documented."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from sandbox.cloudwatch.promql import Telemetry

START = datetime(2026, 11, 2, tzinfo=UTC)
EPOCH = int(START.timestamp())
METRIC, LABEL = "vllm:kv_cache_usage_perc", "aws.sagemaker.endpoint.name"


@pytest.fixture
def told() -> Telemetry:
    telemetry = Telemetry()
    telemetry.put(METRIC, "chat", "AllTraffic", START, 60, [0.1, 0.5, 0.2, 0.3, 0.1, 0.4])
    telemetry.put(METRIC, "chat", "AllTraffic", START, 60, [0.2] * 6, host="i-1")
    telemetry.put(METRIC, "other", "AllTraffic", START, 60, [0.9] * 6)
    return telemetry


def ask(telemetry: Telemetry, query: str, seconds: int = 600) -> tuple[int, Any]:
    given = {"query": query, "start": EPOCH + 300, "end": EPOCH + seconds, "step": 300}
    status, _, body = telemetry.answer(
        f"https://monitoring.eu-west-1.amazonaws.com/api/v1/query_range?{urlencode(given)}"
    )
    return status, json.loads(body)


def values(answer: Any) -> list[list[list[Any]]]:
    return [series["values"] for series in answer["data"]["result"]]


def over(selector: str) -> str:
    return f"max_over_time({{{selector}}}[300s])"


def test_the_maximum_of_the_instances_of_an_endpoint_is_one_series(told: Telemetry) -> None:
    _, answer = ask(told, f"max({over(f'"{METRIC}","{LABEL}"="chat"')})")
    assert values(answer) == [[[EPOCH + 300, "0.5"], [EPOCH + 600, "0.4"]]]


def test_without_max_each_instance_is_a_series(told: Telemetry) -> None:
    _, answer = ask(told, over(f'"{METRIC}","{LABEL}"="chat"'))
    assert [series["metric"]["@resource.host.id"] for series in answer["data"]["result"]] == ["i-0", "i-1"]


def test_underscores_in_place_of_dots_match_nothing_and_are_no_error(told: Telemetry) -> None:
    status, answer = ask(told, over(f'"{METRIC}",aws_sagemaker_endpoint_name="chat"'))
    assert (status, values(answer)) == (200, [])


@pytest.mark.parametrize(
    "query",
    [over(f'"{METRIC}",{LABEL}="chat"'), over(f'"{LABEL}"="chat"'), "rate(x[5m])"],
    ids=["dots without quotes", "no name of a metric", "what is not simulated"],
)
def test_what_cannot_be_parsed_is_refused(told: Telemetry, query: str) -> None:
    status, answer = ask(told, query)
    assert (status, answer["errorType"]) == (400, "bad_data")


def test_of_two_names_the_first_that_is_there_counts(told: Telemetry) -> None:
    terms = [f"max({over(f'"{name}","{LABEL}"="chat"')})" for name in ("nothing", METRIC, METRIC)]
    assert len(values(ask(told, " or ".join(terms))[1])) == 1


def test_more_than_seven_days_are_refused(told: Telemetry) -> None:
    assert ask(told, over(f'"{METRIC}"'), 7 * 86400 + 301)[0] == 400


def test_more_than_500_series_are_cut_off_with_a_warning(told: Telemetry) -> None:
    for number in range(501):
        told.put("many", "chat", "AllTraffic", START, 60, [0.1] * 6, host=f"i-{number}")
    _, answer = ask(told, over('"many"'))
    assert len(values(answer)) == 500
    assert answer["warnings"]
