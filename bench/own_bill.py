"""What rightsizer itself uses, counted on the simulated account: `python -m bench.own_bill [--write]`.

The functions' own handlers run as deployed: a full sweep with its evaluation, a light sweep, a tick with nothing due
and a weekly report, for two sizes of fleet. The difference is what one more endpoint adds. `--write` keeps the
quantities in the catalogue and writes docs/cost.md from them; without it both are compared, and more than is written
fails. Requests that AWS charges nothing for (prices, quotas, lists of SageMaker) count by their time.
"""

import argparse
import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from bench.calls import batches, deploy, seed
from functions.apply.app import lambda_handler as apply
from functions.evaluate.app import lambda_handler as evaluate
from functions.report.app import lambda_handler as report
from functions.sweep.app import lambda_handler as sweep
from rightsizer import bootstrap, catalog
from rightsizer.aws.metrics import RateLimiter
from rightsizer.reporting.totals import ALARM_METRICS, OCCASIONS, own_bill, price, price_date, usd_of
from rightsizer.telemetry import logger
from sandbox.account import Sandbox
from sandbox.functions import Context
from sandbox.stack import ROOT

QUANTITIES = ROOT / "shared" / "rightsizer" / "catalog" / "own_use.csv"
PAGE = ROOT / "docs" / "cost.md"
A_CALL_S = 0.015
"""Time of one call of AWS within its Region, which the simulated account does not take."""
START_S = 0.9
"""A cold start, of each function that runs less than every few minutes; Lambda bills it since August 2025."""
PLATFORM_BYTES = 900
"""What Lambda itself writes into the log of an invocation, in JSON: start, end and report."""
TOLERANCE = Decimal("1.25")
"""So much more than is written may be measured before the command fails: times depend on the machine."""
SIZES = (10, 100, 1000, 10000)
MEMORY = {"sweep": 512, "evaluate": 1769, "apply": 1024, "report": 1024}

TEXT = (ROOT / "bench" / "cost_page.txt").read_text()
"""What docs/cost.md says around its tables."""


@dataclass(slots=True)
class Counted:
    """Quantities of some invocations, by the names of the price list."""

    items: dict[str, float] = field(default_factory=dict)

    def add(self, item: str, quantity: float) -> None:
        """So much more of one thing."""
        self.items[item] = self.items.get(item, 0.0) + quantity


def write_units(item: Mapping[str, Any], *, twice: bool = False) -> float:
    """Write units of one item: by the kilobyte, again for the index that it is in, double in a transaction."""
    size = ceil(len(json.dumps(item, default=str)) / 1024)
    return size * (2 if "gsi1pk" in item else 1) * (2 if twice else 1)


ONE_OF = {
    "PutObject": "bucket write",
    "GetObject": "bucket read",
    "SendMessage": "queue request",
    "SendMessageBatch": "queue request",
    "Publish": "message",
    "PutEvents": "event",
    "GetCostAndUsage": "cost explorer request",
    "GetCostAndUsageWithResources": "cost explorer request",
}
"""Requests that are priced each."""
DELETED = 2.0
"""Write units of an update or a deletion: the item and its index."""


