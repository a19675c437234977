"""Metrics Insights, for exactly one form of query: an average grouped by all of its dimensions.

``SELECT AVG(metric) FROM SCHEMA("namespace", D1, D2) GROUP BY D1, D2 ORDER BY AVG() ASC``. SCHEMA matches series with
exactly these dimensions; GROUP BY and ORDER BY are both needed in an alarm of many series; at most 500 series come back
(user guide: cloudwatch-metrics-insights-querylanguage, -alarms, -limits). Every other query is refused.
"""

import re
from dataclasses import dataclass

from sandbox.cloudwatch.store import Key, MetricStore

_QUERY = re.compile(
    r'SELECT AVG\((?P<metric>\w+)\) FROM SCHEMA\("(?P<namespace>[^"]+)", (?P<schema>\w+(?:, \w+)*)\) '
    r"GROUP BY (?P<group>\w+(?:, \w+)*) ORDER BY AVG\(\) (?P<order>ASC|DESC)"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that is simulated."""

    metric: str
    namespace: str
    dimensions: tuple[str, ...]
    ascending: bool


def is_query(expression: str) -> bool:
    """Whether the expression is the simulated form."""
    return _match(expression) is not None


def _match(expression: str) -> re.Match[str] | None:
    match = _QUERY.fullmatch(" ".join(expression.split()))
    return match if match and match["schema"] == match["group"] else None


def parse(expression: str) -> Query:
    """The query; only for an expression that `is_query`."""
    match = _match(expression)
    assert match is not None
    return Query(match["metric"], match["namespace"], tuple(match["schema"].split(", ")), match["order"] == "ASC")


def series(query: Query, store: MetricStore, start: int, end: int, period: int) -> dict[Key, list[tuple[int, float]]]:
    """Up to 500 series with data in [start, end), lowest (or highest) average first."""
    names = set(query.dimensions)
    rows = {
        key: found
        for key in store.known()
        if key[:2] == (query.namespace, query.metric) and {name for name, _ in key[2]} == names
        if (found := store.read(key, start, end, period, "Average"))
    }
    mean = {key: sum(value for _, value in found) / len(found) for key, found in rows.items()}
    kept = sorted(rows, key=lambda key: mean[key], reverse=not query.ascending)[:500]
    return {key: rows[key] for key in kept}
