"""Other traces of the same form: the ones at hand, turned, cut, thinned and priced differently, always by seed.

make spot PERTURB=1           # or: python -m bench.spot_perturb --traces DIR --write docs/spot-other-traces.md

A rule that was fitted to its traces loses here. Each variant keeps what a trace is (pools that have room or not, over
time) and changes when, where, how long or how dear.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench.spot import OURS, RIVALS, SPARE, SPOT_ONLY, Row, replay, verdicts
from bench.spot_traces import Scenario, load
from rightsizer.domain.spot import Pool
from rightsizer.errors import InputError

START, END = "<!-- perturbed: begin -->", "<!-- perturbed: end -->"
DAY = 86400.0
SHARE = 0.35

type Steps = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to make another trace of one, or None where the trace does not allow it."""

    name: str
    make: Callable[[Scenario, random.Random], Scenario | None]
    spot_share: float = SHARE


def room_at(steps: Steps, second: float) -> int:
    """Instances to be had at a second; none before the first step."""
    found = 0
    for at, room in steps:
        if at > second:
            break
        found = room
    return found


def piece(steps: Steps, start: float, end: float, to: float) -> Iterator[tuple[float, int]]:
    """The steps of a window, moved so that it begins at `to`."""
    yield to, room_at(steps, start)
    yield from ((at - start + to, room) for at, room in steps if start < at < end)


def _simple(steps: Sequence[tuple[float, int]]) -> Steps:
    kept = [steps[0]]
    kept += [step for before, step in itertools.pairwise(steps) if step[1] != before[1]]
    return tuple(kept)


def rearranged(scenario: Scenario, windows: Sequence[tuple[float, float]]) -> Scenario:
    """The windows of the trace one after the other, the same ones in every pool."""
    starts = [0.0, *itertools.accumulate(end - start for start, end in windows)]
    changes = {
        pool: _simple([s for (a, b), to in zip(windows, starts, strict=False) for s in piece(steps, a, b, to)])
        for pool, steps in scenario.changes.items()
    }
    return replace(scenario, changes=changes, end=starts[-1])


