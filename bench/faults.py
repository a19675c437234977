"""`make faults`: kill a change after every single AWS call, in every scenario and for every ending, and check the laws.

    python -m bench.faults                 every scenario, ending and kill point
    python -m bench.faults --every 10      each tenth kill point
    python -m bench.faults --scenario plain --course alarm

Exits with 1 when a law broke. One run is one simulated account; it takes seconds, so the whole takes long.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.changing import scenarios
from tests.faults.drive import COURSES, Run, plan, run


def jobs(every: int, scenario: str, course: str) -> Iterator[tuple[str, str, int]]:
    """The whole run of each pair, and then one run for each kill point of it."""
    for one, other in plan():
        if scenario in one.name and course in other.name:
            yield one.name, other.name, every


def pair(job: tuple[str, str, int]) -> list[tuple[str, int, str, list[str]]]:
    """All runs of one scenario and course: name, calls, end, violations."""
    one = next(s for s in scenarios.ALL if s.name == job[0])
    other = next(c for c in COURSES if c.name == job[1])
    whole = run(one, other)
    runs: list[Run] = [whole]
    runs += [run(one, other, n) for n in range(1, whole.calls + 1, job[2])]
    return [(r.name, r.calls, r.ended, r.violations) for r in runs]


def main() -> int:
    """Run, print, and say by the exit code whether all laws held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take each n-th kill point")
    parser.add_argument("--scenario", default="", help="only scenarios whose name contains this")
    parser.add_argument("--course", default="", help="only endings whose name contains this")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began, tried, failures, endings = time.monotonic(), 0, 0, Counter[str]()
    todo = list(jobs(given.every, given.scenario, given.course))
    with ProcessPoolExecutor(given.workers) as pool:
        for (one, other, _), rows in zip(todo, pool.map(pair, todo), strict=True):
            bad = [row for row in rows if row[3]]
            tried += len(rows)
            failures += len(bad)
            endings.update(row[2] for row in rows)
            print(f"{one:28}{other:28}{len(rows) - 1:5} kill points{len(bad):5} failures", flush=True)
            for name, _, ended, violations in bad:
                print(f"    {name} ({ended}): {'; '.join(violations)}", flush=True)
    print(f"\n{len(todo)} scenarios with endings, {tried} runs, {failures} failures, {time.monotonic() - began:.0f} s")
    print("ended " + ", ".join(f"{count} {state}" for state, count in endings.most_common()))
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
