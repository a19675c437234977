"""Part of `make faults`: evaluate and respond run, whole, after each request of `apply`.

    python -m bench.meeting                      every request of `apply` in one change
    python -m bench.meeting --every 20           each twentieth
    python -m bench.meeting --only 35            one of them again

At each point: a run of its own of the deployed stack, in which the endpoint is evaluated again, its approval clicked
once more and another proposal rejected. The change must end as without them, with the same writes, and no row may be
lost (`tests.faults.meeting`). Exits with 1 when a law broke.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from rightsizer.telemetry import logger
from tests.faults.meeting import Meeting, lived


def met(point: int) -> Meeting:
    """The run; one that raised broke a law."""
    logger.setLevel(logging.CRITICAL)
    return lived(point)


def compared(job: tuple[int, Counter[str], Counter[str]]) -> tuple[str, list[str]]:
    """One point, held against the writes and rows of the run without the other doors."""
    point, writes, rows = job
    try:
        run = met(point)
    except Exception as error:
        return f"{point}", [f"{type(error).__name__}: {error}"]
    return run.met or f"{point}", run.broken + run.against(writes, rows)


def main() -> int:
    """Run, print, and say by the exit code whether all laws held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take each n-th request")
    parser.add_argument("--only", type=int, default=0, help="the number of one request")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    alone = met(0)
    if alone.broken:
        print(f"the run without other doors broke: {alone.broken}")
        return 1
    points = [given.only] if given.only else range(given.every, alone.seen + 1, given.every)
    jobs = [(point, alone.writes, alone.rows) for point in points]
    bad = 0
    with ProcessPoolExecutor(given.workers) as pool:
        for done, (where, found) in enumerate(pool.map(compared, jobs), start=1):
            bad += bool(found)
            if done % 10 == 0:
                print(f"{done} of {len(jobs)}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            for line in found:
                print(f"    {where}: {line}", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(jobs)} of {alone.seen} requests of apply met by evaluate and respond: {bad} broken; {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
