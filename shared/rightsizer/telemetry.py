"""The one Logger, and the wrapper that every door wears: a request id on each log line, metrics of each invocation."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

logger = Logger(service="rightsizer")

type Handler = Callable[[Any, Any], Any]

_invocation: ContextVar[EphemeralMetrics | None] = ContextVar("invocation", default=None)
"""Metrics of the invocation that runs. One a call, since the sandbox lets one door call another in the same process."""


def door(name: str) -> Callable[[Handler], Handler]:
    """Make a Lambda handler a door: logs carry the request id, metrics are flushed with the door as their dimension."""

    def wrap(handler: Handler) -> Handler:
        def counted(event: Any, context: Any) -> Any:
            metrics = EphemeralMetrics(namespace="rightsizer", service="rightsizer")
            metrics.add_dimension("door", name)
            token = _invocation.set(metrics)
            try:
                count(Invoked=1)
                return handler(event, context)
            finally:
                _invocation.reset(token)
                metrics.flush_metrics()

        logged: Handler = logger.inject_lambda_context(counted, clear_state=True)
        return logged

    return wrap


def count(**figures: float) -> None:
    """Add metrics by name, such as ``count(Evaluated=25)``; no endpoint names, since each dimension set is billed.

    Outside a door, at a terminal, there is nobody to read them and nothing is counted.
    """
    metrics = _invocation.get()
    if metrics is not None:
        for name, value in figures.items():
            metrics.add_metric(name, MetricUnit.Count, value)
