"""A simulated account with a fortnight of use, and the command line on it."""

import math
import random
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rightsizer import bootstrap
from sandbox.account import Sandbox

DAYS = 14
PERIODS = DAYS * 288


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
    dice = random.Random(endpoint)

    def series(level: float, spread: float = 0.1) -> list[float]:
        values = [max(0.0, level * (1 + spread * dice.uniform(-1, 1))) for _ in range(PERIODS)]
        return [math.nan if 1000 <= i < 1000 + gap_periods else value for i, value in enumerate(values)]

    for metric, level in (("GPUUtilization", gpu), ("CPUUtilization", 20.0), ("MemoryUtilization", 10.0)):
        values = series(level)
        box.put_series(
            endpoint, "AllTraffic", metric, start, 300, values, samples=5.0, maximum=[1.2 * v for v in values]
        )
    held = series(memory, 0.2)
    box.put_series(
        endpoint, "AllTraffic", "GPUMemoryUtilization", start, 300, held, samples=5.0, maximum=[1.05 * v for v in held]
    )
    calls = [float(round(count)) if count == count else count for count in series(requests)]
    box.put_series(endpoint, "AllTraffic", "Invocations", start, 300, calls)
    if requests:
        latency = series(80_000.0, 0.05)
        shares = {"p50": 0.9, "p90": 1.2, "p95": 1.4, "p99": 1.8}
        percentiles = {name: [share * value for value in latency] for name, share in shares.items()}
        box.put_series(
            endpoint, "AllTraffic", "ModelLatency", start, 300, latency, samples=20.0, percentiles=percentiles
        )
