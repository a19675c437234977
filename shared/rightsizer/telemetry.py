"""The one Logger, the wrapper of every door, and `attempt`, by which one item's failure stays its own.

A log line is bounded: it holds what others wrote, and a name or an error message may be of any length.
"""

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from rightsizer.errors import RightsizerError

LONGEST_TEXT = 4_000
"""Characters of one text in a log line. Messages of changes and stack traces fit."""
LONGEST_LINE = 16_000
"""Characters of a whole line. CloudWatch Logs takes 1 MiB and bills each byte."""
MOST_ITEMS = 100
"""Items of a list or mapping in a log line."""


def limit_line(record: Mapping[str, Any]) -> str:
    """A log record as one line of ASCII JSON with at most `LONGEST_LINE` characters."""
    longest = LONGEST_TEXT
    while True:
        line = json.dumps(_limit_text(record, longest), default=str, separators=(",", ":"))
        if len(line) <= LONGEST_LINE:
            return line
        longest //= 2  # several long texts, or letters that JSON writes as six characters
        if longest < 10:
            return json.dumps({key: str(record.get(key, ""))[:100] for key in ("level", "timestamp", "message")})


def _limit_text(value: Any, longest: int) -> Any:
    """The value with each text cut in its middle: a stack trace says most at its beginning and its end."""
    match value:
        case str():
            half = longest // 2
            if len(value) <= longest:
                return value
            return f"{value[:half]} ... ({len(value)} characters) ... {value[-half:]}"
        case Mapping():
            return {
                _limit_text(str(key), 100): _limit_text(one, longest) for key, one in list(value.items())[:MOST_ITEMS]
            }
        case list() | tuple():
            return [_limit_text(one, longest) for one in value[:MOST_ITEMS]]
        case int() if value.bit_length() > 128:
            return f"a number of {value.bit_length()} bits"
        case None | bool() | int() | float():
            return value
        case _:
            return _limit_text(str(value), longest)


logger = Logger(service="rightsizer", json_serializer=limit_line)

type LambdaHandler = Callable[[Any, Any], Any]

_invocation: ContextVar[EphemeralMetrics | None] = ContextVar("invocation", default=None)
"""Metrics of the invocation that runs. One a call, since the sandbox lets one door call another in the same process."""


def door(name: str) -> Callable[[LambdaHandler], LambdaHandler]:
    """Make a Lambda handler a door: logs carry the request id, metrics are flushed with the door as their dimension."""

    def wrap(handler: LambdaHandler) -> LambdaHandler:
        def counted(event: Any, context: Any) -> Any:
            metrics = EphemeralMetrics(namespace="rightsizer", service="rightsizer")
            metrics.add_dimension("door", name)
            token = _invocation.set(metrics)
            try:
                return handler(event, context)
            finally:
                _invocation.reset(token)
                if metrics.metric_set:
                    metrics.flush_metrics()

        logged: LambdaHandler = logger.inject_lambda_context(counted, clear_state=True)
        return logged

    return wrap


def count(**figures: float) -> None:
    """Add metrics by name, such as ``count(Evaluated=25)``; no endpoint names, since each dimension set is billed.

    A zero is left out: CloudWatch bills a custom metric by each hour in which it is sent, so that a counter of every
    tick costs USD 0.30 a month. Outside a door, at a terminal, there is nobody to read them and nothing is counted.
    """
    measure(**{name: value for name, value in figures.items() if value})


def measure(**figures: float) -> None:
    """Add metrics whose zero says something too, such as ``measure(EndpointsStale=0)``; for what runs once a day."""
    metrics = _invocation.get()
    if metrics is not None:
        for name, value in figures.items():
            metrics.add_metric(name, MetricUnit.Count, value)


@dataclass(frozen=True, slots=True)
class Failure:
    """One item was not done. What was raised is in the log already."""

    error: Exception

    @property
    def is_expected(self) -> bool:
        """Whether the error is one that rightsizer raises on purpose. Anything else is a fault of its own."""
        return isinstance(self.error, RightsizerError)

    def __str__(self) -> str:
        if self.is_expected:
            return str(self.error)
        cause = f"{type(self.error).__name__}: {self.error!s:.300}"
        return f"failed with {cause}; this is a fault of rightsizer, please report it"


def attempt[T](doing: str, item: str, do: Callable[[], T]) -> T | Failure:
    """Result of `do` for one item of several, or a Failure: no error stops another item.

    One of our own errors is logged as a warning. Any other is logged with its stack trace and counted as
    ``UnforeseenErrors``.
    """
    try:
        return do()
    except RightsizerError as error:
        logger.warning("not done", extra={"doing": doing, "item": item, "why": str(error)})
        return Failure(error)
    except Exception as error:
        count(UnforeseenErrors=1)
        logger.exception("not done, by a fault of rightsizer", extra={"doing": doing, "item": item})
        return Failure(error)
