"""Which gate keeps how much money: `python -m bench.gates --account mixed --seeds 1,2 [--policy shipped-auto]`.

Plays a policy in the referee and takes what a clairvoyant saved and the policy did not, endpoint by endpoint. The money
of an endpoint is spread over its scored days in equal parts, and each part goes to what was said on that day. Beside it
stands what the engine itself knew: the saving of the option that it had chosen, US dollars a month, mean of the days.

The referee is looked for where `bench.replay` looks for it.
"""

import argparse
import importlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, cast

from bench.policy import ShippedApproved, ShippedAuto
from bench.replay import days_of, folder, no_referee, numbers

POLICIES: Mapping[str, type[ShippedAuto]] = {"shipped-auto": ShippedAuto, "shipped-approved": ShippedApproved}
ACCOUNTS = ("gentd", "mixed", "lora", "events")
HARMED = "harmed: what it saved does not count"


class EndpointScore(Protocol):
    """Of the referee: US dollars of the scored days as played, without changes, and of the clairvoyant."""

    name: str
    cost: float
    base_cost: float
    oracle_cost: float
    harmed: bool


class Score(Protocol):
    hfs: float
    endpoints: int
    harmed: int
    oom: int
    changes: int
    rollbacks: int
    errors: int
    per_endpoint: Sequence[EndpointScore]


class Played(Protocol):
    """An account of the referee with its workers."""

    def play(self, make: Callable[[], ShippedAuto]) -> Score: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Row:
    """What one cause keeps."""

    usd: float = 0.0
    """Of what the clairvoyant saved in the scored days."""
    known_usd: float = 0.0
    """A month, that the chosen options of those days would have saved by the engine's own figures; mean of the days."""


@dataclass(slots=True)
class Kept:
    """The money of one run, or of several added up."""

    clairvoyant: float = 0.0
    saved: float = 0.0
    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))


def kept(score: Iterable[EndpointScore], causes: Iterable[tuple[int, str, str, float]]) -> Kept:
    """What each cause kept of the clairvoyant's saving; `causes` are (day, endpoint, cause, USD a month known)."""
    said: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for _, name, cause, usd in causes:
        said[name].append((cause, usd))
    found = Kept()
    for one in score:
        could = max(one.base_cost - one.oracle_cost, 0.0)
        did = 0.0 if one.harmed else one.base_cost - one.cost
        found.clairvoyant += could
        found.saved += did
        days = [(HARMED, 0.0)] if one.harmed else said.get(one.name, [])
        for cause, usd in days:
            found.rows[cause].usd += max(could - did, 0.0) / len(days)
            found.rows[cause].known_usd += usd / len(days)
    return found


def added(all_of: Iterable[Kept]) -> Kept:
    """Several runs as one."""
    found = Kept()
    for one in all_of:
        found.clairvoyant += one.clairvoyant
        found.saved += one.saved
        for cause, row in one.rows.items():
            found.rows[cause].usd += row.usd
            found.rows[cause].known_usd += row.known_usd
    return found


def table(found: Kept, runs: int) -> list[str]:
    """The rows as Markdown, the dearest first; US dollars as the mean of the runs."""
    lines = ["| what was said | USD kept | share of the clairvoyant's | USD a month that the engine knew of |"]
    lines.append("|---|---|---|---|")
    whole = found.clairvoyant or 1.0
    lines.append(f"| (saved, nobody harmed) | {found.saved / runs:,.0f} | {100 * found.saved / whole:.1f} % | |")
    for cause, row in sorted(found.rows.items(), key=lambda item: -item[1].usd):
        share = 100 * row.usd / whole
        lines.append(f"| {cause} | {row.usd / runs:,.0f} | {share:.1f} % | {row.known_usd / runs:,.0f} |")
    return lines


def opened(account: str, seed: int, fast: bool) -> Played:
    """The referee's account of that seed, with the days that the issue asks for."""
    accounts, run = importlib.import_module("referee.accounts"), importlib.import_module("referee.run")
    data = importlib.import_module("referee.data")
    days, warmup = days_of(account)
    spec = accounts.Spec(account, seed, data.DEFAULT_DATA.resolve(), data.DEFAULT_FACTS.resolve(), days, warmup, fast)
    return cast("Played", run.Account(spec, 1))


def played(account: str, seed: int, make: type[ShippedAuto], fast: bool) -> tuple[Score, Kept]:
    """One run: its score, and what kept the rest."""
    policy = make()
    world = opened(account, seed, fast)
    try:
        score = world.play(lambda: policy)
    finally:
        world.close()
    return score, kept(score.per_endpoint, policy.causes)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each run, then the table of each account and policy; 2 without a referee."""
    parser = argparse.ArgumentParser(prog="python -m bench.gates", description=__doc__.partition("\n")[0])
    parser.add_argument("--account", default=",".join(ACCOUNTS), help="several with commas between them")
    parser.add_argument("--seeds", default="1", type=numbers, help="whole numbers with commas between them")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated; default: both")
    parser.add_argument("--fast", action="store_true", help="thinned accounts")
    parser.add_argument("--json", type=Path, help="a file that gets a line for each run")
    given = parser.parse_args(arguments)
    if why := no_referee():
        print(why, file=sys.stderr)
        return 2
    sys.path.insert(0, str(folder()))
    for account in given.account.split(","):
        for name in given.policy or POLICIES:
            runs = []
            for seed in map(int, given.seeds.split(",")):
                score, found = played(account, seed, POLICIES[name], given.fast)
                runs.append(found)
                print(line := said_of(account, seed, name, score), flush=True)
                if given.json:
                    record = {"run": line, "account": account, "seed": seed, "policy": name, **numbers_of(score)}
                    with given.json.open("a") as file:
                        file.write(json.dumps(record | {"kept": asdict(found)}) + os.linesep)
            print(
                "\n".join(["", f"{account}, {name}, {len(runs)} seeds", *table(added(runs), len(runs)), ""]), flush=True
            )
    return 0


def numbers_of(score: Score) -> dict[str, float]:
    """The figures that the issue names."""
    return {
        "hfs": 100 * score.hfs,
        "endpoints": score.endpoints,
        "harmed": score.harmed,
        "oom": score.oom,
        "changes": score.changes,
        "rollbacks": score.rollbacks,
        "refused": score.errors,
    }


def said_of(account: str, seed: int, name: str, score: Score) -> str:
    """One run in a line."""
    return (
        f"{account}, seed {seed}, {name}: HFS {100 * score.hfs:.1f} %, harmed {score.harmed} of {score.endpoints},"
        f" roll-backs {score.rollbacks} of {score.changes} changes, out of memory {score.oom}, refused {score.errors}"
    )


if __name__ == "__main__":
    sys.exit(main())
