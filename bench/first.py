"""What the first evaluation of a large account costs: `python -m bench.first [--endpoints 1000]`.

A few endpoints with every datapoint of the look-back are read and folded on the sandbox. The seconds hold the simulated
account too, so they are more than the product's own. What they mean for an invocation follows from its limits.
"""

import argparse
import sys
import time
import tracemalloc
from datetime import timedelta
from unittest.mock import patch

from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.pace import INVOCATIONS, QUOTA, SHARE, Pace
from rightsizer.aws.session import Session
from rightsizer.bootstrap import reading_ports
from rightsizer.flows.turns import RESERVE_S, first_turn
from rightsizer.flows.usage import UsageReader
from rightsizer.model.digest import UsageDigest
from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint
from rightsizer.model.policy import Policy
from rightsizer.model.usage import SIGNALS
from sandbox.account import Sandbox

FEW = {14: 3, 63: 1}
"""Endpoints that are measured, by the days of the look-back."""
TIMEOUT_S = 300
JUDGING_S = 0.25
"""CPU of judging one endpoint, at most (`bench.decide`)."""


def seed(box: Sandbox, days: int) -> None:
    """Endpoints with all signals at every five minutes, up to today."""
    end = box.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    start, points = end - timedelta(days=days), days * 288
    for index in range(FEW[days]):
        name = f"endpoint-{index}"
        box.add_endpoint(name, instance_type="ml.g5.2xlarge", created=start - timedelta(days=9))
        for metric in ("GPUUtilization", "GPUMemoryUtilization", "CPUUtilization", "MemoryUtilization"):
            box.put_series(name, "AllTraffic", metric, start, 300, [20.0] * points, samples=5.0)
        for metric in ("Invocations", "Invocation5XXErrors"):
            box.put_series(name, "AllTraffic", metric, start, 300, [300.0] * points)
        quantiles = {f"p{p}": [90_000.0] * points for p in (50, 90, 95, 99)}
        latency = [80_000.0] * points
        box.put_series(name, "AllTraffic", "ModelLatency", start, 300, latency, samples=300.0, percentiles=quantiles)


def measured(days: int) -> tuple[float, float]:
    """CPU seconds of reading and folding one endpoint, and the most MiB that a first turn holds of each."""
    with Sandbox() as box:
        seed(box, days)
        ports = reading_ports(Session())
        seen = ports.fleet.observe(list(ports.fleet.list_endpoints()))
        fleet = [one for one in seen if isinstance(one, Endpoint)]
        with patch.object(Pace, "take"):
            reader = UsageReader(
                CloudWatchMetrics(Session()), ports.catalogue, lambda _: History(), Policy(lookback_days=days)
            )
            began = time.process_time()
            found = reader.read(fleet, box.clock.now)
            seconds = (time.process_time() - began) / FEW[days]
            tracemalloc.start()
            again = reader.read(fleet, box.clock.now)
            most = tracemalloc.get_traced_memory()[1] / 2**20 / FEW[days]
            tracemalloc.stop()
    if not all(isinstance(one, UsageDigest) for one in (*found.values(), *again.values())):
        raise SystemExit("an endpoint could not be read: the figures would mean nothing")
    return seconds, most


def main() -> int:
    """Print the figures for both look-backs; the exit code says whether a first turn fits twice into an invocation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=1000)
    given = parser.parse_args()
    pace, worst = QUOTA * SHARE / INVOCATIONS, 0.0
    for days in FEW:
        cpu, mib = measured(days)
        points = days * 288 * (len(SIGNALS) - 1)
        each = max(cpu, points / pace) + JUDGING_S
        fits = int((TIMEOUT_S - RESERVE_S) / each)
        invocations = -(-given.endpoints // fits)
        turn = first_turn(days) * each
        worst = max(worst, turn)
        print(f"{days} days: {cpu:.2f} s of CPU and {mib:.1f} MiB an endpoint,", end=" ")
        print(f"{points:,} datapoints ({points / pace:.1f} s at our share of the quota)")
        print(f"  a first turn of {first_turn(days)} takes {turn:.0f} s and {first_turn(days) * mib:.0f} MiB;", end=" ")
        print(f"{fits} endpoints in an invocation of {TIMEOUT_S} s,", end=" ")
        print(f"{invocations} invocations for {given.endpoints:,},", end=" ")
        print(f"{given.endpoints * each / INVOCATIONS / 60:.0f} minutes with {INVOCATIONS} at a time")
    return 0 if 2 * worst <= TIMEOUT_S - RESERVE_S else 1


if __name__ == "__main__":
    sys.exit(main())
