"""A long run of equal periods, read by slices: a fortnight of a fleet has millions of datapoints.

Exact, and only where it can be: a statistic that needs whole statistic sets is left to the slower way.
"""

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.cloudwatch.store import Block

type Rows = list[tuple[int, float]]


def read(block: "Block", start: int, end: int, period: int, stat: str) -> Rows | None:
    """(epoch second, value) of every period of [start, end); `start` and `end` are multiples of `period`.

    None where slices do not suffice: periods that do not fit, or a percentile over several periods.
    """
    if period % block.period or block.start % block.period:
        return None
    span = block.span(start, end)
    values = _column(block, span, stat, single=period == block.period)
    if values is None:
        return None
    times = [block.start + index * block.period for index in span]
    present = [not math.isnan(total) for total in block.totals[span.start : span.stop]]
    if period == block.period:
        return [(at, value) for at, value, is_there in zip(times, values, present, strict=True) if is_there]
    counts = _counts(block, span) if stat == "Average" else values
    return _folded(times, values, counts, present, period, stat)


def _column(block: "Block", span: range, stat: str, *, single: bool) -> Sequence[float] | None:
    """The statistic of each single period; for a mean over several periods its sums."""
    cut = slice(span.start, span.stop)
    match stat:
        case "Sum":
            return block.totals[cut]
        case "SampleCount":
            return _counts(block, span)
        case "Maximum" if block.highs is not None:
            return block.highs[cut]
        case "Minimum" if block.lows is not None:
            return block.lows[cut]
        case "Average" if not single:
            return block.totals[cut]
        case "Average" | "Maximum" | "Minimum":
            return [
                total / (count or 1.0) for total, count in zip(block.totals[cut], _counts(block, span), strict=True)
            ]
    if single and stat.startswith("p") and stat[1:].isdigit() and float(stat[1:]) in block.quantiles:
        return block.quantiles[float(stat[1:])][cut]
    return None


def _counts(block: "Block", span: range) -> Sequence[float]:
    if isinstance(block.counts, float):
        return array("d", [block.counts]) * len(span)
    return block.counts[span.start : span.stop]


def _folded(
    times: Sequence[int],
    values: Sequence[float],
    counts: Sequence[float],
    present: Sequence[bool],
    period: int,
    stat: str,
) -> Rows:
    buckets: dict[int, tuple[list[float], list[float]]] = {}
    for at, value, count, is_there in zip(times, values, counts, present, strict=True):
        if is_there:
            found = buckets.setdefault(at - at % period, ([], []))
            found[0].append(value)
            found[1].append(count)
    match stat:
        case "Average":
            return [(at, math.fsum(sums) / (math.fsum(weights) or 1.0)) for at, (sums, weights) in buckets.items()]
        case "Maximum":
            return [(at, max(found)) for at, (found, _) in buckets.items()]
        case "Minimum":
            return [(at, min(found)) for at, (found, _) in buckets.items()]
        case _:
            return [(at, math.fsum(found)) for at, (found, _) in buckets.items()]
