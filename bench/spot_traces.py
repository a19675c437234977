"""Spot capacity traces: which pools had how many instances to give, over time."""

import csv
import lzma
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rightsizer.domain.spot import Pool
from rightsizer.errors import InputError

PLENTY = 10**6
"""A zone trace says yes or no; yes is read as: as many as are asked for."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Pools that one group could use, on one clock."""

    name: str
    changes: dict[Pool, tuple[tuple[float, int], ...]]
    """(second, instances to be had from then on), rising; before the first there are none."""
    end: float
    target: int = 8
    """Instances that the group wants."""

    @property
    def days(self) -> float:
        """Length in days."""
        return self.end / 86400


def load(folder: Path) -> list[Scenario]:
    """The scenarios of a folder: zones by trace, capacity and Region, all zones together, and each fleet."""
    folder = folder / "spot" if (folder / "spot").is_dir() else folder
    zones, fleets = folder / "zones.csv.xz", folder / "fleets.csv"
    if not zones.exists() and not fleets.exists():
        raise InputError(
            f"reading Spot traces from {folder}: neither zones.csv.xz nor fleets.csv is there; "
            "name the folder that holds them with --traces DIR"
        )
    found = _zone_scenarios(zones) if zones.exists() else []
    return found + (_fleet_scenarios(fleets) if fleets.exists() else [])


def _zone_scenarios(path: Path) -> list[Scenario]:
    series: dict[tuple[str, str], dict[Pool, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    ends: dict[tuple[str, str], float] = defaultdict(float)
    with lzma.open(path, "rt", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                key = (row["trace"], row["capacity"])
                step, first, steps = float(row["step_seconds"]), int(row["first_step"]), int(row["steps"])
                room = PLENTY if int(row["available"]) else 0
                series[key][Pool(row["capacity"], row["zone"])].append((first * step, room))
            except (KeyError, ValueError, TypeError) as error:
                raise InputError(f"reading {path}: line {number} is malformed: {error!r}") from None
            ends[key] = max(ends[key], (first + steps) * step)
    found = []
    for (trace, capacity), pools in sorted(series.items()):
        changes = {pool: _simplified(runs) for pool, runs in sorted(pools.items())}
        groups: dict[str, dict[Pool, tuple[tuple[float, int], ...]]] = defaultdict(dict)
        for pool, runs in changes.items():
            groups[pool.zone[:-1]][pool] = runs
        label = f"{trace.rsplit('/', 1)[-1].removeprefix('aws-')} {capacity}"
        for region, members in sorted(groups.items()):
            found.append(Scenario(f"{label} {region} ({len(members)} zones)", members, ends[trace, capacity]))
        if len(groups) > 1:
            found.append(Scenario(f"{label} all ({len(changes)} zones)", changes, ends[trace, capacity]))
    return found


def _fleet_scenarios(path: Path) -> list[Scenario]:
    nodes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                nodes[row["trace"]].append((float(row["second"]), int(row["nodes_after"])))
            except (KeyError, ValueError, TypeError) as error:
                raise InputError(f"reading {path}: line {number} is malformed: {error!r}") from None
    return [
        Scenario(
            f"fleet {trace} (1 pool)",
            {Pool(trace, "fleet"): _simplified(runs)},
            max(at for at, _ in runs),
            max(1, *(room for _, room in runs)),
        )
        for trace, runs in sorted(nodes.items())
    ]


def _simplified(runs: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """The last value of each second, and only real changes."""
    latest = dict(sorted(runs, key=lambda run: run[0]))
    kept: list[tuple[float, int]] = []
    for at, room in latest.items():
        if not kept or kept[-1][1] != room:
            kept.append((at, room))
    return tuple(kept)
