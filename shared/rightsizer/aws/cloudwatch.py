"""CloudWatch's answers: datapoints as arrays on a grid, and endpoints that an alarm is about."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.usage import Grid
from rightsizer.errors import PermissionMissingError, ReadError, ThrottledError, VanishedError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient


DEPTH = 3
"""How deep children of composite alarms are followed."""
MOST_NAMES = 100
"""Names that one DescribeAlarms takes; the rule of a composite alarm has at most as many children."""
_KINDS = ("MetricAlarms", "CompositeAlarms")


class CloudWatchAlarms:
    """Asks CloudWatch which endpoints are behind an alarm."""

    def __init__(self, session: Session) -> None:
        self._client: CloudWatchClient = session.client("cloudwatch")

    def endpoints_in_alarm(self, alarm: str) -> tuple[str, ...]:
        """Endpoint names of the contributors in ALARM, or in the dimensions of the alarm and its children.

        An alarm that no longer exists means no endpoint.
        """
        try:
            names = list(self._contributors(alarm))
        except (PermissionMissingError, ThrottledError):
            raise
        except VanishedError:
            return ()
        except ReadError:
            names = []  # not an alarm with contributors: its dimensions tell
        return tuple(dict.fromkeys(names or self._dimensions({"AlarmNames": [alarm]}, DEPTH)))

    def _contributors(self, alarm: str) -> Iterator[str]:
        token: dict[str, Any] = {}
        while True:
            with translate_read_errors(
                "cloudwatch:DescribeAlarmContributors", f"asking which endpoints the alarm {alarm} means"
            ):
                page = self._client.describe_alarm_contributors(AlarmName=alarm, **token)
            for contributor in page["AlarmContributors"]:
                name = contributor["ContributorAttributes"].get("EndpointName")
                if name:
                    yield name
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _dimensions(self, which: Mapping[str, Any], depth: int) -> Iterator[str]:
        with translate_read_errors("cloudwatch:DescribeAlarms", "reading the dimensions of an alarm"):
            pages = self._client.get_paginator("describe_alarms").paginate(
                AlarmTypes=["MetricAlarm", "CompositeAlarm"], **which
            )
            found: list[Any] = list(pages)
        for page in found:
            for alarm in page.get("MetricAlarms", ()):
                yield from endpoints_of(alarm)
            for composite in page.get("CompositeAlarms", ()) if depth else ():
                if firing := self._children_in_alarm(composite["AlarmName"]):
                    yield from self._dimensions({"AlarmNames": firing}, depth - 1)

    def _children_in_alarm(self, composite: str) -> list[str]:
        """Names of the children in ALARM. The request takes no other parameter, and its answer has no dimensions."""
        with translate_read_errors("cloudwatch:DescribeAlarms", f"reading the children of the alarm {composite}"):
            pages: Any = self._client.get_paginator("describe_alarms").paginate(ChildrenOfAlarmName=composite)
            found = [alarm for page in pages for kind in _KINDS for alarm in page.get(kind, ())]
        return [alarm["AlarmName"] for alarm in found if alarm["StateValue"] == "ALARM"][:MOST_NAMES]


def endpoints_of(alarm: Mapping[str, Any]) -> Iterator[str]:
    """Endpoint names in the dimensions of a metric alarm, its metric math included."""
    stats = [query.get("MetricStat", {}).get("Metric", {}) for query in alarm.get("Metrics", ())]
    for metric in (alarm, *stats):
        for dimension in metric.get("Dimensions", ()):
            if dimension["Name"] == "EndpointName":
                yield dimension["Value"]


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
