"""The one Logger and the one Metrics, and the wrapper that every door wears."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger(service="rightsizer")
metrics = Metrics(namespace="rightsizer", service="rightsizer")

type Handler = Callable[[Any, Any], Any]


def door(name: str) -> Callable[[Handler], Handler]:
    """Make a Lambda handler a door: logs carry the request id, metrics are flushed with the door as their dimension."""

    def wrap(handler: Handler) -> Handler:
        def counted(event: Any, context: Any) -> Any:
            metrics.add_dimension("door", name)
            count(Invoked=1)
            return handler(event, context)

        flushed: Handler = metrics.log_metrics(counted)
        logged: Handler = logger.inject_lambda_context(flushed, clear_state=True)
        return logged

    return wrap


def count(**figures: float) -> None:
    """Add metrics by name, such as ``count(Evaluated=25)``; no endpoint names, since each dimension set is billed."""
    for name, value in figures.items():
        metrics.add_metric(name, MetricUnit.Count, value)
