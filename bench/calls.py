"""AWS calls of a full evaluation and of the one on the next day: `python -m bench.calls [--endpoints 300]`.

The sweep's and the evaluation's own handlers run on the sandbox, page by page through the queue, as deployed. Reads of
the account are counted apart from metric reads (batched to the API's limits) and from our own table and queue.
Requests for metrics are cut by how many datapoints could come, so the series are seeded thin: the calls are the same.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any
from unittest.mock import patch

from functions.evaluate.app import lambda_handler as evaluate
from functions.sweep.app import lambda_handler as sweep
from rightsizer import bootstrap
from rightsizer.aws.metrics import RateLimiter
from sandbox.account import Sandbox
from sandbox.functions import Context
from sandbox.stack import stack

FIRST_EACH, FIRST_ONCE = 1.7, 100
"""All calls of the first evaluation but those for metrics: from 200 endpoints on below 2.1 an endpoint."""
READS_EACH, READS_ONCE = 1.4, 40
"""Read calls for each single-variant endpoint, and those of prices, quotas and lists of four processes.
Metric reads, and our own table, queue and bucket, are apart."""
NEXT_EACH, NEXT_ONCE = 0.13, 10
"""Calls of the second evaluation for metrics and digests. A batch of 250 endpoints is read in turns of 25, 50, 100 and
75, so that what was read is kept where the function is killed; each turn reads and writes digests of its own. The
pages of digests are a power of two, so that an endpoint's share of the calls goes up and down with the fleet's size."""
ALL_EACH, ALL_ONCE = 1.1, 100
"""Calls of the second evaluation in all, the own table and queue included; each invocation is a new process."""
OURS = ("dynamodb", "sqs", "sns", "s3")
METRICS = "cloudwatch:GetMetricData"
DAYS, PERIOD_S = 14, 300
SEEDED = timedelta(hours=6)
CONTEXT = Context("bench", 1769, "arn:aws:lambda:::bench", "bench", timeout_s=300)


def seed(box: Sandbox, endpoints: int) -> None:
    """Single-variant endpoints, each with the same few hours of every signal."""
    points = int(SEEDED.total_seconds()) // PERIOD_S
    today = box.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = today - SEEDED  # of a day that is over: an open one is not read
    box.set_quota("ml.g5.2xlarge", endpoints)
    for index in range(endpoints):
        name = f"endpoint-{index:04}"
        box.add_endpoint(name, instance_type="ml.g5.2xlarge", count=1)
        if index % 10 == 0:
            box.autoscale(name, 1, 4)
        for metric in ("GPUUtilization", "GPUMemoryUtilization", "CPUUtilization", "MemoryUtilization"):
            box.put_series(name, "AllTraffic", metric, start, PERIOD_S, [20.0] * points, samples=5.0)
        box.put_series(name, "AllTraffic", "Invocations", start, PERIOD_S, [300.0] * points)
        box.put_series(
            name,
            "AllTraffic",
            "ModelLatency",
            start,
            PERIOD_S,
            [80_000.0] * points,
            samples=300.0,
            percentiles={f"p{p}": [90_000.0] * points for p in (50, 95, 99)},
        )


def deploy(box: Sandbox) -> dict[str, str]:
    """Table, bucket and queue as the template describes them; the functions' environment."""
    described = stack()
    table = described.of("AWS::DynamoDB::Table")["Table"]
    keys = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    box.client("dynamodb").create_table(TableName="rightsizer", **{key: table[key] for key in keys})
    s3 = box.client("s3")
    where = {"LocationConstraint": s3.meta.region_name}
    s3.create_bucket(Bucket="rightsizer-digests", CreateBucketConfiguration=where)
    queue = box.client("sqs").create_queue(QueueName="evaluation")["QueueUrl"]
    variables = described.function("evaluate")["Environment"]["Variables"]
    ours = {key: str(value) for key, value in variables.items() if key.startswith("RIGHTSIZER_")}
    return ours | {
        "RIGHTSIZER_TABLE": "rightsizer",
        "RIGHTSIZER_QUEUE_URL": queue,
        "RIGHTSIZER_BUCKET": "rightsizer-digests",
    }


