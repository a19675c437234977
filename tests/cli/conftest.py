"""A simulated account with a fortnight of use, and the command line on it."""

import math
import random
from array import array
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any

import pytest

from rightsizer import bootstrap
from sandbox.account import Sandbox
from tests.once import drawn_once, judged_once, replayed_once

DAYS = 14
PERIODS = DAYS * 288


@pytest.fixture(scope="package", autouse=True)
def compute_equal_things_once() -> Iterator[None]:
    """Accounts of many tests begin with the same fortnight, and the tour judges its endpoints with many commands."""
    with drawn_once(), judged_once(), replayed_once():
        yield


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """An account whose time the program shares."""
    with Sandbox() as account:
        bootstrap.set_clock(lambda: account.clock.now)
        monkeypatch.setenv("COLUMNS", "200")
        yield account
        bootstrap.reset()


def use(box: Sandbox, endpoint: str, gpu: float, requests: float, memory: float = 20.0, gap_periods: int = 0) -> None:
    """A fortnight of steady use, in percent and requests in five minutes, with a gap of `gap_periods` on day four."""
    start = box.clock.now - timedelta(days=DAYS)
    start -= timedelta(seconds=start.timestamp() % 300)
    for metric, values, more in _fortnight(endpoint, gpu, requests, memory, gap_periods):
        box.put_series(endpoint, "AllTraffic", metric, start, 300, values, **more)


@lru_cache(32)
def _fortnight(
    endpoint: str, gpu: float, requests: float, memory: float, gap_periods: int
) -> list[tuple[str, "array[float]", dict[str, Any]]]:
    """The values of each metric, as `put_series` takes them: many tests begin with the same ones."""
    dice = random.Random(endpoint)

    def series(level: float, spread: float = 0.1) -> "array[float]":
        values = [max(0.0, level * (1 + spread * dice.uniform(-1, 1))) for _ in range(PERIODS)]
        return array("d", (math.nan if 1000 <= i < 1000 + gap_periods else v for i, v in enumerate(values)))

    found: list[tuple[str, array[float], dict[str, Any]]] = []
    for metric, level in (("GPUUtilization", gpu), ("CPUUtilization", 20.0), ("MemoryUtilization", 10.0)):
        values = series(level)
        found.append((metric, values, {"samples": 5.0, "maximum": array("d", (1.2 * v for v in values))}))
    held = series(memory, 0.2)
    found.append(("GPUMemoryUtilization", held, {"samples": 5.0, "maximum": array("d", (1.05 * v for v in held))}))
    calls = array("d", (round(count) if count == count else count for count in series(requests)))
    found.append(("Invocations", calls, {}))
    if requests:
        latency = series(80_000.0, 0.05)
        shares = {"p50": 0.9, "p90": 1.2, "p95": 1.4, "p99": 1.8}
        percentiles = {name: array("d", (share * value for value in latency)) for name, share in shares.items()}
        found.append(("ModelLatency", latency, {"samples": 20.0, "percentiles": percentiles}))
    return found
