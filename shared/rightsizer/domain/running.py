"""What rightsizer itself used, and what that costs."""

from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.checks import money, named


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """What one Lambda function did in a window, as CloudWatch counted it (namespace AWS/Lambda)."""

    name: str
    memory_mb: int
    invocations: int
    duration_ms: float
    """Sum over the invocations. Lambda bills this rounded up to whole milliseconds, and the start of the runtime."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What of the stack's parameters its cost depends on."""

    arm: bool = True
    """Whether the functions run on arm64."""
    grouped_alarm: bool = False


@dataclass(frozen=True, slots=True)
class CostLine:
    """One part of the running cost."""

    what: str
    usd: Decimal
    how: str
    """The figures behind it, with units and the unit price."""

    def __post_init__(self) -> None:
        named("CostLine.what", self.what)
        money("CostLine.usd", self.usd)


@dataclass(frozen=True, slots=True)
class RunningCost:
    """An estimate for one window, with what it rests on."""

    lines: tuple[CostLine, ...]
    basis: str
    """Where the unit prices come from, their date, and what is not in the sum."""

    @property
    def usd(self) -> Decimal:
        """The sum of the lines."""
        return sum((line.usd for line in self.lines), Decimal(0))
