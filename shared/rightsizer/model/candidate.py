"""What a candidate type would do to the endpoint, before it is priced."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much slower the GPU part runs on a candidate: 2.0 is half as fast. Ordered hopeful <= mid <= bound."""

    bound: float
    mid: float
    hopeful: float
    phi: float
    """Datasheet ratio: the larger of the FLOPS and the bandwidth ratio."""
    source: Literal["same", "datasheet", "tested", "learnt"]


@dataclass(frozen=True, slots=True)
class Goal:
    """The latency that must hold, seconds."""

    p95_s: float
    declared: bool
    source: str