def count_call(counted: Counted, operation: str, given: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Add what one request costs; a request that AWS does not charge adds its time alone."""
    if operation in ONE_OF:
        counted.add(ONE_OF[operation], 1)
    elif operation == "GetMetricData" and "NextToken" not in given:
        counted.add("metric read", len(given["MetricDataQueries"]))
    elif operation in ("Query", "GetItem", "BatchGetItem"):
        counted.add("table read", read_units(operation, given, answer))
    else:
        counted.add("table write", sum(written_by(operation, given)))


def read_units(operation: str, given: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
    """By four kilobytes of the answer; a query of the index half of it, and no key less than one unit."""
    size = ceil(len(json.dumps(answer, default=str)) / 4096)
    if operation == "Query":
        return size / 2
    keys = sum(len(each["Keys"]) for each in given.get("RequestItems", {}).values())
    return float(max(size, keys))


def written_by(operation: str, given: Mapping[str, Any]) -> Iterator[float]:
    """Write units of each item of a request to the table; nothing for other requests."""
    match operation:
        case "PutItem":
            yield write_units(given["Item"])
        case "UpdateItem" | "DeleteItem":
            yield DELETED
        case "BatchWriteItem":
            rows = [row for each in given["RequestItems"].values() for row in each]
            yield from (write_units(row["PutRequest"]["Item"]) if "PutRequest" in row else DELETED for row in rows)
        case "TransactWriteItems":
            for each in given["TransactItems"]:
                yield write_units(each["Put"]["Item"], twice=True) if "Put" in each else DELETED * 2


@contextmanager
def counting(counted: Counted) -> Iterator[list[str]]:
    """Count each request of the clients in the block; the list has their operations."""
    made: list[str] = []
    really = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, given: dict[str, Any]) -> Any:
        answer = really(client, operation, given)
        made.append(operation)
        count_call(counted, operation, given, answer)
        return answer

    with patch.object(BaseClient, "_make_api_call", call):
        yield made


def invoke(
    box: Sandbox, counted: Counted, name: str, handler: Callable[[Any, Any], Any], event: Any, *, cold: bool
) -> Any:
    """One invocation: its requests, its time, its log, and the metrics of its own that it sends."""
    if cold:
        bootstrap.reset()
        bootstrap.set_clock(lambda: box.clock.now)
    text = io.StringIO()
    context = Context(name, MEMORY[name], f"arn:aws:lambda:::{name}", name, timeout_s=300)
    began = time.process_time()
    (lines,) = [one for one in logger.handlers if isinstance(one, logging.StreamHandler)]
    with counting(counted) as made, redirect_stdout(text), patch.object(lines, "stream", text):
        answer = handler(event, context)
    seconds = time.process_time() - began + len(made) * A_CALL_S + (START_S if cold else 0)
    counted.add("function call", 1)
    counted.add("GB-second", seconds * MEMORY[name] / 1024)
    counted.add("log byte", len(text.getvalue()) + PLATFORM_BYTES)
    own = [json.loads(line) for line in text.getvalue().splitlines() if '"CloudWatchMetrics"' in line]
    sent = {(each["Name"], name) for line in own for each in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    counted.add("metric hour", len(sent))
    return answer


def due(box: Sandbox, kind: str, **detail: str) -> dict[str, Any]:
    """An event of one of the stack's schedules."""
    at = box.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"source": "rightsizer.scheduler", "detail-type": kind, "id": "bench", "time": at, "detail": detail}


def day(box: Sandbox, variables: Mapping[str, str], counted: Counted) -> None:
    """A full sweep and each evaluation that follows."""
    invoke(box, counted, "sweep", sweep, due(box, "Sweep Due", sweep="full"), cold=True)
    for batch in batches(box, variables["RIGHTSIZER_QUEUE_URL"]):
        failed = invoke(box, counted, "evaluate", evaluate, batch, cold=True)["batchItemFailures"]
        counted.add("queue request", 2 * len(batch["Records"]))
        if failed:
            raise SystemExit(f"{len(failed)} messages failed: the counts would mean nothing")


def measure(endpoints: int) -> dict[str, Counted]:
    """The quantities of each occasion with so many endpoints, on a day after the first."""
    with Sandbox() as box, patch.object(RateLimiter, "take"):
        seed(box, endpoints)
        topic = box.client("sns").create_topic(Name="rightsizer")["TopicArn"]
        own = {"RIGHTSIZER_FUNCTIONS": "sweep=512,evaluate=1769,apply=1024", "RIGHTSIZER_TOPIC_ARN": topic}
        variables = deploy(box) | own
        with patch.dict(os.environ, variables | {"POWERTOOLS_LOG_LEVEL": "INFO"}):
            day(box, variables, Counted())
            box.clock.advance(timedelta(days=1))
            found = {each: Counted() for each in ("day", "light sweep", "tick", "report")}
            day(box, variables, found["day"])
            box.clock.advance(timedelta(hours=1))
            invoke(box, found["light sweep"], "sweep", sweep, due(box, "Sweep Due", sweep="light"), cold=True)
            invoke(box, Counted(), "apply", apply, due(box, "Tick"), cold=True)
            invoke(box, found["tick"], "apply", apply, due(box, "Tick"), cold=False)
            invoke(box, found["report"], "report", report, due(box, "Report Due", report="weekly"), cold=True)
            bootstrap.reset()
            kept = box.client("s3").list_objects_v2(Bucket=variables["RIGHTSIZER_BUCKET"]).get("Contents", [])
            found["day"].add("bucket byte", sum(each["Size"] for each in kept))
            rows = box.client("dynamodb").scan(TableName=variables["RIGHTSIZER_TABLE"])["Items"]
            size = sum(len(json.dumps(row)) * (2 if "gsi1pk" in row else 1) for row in rows)
            found["day"].add("table byte", size)
    return found


