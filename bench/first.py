"""The first evaluation of a large account: `python -m bench.first [--days 63] [--endpoints 4] [--at-once 1]`.

The sweep and the evaluation run from the source, each in a process of its own under the Lambda runtime client, with
the time-out of the template; the account is a server with CloudWatch's quota (`bench.canned`). CPU and memory are
those of the function's process, so the simulated account is not in them. Then a smaller fleet is evaluated twice: once
undisturbed, and once with every delivery but a message's last one killed at a random request: what is kept must be
equal. The exit code says whether all that holds, and whether a factor of two is to spare in time and in memory.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from bench.calls import deploy
from bench.canned import KINDS, PERIOD_S, UNLIMITED, Canned, Recorded, seed, unwatched
from rightsizer.aws.metrics import INVOCATIONS, QUOTA, SHARE
from rightsizer.aws.s3 import S3DailyUsage
from rightsizer.domain.usage import SIGNALS, KeptUsage
from rightsizer.flows.turns import SPARE
from rightsizer.recommender.usage_days import page_of
from sandbox.account import Sandbox
from sandbox.runtime import BuiltFunction, ExecutionEnvironment
from sandbox.stack import stack

ROOT = Path(__file__).parents[1]
VCPU_MB = 1769
"""Memory that has one vCPU; less has its share (Lambda developer guide, "Configure Lambda function memory")."""
DELIVERIES = 4
"""Of a message before it is a dead letter (maxReceiveCount of the template)."""
BATCH = 10
"""Messages of a batch (BatchSize of the template)."""
START = """
import runpy
from datetime import datetime
from rightsizer import bootstrap
now = datetime.fromisoformat("{now}")
bootstrap.set_clock(lambda: now)
{more}
runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
"""
"""Starts the runtime client at an hour: asked of the account for each look, it would be calls and CPU of nobody's."""
UNPACED = """
from rightsizer.aws.metrics import RateLimiter
RateLimiter.take = lambda self, points: None
"""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What an invocation took of the process that ran it."""

    wall_s: float
    cpu_s: float
    peak_mib: float


class Process:
    """One function in a process of its own, which stays warm."""

    def __init__(self, door: str, url: str, variables: dict[str, str], days: int, start: str) -> None:
        described = stack().function(door)
        self.memory, self.timeout = described["MemorySize"], described["Timeout"]
        folder = ROOT / "functions" / door
        function = BuiltFunction(door, folder, "app.lambda_handler", (), self.memory, self.timeout, {})
        quiet = {"POWERTOOLS_METRICS_DISABLED": "true", "POWERTOOLS_LOG_LEVEL": "WARNING"}
        path = os.pathsep.join((str(folder), str(ROOT / "shared")))
        limits = {"RIGHTSIZER_LIMITS": f'{{"lookback_days": {days}}}'}
        self._run = ExecutionEnvironment(
            function,
            Path(sys.executable),
            url,
            start=("-c", start),
            **(variables | quiet | limits | {"PYTHONPATH": path}),
        )

    def __call__(self, event: Any) -> tuple[Any, Cost]:
        """The handler's answer, or None where the process was killed; SystemExit for what AWS would call a failure."""
        before, began = self._cpu(), time.monotonic()
        if self._run.pid:
            Path(f"/proc/{self._run.pid}/clear_refs").write_text("5")  # the highest memory is counted anew
        answer = self._run.invoke(event)
        wall = time.monotonic() - began
        if answer.error is None:
            return answer.payload, Cost(wall, self._cpu() - before, self._peak())
        if answer.error["errorType"] == "Runtime.ExitError":
            return None, Cost(wall, 0.0, 0.0)
        raise SystemExit(f"{answer.error['errorType']}: {answer.error['errorMessage']}\n{answer.log[-3000:]}")

    def kill(self) -> None:
        """End the process where it stands."""
        if self._run.pid:
            os.kill(self._run.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process in peace."""
        self._run.close()

    def log(self) -> str:
        """What it printed."""
        return self._run.log()

    def _cpu(self) -> float:
        """CPU seconds so far, user and system."""
        if not self._run.pid:
            return 0.0
        fields = Path(f"/proc/{self._run.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def _peak(self) -> float:
        status = Path(f"/proc/{self._run.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


@dataclass
class Account:
    """An account with a fleet that nobody evaluated yet, its server, and the queue's messages."""

    box: Sandbox
    server: Canned
    url: str
    variables: dict[str, str]
    days: int
    is_paced: bool = True
    """Whether CloudWatch has a quota here, and the functions keep below it."""
    open: list[Process] = field(default_factory=list)

    def process(self, door: str) -> Process:
        """A cold function, whose clock stands."""
        start = START.format(now=self.box.clock.now.isoformat(), more="" if self.is_paced else UNPACED)
        self.open.append(Process(door, self.url, self.variables, self.days, start))
        return self.open[-1]

    def sweep(self) -> Cost:
        """A full sweep: it fills the queue."""
        at = self.box.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        due = {"source": "rightsizer.scheduler", "detail-type": "Sweep Due", "id": "bench", "time": at}
        return self.process("sweep")(due | {"detail": {"sweep": "full"}})[1]

    def batch(self, size: int = BATCH) -> dict[str, Any] | None:
        """What Lambda would hand to the function next; None where the queue is empty."""
        sqs, queue = self.box.client("sqs"), self.variables["RIGHTSIZER_QUEUE_URL"]
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=size).get("Messages", [])
        for one in found:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
        rows = [{"messageId": one["MessageId"], "body": one["Body"], "eventSource": "aws:sqs"} for one in found]
        return {"Records": rows} if rows else None

    def judgements(self) -> dict[str, str]:
        """Every judgement that is stored, by endpoint."""
        pages = self.box.client("dynamodb").get_paginator("scan").paginate(TableName="rightsizer")
        rows = [row for page in pages for row in page["Items"] if row["sk"]["S"] == "RECOMMENDATION"]
        return {row["pk"]["S"]: row["doc"]["S"] for row in rows}

    def digests(self) -> dict[str, bytes]:
        """Every page of digests, by key."""
        s3 = self.box.client("s3")
        rows = s3.list_objects_v2(Bucket="rightsizer-digests").get("Contents", [])
        return {row["Key"]: s3.get_object(Bucket="rightsizer-digests", Key=row["Key"])["Body"].read() for row in rows}


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def account(
    endpoints: int, days: int, recorded: Recorded, quota: int = QUOTA, period_s: int = PERIOD_S
) -> Iterator[Account]:
    """A fresh account with so many endpoints, a datapoint every `period_s`; `UNLIMITED` has no quota and no pace."""
    with Sandbox() as box:
        seed(box, endpoints, days, period_s)
        variables, canned = deploy(box), Canned(box, recorded, quota)
        server = make_server("127.0.0.1", 0, canned, threaded=True, request_handler=_Quiet)
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving.start()
        made = Account(box, canned, f"http://127.0.0.1:{server.server_port}", variables, days, quota < UNLIMITED)
        try:
            yield made
        finally:
            for one in made.open:
                one.close()
            server.shutdown()
            server.server_close()
            serving.join()


