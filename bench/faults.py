"""`make faults`: disturb a change at every request, in every scenario and for every ending, and check the laws.

    python -m bench.faults                       every scenario and ending, killed after every write
    python -m bench.faults --every 8             each eighth kill point
    python -m bench.faults --scenario plain --ending alarm
    python -m bench.faults --deliveries          and with events five times, an hour late, reversed
    python -m bench.faults --concurrent          and with a second invocation between any two requests
    python -m bench.faults --frozen              and with a freeze, and a hard freeze, instead of a death
    python -m bench.faults --reads --every 16    killed after reads, too
    python -m bench.faults --lost 506            only so many runs in which a decision is lost on its way
    python -m bench.faults --hours 400           only so many nights of an endpoint with office hours

A death after a read leaves what the death after the write before it left, so without `--reads` it is tried once, after
the write; `--reads` checks that. The whole run is made once; at each kill point the process is copied, and the copy
dies there and goes on by the ticks. The run without options also makes 506 runs of a deployed stack in which the
event of a decision is lost (`tests.faults.lost`), and kills a decision "test first" after every write
(`tests.faults.tested`), and disturbs 400 nights of an endpoint with office hours (`tests.faults.hours`). Exits with 1
when a law broke.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.changing import scenarios
from tests.faults.branch import Row
from tests.faults.courses import COURSES
from tests.faults.drive import DELIVERIES, FROZEN, FROZEN_HARD, KILLED, PROMPT, READS, SECOND, plan, runs
from tests.faults.hours import FAULTS, Night, night, nights
from tests.faults.laws import LAWS
from tests.faults.lost import LAWS as LOST_LAWS
from tests.faults.lost import PLACES, Case, cases, lost
from tests.faults.lost_errands import LAWS as ERRAND_LAWS
from tests.faults.tested import runs_with_test

LOST = -(-500 // len(PLACES)) * len(PLACES)
"""Runs in which a decision is lost: the same number for each place, and at least 500 in all."""
NIGHTS = -(-400 // len(FAULTS)) * len(FAULTS)
"""Nights of an endpoint with office hours: the same number for each fault, and at least 400 in all."""
type Job = tuple[str, str, str, int, str]
"""Scenario, ending, delivery, every n-th point, disturbance."""
MEET = (
    "success",
    "alarm",
    "capacity",
    "asked back",
    "scaled while watched, then asked back",
    "redeployed by somebody",
    "permission lost midway",
)
"""Endings in which a second invocation is let in, and in which deliveries are disturbed."""
SCENARIOS = {s.name: s for s in scenarios.ALL}
ENDINGS = {c.name: c for c in COURSES}
DISTURBED = {d.name: d for d in (KILLED, READS, SECOND, FROZEN, FROZEN_HARD)}
DELIVERED = {d.name: d for d in (PROMPT, *DELIVERIES)}


@dataclass
class Sums:
    """What the runs came to."""

    pairs: int = 0
    runs: int = 0
    copies: int = 0
    failures: int = 0
    endings: Counter[str] = field(default_factory=Counter)

    def add(self, job: Job, rows: list[Row]) -> None:
        """Count the rows of one job, and print them."""
        bad = [row for row in rows if row.violations]
        self.pairs += 1
        self.runs += len(rows)
        self.copies += len(rows) - 1
        self.failures += len(bad)
        self.endings.update(row.ended for row in rows)
        how = job[4] or job[2]
        print(f"{job[0]:28}{job[1]:28}{how:26}{len(rows) - 1:5} points{len(bad):5} failures", flush=True)
        for row in bad:
            print(f"    {row.name} ({row.ended}): {'; '.join(row.violations)}", flush=True)


def jobs(given: argparse.Namespace) -> Iterator[Job]:
    """Every pair as asked for, the disturbed deliveries and the second invocation for some endings."""
    pairs = [(s.name, c.name) for s, c in plan() if given.scenario in s.name and given.ending in c.name]
    for scenario, ending in pairs:
        if not (given.deliveries or given.concurrent or given.frozen):
            yield scenario, ending, PROMPT.name, given.every, (READS if given.reads else KILLED).name
        if given.deliveries and ending in MEET:
            yield from ((scenario, ending, d.name, given.every, KILLED.name) for d in DELIVERIES)
        if given.concurrent and ending in MEET:
            yield scenario, ending, PROMPT.name, given.every, SECOND.name
        if given.frozen and ending in MEET:
            yield from ((scenario, ending, PROMPT.name, given.every, d.name) for d in (FROZEN, FROZEN_HARD))


def carried_out(job: Job) -> list[Row]:
    """All runs of one job."""
    scenario, ending, delivery, every, disturbance = job
    return runs(
        SCENARIOS[scenario], ENDINGS[ending], DELIVERED[delivery], every=every, disturbance=DISTURBED[disturbance]
    )


def without(case: Case) -> Row:
    """One run in which a decision is lost."""
    name = f"{case.place} / {case.seed}"
    try:
        found = tuple(lost(case))
    except Exception as error:  # a run that raised is a run that broke a law
        found = (f"{type(error).__name__}: {error}",)
    return Row(name, case.place, found)


def run_lost(pool: Executor, count: int) -> int:
    """Lose so many decisions, print what broke, and return how many runs broke a law."""
    began, rows = time.monotonic(), list(pool.map(without, cases(count)))
    bad = [row for row in rows if row.violations]
    for row in bad:
        print(f"    {row.name}: {'; '.join(row.violations)}", flush=True)
    for place, runs_there in Counter(row.ended for row in rows).items():
        print(f"{place:44}{runs_there:5} runs{sum(row.ended == place for row in bad):5} failures", flush=True)
    laws = f"{len(LOST_LAWS) + 1} laws in each, of an errand {len(ERRAND_LAWS) + 1}"
    print(f"{len(rows)} decisions lost, {laws}, {len(bad)} failures, {time.monotonic() - began:.0f} s")
    return len(bad)


def disturbed_night(case: Night) -> Row:
    """One night of an endpoint with office hours."""
    try:
        found = tuple(night(case))
    except Exception as error:  # a run that raised is a run that broke a law
        found = (f"{type(error).__name__}: {error}",)
    return Row(f"{case.fault} / {case.seed}", case.fault, found)


def run_hours(pool: Executor, count: int) -> int:
    """Disturb so many nights, print what broke, and return how many runs broke a law."""
    began, bad = time.monotonic(), 0
    for number, row in enumerate(pool.map(disturbed_night, nights(count)), start=1):
        if row.violations:
            bad += 1
            print(f"    {row.name}: {'; '.join(row.violations)}", flush=True)
        if number == count or number % len(FAULTS) == 0:
            took = time.monotonic() - began
            print(f"{number} nights with office hours, {bad} failures, {took:.0f} s", flush=True)
    return bad


def run_tested(every: int) -> int:
    """Kill a decision "test first" between its writes, print what broke, and return how many runs broke a law."""
    began, rows = time.monotonic(), runs_with_test(every=every)
    bad = [row for row in rows if row.violations]
    for row in bad:
        print(f"    {row.name} ({row.ended}): {'; '.join(row.violations)}", flush=True)
    print(f"test first, then its change: {len(rows) - 1} points, {len(bad)} failures, {time.monotonic() - began:.0f} s")
    return len(bad)


def main() -> int:
    """Run, print, and say by the exit code whether all laws held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take each n-th kill point")
    parser.add_argument("--scenario", default="", help="only scenarios whose name contains this")
    parser.add_argument("--ending", default="", help="only endings whose name contains this")
    parser.add_argument("--deliveries", action="store_true", help="disturbed deliveries instead of prompt ones")
    parser.add_argument("--concurrent", action="store_true", help="a second invocation instead of a death")
    parser.add_argument("--frozen", action="store_true", help="a freeze, and a hard one, instead of a death")
    parser.add_argument("--reads", action="store_true", help="a death after each request, not only after each write")
    parser.add_argument("--lost", type=int, default=0, help="only so many runs in which a decision is lost")
    parser.add_argument("--hours", type=int, default=0, help="only so many nights of an endpoint with office hours")
    parser.add_argument("--workers", type=int, default=2)
    whole = len(sys.argv) == 1
    given = parser.parse_args()
    if given.lost:
        with ProcessPoolExecutor(given.workers) as pool:
            return 1 if run_lost(pool, given.lost) else 0
    if given.hours:
        with ProcessPoolExecutor(given.workers) as pool:
            return 1 if run_hours(pool, given.hours) else 0
    began, sums, todo = time.monotonic(), Sums(), list(jobs(given))
    with ProcessPoolExecutor(given.workers) as pool:
        for job, rows in zip(todo, pool.map(carried_out, todo), strict=True):
            sums.add(job, rows)
        sums.failures += run_lost(pool, LOST) + run_hours(pool, NIGHTS) if whole else 0
    sums.failures += run_tested(given.every) if whole else 0
    laws = len(LAWS)
    print(f"\n{sums.pairs} pairs of scenario and ending x {sums.copies} kill points, {sums.runs} runs in all")
    print(f"{laws} laws in each, {laws * sums.runs} checks, {sums.failures} failures, {time.monotonic() - began:.0f} s")
    print("ended " + ", ".join(f"{count} {state}" for state, count in sums.endings.most_common()))
    return 1 if sums.failures or not sums.runs else 0


if __name__ == "__main__":
    sys.exit(main())