def fit(small: int, large: int) -> list[catalog.OwnUseRow]:
    """What each occasion uses in any case and for each endpoint, from fleets of two sizes; never less than nothing."""
    few, many = measure(small), measure(large)
    rows = []
    for occasion in few:
        for item in sorted(few[occasion].items | many[occasion].items):
            low, high = few[occasion].items.get(item, 0.0), many[occasion].items.get(item, 0.0)
            each = max((high - low) / (large - small), 0.0)
            fixed = max(low - each * small, 0.0)
            if fixed or each:
                rows.append(catalog.OwnUseRow(occasion, item, rounded(fixed), rounded(each)))
    return rows


def rounded(value: float) -> Decimal:
    """Three digits that count."""
    return Decimal(f"{value:.3g}").normalize()


def text_of(rows: Sequence[catalog.OwnUseRow]) -> str:
    """The file of the catalogue."""
    return "occasion,item,fixed,each\n" + "".join(f"{r.occasion},{r.item},{r.fixed:f},{r.each:f}\n" for r in rows)


def page() -> str:
    """docs/cost.md, from the quantities and prices of the catalogue."""
    bills = [own_bill(n) for n in SIZES]
    sums = [usd_of(bill) for bill in bills]
    rows = [
        "| USD a month | " + " | ".join(f"{n:,} endpoints" for n in SIZES) + " |",
        "|---" + "|--:" * len(SIZES) + "|",
    ]
    for lines in zip(*bills, strict=True):
        rows.append(f"| {lines[0].what} | " + " | ".join(f"{line.usd:,.2f}" for line in lines) + " |")
    rows.append("| **sum** | " + " | ".join(f"**{usd:,.2f}**" for usd in sums) + " |")
    each = [usd / n * 100 for usd, n in zip(sums, SIZES, strict=True)]
    rows.append("| for each 100 endpoints | " + " | ".join(f"{usd:,.2f}" for usd in each) + " |")
    prices = [f"| {r.item} | {r.usd.normalize():f} | {r.unit} | {r.source} |" for r in catalog.own_prices().values()]
    as_of = price_date()
    alarms = ALARM_METRICS * price("alarm metric")
    return TEXT.format(
        table="\n".join(rows),
        prices="\n".join(prices),
        as_of=as_of,
        alarms=alarms,
        metrics=ALARM_METRICS,
    )


def main(arguments: list[str] | None = None) -> int:
    """Count, and write or compare; the exit code says whether more is used than is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=100, help="of the larger fleet; the smaller has a fifth")
    parser.add_argument("--write", action="store_true", help="keep the quantities, and write docs/cost.md")
    parser.add_argument("--page", action="store_true", help="write docs/cost.md from the quantities that are kept")
    given = parser.parse_args(arguments)
    if given.page:
        PAGE.write_text(page())
        return 0
    rows = fit(given.endpoints // 5, given.endpoints)
    if given.write:
        QUANTITIES.write_text(text_of(rows))
        catalog.own_use.cache_clear()
        PAGE.write_text(page())
        return 0
    kept = {(row.occasion, row.item): row for row in catalog.own_use()}
    more = [row for row in rows if is_more(row, kept.get((row.occasion, row.item)), given.endpoints)]
    for row in more:
        print(f"more than is written: {row}; kept is {kept.get((row.occasion, row.item))}", file=sys.stderr)
    return 1 if more else 0


def is_more(found: catalog.OwnUseRow, kept: catalog.OwnUseRow | None, endpoints: int) -> bool:
    """Whether that is more than what is kept, and worth a tenth of a cent a month."""
    allowed = kept.fixed + kept.each * endpoints if kept else Decimal(0)
    used = found.fixed + found.each * endpoints
    worth = (used - allowed) * price(found.item) * OCCASIONS[found.occasion]
    return used > allowed * TOLERANCE and worth > Decimal("0.001")


if __name__ == "__main__":
    sys.exit(main())
