"""Use of a language model server's KV cache, from detailed observability, which CloudWatch answers in PromQL only.

Sources: SageMaker guide, "Connect to your observability tool" and "OpenTelemetry metrics reference"; CloudWatch guide,
"QueryMetrics" and "PromQL limits and restrictions" (at most seven days a request, scans of 24 hours, 500 series, 20 s);
vLLM, "Production metrics" (share of the blocks in use, 0 to 1); SGLang, "Production metrics" (token usage, 0 to 1).
Written from these and not tried on AWS (decision 44).
"""

import json
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session, request_threads
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.usage import Grid, Series
from rightsizer.errors import ReadError

METRICS = (
    "vllm:kv_cache_usage_perc",
    "vllm_kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "sglang_token_usage",
)
"""The first that is there at a moment counts. The servers' names have a colon, the guide's sample an underscore; vLLM
before version 1 called it GPU cache."""
PERMISSIONS = "cloudwatch:GetMetricData and cloudwatch:ListMetrics"
"""What QueryMetrics asks for: IAM knows no action of that name (CloudWatch guide, "Query metrics with PromQL")."""
SECONDS = 25.0
"""CloudWatch gives a query up after 20 s."""
LATEST = 2
"""Days without any datapoint, the running one among them, after which no earlier day is asked for."""
WORKERS = 4
LARGEST = 1 << 20
"""Bytes: a day has 288 datapoints of some 30 bytes."""


class KvCaches:
    """Reader of KV caches during one reading of metrics.

    A request that was refused or unanswered once is not sent again.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: Reason | None = None

    def read(self, endpoint: str, variant: str, grid: Grid) -> Series | Reason:
        """The largest share of the cache in use, of all instances, in each period; or why it is not known. Total."""
        if self._failed is not None:
            return self._failed
        values = array("d", [math.nan]) * grid.size
        try:
            for at, share in self._shares(endpoint, variant, grid):
                values[(at - grid.start) // timedelta(seconds=grid.period_s)] = share
        except ReadError as error:
            self._failed = reason_of(error)
            return self._failed
        if all(value != value for value in values):
            return _unpublished_reason(endpoint, variant)
        return Series(grid.start, grid.period_s, values)

    def _shares(self, endpoint: str, variant: str, grid: Grid) -> Iterator[tuple[datetime, float]]:
        ask = partial(self._day, query_of(endpoint, variant, grid.period_s), f"{endpoint}/{variant}")
        days = list(_days(grid))
        latest = [found for day in days[:LATEST] for found in ask(day)]
        yield from latest
        if latest:
            with request_threads(WORKERS) as pool:
                for found in pool.map(ask, days[LATEST:]):
                    yield from found

    def _day(self, query: str, whose: str, day: Grid) -> list[tuple[datetime, float]]:
        purpose = f"reading the KV cache of {whose}"
        first = day.start + timedelta(seconds=day.period_s)
        with translate_read_errors(PERMISSIONS, purpose):
            answer = self._session.client("cloudwatch-promql", seconds=SECONDS).query_metrics(
                Query=query, Start=int(first.timestamp()), End=int(day.end.timestamp()), Step=day.period_s
            )
            body = answer["Body"].read(LARGEST)
        try:
            return list(parse_shares(body, day))
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise ReadError(f"{purpose}: CloudWatch answered what is no share of a cache ({error!r:.120})") from None


def query_of(endpoint: str, variant: str, period_s: int) -> str:
    """The highest share in use of a period and of all instances, as PromQL.

    Names with dots are quoted, as Prometheus 3 and AWS's guide ask for: with underscores in place of the dots nothing
    matches, and nobody says so. The maximum is taken by CloudWatch, so that no limit on series cuts instances off.
    """
    labels = {"aws.sagemaker.endpoint.name": endpoint, "aws.sagemaker.variant.name": variant}
    where = ",".join(f'"{name}"="{value}"' for name, value in labels.items())
    return " or ".join(f'max(max_over_time({{"{metric}",{where}}}[{period_s}s]))' for metric in METRICS)


def parse_shares(body: bytes, day: Grid) -> Iterator[tuple[datetime, float]]:
    """Beginning of the period and share of each datapoint of the day; ValueError and its kin where it is none."""
    answer: Mapping[str, Any] = json.loads(body)
    if answer["status"] != "success" or answer.get("warnings"):
        raise ValueError(str(answer.get("error") or answer.get("warnings") or answer["status"]))
    if answer["data"]["resultType"] != "matrix":
        raise ValueError(f"result type {answer['data']['resultType']}")
    seen: dict[int, float] = {}
    for series in answer["data"]["result"]:
        for at, text in series["values"]:
            share, place = float(text), math.ceil((float(at) - day.start.timestamp()) / day.period_s) - 1
            if share != share or not 0 <= place < day.size:
                continue
            if not 0 <= share <= 1:
                raise ValueError(f"{share} is not between 0 and 1")
            seen[place] = max(share, seen.get(place, 0.0))
    for place, share in seen.items():
        yield day.start + timedelta(seconds=place * day.period_s), share


def _days(grid: Grid) -> Sequence[Grid]:
    """The window in UTC days, the latest first."""
    grids, end = [], grid.end
    while end > grid.start:
        midnight = (end - timedelta(seconds=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        start = max(midnight, grid.start)
        grids.append(Grid(start, end, grid.period_s))
        end = start
    return grids


def _unpublished_reason(endpoint: str, variant: str) -> Reason:
    sentence = f"no KV cache of {endpoint}/{variant} was published, though its configuration has detailed observability"
    return Reason(Code.NO_DATAPOINTS, f"{sentence}; what its server needs of the GPU memory stays unknown")
