"""A simulated account as a server, whose GetMetricData answers are recorded once and replayed; and CloudWatch's quota.

The simulated account needs a second to make the answers of one endpoint over 63 days, as much as the product needs to
read them. Here it makes each answer once, for the endpoint that others are like, and every further one is put together
from text. So a function in a process of its own meets answers as they come over the wire, at little cost of ours.
"""

import json
import math
import random
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.aws.metrics import QUOTA
from sandbox.account import Sandbox
from sandbox.answers import error_answer
from sandbox.gate import Fault
from sandbox.server import GatedApplication

KINDS = 2
"""Endpoints unlike each other; every further one is like one of them."""
UNLIMITED = 1_000_000_000
"""A quota of datapoints a second that nothing reaches."""
PERIOD_S, VARIANT = 300, "AllTraffic"
UTILISATIONS = "GPUUtilization", "GPUMemoryUtilization", "CPUUtilization", "MemoryUtilization"

type Environ = dict[str, Any]
type Start = Callable[..., Any]
type Recorded = dict[tuple[str, ...], tuple[str, int]]


def seed(box: Sandbox, endpoints: int, days: int, period_s: int = PERIOD_S) -> None:
    """Endpoints whose metrics fill the look-back and today: a day's rise and fall, with chance.

    `period_s`: seconds from one datapoint to the next; above `PERIOD_S` there are gaps.
    """
    end = box.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    start, points = end - timedelta(days=days), (days + 1) * 86400 // period_s
    box.set_quota("ml.g5.2xlarge", endpoints)
    for number in range(endpoints):
        box.add_endpoint(f"endpoint-{number:05}", instance_type="ml.g5.2xlarge", created=start - timedelta(days=9))
    for number in range(min(KINDS, endpoints)):
        name, chance = f"endpoint-{number:05}", random.Random(number)
        load = [1.2 + math.sin(math.tau * at * period_s / 86400) + chance.random() / 5 for at in range(points)]
        for metric in UTILISATIONS:
            mean = [at * chance.uniform(14, 18) for at in load]
            highest = [at * 1.3 for at in mean]
            box.put_series(name, VARIANT, metric, start, period_s, mean, samples=5.0, maximum=highest)
        box.put_series(name, VARIANT, "Invocations", start, period_s, [float(round(250 * at)) for at in load])
        box.put_series(name, VARIANT, "Invocation5XXErrors", start, period_s, [0.0] * points)
        mean = [60_000 * at * chance.uniform(0.9, 1.1) for at in load]
        shares = {"p50": 0.9, "p90": 1.4, "p95": 1.7, "p99": 2.6}
        quantiles = {name: [at * share for at in mean] for name, share in shares.items()}
        samples = [250 * at for at in load]
        box.put_series(
            name, VARIANT, "ModelLatency", start, period_s, mean, samples=samples, percentiles=quantiles
        )  # fmt: skip


def unwatched(number: int) -> None:
    """Nobody wants to know of a request."""


class Canned(GatedApplication):
    """The account's server: answers of GetMetricData are replayed, within CloudWatch's quota of datapoints a second.

    Beyond it a request is throttled, as a bucket that holds one second's datapoints. `recorded` may be shared by
    accounts that were seeded alike.
    """

    def __init__(self, box: Sandbox, recorded: Recorded, quota: int = QUOTA) -> None:
        super().__init__(box, lambda: None)
        self._cloudwatch, self._recorded, self._guard = box.client("cloudwatch"), recorded, threading.Lock()
        self._quota, self._stock, self._since = quota, float(quota), time.monotonic()
        self.requests, self.datapoints, self.throttled = 0, 0, 0
        self.watch: Callable[[int], None] = unwatched
        """Told the number of each request when it is done and its answer is about to leave."""

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer one request."""
        with self._guard:
            self.requests += 1
            number = self.requests
        answer = list(self._answered(environ, start))
        self.watch(number)
        return answer

    def _answered(self, environ: Environ, start: Start) -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetMetricData"):
            return super().__call__(environ, start)
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        found = [(query["Id"], *self._one(asked, query)) for query in asked["MetricDataQueries"]]
        if not self.within_quota(sum(points for *_, points in found)):
            fault, headers = Fault("ThrottlingException", "Rate exceeded"), {"content-type": environ["CONTENT_TYPE"]}
            status, headers, body = error_answer(fault, "cloudwatch", headers)
            return _sent(start, f"{status} Refused", headers, body)
        rows = ",".join(f'{{"Id":"{name}",{text}}}' for name, text, _ in found)
        kind = {"content-type": environ["CONTENT_TYPE"]}
        return _sent(start, "200 OK", kind, f'{{"MetricDataResults":[{rows}],"Messages":[]}}'.encode())

    def within_quota(self, points: int) -> bool:
        """Whether so many datapoints are still within this second's quota."""
        with self._guard:
            now = time.monotonic()
            self._stock, self._since = min(self._quota, self._stock + (now - self._since) * self._quota), now
            if points > self._stock:
                self.throttled += 1
                return False
            self._stock -= points
            self.datapoints += points
            return True

    def _one(self, asked: Any, query: Any) -> tuple[str, int]:
        """The text of one result, without its Id, and how many datapoints it has."""
        metric = query["MetricStat"]["Metric"]
        names = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
        like = f"endpoint-{int(names['EndpointName'].rpartition('-')[2]) % KINDS:05}"
        window = str(asked["StartTime"]), str(asked["EndTime"]), str(query["MetricStat"]["Period"])
        key = (like, metric["MetricName"], query["MetricStat"]["Stat"], *sorted(names), *window)
        with self._lock:
            if key not in self._recorded:
                self._recorded[key] = self._record(asked, query, names | {"EndpointName": like})
            return self._recorded[key]

    def _record(self, asked: Any, query: Any, names: dict[str, str]) -> tuple[str, int]:
        metric = query["MetricStat"]["Metric"]
        own = metric | {"Dimensions": [{"Name": name, "Value": value} for name, value in names.items()]}
        answer = self._cloudwatch.get_metric_data(
            MetricDataQueries=[query | {"MetricStat": query["MetricStat"] | {"Metric": own}}],
            StartTime=datetime.fromtimestamp(asked["StartTime"], UTC),
            EndTime=datetime.fromtimestamp(asked["EndTime"], UTC),
            ScanBy=asked["ScanBy"],
        )
        (row,) = answer["MetricDataResults"]
        if "NextToken" in answer:
            raise SystemExit(f"{row['Label']}: one statistic does not fit one page")
        times = [int(at.timestamp()) for at in row["Timestamps"]]
        kept = {key: row[key] for key in ("Label", "Values", "StatusCode")} | {"Timestamps": times}
        return json.dumps(kept, separators=(",", ":"))[1:-1], len(times)


def _sent(start: Start, status: str, headers: dict[str, str], body: bytes) -> Iterable[bytes]:
    start(status, [*headers.items(), ("content-length", str(len(body)))])
    return [body]
