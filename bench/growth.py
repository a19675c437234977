"""Calls, CPU, memory and stored bytes of several sizes: `python -m bench.growth --endpoints 100 --endpoints 1000`.

Each fleet is swept and evaluated for the first time, again on the next day, and scanned from a terminal. Functions and
command run in processes of their own against the server of `bench.first`: CPU and memory are those of the product
alone. Endpoints have a datapoint an hour of two weeks, with `--full` every five minutes; CloudWatch has no quota and
the functions wait for none: they compute, and no time passes for anything else. The exponent between two sizes is the
slope on paper with two logarithmic scales. The command fails where one is above `STEEPEST`. `--picture` draws the
table.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from bench.canned import PERIOD_S, UNLIMITED, Recorded
from bench.first import BATCH, ROOT, Account, account, evaluated
from rightsizer.reporting.totals import own_bill, usd_of

STEEPEST = 1.05
DAYS = 14
THIN_S = 3600
"""Seconds between two datapoints of an endpoint without `--full`."""
SCAN = """
import sys
from datetime import datetime
from rightsizer import bootstrap
from rightsizer.aws.metrics import RateLimiter
from rightsizer.terminal.run import run
now = datetime.fromisoformat(sys.argv[1])
bootstrap.set_clock(lambda: now)
RateLimiter.take = lambda self, points: None
sys.exit(run(sys.argv[2:]))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What one course cost with so many endpoints."""

    endpoints: int
    calls: int
    cpu_s: float
    peak_mib: float


def evaluation(of: Account, endpoints: int) -> Row:
    """A full sweep and the evaluations that follow from it."""
    before = of.server.requests
    costs = [of.sweep(), *evaluated(of, 1, BATCH)]
    cpu, peak = sum(one.cpu_s for one in costs), max(one.peak_mib for one in costs)
    return Row(endpoints, of.server.requests - before, cpu, peak)


def scan(of: Account, endpoints: int) -> Row:
    """`rightsizer scan --json` of the whole account."""
    before = of.server.requests
    keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "PYTHONPATH": str(ROOT / "shared")}
    arguments = ["scan", "--region", of.box.region, "--endpoint-url", of.url, "--json"]
    command = [sys.executable, "-c", SCAN, of.box.clock.now.isoformat(), *arguments]
    with subprocess.Popen(command, env=os.environ | keys, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 10):
        raise SystemExit(f"the scan ended with {process.returncode}: its figures would mean nothing")
    return Row(endpoints, of.server.requests - before, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def stored(of: Account) -> tuple[int, int]:
    """Bytes of the table's rows, and of those that its index holds."""
    whole = indexed = 0
    for page in of.box.client("dynamodb").get_paginator("scan").paginate(TableName="rightsizer"):
        for row in page["Items"]:
            size = sum(len(name) + len(str(next(iter(value.values())))) for name, value in row.items())
            whole, indexed = whole + size, indexed + (size if "gsi1pk" in row else 0)
    return whole, indexed


def exponents(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """How calls, CPU and memory grow between neighbouring sizes."""
    found = []
    for less, more in pairwise(rows):
        wide = math.log(more.endpoints / less.endpoints)
        for what in ("calls", "cpu_s", "peak_mib"):
            found.append((what, math.log(getattr(more, what) / getattr(less, what)) / wide))
    return found


def over(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """A sentence for each exponent that is too steep."""
    return [
        f"{what} of {course} grow with exponent {slope:.2f}, above {STEEPEST}"
        for course, rows in found.items()
        for what, slope in exponents(rows)
        if slope > STEEPEST
    ]


def draw(found: Mapping[str, Sequence[Row]], path: Path) -> None:
    """The table as a picture: calls and CPU against endpoints, both scales logarithmic."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, what, title in zip(figure.subplots(1, 2), ("calls", "cpu_s"), ("AWS calls", "CPU seconds"), strict=True):
        for course, rows in found.items():
            axes.loglog([one.endpoints for one in rows], [getattr(one, what) for one in rows], marker="o", label=course)
        axes.set_title(title)
        axes.set_xlabel("endpoints")
        axes.grid(visible=True, which="major", alpha=0.3)
    figure.axes[0].legend(frameon=False)
    with rc_context({"svg.hashsalt": "growth"}):  # the same table draws the same file
        figure.savefig(path, metadata={"Date": None})


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit code says whether nothing grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, action="append", help="a size; given again, another one")
    parser.add_argument("--full", action="store_true", help="every datapoint of two weeks")
    parser.add_argument("--picture", type=Path, help="write an SVG there")
    given = parser.parse_args(arguments)
    recorded: Recorded = {}
    found: dict[str, list[Row]] = {"first evaluation": [], "next day": [], "scan": []}
    print(f"{'endpoints':>9}  {'course':<18}{'calls':>9}{'CPU s':>9}{'MiB':>7}", flush=True)
    for size in sorted(given.endpoints or [20, 100]):
        with account(size, DAYS, recorded, UNLIMITED, PERIOD_S if given.full else THIN_S) as of:
            found["first evaluation"].append(evaluation(of, size))
            of.box.clock.advance(timedelta(days=1))
            found["next day"].append(evaluation(of, size))
            found["scan"].append(scan(of, size))
            table, index = stored(of)
        for course, rows in found.items():
            one = rows[-1]
            print(f"{size:>9}  {course:<18}{one.calls:>9}{one.cpu_s:>9.1f}{one.peak_mib:>7.0f}", flush=True)
        bill = usd_of(own_bill(size))
        print(
            f"{size:>9}  the table keeps {table:,} bytes, its index {index:,}; a month costs USD {bill:.2f}", flush=True
        )
    for course, rows in found.items():
        print(f"{course}: " + ", ".join(f"{what} {slope:.2f}" for what, slope in exponents(rows)))
    if given.picture:
        draw(found, given.picture)
    broken = over(found)
    for sentence in broken:
        print(f"over its budget: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
