"""What the stack's own functions did, from CloudWatch's metrics of AWS Lambda."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading
from rightsizer.domain.report import FunctionUse

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

PERIOD_S = 3600
"""Hours are kept for 455 days, five minutes only for 63."""


class LambdaUse:
    """Keeps the promise of `ports.OwnUse`."""

    def __init__(self, client: "CloudWatchClient", functions: Mapping[str, int]) -> None:
        self._client = client
        self._functions = dict(functions)

    def used(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        """Invocations and duration of each function in the window; zeros for one that did not run."""
        if not self._functions:
            return ()
        sums = dict.fromkeys((f"{kind}{i}" for kind in ("calls", "time") for i in range(len(self._functions))), 0.0)
        with reading("cloudwatch:GetMetricData", "reading what rightsizer's own functions used"):
            pages = self._client.get_paginator("get_metric_data").paginate(
                MetricDataQueries=list(self._queries()), StartTime=start, EndTime=end
            )
            for page in pages:
                for result in page["MetricDataResults"]:
                    sums[result["Id"]] += sum(result["Values"])
        return tuple(
            FunctionUse(name, memory, round(sums[f"calls{i}"]), sums[f"time{i}"])
            for i, (name, memory) in enumerate(self._functions.items())
        )

    def _queries(self) -> Iterator[Any]:
        for i, name in enumerate(self._functions):
            for kind, metric in (("calls", "Invocations"), ("time", "Duration")):
                measured = {
                    "Namespace": "AWS/Lambda",
                    "MetricName": metric,
                    "Dimensions": [{"Name": "FunctionName", "Value": name}],
                }
                yield {"Id": f"{kind}{i}", "MetricStat": {"Metric": measured, "Period": PERIOD_S, "Stat": "Sum"}}
