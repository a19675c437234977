"""Real serving traces as load shapes; skipped where the traces are not at hand."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandbox.account import Sandbox
from sandbox.sagemaker.load import Served
from sandbox.traces import FILE, shapes

TRACES = Path(os.environ.get("TRACES") or Path(__file__).parents[3] / "shared" / "traces")
with_traces = pytest.mark.skipif(not (TRACES / FILE).is_file(), reason=f"no {FILE} in {TRACES}; set TRACES")
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def test_a_missing_trace_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=FILE):
        shapes(tmp_path, 3)


@with_traces
def test_shapes_are_relative_repeatable_and_differ_by_day() -> None:
    (first, *_), (again, *_) = shapes(TRACES, 5), shapes(TRACES, 5)
    minutes = [MONDAY + timedelta(minutes=m) for m in range(1440)]
    values = [first(at) for at in minutes]
    assert values == [again(at) for at in minutes]
    assert 0 <= min(values) <= max(values) <= 1.1
    assert max(values) > 0.8
    assert values != [first(at + timedelta(days=1)) for at in minutes]


@with_traces
def test_a_trace_can_drive_an_endpoint(box: Sandbox) -> None:
    (shape,) = shapes(TRACES, 1)
    box.add_endpoint("images", "ml.g5.xlarge")
    box.load("images", lambda at, kind, count: Served(round(600 * shape(at)), gpu=90 * min(1.0, shape(at))))
    box.clock.advance(timedelta(hours=1))
    metrics = box.client("cloudwatch").list_metrics(Namespace="AWS/SageMaker", MetricName="Invocations")["Metrics"]
    assert len(metrics) == 1
