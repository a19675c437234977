"""CPU of reading one endpoint's metrics: `python -m bench.reading [--rounds 9]`, of 14 and of 63 days.

GetMetricData is answered from memory by bytes as AWS sends them, so that only the program's own work is timed: the
requests, the answers put into arrays, and the arrays folded into days. The least of the rounds counts. The command
fails above the limits; beside other work it may fail for that alone.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse

from rightsizer import bootstrap
from rightsizer.aws.metrics import CloudWatchMetrics, RateLimiter
from rightsizer.aws.session import Session
from rightsizer.domain.usage import OF_A_DAY, SIGNALS, SLOT_S, MetricWindow
from rightsizer.flows.read_usage import COUNTED
from rightsizer.ports.evaluation import MetricRequest
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage

LIMITS_MS = {14: 40.0, 63: 150.0}
"""CPU of one endpoint, by days read."""
END = datetime(2026, 11, 2, tzinfo=UTC)
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_EC2_METADATA_DISABLED": "true"}
REQUEST = MetricRequest(
    "endpoint", "AllTraffic", tuple(signal for signal in SIGNALS if signal != COUNTED), by_day=OF_A_DAY
)
RANGES = {"Invocations": (100, 400), "Invocation5XXErrors": (0, 2), "ModelLatency": (70_000, 90_000)}
"""Least and most of a datapoint; of every other metric 10 to 40 percent. Sums are whole, averages have 15 digits."""


class CannedCloudWatch:
    """Answers GetMetricData with a datapoint for each period; the same request gets the same bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def __call__(self, request: Any, **_: Any) -> Any:
        """The answer as botocore gets it from the wire."""
        if request.body not in self._known:
            self._known[request.body] = json.dumps(self._answer(json.loads(request.body))).encode()
        headers: Any = {"content-type": "application/x-amz-json-1.0"}
        answer: Any = AWSResponse(request.url, 200, headers, None)
        answer._content = self._known[request.body]
        return answer

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = []
        for query in asked["MetricDataQueries"]:
            stat = query["MetricStat"]
            times = [float(at) for at in range(int(asked["StartTime"]), int(asked["EndTime"]), stat["Period"])]
            values = _values(stat["Metric"]["MetricName"], stat["Stat"], len(times))
            rows.append({"Id": query["Id"], "Timestamps": times, "Values": values, "StatusCode": "Complete"})
        return {"MetricDataResults": rows}


def _values(metric: str, statistic: str, size: int) -> list[float]:
    """Values whose quantiles ascend."""
    chance, (low, high) = random.Random(metric), RANGES.get(metric, (10, 40))
    if statistic == "Sum":
        return [float(chance.randrange(low, high)) for _ in range(size)]
    share = 0.5 + float(statistic[1:]) / 100 if statistic[0] == "p" else 1.0
    return [share * chance.uniform(low, high) for _ in range(size)]


def least_ms(work: Callable[[], object], rounds: int) -> float:
    """Least CPU of the rounds, in milliseconds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken) * 1000


@patch.dict(os.environ, ENVIRONMENT)
@patch.object(RateLimiter, "take", lambda *_: None)
def measure(days: int, rounds: int) -> tuple[float, float]:
    """Milliseconds of reading into arrays, and of folding these into days."""
    session = Session("eu-west-1")
    reader = session.client("cloudwatch", validated=False)  # the client that CloudWatchMetrics takes
    reader.meta.events.register("before-send.cloudwatch.GetMetricData", CannedCloudWatch())
    metrics, hardware = CloudWatchMetrics(session), bootstrap.catalogue().find("ml.g5.2xlarge")
    assert hardware is not None
    setup = VariantSetup(hardware, 2)

    def read() -> MetricWindow:
        (window,) = metrics.read([REQUEST], END - timedelta(days=days), END, SLOT_S)
        assert isinstance(window, MetricWindow), window
        return window

    window = read()
    return least_ms(read, rounds), least_ms(lambda: daily_usage(window, setup), rounds)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args(arguments).rounds
    slow = []
    for days, limit in LIMITS_MS.items():
        reading, folding = measure(days, rounds)
        total = reading + folding
        print(f"{days} days: read {reading:.1f} ms, folded {folding:.1f} ms, together {total:.1f} (limit {limit:.0f})")
        if total > limit:
            slow.append(days)
    for days in slow:
        print(f"over its limit: {days} days of one endpoint", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
