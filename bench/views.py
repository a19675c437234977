"""What the referee passes in, as far as the adapter reads it; the referee itself is not imported for types."""

from collections.abc import Iterable
from typing import Any, Protocol


class Type(Protocol):
    name: str


class Day(Protocol):
    day: int
    segments: tuple[Any, ...]
    instance_count_by_hour: tuple[float, ...]
    series: tuple[tuple[tuple[str, str, int], Any], ...]


class View(Protocol):
    endpoint_name: str
    variant_name: str
    instance_type: str
    instance_counts: tuple[int, ...]
    autoscale_max: int | None
    scale_to_zero_minutes: float | None
    routing: str
    slo_p95_ms: float | None
    framework: str
    tags: tuple[tuple[str, str], ...]
    days: tuple[Day, ...]
    trials: tuple[Any, ...]
    notices: tuple[Any, ...]


class Account(Protocol):
    day: int
    catalogue: Iterable[Type]
    endpoints: tuple[View, ...]
