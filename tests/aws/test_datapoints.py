"""Datapoints straight from the bytes: what botocore's own parser would give, on the grid, gaps included."""

import json
import math
from array import array
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from rightsizer.aws.cloudwatch import fold, read_fast, timestamps_as_seconds
from rightsizer.aws.session import Session
from rightsizer.domain.usage import Grid, align

START = datetime(2026, 1, 1, tzinfo=UTC)
GRID: Grid = align(START, START + timedelta(minutes=20), 300)
ASKED: dict[str, Any] = {"MetricDataQueries": [], "StartTime": START, "EndTime": START + timedelta(hours=1)}
RESULT = {"Id": "q0", "Timestamps": [START.timestamp()], "Values": [1], "StatusCode": "Complete"}
BODY: dict[str, Any] = {"MetricDataResults": [RESULT], "NextToken": "more"}


class Answer(AWSResponse):
    """A response whose bytes are known."""

    def __init__(self, status: int, body: bytes, kind: str) -> None:
        super().__init__("https://monitoring", status, {"content-type": kind}, None)  # type: ignore[arg-type]
        self._content = body


def client(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, kind: str = "application/x-amz-json-1.0") -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = Session("eu-west-1", attempts=1).client("cloudwatch")
    read_fast(made)
    made.meta.events.register("before-send.cloudwatch", lambda **_: Answer(status, body, kind))
    return made


def test_within_the_block_timestamps_are_seconds_and_elsewhere_datetimes(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudwatch = client(monkeypatch, 200, json.dumps(BODY).encode())
    with timestamps_as_seconds():
        fast = cloudwatch.get_metric_data(**ASKED)
    slow = cloudwatch.get_metric_data(**ASKED)
    assert fast["MetricDataResults"] == [RESULT]
    assert slow["MetricDataResults"][0]["Timestamps"] == [START]
    assert fast["NextToken"] == slow["NextToken"] == "more"


def test_an_error_is_botocores(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudwatch = client(monkeypatch, 400, b'{"__type": "InvalidNextToken", "message": "no"}')
    with timestamps_as_seconds(), pytest.raises(cloudwatch.exceptions.InvalidNextToken):
        cloudwatch.get_metric_data(**ASKED)


@pytest.mark.parametrize("body", [b"{", b"[]"])
def test_what_is_no_json_object_is_left_to_botocore(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    cloudwatch = client(monkeypatch, 200, body)
    with timestamps_as_seconds():
        try:
            found = cloudwatch.get_metric_data(**ASKED)
        except Exception as error:  # whatever botocore makes of it
            found = {"error": str(error)}
    assert "MetricDataResults" not in found


def result(values: dict[int, float], *, as_datetimes: bool = False) -> dict[str, Any]:
    """Values by the number of their period."""
    times = [START + timedelta(seconds=300 * place) for place in values]
    return {"Timestamps": times if as_datetimes else [at.timestamp() for at in times], "Values": list(values.values())}


@pytest.mark.parametrize("as_datetimes", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0},
        {1: 2.0, 2: 3.0},
        {0: 1.0, 3: 4.0},
        {2: 3.0, 1: 2.0},
        {-1: 9.0, 0: 1.0},
        {3: 4.0, 4: 9.0},
        {-2: 9.0},
    ],
    ids=["whole", "in the middle", "with a gap", "descending", "begins before", "ends after", "outside"],
)
def test_each_datapoint_is_put_on_its_period(values: dict[int, float], as_datetimes: bool) -> None:
    folded = fold(None, result(values, as_datetimes=as_datetimes), GRID)
    assert folded is not None
    assert {i: value for i, value in enumerate(folded) if not math.isnan(value)} == {
        place: value for place, value in values.items() if 0 <= place < 4
    }
    assert len(folded) == 4


def test_a_datapoint_within_a_period_belongs_to_it() -> None:
    folded = fold(None, {"Timestamps": [START.timestamp() + 299.0], "Values": [5.0]}, GRID)
    assert folded is not None
    assert folded[0] == 5.0


def test_pages_are_put_together_and_no_datapoint_is_no_series() -> None:
    first = fold(None, result({0: 1.0}), GRID)
    both = fold(first, result({1: 2.0, 2: 3.0}), GRID)
    assert both is not None
    assert list(both)[:3] == [1.0, 2.0, 3.0]
    assert fold(None, result({}), GRID) is None
    assert fold(array("d", [1.0]), result({}), GRID) == array("d", [1.0])
