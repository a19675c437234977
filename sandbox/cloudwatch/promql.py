"""CloudWatch's Prometheus-compatible API, as far as one query needs it: the highest of a metric over a while.

Sources: CloudWatch guide, "QueryMetrics" and "PromQL limits and restrictions" (seven days, 500 series); SageMaker
guide, "Connect to your observability tool" (labels with dots are quoted). Underscores in their place match nothing and
are no error. [assumed]: dots without quotes are refused as Prometheus refuses them; what is cut off has a warning.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from sandbox.strict import on

ENDPOINT, VARIANT, HOST = "aws.sagemaker.endpoint.name", "aws.sagemaker.variant.name", "@resource.host.id"
QUERY = "QueryMetrics"
LONGEST, MOST_SERIES = 7 * 86400, 500
_TERM = re.compile(r"(max\()?max_over_time\(\{([^{}]*)\}\[(\d+)s\]\)(?(1)\))")
_MATCHER = re.compile(r"(?:\"([^\"]+)\"|([A-Za-z_]\w*))\s*=\s*\"([^\"]*)\"|\"([^\"]+)\"")

type Answer = tuple[int, dict[str, str], str]
type Points = dict[int, float]


@dataclass(slots=True)
class Told:
    """One OpenTelemetry series: its labels, ``__name__`` among them, and value by epoch second."""

    labels: Mapping[str, str]
    values: dict[int, float]


@dataclass(slots=True)
class Telemetry:
    """Every OpenTelemetry series of the account."""

    series: list[Told] = field(default_factory=list)

    def put(
        self, metric: str, endpoint: str, variant: str, start: datetime, period_s: int, values: Sequence[float],
        host: str = "i-0",
    ) -> None:  # fmt: skip
        """A run of datapoints, one in the middle of each period; NaN is none."""
        first = int(start.timestamp()) + period_s // 2
        told = {first + i * period_s: value for i, value in enumerate(values) if value == value}
        self.series.append(Told({"__name__": metric, ENDPOINT: endpoint, VARIANT: variant, HOST: host}, told))

    def answer(self, url: str) -> Answer:
        """What ``GET /api/v1/query_range`` answers."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        try:
            query, start, end, step = (given[name] for name in ("query", "start", "end", "step"))
            if float(end) - float(start) > LONGEST and on(QUERY, "range"):
                return _refusal("the range is longer than 7 days")
            if int(step) <= 0 and on(QUERY, "step"):
                return _refusal("zero or negative query resolution step widths are not accepted")
            found = list(self._evaluated(query, range(int(start), int(end) + 1, int(step))))
        except (KeyError, ValueError) as error:
            return _refusal(str(error))
        warnings = ["the result was cut off at 500 series"] if len(found) > MOST_SERIES else []
        rows = [
            {"metric": dict(labels), "values": [[at, str(value)] for at, value in sorted(points.items())]}
            for labels, points in found[:MOST_SERIES]
        ]
        body = {"status": "success", "data": {"resultType": "matrix", "result": rows}}
        return 200, _JSON, json.dumps(body | ({"warnings": warnings} if warnings else {}))

    def _evaluated(self, query: str, moments: range) -> Iterator[tuple[Mapping[str, str], Points]]:
        """Series of the terms, joined by `or`: of two with equal labels the former one, moment by moment."""
        found: dict[frozenset[tuple[str, str]], Points] = {}
        for text in query.split(" or "):
            term = _TERM.fullmatch(text.strip())
            if term is None and on(QUERY, "parse"):
                raise ValueError(f"parse error in {text!r}")
            assert term is not None
            for labels, points in self._term(term, moments):
                found[frozenset(labels.items())] = points | found.get(frozenset(labels.items()), {})
        yield from ((dict(labels), points) for labels, points in found.items() if points)

    def _term(self, term: re.Match[str], moments: range) -> Iterator[tuple[Mapping[str, str], Points]]:
        wanted, width = _matchers(term[2]), int(term[3])
        matching = [one for one in self.series if all(one.labels.get(k) == v for k, v in wanted.items())]
        rows = [
            ({k: v for k, v in one.labels.items() if k != "__name__"}, _over(one, moments, width)) for one in matching
        ]
        if term[1] is None:
            yield from rows
            return
        highest: Points = {}
        for _, points in rows:
            for at, value in points.items():
                highest[at] = max(value, highest.get(at, -math.inf))
        yield {}, highest


def _matchers(text: str) -> Mapping[str, str]:
    """Labels and values of a selector. A metric's name stands alone in quotes (Prometheus 3)."""
    wanted = {}
    for part in text.split(","):
        match = _MATCHER.fullmatch(part.strip())
        if match is None and on(QUERY, "parse"):
            raise ValueError(f"parse error in the selector at {part!r}")
        assert match is not None
        name = "__name__" if match[4] else match[1] or match[2]
        wanted[name] = match[4] or match[3]
    if "__name__" not in wanted and on(QUERY, "name"):
        raise ValueError("a metric must be selected by its name")
    return wanted


def _over(one: Told, moments: range, width: int) -> Points:
    """The highest value of the `width` seconds up to each moment, the moment itself among them (Prometheus 3)."""
    times = sorted(one.values)
    spans = ((at, times[bisect_right(times, at - width) : bisect_right(times, at)]) for at in moments)
    return {at: max(one.values[second] for second in span) for at, span in spans if span}


def _refusal(text: str) -> Answer:
    return 400, _JSON, json.dumps({"status": "error", "errorType": "bad_data", "error": text})


_JSON = {"content-type": "application/json"}
