"""Demands, options and past changes made by hand, for tests of one rule at a time: no window is folded for them."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.demand import Demand, Latency, Load, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import Accelerator
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Effort, Option, OptionKind, Risk, Target
from rightsizer.domain.price import Price
from tests.recommender import kit

PRICE = Price("ml.g5.xlarge", "us-east-1", Decimal("1.408"), "snapshot", "direct-hosting", "2026-09")
NEED = MemoryNeed(MemoryClass.STATIC, need_gib=10.0, lower_gib=9.0, peak_gib=9.0, margin=1.1)
LATENCY = Latency(mean_s=0.5, p50_s=0.4, p95_s=1.0, p99_s=2.0, squared_variation=1.0)
DEMAND = Demand(
    days=14.0,
    valid_share=1.0,
    requests=50_000.0,
    confidence=14.0,
    load=Load(2.0, 1.0, (2.0,) * 24, True, 0.5),
    latency=LATENCY,
    gpu_s_per_request=0.1,
    gpu_share=1.0,
    concurrency=1.0,
    memory=NEED,
    host_memory_gib=10.0,
    vcpu=4.0,
    cpu_p95=0.3,
    gpu_mean=0.1,
    gpu_peak=0.3,
    gpus_used=None,
    error_share=0.0,
    silent_days=0,
)
OPTION = Option(
    kind=OptionKind.INSTANCE_TYPE,
    target=Target("ml.g5.xlarge", 1),
    price=PRICE,
    usd_per_month=Decimal(1000),
    saving_usd_per_month=Decimal(600),
    switch_usd=Decimal(2),
    payback_days=0.5,
    risks={},
    risk=Risk.LOW,
    confidence=14.0,
    effort=Effort.LOW,
    restart_needed=True,
    rollback_possible=True,
    in_place=True,
    client_change="",
    p95_s=1.0,
)


def card(name: str) -> Accelerator:
    """The accelerator of a type that has one."""
    found = kit.catalogue().types[name].accelerator
    assert found is not None
    return found


def demand(**more: Any) -> Demand:
    """Two weeks of a steady load, with `more` said of it."""
    return replace(DEMAND, **more)


def option(**more: Any) -> Option:
    """One instance of another type, which saves USD 600 a month."""
    return replace(OPTION, **more)


def past(
    to_type: str = "ml.g5.xlarge",
    days_ago: float = 10.0,
    from_type: str = "ml.g6e.xlarge",
    counts: tuple[int, int] = (1, 1),
    ended: PastEnd = PastEnd.PROVEN,
    **more: Any,
) -> PastChange:
    """A change of one instance of today's type to another type, ten days ago, which was proven."""
    return PastChange(kit.NOW - timedelta(days=days_ago), from_type, to_type, *counts, ended, **more)


def near(value: float | tuple[float, ...]) -> Any:
    """About `value`, also as a part of a tuple or of a dataclass."""
    return pytest.approx(value)
