"""CloudWatch for the stack's own alarms: metrics of the functions as they are sent, states as the template says.

The simulated account evaluates alarms of one metric; expressions of several are evaluated here, as far as the template
has them: a sum of all, and runs without an error.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from aws_lambda_powertools.metrics import EphemeralMetrics

from rightsizer import telemetry
from sandbox.cloudwatch.alarms import Alarm, judge
from tests.doors.scene import Scene
from tests.template.stack import stack

type Points = list[tuple[datetime, float]]


class Watch:
    """The datapoints of the stack's metrics, and the states of its alarms."""

    def __init__(self, at: Scene) -> None:
        self.at = at
        self.own: dict[tuple[str, str], Points] = defaultdict(list)
        """By name and door, as the functions sent them."""
        self.depth: dict[str, Points] = defaultdict(list)
        """Messages of a queue, and ages in seconds or milliseconds, as they were looked at."""

    def state(self, name: str) -> str:
        """The state of an alarm now, by the properties that the template gives it."""
        found = stack().of("AWS::CloudWatch::Alarm")[name]
        now = self.at.box.clock.now
        period = found.get("Period") or next(one["MetricStat"]["Period"] for one in found["Metrics"][1:])
        values = list(self._values(found, period, now))
        state = judge(Alarm(name, "", found, now, now), values)
        assert state is not None
        return state

    def note(self, queue: str, value: float | None = None) -> None:
        """A datapoint of SQS or of a stream's age; the number of messages where no value is given."""
        seen = float(len(self.at.stack.peek(queue))) if value is None else value
        self.depth[queue].append((self.at.box.clock.now - timedelta(seconds=1), seen))

    def _values(self, found: Mapping[str, Any], period: int, now: datetime) -> Iterator[float]:
        for number in range(found["EvaluationPeriods"]):
            end = now - timedelta(seconds=period * number)
            value = self._value(found, end - timedelta(seconds=period), end)
            if value is not None:
                yield value

    def _value(self, found: Mapping[str, Any], start: datetime, end: datetime) -> float | None:
        if "Metrics" not in found:
            return of_period(self._points(found), start, end, found["Statistic"])
        expression = found["Metrics"][0]["Expression"]
        series = [one["MetricStat"]["Metric"] for one in found["Metrics"][1:]]
        read = [of_period(self._points(one), start, end, "Sum") for one in series]
        if expression == "SUM(METRICS())":
            known = [value for value in read if value is not None]
            return sum(known) if known else None
        assert expression == "invocations - FILL(errors, 0)"
        invocations, errors = read
        return None if invocations is None else invocations - (errors or 0)

    def _points(self, metric: Mapping[str, Any]) -> Points:
        named = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        match metric["Namespace"]:
            case "rightsizer":
                assert named["service"] == "rightsizer"
                return self.own[metric["MetricName"], named["door"]]
            case "AWS/SQS":
                return self.depth[str(named["QueueName"]).partition(".")[0]]
            case _:
                door = str(named["FunctionName"]).lower()
                if metric["MetricName"] == "IteratorAge":
                    return self.depth[door]
                is_error = metric["MetricName"] == "Errors"
                runs = [run for run in self.at.stack.invocations if run.door in door]
                return [(run.at, float(run.error is not None) if is_error else 1.0) for run in runs]


def of_period(points: Points, start: datetime, end: datetime, statistic: str) -> float | None:
    """One datapoint; None where nothing was sent."""
    values = [value for moment, value in points if start <= moment < end]
    return (max if statistic == "Maximum" else sum)(values) if values else None


@contextmanager
def watching(at: Scene) -> Iterator[Watch]:
    """Keep what the functions send to CloudWatch in the block."""
    watch = Watch(at)

    class Kept(EphemeralMetrics):
        def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
            door = self.dimension_set["door"]
            for name, one in self.metric_set.items():
                watch.own[name, door].append((at.box.clock.now, float(sum(one["Value"]))))

    with patch.object(telemetry, "EphemeralMetrics", Kept):
        yield watch