def evaluated(of: Account, at_once: int, messages: int) -> list[Cost]:
    """Invoke until the queue is empty; messages that fail come again, and one that fails four times ends the run."""
    costs, lock, failed = list[Cost](), threading.Lock(), dict[str, int]()
    again: list[dict[str, Any]] = []

    def work(function: Process) -> None:
        while True:
            with lock:
                batch = {"Records": [again.pop()]} if again else of.batch(messages)
            if batch is None:
                return
            answer, cost = function(batch)
            if answer is None:
                raise SystemExit(f"a process ended by itself:\n{function.log()[-3000:]}")
            wanted = {one["itemIdentifier"] for one in answer["batchItemFailures"]}
            with lock:
                costs.append(cost)
                for one in batch["Records"]:
                    if one["messageId"] in wanted:
                        failed[one["messageId"]] = failed.get(one["messageId"], 0) + 1
                        again.append(one)
                if max(failed.values(), default=0) >= DELIVERIES:
                    raise SystemExit(f"a message is a dead letter:\n{function.log()[-3000:]}")
                print(f"\r{len(of.judgements())} evaluated, {len(costs)} invocations", end="", file=sys.stderr)

    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(work, of.process("evaluate")) for _ in range(at_once)]:
            done.result()
    print(file=sys.stderr)
    return costs


def _kill_at(victim: int, function: Process, number: int) -> None:
    if number == victim:
        function.kill()


def killed(of: Account, requests: int, chance: random.Random) -> int:
    """The same with kills: each batch is delivered up to four times, and killed the first three; how often it was."""
    kills = 0
    while batch := of.batch():
        for delivery in range(1, DELIVERIES + 1):
            function = of.process("evaluate")
            victim = of.server.requests + chance.randint(1, requests) if delivery < DELIVERIES else 0
            of.server.watch = partial(_kill_at, victim, function)
            answer, _ = function(batch)
            of.server.watch = unwatched
            function.close()
            if answer is not None:
                break
            kills += 1
        if answer is None or answer["batchItemFailures"]:
            raise SystemExit(f"the last delivery failed too:\n{function.log()[-3000:]}")
    return kills


def survives(endpoints: int, days: int, recorded: Recorded, seeded: int) -> bool:
    """Whether a run with kills ends with the digests and the judgements of one without."""
    with account(endpoints, days, recorded) as of:
        of.sweep()
        before = of.server.requests
        evaluated(of, 1, BATCH)
        requests, judgements, digests = of.server.requests - before, of.judgements(), of.digests()
    with account(endpoints, days, recorded) as of:
        of.sweep()
        kills = killed(of, requests, random.Random(seeded))
        same = of.judgements() == judgements and of.digests() == digests and len(judgements) == endpoints
    print(f"{endpoints} endpoints with {kills} kills: what is kept is {'equal' if same else 'NOT EQUAL'}", flush=True)
    return same and kills > 0


