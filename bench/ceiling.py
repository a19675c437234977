"""What a clairvoyant saves with what the product can carry out: `python -m bench.ceiling --account mixed --seeds 1,2`.

The clairvoyant of the referee may choose other counts for each day and sleep where the kind of endpoint allows it. Here
it is held to three sets of actions, each harmless by the referee's own limits, in per cent of what the referee's saves:

types      another type with one constant count, on what the program changes (not on inference components)
asleep     the same, and no instance while nobody calls (asynchronous endpoints), or while nobody calls inference
           components whose callers tolerate cold starts
staged     the same, and then either 24 hourly counts, the same on every day, or target tracking from a lower minimum

It reads the referee's truth, so it measures and decides nothing.
"""

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.replay import days_of, folder, no_referee, numbers

SETS = ("types", "asleep", "staged")
CHANGED = ("real-time", "async")
"""Hosting of which the program changes type and count."""


@dataclass(frozen=True, slots=True)
class Bills:
    """US dollars of one endpoint over the scored days: unchanged, the referee's clairvoyant, and by set of actions."""

    base: float
    best: float
    types: float
    asleep: float
    staged: float


def shares(bills: Iterable[Bills]) -> dict[str, float]:
    """What each set saves, in per cent of the referee's clairvoyant."""
    rows = list(bills)
    whole = sum(row.base - row.best for row in rows) or 1.0
    return {name: 100 * sum(row.base - min(row.base, getattr(row, name)) for row in rows) / whole for name in SETS}


def same_hours(plans: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The smallest 24 counts that are enough for the plan of each day."""
    return tuple(max(hour) for hour in zip(*plans, strict=True))


def bills_of(truth: Any, warmup: int) -> Bills:
    """The bills of one endpoint; `truth` is the referee's."""
    oracle = importlib.import_module("referee.oracle")
    result = oracle.clairvoyant(truth, warmup)
    base = result.base_cost
    if truth.hosting not in CHANGED:
        alone = slept(searched(truth, warmup), truth.original, base) if truth.tolerates_cold else base
        return Bills(base, result.best_cost, base, alone, alone)
    search = searched(truth, warmup)
    found = sorted(oracle._static_options(search), key=lambda row: row[0])[: oracle.FINALISTS]
    asleep = staged = result.static_cost
    for _, config in found:
        asleep = min(asleep, slept(search, config, asleep))
        staged = min(staged, in_hours(search, config, staged), oracle._autoscaled(search, config, staged))
    if truth.original.autoscale_max:
        staged = min(staged, oracle._autoscaled(search, truth.original, staged))
    return Bills(base, min(result.best_cost, base), result.static_cost, asleep, min(asleep, staged))


def searched(truth: Any, warmup: int) -> Any:
    """The referee's search for that endpoint, with the harm that it allows."""
    oracle, score = importlib.import_module("referee.oracle"), importlib.import_module("referee.score")
    events = importlib.import_module("referee.truth").events
    days = range(warmup, len(truth.days))
    base = [truth.run(day, truth.original) for day in days]
    bad, requests = sum(int(run.bad.sum()) for run in base), sum(len(run.bad) for run in base)
    kills = sum(events(run.out_of_memory) for run in base)
    cost = sum(run.cost_usd for run in base)
    return oracle._Search(truth, days, bad + score.allowed_excess(requests), kills, cost)


def slept(search: Any, config: Any, best: float) -> float:
    """The bill with no instance while a queue is empty; `best` where that is no less or not possible."""
    oracle, truth = importlib.import_module("referee.oracle"), importlib.import_module("referee.truth")
    if search.truth.hosting == truth.REAL_TIME:
        return best
    for minutes in oracle.IDLE_MINUTES:
        runs = search.serve([replace(config, idle_s=60.0 * minutes)] * len(search.days))
        if search.feasible(runs):
            return min(best, float(sum(run.cost_usd for run in runs)))
    return best


def in_hours(search: Any, config: Any, best: float) -> float:
    """The bill with hourly counts, the same on every day, at the lowest harmless quantile of the concurrency."""
    oracle, truth = importlib.import_module("referee.oracle"), importlib.import_module("referee.truth")
    numpy, most = importlib.import_module("numpy"), max(config.counts)
    if most == 1:
        return best
    workers = search.truth.workers(search.truth.catalogue[config.instance_type])
    roomy = truth.steady(config.instance_type, 4 * most)
    load = [oracle._concurrency(search.truth.simulate(day, roomy)) for day in search.days]
    for quantile in oracle.QUANTILES:
        plans = [
            [int(numpy.clip(numpy.ceil(numpy.quantile(h, quantile) / workers), 1, most)) if len(h) else 1 for h in day]
            for day in load
        ]
        runs = search.serve([replace(config, counts=same_hours(plans))] * len(search.days))
        if not search.feasible(runs):
            break
        best = min(best, sum(run.cost_usd for run in runs))
    return best


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each account and seed; 2 without a referee."""
    parser = argparse.ArgumentParser(prog="python -m bench.ceiling", description=__doc__.partition("\n")[0])
    parser.add_argument("--account", default="gentd,mixed,lora,events", help="several with commas between them")
    parser.add_argument("--seeds", default="1", type=numbers, help="whole numbers with commas between them")
    parser.add_argument("--fast", action="store_true", help="thinned accounts")
    given = parser.parse_args(arguments)
    if why := no_referee():
        print(why, file=sys.stderr)
        return 2
    sys.path.insert(0, str(folder()))
    accounts, data = importlib.import_module("referee.accounts"), importlib.import_module("referee.data")
    catalogue = importlib.import_module("referee.catalogue").load_catalogue(data.DEFAULT_FACTS.resolve())
    for account in given.account.split(","):
        for seed in map(int, given.seeds.split(",")):
            days, warmup = days_of(account)
            where = (data.DEFAULT_DATA.resolve(), data.DEFAULT_FACTS.resolve())
            spec = accounts.Spec(account, seed, *where, days, warmup, given.fast)
            found = shares([bills_of(build(), warmup) for build in accounts.builders(spec, catalogue)])
            text = ", ".join(f"{name} {share:.1f} %" for name, share in found.items())
            print(f"{account}, seed {seed}: {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
