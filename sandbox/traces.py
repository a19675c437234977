"""Load shapes from real GPU serving traces, for `make demo TRACES=dir` and tests. Needs numpy.

File: ``gentd26_minutes.npz``, busy GPU share of image-generation serving containers, one day in minutes (alibaba
clusterdata, cluster-trace-v2026-GenAI). It has no request rates and no week: the share stands for the load, and the day
is repeated, each day scaled and shifted a little so that days differ.
"""

import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

FILE = "gentd26_minutes.npz"

type Relative = Callable[[datetime], float]
"""Load at a moment, relative to the busiest minutes of the trace: 0 to about 1.1."""


def shapes(directory: Path, count: int, seed: int = 1) -> list[Relative]:
    """The `count` busiest containers as load shapes, busiest first; FileNotFoundError names the missing file."""
    import numpy as np

    source = directory / FILE
    if not source.is_file():
        raise FileNotFoundError(f"{source} is missing: TRACES must name a directory that holds {FILE}")
    with np.load(source) as data:
        busy = np.nan_to_num(data["gpu"][:, :1440], nan=0.0)
    if count > len(busy):
        raise ValueError(f"{source} has {len(busy)} containers, {count} were asked for")
    order = np.argsort(-busy.mean(axis=1), kind="stable")[:count]
    made: list[Relative] = []
    for place, row in enumerate(order):
        top = float(np.percentile(busy[row], 99)) or 1.0
        day = [min(1.0, float(value) / top) for value in busy[row]]
        made.append(_repeated(day, f"{seed}/{place}"))
    return made


def _repeated(day: list[float], key: str) -> Relative:
    days: dict[int, tuple[float, int]] = {}

    def shape(at: datetime) -> float:
        number = at.toordinal()
        if number not in days:
            dice = random.Random(f"{key}/{number}")
            days[number] = dice.uniform(0.85, 1.1), dice.randrange(-20, 21)
        scale, shift = days[number]
        return day[(at.hour * 60 + at.minute + shift) % 1440] * scale

    return shape