def batches(box: Sandbox, queue: str) -> Iterator[dict[str, Any]]:
    """What Lambda would hand to the function until the queue is empty."""
    sqs = box.client("sqs")
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []):
        records = [{"messageId": m["MessageId"], "body": m["Body"], "eventSource": "aws:sqs"} for m in messages]
        yield {"Records": records}
        for message in messages:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def run(box: Sandbox, variables: dict[str, str]) -> Counter[str]:
    """One full sweep and every evaluation that follows; the calls by action, without those of the queue's poller."""
    counted: Counter[str] = Counter()

    def called(handler: Any, event: dict[str, Any]) -> Any:
        bootstrap.reset()  # each invocation in a process of its own, as a day later: nothing is warm
        bootstrap.set_clock(lambda: box.clock.now)
        before = len(box.calls)
        answer = handler(event, CONTEXT)
        counted.update(call.action for call in box.calls[before:])
        return answer

    due = {
        "source": "rightsizer.scheduler",
        "detail-type": "Sweep Due",
        "id": "bench",
        "time": box.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "detail": {"sweep": "full"},
    }
    called(sweep, due)
    for number, batch in zip(count(1), batches(box, variables["RIGHTSIZER_QUEUE_URL"]), strict=False):
        failed = called(evaluate, batch)["batchItemFailures"]
        print(f"\rbatch {number}, {len(failed)} failed", end="", file=sys.stderr)
        if failed:
            raise SystemExit(f"\n{len(failed)} messages of batch {number} failed: the counts would mean nothing")
    print(file=sys.stderr)
    return counted


def reads(counted: Counter[str]) -> int:
    """Calls that read the account, without metrics."""
    return sum(n for action, n in counted.items() if action != METRICS and action.split(":")[0] not in OURS)


def over(endpoints: int, counted: Counter[str], again: Counter[str]) -> list[str]:
    """Say how many calls there were, and return a sentence for each budget that does not hold."""
    second = again[METRICS] + sum(n for action, n in again.items() if action.startswith("s3:"))
    first = counted.total() - counted[METRICS]
    told = []
    for what, calls, each, once in (
        ("all calls of the first evaluation but for metrics", first, FIRST_EACH, FIRST_ONCE),
        ("reads of the account", reads(counted), READS_EACH, READS_ONCE),
        ("metrics and daily usage of the second evaluation", second, NEXT_EACH, NEXT_ONCE),
        ("all calls of the second evaluation", again.total(), ALL_EACH, ALL_ONCE),
    ):
        allowed = each * endpoints + once
        print(f"{what}: {calls} calls (budget {allowed:.0f}: {each} an endpoint and {once})")
        if calls > allowed:
            told.append(f"{what}: {calls} calls, above {allowed:.0f}")
    return told


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit code says whether the budgets hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=300)
    given = parser.parse_args(arguments)
    began = time.process_time()
    with Sandbox() as box, patch.object(RateLimiter, "take"):  # calls are counted here, and none of them is throttled
        seed(box, given.endpoints)
        variables = deploy(box)
        with patch.dict(
            os.environ, variables | {"POWERTOOLS_LOG_LEVEL": "ERROR", "POWERTOOLS_METRICS_DISABLED": "true"}
        ):
            counted = run(box, variables)
            box.clock.advance(timedelta(days=1))
            again = run(box, variables)
            bootstrap.reset()
    print(f"{'action':<55}{'first':>8}{'each':>9}{'second':>9}")
    for action in sorted(counted | again):
        print(f"{action:<55}{counted[action]:>8}{counted[action] / given.endpoints:>9.2f}{again[action]:>9}")
    seconds = time.process_time() - began
    print(f"\n{given.endpoints} endpoints, {DAYS} days at {PERIOD_S} s; CPU of product and sandbox: {seconds:.0f} s")
    broken = over(given.endpoints, counted, again)
    for sentence in broken:
        print(f"over its budget: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
