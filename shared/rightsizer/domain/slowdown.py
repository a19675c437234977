"""How much slower a candidate runs: what is expected of it, and what a decision promised."""

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
class Promise:
    """What the decision took the load and the speed to be, so that the outcome can be held against it."""

    slowdown: float | None
    """GPU seconds of a request on the target over those on what runs today, most likely; None when not known."""
    peak_busy_gpus: float | None
    """Planned GPUs at work in the busiest hour, of the type that the load was measured on."""
    framework: str = ""
    bound: float | None = None
    """What `slowdown` was taken to stay within; None when not known."""
