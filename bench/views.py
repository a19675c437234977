"""What the referee passes in and what answers it, as far as the adapter uses them, without a type of the referee."""

from collections.abc import Iterable
from typing import Protocol


class Type(Protocol):
    name: str


class Values(Protocol):
    """A series: 8-byte floats, one a minute of the day where the period is 60 s; NaN is no datapoint."""

    def tobytes(self) -> bytes: ...


class Segment(Protocol):
    """Minutes of a day, from `start` to before `end`, on one type."""

    start: int
    end: int
    instance_type: str


class Day(Protocol):
    day: int
    segments: tuple[Segment, ...]
    instance_count_by_hour: tuple[float, ...]
    series: tuple[tuple[tuple[str, str, int], Values], ...]


class Trial(Protocol):
    """The result of a shadow test; figures are None where the model did not fit."""

    day: int
    instance_type: str
    production_type: str
    hours: float
    fits: bool
    requests: int
    latency_mean_ms: float | None
    production_latency_mean_ms: float | None
    gpu_busy_s_per_request: float | None
    gpu_memory_max_gib: float | None


class Notice(Protocol):
    """Something that happened; `kind` is deployed, rolled-back, update-failed, action-refused or trial-finished."""

    day: int
    kind: str
    text: str
    instance_type: str
    instance_counts: tuple[int, ...]


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
    days_since_last_change: int
    days: tuple[Day, ...]
    trials: tuple[Trial, ...]
    notices: tuple[Notice, ...]
    hosting: str
    """real-time, inference-components or async."""


class Account(Protocol):
    day: int
    catalogue: Iterable[Type]
    endpoints: tuple[View, ...]


class Actions(Protocol):
    """The module `referee.actions`: each call makes an answer for one endpoint, which only the referee looks into."""

    def Deploy(  # noqa: N802
        self,
        instance_type: str,
        instance_count: tuple[int, ...],
        *,
        autoscale_max: int | None,
        routing: str | None,
        guard: bool,
    ) -> object: ...

    def Trial(self, instance_type: str, hours: float) -> object: ...  # noqa: N802

    def ScaleToZeroWhenIdle(self, minutes: float) -> object: ...  # noqa: N802
