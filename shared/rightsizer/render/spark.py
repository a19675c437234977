"""Two weeks in one line of text."""

import math
from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
GAP = "·"


def folded(values: Sequence[float | None], width: int) -> list[float]:
    """At most `width` values: the highest of each stretch, so that no peak is hidden; NaN where all are unknown."""
    known = [math.nan if value is None else value for value in values]
    if len(known) <= width:
        return known
    edges = [round(i * len(known) / width) for i in range(width + 1)]
    return [_highest(known[a:b]) for a, b in pairwise(edges)]


def sparkline(values: Sequence[float | None], width: int = 56) -> str:
    """The values as bars from zero to their highest; a dot marks what is unknown. Empty without any value."""
    shown = folded(values, width)
    top = max((v for v in shown if math.isfinite(v)), default=0.0)
    return "".join(_bar(value, top) for value in shown)


def _bar(value: float, top: float) -> str:
    if not math.isfinite(value):
        return GAP
    height = min(1.0, max(0.0, value / top)) if top > 0 else 0.0
    return BARS[max(0, math.ceil(len(BARS) * height) - 1)]


def highest(values: Sequence[float | None]) -> float:
    """The highest value that is known; 0 where none is."""
    return max((v for v in values if v is not None and math.isfinite(v)), default=0.0)


def _highest(values: Sequence[float]) -> float:
    return max((v for v in values if math.isfinite(v)), default=math.nan)
