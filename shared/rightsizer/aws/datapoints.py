"""Datapoints of GetMetricData: from the bytes of an answer straight into arrays on a grid.

A fortnight of one endpoint has 60,000 datapoints. botocore makes a `datetime` of each timestamp, which costs five times
as much as reading the JSON. Here a JSON answer is read once, its timestamps stay seconds, and a series without a gap
is taken over whole. Answers in another protocol, or that are no JSON, are left to botocore; both forms are folded.
docs/performance.md has the figures.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from rightsizer.domain.usage import Grid

_as_seconds: ContextVar[bool] = ContextVar("as_seconds", default=False)
"""Whether the running thread wants seconds: others read a few datapoints through the same client, as datetimes."""


def read_fast(client: Any) -> None:
    """Let the client leave timestamps as seconds within `timestamps_as_seconds`; registered once a client."""
    client.meta.events.register(
        "before-parse.cloudwatch.GetMetricData", _decode, unique_id="rightsizer-datapoints-as-seconds"
    )


@contextmanager
def timestamps_as_seconds() -> Iterator[None]:
    """GetMetricData of this thread has timestamps in seconds since 1970 where the answer is JSON."""
    token = _as_seconds.set(True)
    try:
        yield
    finally:
        _as_seconds.reset(token)


def _decode(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Read the JSON before botocore's parser does, which is left an empty body; an error's answer stays as it is."""
    kind = response_dict["headers"].get("content-type", "")
    if not _as_seconds.get() or response_dict["status_code"] != 200 or "json" not in kind:
        return
    try:
        found = from_json(response_dict["body"])
    except ValueError:
        return
    if isinstance(found, dict):
        customized_response_dict.update(found)
        response_dict["body"] = b"{}"


def fold(values: "array[float] | None", result: Mapping[str, Any], grid: Grid) -> "array[float] | None":
    """The series with the datapoints of one result, which may be one page of it; NaN marks a gap.

    None where no datapoint has come. Datapoints outside of the grid are left out.
    """
    found: Sequence[float] = result["Values"]
    times = result["Timestamps"]
    if not times:
        return values
    if isinstance(times[0], datetime):
        times = [at.timestamp() for at in times]
    if values is None:
        values = array("d", [float("nan")]) * grid.size
    start, period, size = grid.start.timestamp(), grid.period_s, grid.size
    first = int((times[0] - start) // period)
    if first >= 0 and times == _times_of(grid)[first : first + len(times)]:
        values[first : first + len(times)] = array("d", found)
        return values
    for at, value in zip(times, found, strict=True):
        place = int((at - start) // period)
        if 0 <= place < size:
            values[place] = value
    return values


@lru_cache(maxsize=8)
def _times_of(grid: Grid) -> list[float]:
    """Begin of each period in seconds since 1970: the same for every series of a reading."""
    start = grid.start.timestamp()
    return [start + i * grid.period_s for i in range(grid.size)]