def _blocks(scenario: Scenario, length: float) -> list[tuple[float, float]]:
    edges = [*(n * length for n in range(int(scenario.end // length) + 1)), scenario.end]
    return [(a, b) for a, b in itertools.pairwise(edges) if b - a > 1]


def turned(scenario: Scenario, draw: random.Random) -> Scenario:
    """Begins somewhere in the middle and comes round."""
    cut = draw.uniform(0.2, 0.8) * scenario.end
    return rearranged(scenario, [(cut, scenario.end), (0.0, cut)])


def shuffled(scenario: Scenario, draw: random.Random) -> Scenario:
    """The days in another order (hours for a trace of less than two days)."""
    windows = _blocks(scenario, DAY if scenario.end > 2 * DAY else DAY / 24)
    draw.shuffle(windows)
    return rearranged(scenario, windows)


def backwards(scenario: Scenario, draw: random.Random) -> Scenario:
    """Played from the end to the beginning."""
    del draw
    changes: dict[Pool, Steps] = {}
    for pool, steps in scenario.changes.items():
        whole = steps if steps[0][0] <= 0 else ((0.0, 0), *steps)
        edges = [*(at for at, _ in whole), scenario.end]
        runs = [(scenario.end - b, room) for (_, b), (_, room) in zip(itertools.pairwise(edges), whole, strict=True)]
        changes[pool] = _simple(sorted(run for run in runs if run[0] < scenario.end))
    return replace(scenario, changes=changes)


def thinned(scenario: Scenario, draw: random.Random) -> Scenario | None:
    """Half of the pools."""
    pools = sorted(scenario.changes)
    if len(pools) < 2:
        return None
    kept = sorted(draw.sample(pools, (len(pools) + 1) // 2))
    return replace(scenario, changes={pool: scenario.changes[pool] for pool in kept})


def apart(scenario: Scenario, draw: random.Random) -> Scenario | None:
    """Each pool turned by itself: outages that came together come alone, and the other way round."""
    if len(scenario.changes) < 2:
        return None
    changes = {
        pool: turned(replace(scenario, changes={pool: steps}), draw).changes[pool]
        for pool, steps in scenario.changes.items()
    }
    return replace(scenario, changes=changes)


def scarcer(scenario: Scenario, draw: random.Random) -> Scenario:
    """One hour in five, drawn for each pool alone, has no room at all."""
    changes: dict[Pool, Steps] = {}
    for pool, steps in scenario.changes.items():
        found: list[tuple[float, int]] = []
        for start, end in _blocks(scenario, 3600.0):
            found += [(start, 0)] if draw.random() < 0.2 else piece(steps, start, end, start)
        changes[pool] = _simple(found)
    return replace(scenario, changes=changes)


def as_it_is(scenario: Scenario, draw: random.Random) -> Scenario:
    """The trace itself, for other prices."""
    del draw
    return scenario


VARIANTS = (
    Variant("begun elsewhere, coming round", turned),
    Variant("days in another order", shuffled),
    Variant("backwards", backwards),
    Variant("half of the pools", thinned),
    Variant("each pool turned by itself", apart),
    Variant("a fifth of the hours without room", scarcer),
    Variant("Spot at 20 % of On-Demand", as_it_is, 0.20),
    Variant("Spot at 50 % of On-Demand", as_it_is, 0.50),
    Variant("Spot at 65 % of On-Demand", as_it_is, 0.65),
)


def played(
    variant: Variant, scenarios: Sequence[Scenario], seeds: Sequence[int]
) -> Iterator[tuple[Scenario, list[Row]]]:
    """The variant of every trace that allows it, once for each seed."""
    for scenario in scenarios:
        for seed in seeds:
            made = variant.make(scenario, random.Random(f"{variant.name}|{scenario.name}|{seed}"))
            if made is not None:
                named = replace(made, name=f"{scenario.name}, {variant.name}, seed {seed}")
                yield named, replay(named, variant.spot_share, [seed], (SPOT_ONLY, SPARE))


def line(variant: Variant, results: Sequence[tuple[Scenario, list[Row]]]) -> str:
    """A row of the table: the worst of the variant, and how many promises broke."""
    ours = [{row.policy: row for row in rows} for _, rows in results]
    ahead = [by[OURS].kept - max(by[rival].kept_at(by[OURS].cost) for rival in RIVALS) for by in ours]
    least = min(by[OURS].of_clairvoyant for by in ours)
    kept = min(by[OURS].kept for by in ours)
    broken = sum(1 for scenario, rows in results if verdicts(scenario, rows))
    points = f"{min(ahead) * 100:+.1f} points"
    return f"| {variant.name} | {len(results)} | {kept:.1%} | {least:.1%} | {points} | {broken} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play every variant and print; 0 when every promise held, 1 when one did not, 2 when the traces cannot be read."""
    parser = argparse.ArgumentParser(prog="bench.spot_perturb", description="Replay of changed Spot traces")
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces/spot"), help="folder with the traces")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12], help="seeds of the changes and the prices")
    parser.add_argument("--write", type=Path, help="put the numbers into this document, between its markers")
    given = parser.parse_args(arguments)
    try:
        scenarios = load(given.traces)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    seeds = ", ".join(map(str, given.seeds))
    lines = [
        f"Run of {datetime.now(UTC).date().isoformat()}: `make spot PERTURB=1`, seeds {seeds}, Spot at {SHARE:.0%} of "
        "On-Demand where nothing else is said.",
        "",
        "| each trace, changed | runs | ours keeps, at least | of the clairvoyant, at least "
        "| ahead of the best rival, at our cost, at least | broken promises |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    wrong: list[str] = []
    for variant in VARIANTS:
        print(f"replaying: {variant.name} ...", file=sys.stderr)
        results = list(played(variant, scenarios, given.seeds))
        lines.append(line(variant, results))
        wrong += [sentence for scenario, rows in results for sentence in verdicts(scenario, rows)]
    report = "\n".join(lines) + "\n"
    print(report)
    if given.write:
        before, _, rest = given.write.read_text().partition(START)
        given.write.write_text(f"{before}{START}\n{report}{END}{rest.partition(END)[2]}")
    print("\n".join(wrong) if wrong else "Every promise held on every changed trace.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