def spare(doing: str, costs: Sequence[Cost], function: Process) -> bool:
    """Print the longest and the largest invocation; whether a factor of two is to spare in time and in memory."""
    longest, peak = max(costs, key=lambda one: one.wall_s), max(one.peak_mib for one in costs)
    print(
        f"  {doing}: {len(costs)} invocations, the longest {longest.wall_s:.0f} s of {function.timeout} with", end=" "
    )
    print(f"{longest.cpu_s:.1f} s of CPU, the most memory {peak:.0f} MiB of {function.memory}", flush=True)
    return bool(2 * longest.wall_s <= function.timeout and 2 * peak <= function.memory)


def measured(
    endpoints: int, days: int, at_once: int, recorded: Recorded, quota: int = QUOTA, next_day: bool = True
) -> bool:
    """Evaluate the fleet, and again a day later, print what it cost, and say whether a factor of two is to spare."""
    messages = -(-min(BATCH, -(-endpoints // 25)) // at_once)
    with account(endpoints, days, recorded, quota) as of:
        held, began = spare("the sweep", [of.sweep()], of.open[-1]), time.monotonic()
        first = evaluated(of, at_once, messages)
        took, done, points = time.monotonic() - began, len(of.judgements()), of.server.datapoints
        held = spare("the first evaluation", first, of.open[-1]) and held
        if next_day:
            of.box.clock.advance(timedelta(days=1))
            of.sweep()
            held = spare("the next day", evaluated(of, at_once, messages), of.open[-1]) and held
        memory, timeout, throttled = of.open[-1].memory, of.open[-1].timeout, of.server.throttled
    share, each = min(1.0, memory / VCPU_MB), days * 288 * (len(SIGNALS) - 1)
    cpu = sum(one.cpu_s for one in first) / endpoints
    quota_s, each_s = each / (QUOTA * SHARE), cpu / share
    fit = max(1, int((1 - SPARE) * timeout / max(quota_s * INVOCATIONS, each_s)))
    print(f"{days} days, {endpoints} endpoints, {at_once} at a time: {took:.0f} s, {done} judgements,", end=" ")
    print(f"{points:,} datapoints, {throttled} requests throttled")
    print(f"  an endpoint: {cpu:.2f} s of CPU, on {share:.2f} vCPU {each_s:.2f} s;", end=" ")
    print(f"{each:,} datapoints, {quota_s:.2f} s of our share of the quota")
    print(f"  1,000 endpoints: {-(-1000 // fit)} invocations of {fit}, {1000 * quota_s / 60:.0f} minutes by", end=" ")
    print(f"the quota, {1000 * each_s / INVOCATIONS / 60:.0f} by the CPU of {INVOCATIONS} at a time", flush=True)
    return held and done == endpoints


def remembered(endpoints: int, days: int, recorded: Recorded) -> bool:
    """Whether the evaluation of the next day, whose earlier days are kept, has a factor of two to spare."""
    with account(KINDS, days, recorded) as of:
        of.sweep()
        evaluated(of, 1, BATCH)
        store = S3DailyUsage(of.box.client("s3"), "rightsizer-digests")
        known = {one.endpoint: one for one in store.load(page_of("", KINDS, days))}
    with account(endpoints, days, recorded) as of:
        pages: dict[str, list[KeptUsage]] = {}
        for number in range(endpoints):
            name = f"endpoint-{number:05}"
            like = replace(known[f"endpoint-{number % KINDS:05}"], endpoint=name)
            pages.setdefault(page_of(name, endpoints, days), []).append(like)
        store = S3DailyUsage(of.box.client("s3"), "rightsizer-digests")
        for page, kept in pages.items():
            store.save(page, kept)
        of.box.clock.advance(timedelta(days=1))
        of.sweep()
        held = spare(f"{endpoints:,} endpoints of {days} days kept", evaluated(of, 1, BATCH), of.open[-1])
        return held and len(of.judgements()) == endpoints


def swept(endpoints: int) -> bool:
    """Whether a sweep of so many endpoints has a factor of two to spare."""
    with account(endpoints, 1, {}) as of:
        return spare(f"a sweep of {endpoints:,}", [of.sweep()], of.open[-1])


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; the exit code says whether everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=63)
    parser.add_argument("--endpoints", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--quota", type=int, default=QUOTA, help="datapoints a second that the account gives")
    parser.add_argument("--next-day", action=argparse.BooleanOptionalAction, default=True, help="evaluate that too")
    parser.add_argument("--with-kills", type=int, default=2, help="endpoints of the run with kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kept", type=int, default=0, help="endpoints of a later day, whose earlier days are kept")
    parser.add_argument("--sweep", type=int, default=0, help="endpoints of a sweep by itself")
    given = parser.parse_args(arguments)
    recorded: Recorded = {}
    held = not given.endpoints or measured(
        given.endpoints, given.days, given.at_once, recorded, given.quota, given.next_day
    )
    if given.with_kills:
        held = survives(given.with_kills, given.days, recorded, given.seed) and held
    if given.kept:
        held = remembered(given.kept, given.days, recorded) and held
    if given.sweep:
        held = swept(given.sweep) and held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
