"""Slowdown of a candidate: the expected one, and the one that a decision promised."""

from dataclasses import dataclass
from enum import StrEnum


class SlowdownSource(StrEnum):
    """Source of a slowdown."""

    SAME = "same"
    """Both types have the same accelerator."""
    DATASHEET = "datasheet"
    """Datasheets, and the spread of other people's measurements around them."""
    LEARNT = "learnt"
    """Datasheets, and the spread of this account's own outcomes around them."""
    TESTED = "tested"
    """A test or a change of this endpoint measured it."""

    @property
    def is_measured(self) -> bool:
        """Whether a test or a change of this endpoint measured it."""
        return self is SlowdownSource.TESTED

    @property
    def is_guess(self) -> bool:
        """Whether it follows from datasheets."""
        return self in (SlowdownSource.DATASHEET, SlowdownSource.LEARNT)


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much slower the GPU part runs on a candidate: 2.0 is half as fast. Ordered hopeful <= mid <= bound."""

    bound: float
    mid: float
    hopeful: float
    phi: float
    """Datasheet ratio: the larger of the FLOPS and the bandwidth ratio."""
    source: SlowdownSource


@dataclass(frozen=True, slots=True)
class Promise:
    """Load and speed that the decision assumed, to compare the outcome with."""

    slowdown: float | None
    """GPU seconds of a request on the target over those on what runs today, most likely; None when not known."""
    peak_busy_gpus: float | None
    """Planned GPUs at work in the busiest hour, of the type that the load was measured on."""
    framework: str = ""
    bound: float | None = None
    """What `slowdown` was taken to stay within; None when not known."""
    latency_ratio: float | None = None
    """Latency of a request that does not wait over today's, at most; None in what older releases stored."""
