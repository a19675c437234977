"""From a Spot warning to the replacement request, cold start included: `python -m bench.interruption [--runs 100]`.

Each run is a new process of the built function under the real Lambda runtime client, against the sandbox as a server on
loopback. Two figures for each: processor time of the function's process when its request arrives (its own clock, so
that neither the sandbox nor other users of the machine count), and the wall clock from the start of the process. Lambda
gives 1,024 MB 58 % of a processor (1,769 MB are one), so the processor time is divided by that share.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import StringIO
from unittest.mock import patch

from bench.built import PYTHON, ROOT, cpu_seconds, functions
from rightsizer import bootstrap
from sandbox.account import Sandbox
from sandbox.gate import Call
from sandbox.runtime import BuiltFunction, ExecutionEnvironment
from sandbox.server import serve
from sandbox.spot import Spot, add_spot
from sandbox.wiring import Stack

LIMIT_S = 2.0
"""Our own time at p99, cold start included."""
ONE_PROCESSOR_MB = 1769
"""Memory at which Lambda gives a function one whole processor (Lambda Developer Guide, "Configure memory")."""
WARNING = "EC2 Spot Instance Interruption Warning"
REQUEST = "DetachInstances"
CALLS = (
    "dynamodb:PutItem",
    "autoscaling:DescribeAutoScalingInstances",
    "dynamodb:GetItem",
    "dynamodb:GetItem",
    f"autoscaling:{REQUEST}",
)
"""The warning is kept first, so that it is acted on once; the reads are of the group's facts and of the freeze."""


@dataclass
class Watch:
    """Sees the replacement request arrive, and what the asking process had used by then."""

    environment: ExecutionEnvironment
    began: float
    wall: float = 0.0
    cpu: float = 0.0
    calls: list[str] = field(default_factory=list)

    def seen(self, call: Call) -> None:
        """Called for each request that was answered."""
        if self.wall:
            return
        self.calls.append(call.action)
        if call.operation == REQUEST and self.environment.pid is not None:
            self.wall, self.cpu = time.monotonic() - self.began, cpu_seconds(self.environment.pid)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def one(spot: Spot, function: BuiltFunction, url: str, variables: Mapping[str, str]) -> Watch:
    """Warn an instance, start the function cold, hand it the event."""
    spot.groups.warn(spot.members("gpu")[0])
    event = spot.box.events_of(WARNING)[-1] | {"time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    with ExecutionEnvironment(function, PYTHON, url, **variables) as environment:
        watch = Watch(environment, time.monotonic())
        spot.box.gate.after = watch.seen
        answer = environment.invoke(event)
        spot.box.gate.after = None
        if not watch.wall:
            raise SystemExit(f"no replacement was asked for: {answer.payload or answer.error}\n{environment.log()}")
    return watch


def measure(runs: int) -> tuple[int, list[Watch]]:
    """The function's memory, and a watch for each run: one opted-in group, its facts as the sweep keeps them."""
    with Sandbox(now=datetime.now(UTC)) as box, ExitStack() as stack:
        spot = add_spot(box)
        spot.group("gpu", desired=4)
        deployed = Stack(box, ROOT / "template.yaml")
        variables = {k: v for k, v in deployed.function("interruption").environment.items() if k.startswith("RIGHT")}
        with patch.dict(os.environ, variables), redirect_stdout(StringIO()):  # the metrics of the sweep
            bootstrap.set_clock(lambda: box.clock.now)
            deployed.fire("Sweep.Hourly")
            bootstrap.reset()
        deployed.paused = True
        url, function = stack.enter_context(serve(box)), functions({})["Interruption"]
        watches = []
        for number in range(1, runs + 1):
            watches.append(one(spot, function, url, variables))
            print(f"\r{number} of {runs}", end="", file=sys.stderr)
            box.clock.advance(timedelta(minutes=6))
        print(file=sys.stderr)
        return function.memory, watches


def over(ours_s: float, watches: Sequence[Watch]) -> list[str]:
    """What is over its limit, each with its figure; `ours_s` is our own time at p99."""
    found = [] if ours_s <= LIMIT_S else [f"our own time is {ours_s:.2f} s at p99, above {LIMIT_S:.0f} s"]
    for calls in {tuple(watch.calls) for watch in watches} - {CALLS}:
        found.append(f"it called {', '.join(calls)}, which should have been {', '.join(CALLS)}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args(arguments)
    memory, watches = measure(given.runs)
    share = min(1.0, memory / ONE_PROCESSOR_MB)
    ours = [watch.cpu / share for watch in watches]
    print(f"{given.runs} cold starts, {memory} MB; calls before the request is done: {', '.join(watches[0].calls)}")
    print(f"{'seconds to the replacement request':<52}{'p50':>8}{'p99':>8}{'most':>8}")
    for name, values in (
        ("processor time, as measured", [watch.cpu for watch in watches]),
        (f"processor time at {share:.0%} of a processor: ours", ours),
        ("wall clock, sandbox's answers and load included", [watch.wall for watch in watches]),
    ):
        print(f"{name:<52}{percentile(values, 0.5):>8.2f}{percentile(values, 0.99):>8.2f}{max(values):>8.2f}")
    broken = over(percentile(ours, 0.99), watches)
    for sentence in broken:
        print(f"over its limit: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
